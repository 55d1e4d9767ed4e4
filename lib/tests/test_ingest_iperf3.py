"""iperf3: every sample, the shared files in detail, and what becomes of hostile documents."""

import copy
import json
from pathlib import Path

import pandas as pd
import pytest
from reading import read_iperf3

from wanbench import tables
from wanbench.errors import RawDataError
from wanbench.ingest import iperf3, iperf3_documents
from wanbench.ingest.rows import core as core_columns

FOLDER = Path(__file__).parent / "samples" / "iperf3"
SAMPLES = sorted(FOLDER.glob("*.json"))
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "iperf3"
RECORDED = json.loads((FOLDER / "v3.12_tcp.json").read_text())


def expected(path, columns):
    """A table from its CSV, exact."""
    types = {column.name: "str" if column.type == "time" else column.dtype for column in columns}
    frame = pd.read_csv(path, dtype=types)
    for column in columns:
        if column.type == "time":
            frame[column.name] = pd.to_datetime(frame[column.name], utc=True, format="ISO8601")
        frame[column.name] = frame[column.name].astype(column.dtype)
    return frame


def as_tables(transfers, intervals):
    """Rows (or the core columns) as whole tables, checked."""
    for name, core in (("transfers", transfers), ("intervals", intervals)):
        rows = core if isinstance(core, list) else core.to_dict("records")
        known = [{k: v for k, v in row.items() if not pd.isna(v)} | {"source_file": "a.json"} for row in rows]
        tables.from_rows(name, known)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_sample(sample):
    refused = sample.with_suffix(".refused")
    if refused.exists():
        line_number, message = refused.read_text().rstrip("\n").split("\n")
        with pytest.raises(RawDataError) as error:
            read_iperf3(sample)
        assert (str(error.value.line_number), error.value.expected) == (line_number, message)
        assert error.value.path == str(sample)
        return
    transfers, intervals = read_iperf3(sample)
    for core, part, columns in (
        (transfers, ".transfers.csv", core_columns("transfers")),
        (intervals, ".intervals.csv", core_columns("intervals")),
    ):
        pd.testing.assert_frame_equal(core, expected(sample.with_suffix(part), columns), check_exact=True)
    as_tables(transfers, intervals)


# What each shared file says, read off by eye: file, then for each direction what its row must hold.
SHARED_FACTS = {
    "v3.1.7_tcp_1s": [
        {"direction": "forward", "bytes": 1564999680, "throughput_bps": 6.256601e9, "retransmits": 6,
         "min_rtt_ms": 0.105, "max_rtt_ms": 0.159, "max_cwnd_bytes": 1309660, "tool_version": "3.1.7"},
    ],
    "v3.12_refused": [
        {"direction": None, "throughput_bps": None, "protocol": None,
         "error": "unable to connect to server: Connection refused"},
    ],
    "v3.12_tcp_1s": [
        {"direction": "forward", "throughput_bps": 13526681512.329863, "sent_throughput_bps": 13572744073.218216,
         "duration_s": 2.000225, "congestion_control": "bbr", "cpu_remote_percent": 31.9799989401558},
    ],
    "v3.16_interrupted": [
        {"direction": "forward", "throughput_bps": None, "bytes": None, "sent_throughput_bps": 20422875829.566219,
         "retransmits": 4, "cpu_remote_percent": None, "duration_s": 1.497168,
         "error": "interrupt - the client has terminated"},
    ],
    "v3.17.1_tcp_p4_reverse_omit1": [
        {"direction": "reverse", "streams": 4, "throughput_bps": 74347246563.3466, "retransmits": 7,
         "min_rtt_ms": None, "max_cwnd_bytes": None},
    ],
    "v3.21_bytes_mode": [
        {"direction": "forward", "bytes": 10485760, "throughput_bps": 83769472.8937319, "duration_s": 1.001392,
         "started_at_utc": pd.Timestamp("2026-11-21T07:11:45.276Z")},
    ],
    "v3.21_tcp_bidir": [
        {"direction": "forward", "throughput_bps": 18603706886.453182, "retransmits": 6, "min_rtt_ms": 0.064},
        {"direction": "reverse", "throughput_bps": 26007773662.000267, "retransmits": 15, "min_rtt_ms": None},
    ],
    "v3.21_udp20M": [
        {"direction": "forward", "protocol": "UDP", "throughput_bps": 20036684.268108089, "packets": 153,
         "lost_packets": 0, "jitter_ms": 0.00920335457886647, "target_bitrate_bps": 20e6, "mss_bytes": None},
    ],
    "v3.5_udp20M": [
        {"direction": "forward", "protocol": "UDP", "throughput_bps": 5013504 * 8 / 2.042963981628418,
         "sent_throughput_bps": 20053105.213241786, "packets": 153, "lost_packets": 0, "bytes": 5013504},
    ],
    "v3.7_tcp_bidir": [
        {"direction": "forward", "throughput_bps": 8233756536.7787685, "retransmits": 14, "duration_s": 2.027107},
        {"direction": "reverse", "throughput_bps": 5554004061.9464092, "retransmits": 7, "max_rtt_ms": None},
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", SHARED_FACTS)
def test_shared_file(name):
    path = SHARED / f"{name}.json"
    if not path.exists():
        pytest.skip("the shared data is not here")
    transfers, intervals = read_iperf3(path)
    facts = SHARED_FACTS[name]
    assert len(transfers) == len(facts)
    for row, fact in zip(transfers.to_dict("records"), facts, strict=True):
        for column, value in fact.items():
            if value is None:
                assert pd.isna(row[column]), column
            else:
                assert row[column] == value, column
    raw = json.loads(path.read_text())
    assert len(intervals) == sum(len(interval["streams"]) for interval in raw["intervals"])
    assert intervals.bytes.sum() == sum(s["bytes"] for i in raw["intervals"] for s in i["streams"])
    assert intervals.omitted.sum() == sum(s["omitted"] for i in raw["intervals"] for s in i["streams"])
    as_tables(transfers, intervals)


def test_all_shared_files_are_tested():
    if not SHARED.exists():
        pytest.skip("the shared data is not here")
    assert set(SHARED_FACTS) == {path.stem for path in SHARED.glob("*.json")}


def test_a_stream_says_the_same_as_a_document():
    from_stream = read_iperf3(FOLDER / "handmade-stream.json")
    from_document = read_iperf3(FOLDER / "v3.12_tcp_p3_omit1_cubic.json")
    pd.testing.assert_frame_equal(
        from_stream[0].drop(columns="tool_version"), from_document[0].drop(columns="tool_version")
    )
    pd.testing.assert_frame_equal(from_stream[1], from_document[1])
    assert from_stream[1].omitted.sum() == 6 and set(from_stream[1].stream) == {0, 1, 2}


def test_seconds_that_are_omitted_give_no_congestion_window():
    document = json.loads((FOLDER / "v3.12_tcp_p3_omit1_cubic.json").read_text())
    for stream in document["end"]["streams"]:  # as of old versions: intervals alone state windows
        del stream["sender"]["max_snd_cwnd"]
    document["intervals"][0]["streams"][0]["snd_cwnd"] = 10**9
    transfers, intervals = read_iperf3(json.dumps(document).encode())
    assert intervals.omitted[0] and intervals.cwnd_bytes[0] == 10**9
    assert transfers.max_cwnd_bytes[0] == intervals.cwnd_bytes[~intervals.omitted].max() < 10**9


def test_repeated_members_are_the_reverse_direction():
    new, old = (
        read_iperf3(FOLDER / f"{n}.json")[0] for n in ("v3.12_tcp_bidir", "handmade-3.7_repeated-members")
    )
    pd.testing.assert_frame_equal(new.drop(columns="tool_version"), old.drop(columns="tool_version"))
    assert new.throughput_bps[0] != new.throughput_bps[1]


def changed(path, value):
    """The recorded document with one member changed; `path` is its place."""
    document = copy.deepcopy(RECORDED)
    parent = document
    for name in path[:-1]:
        parent = parent[name]
    if value is KeyError:
        del parent[path[-1]]
    else:
        parent[path[-1]] = value
    return json.dumps(document).encode()


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
        (
            ("intervals", 0, "streams", 0, "bytes"),
            KeyError,
            "intervals[0].streams[0] with socket, start, end",
        ),
    ],
)
def test_what_is_wrong_is_named(path, value, found):
    with pytest.raises(RawDataError) as error:
        read_iperf3(changed(path, value))
    assert error.value.found.startswith(found)


@pytest.mark.parametrize("factor", [0.98, 1.02, 8, 1 / 8, 0, 1000])
@pytest.mark.parametrize(
    "path", [("end", "sum_received"), ("end", "sum_sent"), ("intervals", 0, "streams", 0)]
)
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


def test_bare_nan_in_texts_is_left_alone():
    data = (FOLDER / "handmade-not-a-number.json").read_bytes()
    [(line_number, document)] = iperf3_documents.documents("a", data.decode())
    assert line_number == 1 and document["title"] == 'a nan, an "inf" and -nan, in words'
    assert document["end"]["sum"]["jitter_ms"] != document["end"]["sum"]["jitter_ms"]


def test_line_numbers_of_documents_behind_text():
    data = b"banner\n\n" + json.dumps(RECORDED).encode() + b"\nwords\n" + changed(("end", "sum_sent"), 5)
    with pytest.raises(RawDataError) as error:
        read_iperf3(data)
    assert error.value.line_number == 5


STREAM = (FOLDER / "handmade-stream.json").read_bytes()
N_STREAMS = 3


@pytest.mark.parametrize("share", [0.2, 0.4, 0.6, 0.8, 0.99])
def test_a_stream_that_breaks_off_keeps_its_intervals(share):
    data = STREAM[: int(share * STREAM.rindex(b"\n", 0, -1))]
    transfers, intervals = read_iperf3(data)
    n_whole = data[: data.rindex(b"\n")].count(b'"event": "interval"')
    _, known = read_iperf3(STREAM)
    assert len(intervals) == N_STREAMS * n_whole
    pd.testing.assert_frame_equal(intervals, known[: len(intervals)])
    assert (
        transfers.error[0].startswith("the stream breaks off in ") and transfers.throughput_bps.isna().all()
    )


def test_a_stream_that_breaks_off_hides_no_later_test():
    torn = STREAM[: len(STREAM) // 2].rstrip(b"\n")
    transfers, intervals = read_iperf3(torn + b"\n" + STREAM)
    assert transfers.error.isna().tolist() == [False, True]
    assert len(intervals) > len(read_iperf3(STREAM)[1]) and intervals.stream.max() == 2 * N_STREAMS - 1


INTERRUPTED = b'{"event":"error","data":"interrupt - the client has terminated"}\n'
STREAM_LINES = STREAM.splitlines(keepends=True)


@pytest.mark.parametrize(
    ("behind", "error"),
    [
        (INTERRUPTED, "interrupt - the client has terminated"),
        (STREAM_LINES[-1], "the stream breaks off in "),
        (STREAM_LINES[3] + STREAM_LINES[-1], "the stream breaks off in "),
        (STREAM_LINES[3], "the stream breaks off in "),
        (STREAM_LINES[-1] + INTERRUPTED, "interrupt - the client has terminated"),
        (STREAM_LINES[3][:90] + b"\n" + INTERRUPTED, "interrupt - the client has terminated"),
    ],
    ids=["error", "end", "interval, end", "interval", "end, error", "torn again, error"],
)
@pytest.mark.parametrize("later", [b"", STREAM], ids=["alone", "before another"])
def test_what_comes_behind_the_break_of_a_stream_is_of_the_same_test(behind, error, later):
    torn = b"".join(STREAM_LINES[:2]) + STREAM_LINES[2][:90] + b"\n"
    transfers, intervals = read_iperf3(torn + behind + later)
    known, known_intervals = read_iperf3(STREAM)
    broken = transfers[transfers.error.notna()]
    assert len(broken) == 1 and broken.error.iloc[0].startswith(error)
    assert broken.throughput_bps.isna().all() == (STREAM_LINES[-1] not in behind), "figures of its end stay"
    assert len(transfers) == 1 + len(known) * bool(later)
    assert len(intervals) == N_STREAMS + len(known_intervals) * bool(later)


def test_the_end_of_a_test_whose_start_is_torn_is_of_no_other():
    with pytest.raises(RawDataError):
        read_iperf3(STREAM + STREAM_LINES[0][:90] + b"\n" + b"".join(STREAM_LINES[1:]))


def test_a_document_behind_the_break_of_a_stream_is_another_test():
    torn = b"".join(STREAM_LINES[:2]) + STREAM_LINES[2][:90] + b"\n"
    transfers, _ = read_iperf3(torn + json.dumps(RECORDED).encode())
    assert transfers.error.isna().tolist() == [False, True]


def test_damage_within_a_stream_is_refused():
    damaged = STREAM.replace(b'"event": "interval", ', b'"event": "interval" ', 1)
    with pytest.raises(RawDataError, match="Expecting ',' delimiter") as error:
        read_iperf3(damaged)
    assert error.value.line_number == 2


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le"])
@pytest.mark.parametrize("name", ["v3.12_tcp.json", "handmade-stream.json", "handmade-not-a-number.json"])
def test_files_that_a_redirect_recoded(name, encoding):
    text = (FOLDER / name).read_text()
    for there, here in zip(
        read_iperf3(text.replace("\n", "\r\n").encode(encoding)), read_iperf3(text.encode()), strict=True
    ):
        pd.testing.assert_frame_equal(there, here)


@pytest.mark.parametrize(
    ("before", "between", "after"),
    [("", "", ""), ("", ", ", ""), ("[", ",", "]"), ("[\n", "\n, ", "\n]"), ("\ufeff", "\r\n\ufeff", "\n")],
)
def test_no_document_of_several_is_passed_over(before, between, after):
    one, other = json.dumps(RECORDED), json.dumps(RECORDED, indent=1)
    transfers, _ = read_iperf3((before + one + between + other + after).encode())
    assert len(transfers) == 2 and transfers.throughput_bps.nunique() == 1


def test_an_error_behind_a_document_without_summary_is_its_own():
    ended = json.dumps(RECORDED | {"end": {}}) + "\n"
    said = "iperf3: error - control socket has closed unexpectedly"
    transfers, intervals = read_iperf3((ended + said + "\n").encode())
    assert transfers.error[0] == said.removeprefix("iperf3: ") and transfers.throughput_bps.isna().all()
    assert len(intervals) == len(RECORDED["intervals"])
    transfers, _ = read_iperf3((json.dumps(RECORDED) + "\n" + said).encode())
    assert pd.isna(transfers.error[0]), "a test that ended well does not have the error of the next"
    with pytest.raises(RawDataError, match="end without a summary"):
        read_iperf3(ended.encode())


def test_a_stream_that_never_began_is_a_failed_test():
    data = b'{"event": "error", "data": "unable to connect: refused"}\n{"event": "end", "data": {}}\n'
    transfers, intervals = read_iperf3(data)
    assert transfers.error.tolist() == ["unable to connect: refused"] and intervals.empty


UDP = {"packets": 40, "lost_packets": 4, "jitter_ms": 0.5}
UDP |= {"bytes": 42_000, "seconds": 1.0, "bits_per_second": 336_000.0}


@pytest.mark.parametrize(("reverse", "remote", "received"), [(0, 0, None), (1, 0, 36_000), (0, 2.5, 36_000)])
def test_datagrams_are_received_ones_where_the_receiver_counted_them(reverse, remote, received):
    start = {"version": "iperf 3.6", "test_start": {"protocol": "UDP", "blksize": 1000, "reverse": reverse}}
    end = {"sum": UDP, "cpu_utilization_percent": {"remote_total": remote}}
    stopped = {} if remote else {"error": "interrupt - the client has terminated"}
    transfers, _ = read_iperf3(json.dumps({"start": start, "end": end, **stopped}).encode())
    row = transfers.loc[0]
    if received is None:
        assert row[["bytes", "throughput_bps", "lost_packets", "jitter_ms"]].isna().all()
    else:
        assert (row["bytes"], row.lost_packets) == (received, 4)
    assert row.packets == 40
