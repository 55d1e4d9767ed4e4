"""
Read scrapes of `wanbench.measure.kafka.programs.scrape`, or the text of a Prometheus exporter, into table metrics.

- Metrics keep their names. A counter, or a metric named like one (_total, _count, _sum, _bucket), is cumulative;
  `counter_rates` in `pages.price_performance.trials` turns it into a rate.
- The time of a sample is the time printed with it, or else the middle between request and response of its scrape.
- A series that occurs twice without times is left out, and each repetition is a row of table unread. A file with many
  repeated series is rejected, because it holds several answers that cannot be separated.
- Each scrape also gives the rows `up` (1, or 0 if the broker did not answer) and `scrape_duration_seconds`, which a
  Prometheus server would add.
- Values that are not finite are left out; the percentile of an empty histogram, for example, is NaN.
"""

from __future__ import annotations

import json
import re
from array import array
from pathlib import Path

import numpy as np
import pandas as pd

from wanbench.errors import RawDataError

from .content import decoded, read_bytes
from .json_values import Members, object_of_line
from .rows import fitting

SUFFIX = ".prom.txt"
LARGEST_BYTES = 2**30
"""Size of a day of scrapes every 5 s."""

FIRST = "the first line of wanbench.measure.kafka.programs.scrape: #scrapes, then host and node_id in JSON"
NEXT = "a line with #scrape, then the scrape's time and size in JSON"


def read(path) -> dict[str, pd.DataFrame]:
    """
    Read scrapes, or an exporter's text; a RawDataError names the first line that a Prometheus server would reject.
    """
    path, data = read_bytes(Path(path), most_bytes=LARGEST_BYTES)
    samples, about = Samples(path, len(data)), {}
    if data.startswith(b"#scrapes "):
        about = _scrapes(path, data, samples)
    else:
        text = decoded(path, data)
        del data
        samples.feed(text)
        if not samples.n:
            found = "no sample" if text.strip() else "an empty file"
            raise RawDataError(path, None, found, "the text of a Prometheus exporter, or scrapes of it")
    found = {"metrics": fitting(path, "metrics", _columns(samples) | about)}
    return found | ({"unread": samples.repeated} if samples.repeated else {})


def _columns(samples: Samples) -> dict:
    columns = samples.columns()
    times_us, values = np.frombuffer(samples.times_us, np.int64), np.frombuffer(samples.values)
    at = np.where(times_us == NO_TIME, np.datetime64("NaT", "us"), times_us.astype("datetime64[us]"))
    at_utc = pd.Series(at).dt.tz_localize("UTC")
    return dict(columns.assign(value=values, at_utc=at_utc, source="prometheus").drop(samples.ambiguous))


def _scrapes(path, data: bytes, samples: Samples) -> dict:
    """Feed the answers in a file of scrapes to `samples`, and return the columns that are constant in the file."""
    at, line_number = data.find(b"\n") + 1, 1
    if not at:
        raise RawDataError(path, 1, data[:200].decode("utf-8", "replace"), FIRST)
    first = _members(path, 1, data[:at], b"#scrapes ", FIRST)
    about = {"host": first.text("host"), "node_id": first.count("node_id")}
    while at < len(data):
        line_number += 1
        end = data.find(b"\n", at) + 1
        if not end:
            raise RawDataError(path, line_number, data[at : at + 200].decode("utf-8", "replace"), NEXT)
        scrape = _members(path, line_number, data[at:end], b"#scrape ", NEXT)
        size, at_s = scrape.count("bytes"), scrape.number("at_s", most=2**33)
        took_s, error = scrape.number("took_s", most=2**20), scrape.text("error")
        if None in (size, at_s, took_s):
            scrape.refuse(json.dumps(scrape.values)[:100], "at_s, took_s and bytes")
        answer = data[end : end + size]
        at = end + size + 1
        if len(answer) < size or data[at - 1 : at] != b"\n":
            scrape.refuse(f"{len(answer)} bytes after {scrape.values}", f"{size} bytes and a line break")
        at_us = round((at_s + took_s / 2) * 1_000_000)
        samples.add("up", 0.0 if error else 1.0, at_us)
        samples.add("scrape_duration_seconds", took_s, at_us)
        if not error:
            samples.feed(_text(path, answer, line_number + 1), line_number + 1, at_us, whole=True)
        line_number += answer.count(b"\n") + 1
    return about


def _text(path, answer: bytes, line_number: int) -> str:
    try:
        return answer.decode()
    except UnicodeDecodeError as error:
        at = line_number + answer.count(b"\n", 0, error.start)
        raise RawDataError(path, at, error, "text in UTF-8") from None


def _members(path, line_number, line, word, expected) -> Members:
    if not line.startswith(word):
        raise RawDataError(path, line_number, line.decode("utf-8", "replace").strip(), expected)
    return object_of_line(path, line_number, line[len(word) :], expected)


TYPES = (
    "counter", "gauge", "histogram", "summary", "untyped", "unknown", "info", "stateset", "gaugehistogram",
)  # fmt: skip
CUMULATIVE = re.compile(r".*_(total|count|sum|bucket)")
NO_TIME = -(2**63)
"""Placeholder for the time of a sample that has none."""

EARLIEST_S = -62_135_596_800
"""Start of year 1, the earliest time in Python."""

LATEST_S = 253_402_300_799
"""End of year 9999, the latest time in Python."""

MOST_SERIES = 1_000_000
"""Maximum number of series in a file. Each takes about 500 bytes of memory; real exporters have up to 100,000."""

FREE_SAMPLES = 500_000
"""Number of samples allowed in any file. Each takes about 300 bytes of memory."""

BYTES_PER_SAMPLE = 40
"""Larger files may have at most one sample per this many bytes; real exporters write one per 50 to 150 bytes."""

MOST_REPEATED = 0.1
"""Maximum fraction of repeated series: a faulty exporter repeats a few, but several answers in one text repeat most."""

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*+"
_QUOTED = r'"(?:[^"\\\n]++|\\.)*+"'
_BRACES = rf"\{{(?:[^\"{{}}\n]++|{_QUOTED})*+\}}"
_NUMBER = r"[+-]?(?:\d++\.?\d*+|\.\d++)(?:[eE][+-]?\d++)?+"
_VALUE = rf"({_NUMBER}|[+-]?[iI][nN][fF](?:[iI][nN][iI][tT][yY])?+|[nN][aA][nN])"
_SERIES = rf"[ \t]*+((?:{_NAME})?+[ \t]*+{_BRACES}|{_NAME}(?=[ \t]))[ \t]*+"
_END = r"[ \t]*+\r?+(?:\n|\Z)"
_SAMPLE = re.compile(rf"{_SERIES}{_VALUE}(?:[ \t]++([+-]?\d{{1,19}}))?+{_END}", re.ASCII)
_OPEN_SAMPLE = re.compile(
    rf"{_SERIES}{_VALUE}(?:[ \t]++({_NUMBER}))?+(?:[ \t]++#[ \t]++{_BRACES}[^\n]*+)?+{_END}", re.ASCII
)
_OTHER = re.compile(r"[ \t]*+(#[^\n]*+)?+\r?+(?:\n|\Z)", re.ASCII)
_ABOUT = re.compile(r"#[ \t]++(TYPE|HELP)(?:[ \t]++|$)(.*)", re.DOTALL)
_SUBJECT = re.compile(rf"({_NAME}|{_QUOTED})(?:[ \t]++(.*))?", re.DOTALL)
_LABEL_NAME = r"[a-zA-Z_][a-zA-Z0-9_]*+"
_TERM = rf"[ \t]*+({_LABEL_NAME}|{_QUOTED})[ \t]*+(?:=[ \t]*+({_QUOTED}))?+[ \t]*+"
_LABEL = re.compile(_TERM)
_LABELS = re.compile(rf"(?:{_TERM}(?:,{_TERM})*+,?+)?+[ \t]*+\}}")
_PLAIN_LABEL = re.compile(rf'({_LABEL_NAME})="([^"\\\n]*+)"')
_PLAIN_LABELS = re.compile(rf"(?:{_PLAIN_LABEL.pattern}(?:,|(?=\}})))*+\}}")
_ESCAPE = re.compile(r"\\([\\n\"])")
_EOF = re.compile(r"^# EOF\r?$", re.MULTILINE)
WANTED = 'a line in the text format of Prometheus, such as name{label="value"} value time'
UNITS = {
    "bytes": "bytes",
    "fraction": "fraction",
    "milliseconds": "ms",
    "ms": "ms",
    "percent": "%",
    "ratio": "fraction",
    "records": "records",
    "seconds": "s",
}


class Samples:
    """
    Collect the samples of a file of `size` bytes, in order.

    `repeated` has a row of table unread for each repetition of a series without times. `ambiguous` holds the indices of
    all samples of such series, because nothing says which of them is valid.
    """

    def __init__(self, path, size: int):
        self.path, self.n = path, 0
        self._most = max(FREE_SAMPLES, size // BYTES_PER_SAMPLE)
        self._types: dict[str, str] = {}
        self._series: dict[str, int] = {}
        self._rows: list[tuple[str, str, str, bool]] = []
        self._codes, self.values, self.times_us = array("i"), array("d"), array("q")
        self._timeless = array("q")
        self.repeated: list[dict] = []
        self.ambiguous = np.array([], np.int64)

    def feed(self, text: str, line_number: int = 1, at_us: int = NO_TIME, *, whole: bool = False) -> None:
        """
        Parse an exporter's answer; `line_number` is the number of its first line in the file.

        Samples without a time get the time `at_us` (Unix µs). A last line without a line break is rejected, unless the
        text is known to be `whole`.
        """
        is_open = _EOF.search(text) is not None
        pattern, unit_us = (_OPEN_SAMPLE, 1_000_000) if is_open else (_SAMPLE, 1_000)
        at, before, is_sample = 0, 0, False
        most = self._most
        match, values, times_us = pattern.match, self.values, self.times_us
        while at < len(text):
            if line := match(text, at):
                is_sample = True
                series, value, stamp = line.groups()
                code = self._series.get(series)
                if code is None:
                    code = self._begin(series, text, at, line_number)
                number = float(value)
                if number - number == 0:  # finite
                    time_us = at_us if stamp is None else self._time(stamp, unit_us, text, at, line_number)
                    if time_us == NO_TIME:
                        self._timeless += array("q", (hash(series), at, len(values)))
                    self._codes.append(code)
                    values.append(number)
                    times_us.append(time_us)
                elif value[-1].isdigit():
                    self._refuse(text, at, line_number, "a value that fits into a 64-bit float")
                self.n += 1
                if self.n > most:
                    self._refuse(text, at, line_number, f"at most {most:,} samples in a file of this size")
            elif line := _OTHER.match(text, at):
                is_sample = False
                if line[1] and (about := _ABOUT.match(line[1])):
                    self._about(about[1], about[2], text, at, line_number)
            else:
                self._refuse(text, at, line_number, WANTED)
            before, at = at, line.end()
        if is_sample and not whole and not text.endswith("\n"):
            self._refuse(text, before, line_number, "a line break after the last sample, which may be truncated")
        self._find_repeated(text, line_number)

    def add(self, metric: str, value: float, at_us: int) -> None:
        """Add a sample that is not in the text, of a series without labels."""
        code = self._series.get(metric)
        self._codes.append(self._new(metric, metric, "") if code is None else code)
        self.values.append(value)
        self.times_us.append(at_us)

    def columns(self) -> pd.DataFrame:
        """Return columns metric, subject, unit and cumulative, one row per element of `values` and `times_us`."""
        series = pd.DataFrame(self._rows, columns=["metric", "subject", "unit", "cumulative"])
        return series.take(np.frombuffer(self._codes, np.int32)).reset_index(drop=True)

    def _begin(self, series, text, at, line_number) -> int:
        metric, labels = _of_series(series)
        if metric is None or (len(labels) > 1 and len({name for name, _ in labels}) < len(labels)):
            self._refuse(text, at, line_number, "one name of a metric, and labels with different names")
        if len(self._rows) >= MOST_SERIES:
            self._refuse(text, at, line_number, f"at most {MOST_SERIES:,} series")
        return self._new(series, metric, ", ".join([f"{name}={value}" for name, value in labels]))

    def _new(self, series: str, metric: str, subject: str) -> int:
        kind = self._types.get(metric) or self._types.get(metric.removesuffix("_total"))
        cumulative = kind == "counter" or CUMULATIVE.fullmatch(metric) is not None
        self._series[series] = code = len(self._rows)
        self._rows.append((metric, subject, unit(metric), cumulative))
        return code

    def _about(self, word, rest, text, at, line_number):
        about = _SUBJECT.fullmatch(rest.rstrip())
        if not about or (word == "TYPE" and about[2] not in TYPES):
            of_types = f" and one of {', '.join(TYPES)}" if word == "TYPE" else ""
            self._refuse(text, at, line_number, f"# {word}, a metric's name{of_types}")
        if word == "TYPE":
            self._types[_unquoted(about[1])] = about[2]

    def _time(self, stamp, unit_us, text, at, line_number) -> int:
        seconds = float(stamp) if unit_us == 1_000_000 else int(stamp) / 1_000
        if not EARLIEST_S <= seconds <= LATEST_S:
            self._refuse(text, at, line_number, "a time between the years 1 and 9999")
        return round(seconds * 1_000_000) if unit_us == 1_000_000 else int(stamp) * 1_000

    def _find_repeated(self, text, line_number):
        """
        Set `ambiguous`, and add to `repeated`; raise RawDataError if more than `MOST_REPEATED` of the series repeat.
        """
        hashes, places, samples = np.frombuffer(self._timeless, np.int64).reshape(-1, 3).T
        _, first, series, n = np.unique(hashes, return_index=True, return_inverse=True, return_counts=True)
        self.ambiguous = samples[n[series] > 1]
        again, before = np.sort(np.delete(places, first)).tolist(), 0
        expected = "a series that occurs once, or a time with each of its samples"
        if len(again) > MOST_REPEATED * len(first):
            self._refuse(text, again[0], line_number, expected)
        for at in again:
            line_number += text.count("\n", before, at)
            self.repeated.append(RawDataError(self.path, line_number, _line(text, at), expected).row())
            before = at

    def _refuse(self, text, at, line_number, expected):
        raise RawDataError(self.path, line_number + text.count("\n", 0, at), _line(text, at), expected)


def _line(text: str, at: int) -> str:
    end = text.find("\n", at)
    return text[at : len(text) if end < 0 else end].strip()


def _of_series(series: str) -> tuple[str | None, list[tuple[str, str]]]:
    metric, brace, rest = series.partition("{")
    metric = metric.rstrip()
    if not brace or (metric and _PLAIN_LABELS.fullmatch(rest) and "__name__" not in rest):
        return metric, _PLAIN_LABEL.findall(rest)
    labels = _LABEL.findall(rest) if _LABELS.fullmatch(rest) else [("", "")]
    names = [metric] * bool(metric) + [_unquoted(name) for name, value in labels if not value and name[:1] == '"']
    pairs = [(_unquoted(name), _unquoted(value)) for name, value in labels if value]
    fits = len(names) == 1 and len(pairs) >= len(labels) - (not metric) and "__name__" not in dict(pairs)
    return (names[0] if fits else None), pairs


def _unquoted(text: str) -> str:
    """Return a name without its quotation marks and escapes."""
    text = text[1:-1] if text.startswith('"') else text
    return _ESCAPE.sub(lambda found: "\n" if found[1] == "n" else found[1], text) if "\\" in text else text


def unit(name: str) -> str:
    """
    Return the unit in a metric's name, by Prometheus' naming convention; "" if there is none.

    >>> unit("kafka_bytes_in_total"), unit("jvm_gc_collection_seconds_sum"), unit("kafka_requests_total")
    ('bytes', 's', '')
    """
    if name.endswith(("_count", "_bucket")):
        return ""
    return next((UNITS[word] for word in reversed(name.split("_")) if word in UNITS), "")
