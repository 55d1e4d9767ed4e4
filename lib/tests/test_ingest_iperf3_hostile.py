"""iperf3: what becomes of documents with wrong members, and of files that are none."""

import pytest
from iperf3_recorded import FOLDER, RECORDED, as_tables, changed
from reading import read_iperf3

from wanbench.errors import RawDataError
from wanbench.read.ingest import iperf3


def places(value, path=()):
    """Where every member of a document is."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, member in items:
        yield from places(member, (*path, name))


HOSTILE = [
    KeyError,
    None,
    True,
    -1,
    1.5,
    10**300,
    -(10**300),
    float("nan"),
    float("inf"),
    "12",
    "",
    [],
    {},
    [1],
    [[]],
    "\ud800",
]


@pytest.mark.parametrize("value", HOSTILE, ids=[str(n) for n in range(len(HOSTILE))])
def test_every_member_may_be_anything(value):
    """Each member of a real document, replaced: rows that are valid, or a RawDataError."""
    transfers, intervals = [], []
    for path in places(RECORDED):
        try:
            more = iperf3.read(changed(path, value))
        except RawDataError as error:
            assert error.line_number == 1 and error.expected
        else:
            transfers += more["transfers"]
            intervals += more["intervals"]
    assert transfers and intervals, "most members are not needed"
    as_tables(transfers, intervals)


@pytest.mark.parametrize(
    ("path", "value", "found"),
    [
        (("end", "sum_received", "bytes"), "12", "end.sum_received.bytes = '12'"),
        (("end", "sum_received", "seconds"), -1, "end.sum_received.seconds = -1"),
        (("end", "sum_received", "bits_per_second"), True, "end.sum_received.bits_per_second = True"),
        (("end", "sum_received", "bytes"), 10**300, "end.sum_received.bytes = a huge number"),
        (("end", "sum_received"), [], "end.sum_received = []"),
        (("intervals", 1, "streams", 0, "bytes"), 1.5, "intervals[1].streams[0].bytes = 1.5"),
        (("intervals", 1, "streams", 0, "omitted"), "no", "intervals[1].streams[0].omitted = 'no'"),
        (("intervals", 1, "streams", 0, "rtt"), "fast", "intervals[1].streams[0].rtt = 'fast'"),
        (("intervals", 0), 5, "intervals = 5"),
        (("start", "test_start", "protocol"), "ICMP", "start.test_start.protocol = 'ICMP'"),
        (("start", "timestamp", "timesecs"), 1e12, "start.timestamp.timesecs = 1000000000000.0"),
        (("intervals", 0, "streams", 0, "bytes"), KeyError, "intervals[0].streams[0] with socket, start, end"),
    ],
)
def test_what_is_wrong_is_named(path, value, found):
    with pytest.raises(RawDataError) as error:
        read_iperf3(changed(path, value))
    assert error.value.found.startswith(found)


@pytest.mark.parametrize("factor", [0.98, 1.02, 8, 1 / 8, 0, 1000])
@pytest.mark.parametrize("path", [("end", "sum_received"), ("end", "sum_sent"), ("intervals", 0, "streams", 0)])
def test_rates_that_do_not_fit_are_refused(path, factor):
    part = RECORDED
    for name in path:
        part = part[name]
    data = changed((*path, "bits_per_second"), part["bits_per_second"] * factor)
    with pytest.raises(RawDataError, match=r"within 1 % of bits_per_second"):
        read_iperf3(data)
    close = changed((*path, "bits_per_second"), part["bits_per_second"] * 1.005)
    read_iperf3(close)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "found 'an empty file'"),
        (b"\xff\xfe\x00", "JSON of an iperf3 client"),
        (b"{}", "JSON of an iperf3 client"),
        (b'{"start": [' + b"[" * 100_000, "nested too deeply"),
        (b'{"a": ' * 100_000, "nested too deeply"),
        (b'{"start": {"version": ' + b"9" * 5000 + b"}}", "JSON of an iperf3 client"),
        (b'{"start": {"version": 1e999}, "error": "x"}', "start.version = inf"),
        (b'{"event": "interval", "data": {}}', "JSON of an iperf3 client"),
        (b'{"event": "start", "data": 5}\n{"event": "end", "data": {}}', "start = 5"),
        (b"[1, 2]", "JSON of an iperf3 client"),
        (b"[ ID] Interval           Transfer", "the beginning of a test"),
        (b'{"start": {"version": "iperf 3.12"}, "end": {}', "which ends with '}'"),
    ],
)
def test_hostile_files(data, message):
    with pytest.raises(RawDataError) as error:
        read_iperf3(data)
    assert message in str(error.value)


def test_a_file_that_cannot_be_read(tmp_path, monkeypatch):
    with pytest.raises(RawDataError, match="a file that can be read"):
        read_iperf3(tmp_path / "none.json")
    monkeypatch.setattr(iperf3, "LARGEST_BYTES", 10)
    with pytest.raises(RawDataError, match="at most 10 bytes"):
        read_iperf3(FOLDER / "v3.12_tcp.json")
