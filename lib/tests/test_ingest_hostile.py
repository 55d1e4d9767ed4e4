"""Files made to cost time or memory: each is refused by its size, or read in work that grows with its length alone."""

import json
import re
import signal
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest
from reading import read_echoes, read_iperf3

from wanbench.errors import RawDataError
from wanbench.read.ingest import (
    broker_metrics,
    broker_pauses,
    host_metrics,
    iperf3,
    iperf3_output,
    json_values,
    kafka_load,
    netperf,
    openmessaging,
    ping,
)
from wanbench.read.ingest.kafka_load import lines
from wanbench.read.ingest.ping.echoes import Echoes
from wanbench.read.ingest.ping.lines import LineReader

WINDOW = "9998 records sent, 1999.6 records/sec (1.91 MB/sec), 28.5 ms avg latency, 432.0 ms max latency."
FREE = json_values.FREE_VALUES
SADF = (Path(__file__).parent / "samples" / "host_metrics" / "sysstat-12.6.1_a.sadf.json").read_text()
PING = """PING 203.0.113.107 (203.0.113.107) 56(84) bytes of data.
64 bytes from 203.0.113.107: icmp_seq=1 ttl=57 time=40.1 ms
64 bytes from 203.0.113.107: icmp_seq=3 ttl=57 time=40.1 ms

--- 203.0.113.107 ping statistics ---
3 packets transmitted, 2 received, 33.3333% packet loss, time 2004ms
rtt min/avg/max/mdev = 40.100/40.100/40.100/0.000 ms
"""
LISTS = ("publishRate", "endToEndLatency50pct", "publishLatency99pct", "endToEndLatency99pct")


@pytest.mark.parametrize("values", [b"[],", b"{},", b"1,", b'{"a":1},'], ids=["lists", "objects", "numbers", "members"])
def test_json_of_more_values_than_its_size_allows_is_refused(values):
    data = b'{"start": [' + values * (FREE + 1) + b"1]}"
    with pytest.raises(RawDataError, match=r"at most [0-9,]+ values in a file of this size"):
        read_iperf3(data)


def test_json_of_many_documents_is_refused_at_the_first_that_is_none_of_iperf3():
    read = iperf3_output.json_documents("a", '{"a": "0123456789"}\n' * 10 + '{"b": ')
    assert next(read) == (1, {"a": "0123456789"})
    with pytest.raises(RawDataError) as error:
        read_iperf3(b'{"a": "0123456789"}\n' * 10 + b'{"b": ')
    assert error.value.line_number == 1


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (broker_pauses.read, "2026-11-25T14:20:17.311Z INFO [LocalLog partition={long}\n"),
        (netperf.read, "TCP RR TEST from a to b\nTCP RR TEST from {long} b\n"),
    ],
)
def test_a_line_of_a_megabyte_is_passed_a_few_times(read, text, tmp_path):
    def too_long(*_):
        raise TimeoutError("5 s of processor time, where 0.1 s are usual and the square of the length takes minutes")

    path = tmp_path / "broker-1.server.log"
    path.write_text(text.format(long="a" * 1_000_000))
    earlier = signal.signal(signal.SIGVTALRM, too_long)
    signal.setitimer(signal.ITIMER_VIRTUAL, 5)
    try:
        with suppress(RawDataError):
            read(path)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, earlier)


@pytest.mark.parametrize("text", ['{"start": "' + "x" * 1000, '{"start": "' + '\\"' * 1000, '{"a": "nan'])
def test_a_string_without_its_end_is_passed_once(text, monkeypatch):
    passes = []
    decode = iperf3_output._decode
    monkeypatch.setattr(iperf3_output, "_decode", lambda *given: passes.append(0) or decode(*given))
    monkeypatch.setattr(iperf3_output, "_UP_TO_NOT_A_NUMBER", None)
    with pytest.raises(RawDataError, match="a complete JSON document"):
        read_iperf3(text.encode())
    assert len(passes) == 1


@pytest.mark.parametrize("text", ["x" * 50, '\\"' * 50, "-nan, " * 50, '", nan, "' * 20, '"' + '\\"' * 50])
def test_what_is_no_number_is_sought_in_one_pass(text):
    pattern = iperf3_output._UP_TO_NOT_A_NUMBER
    ends = [match.end() for match in pattern.finditer(text)]
    starts = [match.start() for match in pattern.finditer(text)]
    assert starts == [0, *ends[:-1]] and ends[-1] == len(text), "no place is looked at twice"


def counted(monkeypatch, module, name):
    """The calls of a function, as they are made."""
    calls, function = [], getattr(module, name)
    monkeypatch.setattr(module, name, lambda *given, **named: calls.append(given) or function(*given, **named))
    return calls


@pytest.mark.parametrize("line", ["", "a", "1000\t5.1", "\tat a.b(c)"])
def test_more_short_lines_than_a_file_can_have_are_refused(line, monkeypatch):
    monkeypatch.setattr(lines, "FREE_LINES", 100)
    with pytest.raises(RawDataError, match=r"at most [0-9]+ lines in a file of this size"):
        kafka_load.read(f"{WINDOW}\n{(line + chr(10)) * 150}".encode())


@pytest.mark.parametrize(
    "module", [iperf3, kafka_load, broker_metrics, openmessaging, host_metrics], ids=lambda m: m.__name__
)
def test_a_file_that_is_too_large_is_refused_by_its_size(module, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "LARGEST_BYTES", 100)
    path = tmp_path / "large.txt"
    path.write_bytes(b"x" * 101)
    with pytest.raises(RawDataError, match="at most 100 bytes"):
        module.read(path)


@pytest.mark.parametrize("module", [host_metrics, openmessaging], ids=lambda m: m.__name__)
@pytest.mark.parametrize("values", ["[],", "1.5,", "{},"])
def test_json_is_refused_by_its_count_of_values_before_it_is_decoded(module, values, monkeypatch, tmp_path):
    decoded = counted(monkeypatch, json, "loads")
    (tmp_path / "a.json").write_text('{"sysstat": [' + values * (FREE + 1) + "1]}")
    with pytest.raises(RawDataError, match=r"at most [0-9,]+ values in a file of this size"):
        module.read(tmp_path / "a.json")
    assert not decoded


def of_sadf(n):
    """A file of sadf -j with so many samples more."""
    first, second = (found.start() for found in list(re.finditer(r'\{\s*"timestamp"', SADF))[:2])
    return SADF[:first] + SADF[first:second] * n + SADF[first:]


def of_openmessaging(n):
    """A result of so many windows."""
    return json.dumps({name: [1234.125] * n for name in LISTS})


def test_units_of_sadf_are_looked_up_once_a_metric(tmp_path):
    host_metrics._unit.cache_clear()
    (tmp_path / "a.sadf.json").write_text(of_sadf(20))
    frame = host_metrics.read(tmp_path / "a.sadf.json")["metrics"]
    assert len(frame) == 24 * 103 and host_metrics._unit.cache_info().misses < 103


@pytest.mark.parametrize("where", ["one sample", "several samples"])
def test_more_names_than_a_machine_has_are_refused(where, monkeypatch, tmp_path):
    monkeypatch.setattr(host_metrics, "MOST_SUBJECTS", 40)
    disks = [{"disk-device": f"d{n}", "tps": 1} for n in range(41)]
    samples = [disks] if where == "one sample" else [[disk] for disk in disks]
    about = {"timestamp": {"date": "2026-11-21", "time": "17:46:48", "utc": 1}}
    host = {"nodename": "a", "statistics": [about | {"disk": each} for each in samples]}
    (tmp_path / "a.sadf.json").write_text(json.dumps({"sysstat": {"hosts": [host]}}))
    with pytest.raises(RawDataError, match="processors, disks and interfaces"):
        host_metrics.read(tmp_path / "a.sadf.json")


def test_numbers_of_openmessaging_are_checked_a_list_at_a_time(monkeypatch, tmp_path):
    checked = counted(monkeypatch, openmessaging._Result, "checked")
    (tmp_path / "a.json").write_text(of_openmessaging(1_000))
    assert len(openmessaging.read(tmp_path / "a.json")["quantiles"]) == 3_000
    assert len(checked) < 10


def test_short_pings_that_are_in_order_are_not_sorted(monkeypatch):
    sought = counted(monkeypatch, Echoes, "_refuse_duplicates_of_nothing")
    found = read_echoes((PING * 50).encode())
    assert found.sequence.tolist() == [1, 2, 3] * 50 and found.lost.sum() == 50 and not sought


def test_lines_that_say_nothing_are_not_fed_one_by_one(monkeypatch):
    fed = counted(monkeypatch, LineReader, "feed")
    assert len(read_echoes((PING + " \r\n" * 1_000 + "\t\n" * 1_000 + PING).encode())) == 6
    assert len(fed) == 2 * (PING.count("\n") - 1)
    with pytest.raises(RawDataError, match="lines of at most 4096 characters"):
        read_echoes((PING + " " * 5_000 + "\n" + PING).encode())


@pytest.mark.parametrize(
    ("module", "text"),
    [(ping, "\n" * 16_000_000), (host_metrics, of_sadf(500)), (openmessaging, of_openmessaging(20_000))],
    ids=["ping", "sadf", "openmessaging"],
)
def test_memory_stays_under_ten_times_the_file(module, text, monkeypatch, tmp_path):
    (tmp_path / "a.sadf.json").write_text(text)
    monkeypatch.setattr(module, "LARGEST_BYTES", len(text), raising=False)  # a buffer has this size
    tracemalloc.start()
    try:
        module.read(tmp_path / "a.sadf.json")
    except RawDataError:
        assert not text.strip()
    finally:
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert most < 10 * len(text)
