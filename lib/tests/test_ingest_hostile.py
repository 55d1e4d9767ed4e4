"""Files made to cost time or memory: each is refused by its size, or read in work that grows with its length alone."""

import pytest

from wanbench.errors import RawDataError
from wanbench.ingest import (
    broker_metrics,
    end_to_end,
    exposition,
    iperf3,
    iperf3_documents,
    kafka_consumer,
    kafka_lines,
    kafka_load,
    kafka_output,
    openmessaging,
)

WINDOW = "9998 records sent, 1999.6 records/sec (1.91 MB/sec), 28.5 ms avg latency, 432.0 ms max latency."
CONSUMED = "2026-08-01 05:53:11:678, 0, 19.1500, 59.4722, 20079, 62357.1429, 203, 119, 160.9247, 168731.0924 "
FREE = iperf3_documents.FREE_VALUES


@pytest.mark.parametrize(
    "values", [b"[],", b"{},", b"1,", b'{"a":1},'], ids=["lists", "objects", "numbers", "members"]
)
def test_json_of_more_values_than_its_size_allows_is_refused(values):
    data = b'{"start": [' + values * (FREE + 1) + b"1]}"
    with pytest.raises(RawDataError, match=r"at most [0-9,]+ values in a file of this size"):
        iperf3.read(data)


def test_json_of_many_documents_is_refused_at_the_first_that_is_none_of_iperf3():
    read = iperf3_documents.documents("a", '{"a": "0123456789"}\n' * 10 + '{"b": ')
    assert next(read) == (1, {"a": "0123456789"})
    with pytest.raises(RawDataError) as error:
        iperf3.read(b'{"a": "0123456789"}\n' * 10 + b'{"b": ')
    assert error.value.line_number == 1


@pytest.mark.parametrize("text", ['{"start": "' + "x" * 1000, '{"start": "' + '\\"' * 1000, '{"a": "nan'])
def test_a_string_without_its_end_is_passed_once(text, monkeypatch):
    passes = []
    decode = iperf3_documents._decode
    monkeypatch.setattr(iperf3_documents, "_decode", lambda *given: passes.append(0) or decode(*given))
    monkeypatch.setattr(iperf3_documents, "_UP_TO_NOT_A_NUMBER", None)
    with pytest.raises(RawDataError, match="a whole JSON document"):
        iperf3.read(text.encode())
    assert len(passes) == 1


@pytest.mark.parametrize("text", ["x" * 50, '\\"' * 50, "-nan, " * 50, '", nan, "' * 20, '"' + '\\"' * 50])
def test_what_is_no_number_is_sought_in_one_pass(text):
    pattern = iperf3_documents._UP_TO_NOT_A_NUMBER
    ends = [match.end() for match in pattern.finditer(text)]
    starts = [match.start() for match in pattern.finditer(text)]
    assert starts == [0, *ends[:-1]] and ends[-1] == len(text), "no place is looked at twice"


def counted(monkeypatch, module, name):
    """The calls of a function, as they are made."""
    calls, function = [], getattr(module, name)
    monkeypatch.setattr(module, name, lambda *given: calls.append(given) or function(*given))
    return calls


def test_figures_that_run_together_are_searched_once_a_line(monkeypatch):
    of_round_trips = counted(monkeypatch, end_to_end, "find")
    of_consumers = counted(monkeypatch, kafka_consumer, "find")
    assert len(kafka_load.read((WINDOW * 90).encode())["producer_windows"]) == 90
    assert len(of_round_trips) <= 1 and len(of_consumers) <= 1


def test_windows_of_a_consumer_that_run_together_are_searched_once_each(monkeypatch):
    searches = counted(monkeypatch, kafka_consumer, "_pattern")
    assert len(kafka_load.read((CONSUMED * 90).encode())["consumer_windows"]) == 90
    assert len(searches) < 90 + 4 * len(kafka_consumer.LAYOUTS)


@pytest.mark.parametrize("line", ["", "a", "1000\t5.1", "\tat a.b(c)"])
def test_more_short_lines_than_a_file_can_have_are_refused(line, monkeypatch):
    monkeypatch.setattr(kafka_lines, "FREE_LINES", 100)
    with pytest.raises(RawDataError, match=r"at most [0-9]+ lines in a file of this size"):
        kafka_load.read(f"{WINDOW}\n{(line + chr(10)) * 150}".encode())


@pytest.mark.parametrize(
    "text",
    ["Avg latency: 1.5 ms " * 100, "producer-metrics:a-avg:{} : 1\n" * 100],
    ids=["outputs", "metrics"],
)
def test_more_figures_than_a_file_can_have_are_refused(text, monkeypatch):
    monkeypatch.setattr(kafka_output, "FREE_ROWS", 20)
    with pytest.raises(RawDataError, match=r"at most one row of figures in 80 characters"):
        kafka_load.read(text.encode())


@pytest.mark.parametrize(
    "module", [iperf3, kafka_load, broker_metrics, openmessaging], ids=lambda m: m.__name__
)
def test_a_file_that_is_too_large_is_refused_by_its_size(module, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "LARGEST_BYTES", 100)
    path = tmp_path / "large.txt"
    path.write_bytes(b"x" * 101)
    with pytest.raises(RawDataError, match="at most 100 bytes"):
        module.read(path)


def test_each_line_of_an_exporter_is_matched_once(monkeypatch, tmp_path):
    text = "".join(f'# HELP m{n} words\nm{n}{{k="v"}} {n}\n\n' for n in range(50))
    places = []

    class Counting:
        def __init__(self, pattern):
            self.pattern = pattern

        def match(self, text, at):
            places.append((id(self), at))
            return self.pattern.match(text, at)

    for name in ("_SAMPLE", "_OTHER"):
        monkeypatch.setattr(exposition, name, Counting(getattr(exposition, name)))
    path = tmp_path / "a.txt"
    path.write_text(text)
    broker_metrics.read(path)
    assert len(places) == len(set(places)) <= 2 * text.count("\n")
