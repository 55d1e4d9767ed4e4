"""The text formats of Prometheus exporters: names, times, what a server refuses, and files that were cut or recoded."""

import gzip
import re
from pathlib import Path

import pandas as pd
import pytest
from prometheus_client.parser import text_string_to_metric_families

from wanbench.errors import RawDataError
from wanbench.read.ingest import broker_metrics, read_files

SAMPLE = Path(__file__).parent / "samples/broker_metrics/kafka-4.3.1_killed-and-restarted.prom.txt"
SCRAPES = "".join(
    f'# TYPE x counter\nx{{topic="a"}} {5 * n} {1_700_000_000_000 + 5_000 * n}\nlag 3 {1_700_000_000_000 + 5_000 * n}\n'
    for n in range(35)
)


def read(tmp_path, content):
    path = tmp_path / "saved.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return broker_metrics.read(path)["metrics"]


def test_each_sample_keeps_its_time(tmp_path):
    found = read(tmp_path, SCRAPES)
    x = found[found.metric == "x"]
    assert x.value.tolist() == [5.0 * n for n in range(35)]
    assert x.at_utc.diff().dropna().dt.total_seconds().tolist() == [5.0] * 34
    assert x.at_utc.iloc[0] == pd.Timestamp(1_700_000_000, unit="s", tz="UTC")


def test_a_time_of_its_own_counts_in_a_scrape_too(tmp_path):
    answer = b"a 1 1700000000500\nb 2\n"
    about = b'#scrape {"at_s": 1800000000, "took_s": 2, "error": null, "bytes": %d}\n' % len(answer)
    found = read(tmp_path, b'#scrapes {"host": "h"}\n' + about + answer + b"\n").set_index("metric").at_utc
    assert [found[name].timestamp() for name in ("a", "b", "up")] == [1_700_000_000.5, 1.8e9 + 1, 1.8e9 + 1]


@pytest.mark.parametrize("name", ["x", "x_total", "x_created", "x:sum"])
def test_metrics_keep_their_names(tmp_path, name):
    found = read(tmp_path, f"# TYPE {name} counter\n{name} 1\n")
    assert found.metric.tolist() == [name] and found.cumulative.tolist() == [True]


@pytest.mark.parametrize(
    "line",
    [
        'm{l="v"} 3.14 2 3', "m 1 2.5", "m 1 soon", "m", "m{} ", 'm{l="v" 1', 'm{l=v} 1', "m{l=\"v\"\n} 1", "1m 1",
        "m-n 1", "m 1_000", "m 0x10", "m 1e400", "m ١", 'm{l="v",l="w"} 1', 'm{"n"} 1', '{l="v"} 1', "m{l} 1",
        'm{l="v",,} 1', 'm{l:l="v"} 1', "m 1 99999999999999999", 'm{l="v"} 1 # {a="b"} 2', "m nan(0)",
        "some words of prose",
    ],
)  # fmt: skip
def test_what_prometheus_refuses_is_refused(tmp_path, line):
    with pytest.raises(RawDataError) as error:
        read(tmp_path, f"before 1\n{line}\nafter 2\n")
    assert error.value.line_number == 2


@pytest.mark.parametrize(
    ("line", "metric", "subject", "value"),
    [
        ("m\t1", "m", "", 1), ("  m  1  ", "m", "", 1), ("m{}1", "m", "", 1), ("m +.5e-3 -1", "m", "", 0.0005),
        ('m { a = "1" , b="2", } 7', "m", "a=1, b=2", 7), (r'm{a="x\\y\"z\n"} 2', "m", 'a=x\\y"z\n', 2),
        ('m{a="}, b=\\"{"} 3', "m", 'a=}, b="{', 3),
        ("# some 'words {\nm 6", "m", "", 6),
        ('m{a="x=",b="__name__"} 8', "m", "a=x=, b=__name__", 8), ("#\n\nm 9\r", "m", "", 9),
    ],
)  # fmt: skip
def test_what_prometheus_accepts_is_read(tmp_path, line, metric, subject, value):
    found = read(tmp_path, line + "\n")
    assert found[["metric", "subject", "value"]].values.tolist() == [[metric, subject, value]]


def test_values_that_are_not_finite_are_left_out(tmp_path):
    assert read(tmp_path, "a NaN\nb +Inf\nc -inf\nd 1\n").metric.tolist() == ["d"]


@pytest.mark.parametrize("end", range(len("a 1\n") + 1, len("a 1\nb 5.8e-169\n")))
def test_a_file_cut_in_its_last_line_gives_no_torn_value(tmp_path, end):
    with pytest.raises(RawDataError) as error:
        read(tmp_path, "a 1\nb 5.8e-169\n"[:end])
    assert error.value.line_number == 2


def test_a_comment_without_its_end_is_no_torn_value(tmp_path):
    assert read(tmp_path, "a 1\n# EOF").value.tolist() == [1]


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + SCRAPES.encode(),
        SCRAPES.encode("utf-16"),
        SCRAPES.replace("\n", "\r\n").encode("utf-16"),
        SCRAPES.encode("utf-16-be"),
        gzip.compress(SCRAPES.encode(), mtime=0),
    ],
    ids=["byte order mark", "UTF-16", "PowerShell", "big end first", "gzip"],
)
def test_text_in_other_encodings(tmp_path, content):
    pd.testing.assert_frame_equal(read(tmp_path, content), read(tmp_path, SCRAPES))


def test_a_series_that_an_exporter_repeats_is_read_once_and_reported(tmp_path):
    path = tmp_path / "saved.prom.txt"
    path.write_text('# TYPE b gauge\nb{x="1"} 1\na 7\nb{x="1"} 2\nb{x="1"} 3\nc 4\nc 5 6\n')
    tables = read_files([path], "broker_metrics")
    assert tables["metrics"].value.tolist() == [1, 7, 4, 5]
    unread = tables["unread"]
    assert unread.line_number.tolist() == [4, 5] and unread.found.tolist() == ['b{x="1"} 2', 'b{x="1"} 3']
    assert (unread.path == str(path)).all() and unread.expected.str.startswith("a series that occurs once").all()


@pytest.mark.parametrize("text", ["", " \n", "# HELP a nothing\n", "# a heading\n"])
def test_text_without_a_sample_is_refused(tmp_path, text):
    with pytest.raises(RawDataError, match="the text of a Prometheus exporter"):
        read(tmp_path, text)


def test_a_recording_is_read_as_prometheus_client_reads_it(tmp_path):
    answer = re.split(rb"^#scrapes? .*\n", SAMPLE.read_bytes(), flags=re.MULTILINE)[2].decode().strip() + "\n"
    found = read(tmp_path, answer)
    families = text_string_to_metric_families(answer)
    known = [(each.name, each.labels, each.value) for family in families for each in family.samples]
    known = [each for each in known if each[2] == each[2]]
    assert sorted(found.metric) == sorted(name for name, _, _ in known) and len(known) > 200
    assert sorted(found.value) == sorted(value for _, _, value in known)
    subjects = {", ".join(f"{name}={value}" for name, value in labels.items()) for _, labels, _ in known}
    assert set(found.subject) == subjects


def test_many_series_are_read_up_to_a_limit(tmp_path, monkeypatch):
    n = 250
    monkeypatch.setattr(broker_metrics, "MOST_SERIES", n + 1)
    with pytest.raises(RawDataError, match="at most 251 series"):
        read(tmp_path, "".join(f'a{{k="{k}"}} {k} 5\n' for k in range(n + 2)))
    found = read(tmp_path, "# TYPE a counter\n" + "".join(f'a{{k="{k}"}} {k} 5\nb 1 {k}\n' for k in range(n)))
    a = found[found.metric == "a"]
    assert a.subject.tolist() == [f"k={k}" for k in range(n)] and a.value.tolist() == list(range(n))
    assert a.cumulative.all() and not found[found.metric == "b"].cumulative.any()


def test_more_samples_than_a_table_can_hold_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(broker_metrics, "FREE_SAMPLES", 10)
    with pytest.raises(RawDataError, match=r"at most 10 samples") as error:
        read(tmp_path, "".join(f"a 1 {k}\n" for k in range(40)))
    assert error.value.line_number == 11
