"""
Read scrapes of `wanbench.measure.kafka.programs.scrape`, or the text of a Prometheus exporter, into table metrics.

- Metrics keep their names, which contain their units. A counter, or a metric named like one (_total, _count, _sum,
  _bucket), is cumulative; `counter_rates` in `pages.price_performance.trials` turns it into a rate.
- The time of a sample is the one that the exporter printed, or else the middle between request and response.
- If an answer has a series twice without times, the first sample counts, and each repetition is a row of table unread.
- Each scrape adds a row `up` (1, or 0 if the broker did not answer) and a row `scrape_duration_seconds`, as a
  Prometheus server would.
- Values that are not finite are left out; the percentile of an empty histogram, for example, is NaN.
"""

from __future__ import annotations

import json
import re
from array import array
from math import isfinite
from pathlib import Path
from sys import intern

import numpy as np
import pandas as pd

from wanbench.errors import RawDataError

from .content import File, decoded, read_bytes
from .json_values import Members, object_of_line
from .rows import Row, Rows, fitting

SUFFIX = ".prom.txt"
LARGEST_BYTES = 2**30
"""Size of a day of scrapes every 5 s."""

FIRST = "the first line of wanbench.measure.kafka.programs.scrape: #scrapes, then host and node_id in JSON"
NEXT = "a line with #scrape, then the scrape's time and size in JSON"


def read(path: str | Path) -> dict[str, Rows]:
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
    found = {"metrics": fitting(path, "metrics", samples.columns() | about)}
    return found | ({"unread": samples.repeated} if samples.repeated else {})


def _scrapes(path: File, data: bytes, samples: Samples) -> dict[str, str | int | None]:
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
        if size is None or at_s is None or took_s is None:
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


def _text(path: File, answer: bytes, line_number: int) -> str:
    try:
        return answer.decode()
    except UnicodeDecodeError as error:
        at = line_number + answer.count(b"\n", 0, error.start)
        raise RawDataError(path, at, error, "text in UTF-8") from None


def _members(path: File, line_number: int, line: bytes, word: bytes, expected: str) -> Members:
    if not line.startswith(word):
        raise RawDataError(path, line_number, line.decode("utf-8", "replace").strip(), expected)
    return object_of_line(path, line_number, line[len(word) :], expected)


CUMULATIVE = re.compile(r".*_(total|count|sum|bucket)")
NO_TIME = -(2**63)
"""Placeholder for the time of a sample that has none."""

MOST_SERIES = 1_000_000
"""Maximum number of series in a file. Each takes about 500 bytes of memory; real exporters have up to 100,000."""

FREE_SAMPLES = 500_000
"""Number of samples allowed in any file. Each takes about 300 bytes of memory."""

BYTES_PER_SAMPLE = 40
"""Larger files may have at most one sample per this many bytes; real exporters write one per 50 to 150 bytes."""

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*+"
_TERM = r'[ \t]*+[a-zA-Z_][a-zA-Z0-9_]*+[ \t]*+=[ \t]*+"(?:[^"\\\n]++|\\.)*+"[ \t]*+'
_BRACES = rf"\{{(?:{_TERM}(?:,{_TERM})*+,?+)?+[ \t]*+\}}"
_LABEL = re.compile(r'([a-zA-Z0-9_]+)[ \t]*=[ \t]*"((?:[^"\\]++|\\.)*+)"')
_NUMBER = r"[+-]?(?:\d++\.?\d*+|\.\d++)(?:[eE][+-]?\d++)?+"
_VALUE = rf"({_NUMBER}|[+-]?[iI][nN][fF](?:[iI][nN][iI][tT][yY])?+|[nN][aA][nN])"
_SAMPLE = re.compile(
    rf"(?a)[ \t]*+({_NAME}[ \t]*+{_BRACES}|{_NAME}(?=[ \t]))[ \t]*+{_VALUE}(?:[ \t]++([+-]?\d{{1,14}}))?+\s*"
)
_LINE = re.compile(r".++\n?|\n")
_TYPE = re.compile(rf"#[ \t]++TYPE[ \t]++({_NAME})[ \t]++(\w+)\s*", re.ASCII)
_ESCAPE = re.compile(r"\\([\\n\"])")
WANTED = 'a line in the text format of Prometheus, such as name{label="value"} value time'


class Samples:
    """
    Collect the samples of a file of `size` bytes, in order.

    `repeated` has a row of table unread for each repetition of a series without times.
    """

    def __init__(self, path: File, size: int):
        self.path, self.n = path, 0
        self._most = max(FREE_SAMPLES, size // BYTES_PER_SAMPLE)
        self._types: dict[str, str] = {}
        self._series: dict[str, int] = {}
        self._rows: list[tuple[str, str, bool]] = []
        self._codes, self._values, self._times_us = array("i"), array("d"), array("q")
        self.repeated: list[Row] = []

    def feed(self, text: str, line_number: int = 1, at_us: int = NO_TIME, *, whole: bool = False) -> None:
        """
        Parse an exporter's answer; `line_number` is the number of its first line in the file.

        Samples without a time get the time `at_us` (Unix µs). A last line without a line break is rejected, unless the
        text is known to be `whole`.
        """
        match, known, timeless = _SAMPLE.fullmatch, self._series, set()
        codes, values, times_us = self._codes, self._values, self._times_us
        for number, part in enumerate(_LINE.finditer(text), line_number):
            line = part[0]
            if not (found := match(line)):
                if kind := _TYPE.match(line):
                    self._types[kind[1]] = kind[2]
                elif line.strip() and not line.lstrip().startswith("#"):
                    self._refuse(number, line, WANTED)
                continue
            series, value, stamp = found.groups()
            code = known[series] if series in known else self._begin(series, number, line)
            self.n += 1
            if self.n > self._most:
                self._refuse(number, line, f"at most {self._most:,} samples in a file of this size")
            if not whole and line[-1] != "\n":
                self._refuse(number, line, "a line break after the last sample, which may be truncated")
            if not isfinite(sample := float(value)):
                if value[-1] in "0123456789.":
                    self._refuse(number, line, "a value that fits into a 64-bit float")
                continue
            if stamp is None:
                if code in timeless:
                    expected = "a series that occurs once, or a time with each of its samples"
                    self.repeated.append(RawDataError(self.path, number, line.strip(), expected).row())
                    continue
                timeless.add(code)
            codes.append(code)
            values.append(sample)
            times_us.append(at_us if stamp is None else int(stamp) * 1_000)

    def add(self, metric: str, value: float, at_us: int) -> None:
        """Add a sample of a series without labels that the exporter did not print, such as `up`."""
        code = self._series.get(metric)
        self._codes.append(self._new(metric, metric, "") if code is None else code)
        self._values.append(value)
        self._times_us.append(at_us)

    def columns(self) -> dict[str, pd.Series]:
        """Return the columns of table metrics by name, without those that are constant in the file."""
        self._series.clear()  # its memory is used again
        series = pd.DataFrame(self._rows, columns=["metric", "subject", "cumulative"])
        columns = series.take(np.frombuffer(self._codes, np.int32)).reset_index(drop=True)
        times_us, values = np.frombuffer(self._times_us, np.int64), np.frombuffer(self._values)
        at = np.where(times_us == NO_TIME, np.datetime64("NaT", "us"), times_us.astype("datetime64[us]"))
        at_utc = pd.Series(at).dt.tz_localize("UTC")
        return dict(columns.assign(value=values, at_utc=at_utc, source="prometheus", unit=""))

    def _begin(self, series: str, number: int, line: str) -> int:
        metric, _, rest = series.partition("{")
        labels = [
            (name, _ESCAPE.sub(lambda found: "\n" if found[1] == "n" else found[1], value))
            for name, value in _LABEL.findall(rest)
        ]
        if len(dict(labels)) < len(labels):
            self._refuse(number, line, "labels with different names")
        if len(self._rows) >= MOST_SERIES:
            self._refuse(number, line, f"at most {MOST_SERIES:,} series")
        return self._new(series, intern(metric.rstrip()), ", ".join([f"{name}={value}" for name, value in labels]))

    def _new(self, series: str, metric: str, subject: str) -> int:
        kind = self._types.get(metric) or self._types.get(metric.removesuffix("_total"))
        cumulative = kind == "counter" or CUMULATIVE.fullmatch(metric) is not None
        self._series[series] = code = len(self._rows)
        self._rows.append((metric, subject, cumulative))
        return code

    def _refuse(self, number: int, line: str, expected: str):
        raise RawDataError(self.path, number, line.strip(), expected)
