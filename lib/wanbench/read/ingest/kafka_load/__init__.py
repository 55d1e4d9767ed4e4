"""
Read logs of Kafka's performance tools into tables of producers, consumers, round trips, their intervals and metrics.

Errors, warnings and unreadable figures count in `n_errors`, and the first is in `error`; other lines may come from a
script and are ignored. A file without output of these tools is rejected. Percentiles are kept as printed, one per
process, and are never averaged.

Three optional files belong to `<stem>.producer-0.txt`: `<stem>.producer-0.lines.json` has the time of each line,
`<stem>.producer-0.stderr.txt` has further errors and warnings, and `<stem>.times.json` says when the warm-up of the
whole load ended, and whether its producers were stopped on purpose. If the file's name identifies the tool, as in this
example, an empty file gives a row, too.
"""

from __future__ import annotations

import re
from math import isfinite

import pandas as pd

from wanbench.errors import RawDataError
from wanbench.read.ingest.content import plain_name, read_text
from wanbench.read.ingest.rows import fitting

from . import consumer, lines, producer
from .files import NAME, LoadTimes, read_batches, read_times, sibling, times_of_lines

__all__ = ["read", "read_batches", "read_times"]

TABLES = {
    "producer": ("producers", "producer_windows", "metrics"),
    "consumer": ("consumers", "consumer_windows", "metrics"),
    "round trip": ("round_trips", "quantiles"),
}


def read(source) -> dict[str, pd.DataFrame]:
    """
    Read a file, given as a path or bytes, into the tables of each tool whose output it holds, without context columns.

    Producers and consumers are numbered from the number in the file's name (`<stem>.producer-2.txt`), or from 0. Raise
    RawDataError if the file holds output of none of the tools, or if it or a file that belongs to it is unreadable.

    >>> log = b"500 records sent, 99.9 records/sec (0.10 MB/sec), 2.5 ms avg latency, 9.0 ms max latency.\\n"
    >>> tables = read(log + b"java.net.ConnectException: refused\\n")
    >>> tables["producer_windows"][["records", "mean_latency_ms"]].values.tolist()
    [[500.0, 2.5]]
    >>> tables["producers"].error[0]
    'no summary: java.net.ConnectException: refused'
    """
    path, text = _text(source)
    named = NAME.search(plain_name(path))
    reader = OutputReader(path, len(text), named and named["tool"], may_be_silent=bool(named))
    for line in lines.lines_of(path, text, times_of_lines(source)):
        reader.feed(line)
    if stderr := sibling(source, ".stderr.txt"):
        for line in lines.lines_of(*_text(stderr)):
            reader.feed(line)
    reader.end()
    times = LoadTimes.of_log(source)
    for output in reader.outputs:
        output.complaints.stopped = times.stopped and output.tool == "producer"
    rows = _rows(reader, int(named["number"]) if named else 0)
    group = int(named["group"]) if named and named["group"] else None
    for row in (*rows.get("consumers", ()), *rows.get("consumer_windows", ())):
        row["group"] = group
    windows = rows.get("producer_windows", ())
    for row, behind_s in zip(windows, times.behind_s(windows), strict=True):
        row["warmup"] = times.warmup(row) if row["warmup"] is None else row["warmup"]
        row["behind_s"] = behind_s
    tools = dict.fromkeys(output.tool for output in reader.outputs)
    return {name: fitting(path, name, rows.get(name, [])) for tool in tools for name in TABLES[tool]}


def _text(source) -> tuple[object, str]:
    return read_text(source, most_bytes=lines.LARGEST_BYTES, otherwise=lines.OTHERWISE)


def _rows(reader: OutputReader, first: int) -> dict[str, list[dict]]:
    """Return the rows of each table; outputs of the same tool are numbered from `first`."""
    by_table: dict[str, list[dict]] = {}
    following: dict[str, int] = {}
    for output in reader.outputs:
        number = following.get(output.tool, first)
        for row in reader.metrics.get(id(output), ()):
            row["host"] = f"{output.tool} {number}"
            by_table.setdefault("metrics", []).append(row)
            output.metric(row)
        rows = output.rows(number)
        for name, more in rows.items():
            by_table.setdefault(name, []).extend(more)
        numbers = [row[output.tool] for name in rows for row in rows[name] if output.tool in row]
        following[output.tool] = max(numbers, default=number) + 1
    return by_table


OUTPUTS = {
    "producer": producer.ProducerOutput,
    "consumer": consumer.ConsumerOutput,
    "round trip": producer.RoundTripOutput,
}
SIGNS = ("header", "warm-up", "steady state", "progress")
"""Kinds of events without figures."""

FREE_ROWS = 50_000
"""Number of rows allowed in any file; each takes about 600 bytes of memory."""

CHARACTERS_PER_ROW = 80
"""A larger file may have at most one row per this many characters; the shortest line of figures has 87."""

OUTPUT_ROWS = 3
"""An output object counts as this many rows, because it takes as much memory."""

WANTED = "output of kafka-producer-perf-test, kafka-consumer-perf-test or EndToEndLatency"


class OutputReader:
    """
    Assign the lines of a file to the outputs of tools.

    Parameters
    ----------
    size : int
        Length of the file in characters.
    expected : str or None
        The tool, if it is known.
    may_be_silent : bool
        Whether an empty file counts as output of the expected tool.

    Attributes
    ----------
    outputs : list
        Outputs in the order of their first lines.
    metrics : dict
        Rows of table metrics that clients printed, by the id of their output.
    """

    def __init__(self, path, size: int = 0, expected: str | None = None, *, may_be_silent: bool = False):
        self._rows_left = max(FREE_ROWS, size // CHARACTERS_PER_ROW)
        self.path, self.expected, self.may_be_silent = path, expected, may_be_silent
        self.outputs: list = []
        self.metrics: dict[int, list[dict]] = {}
        self._of_tool: dict[str, object] = {}
        self._latest = None
        self._waiting: list[tuple[str, str]] = []
        self._has_figures = False
        self._n_spoken = self._n_unknown = 0
        self._spoke: str | None = None
        self._header: tuple[str, ...] | None = None
        self._after: str | None = None
        self._first: lines.Line | None = None

    def feed(self, line: lines.Line) -> None:
        """Process a line, which may have figures, a message, or both, if two outputs were written at the same time."""
        self._first = self._first or (line if line.text.strip() else None)
        if event := producer.alone(line.text, line.whole):
            self._take("producer", event, line)
            self._has_figures, self._after = True, None
            return
        at, matches = 0, {}
        while (at == 0 or at < len(line.text)) and (match := self._find(line, at, matches)):
            start, end, tool, event = match
            before = line.text[at:start]
            if before.strip() and not (at == 0 and lines.is_prefix(before)):
                self._message(line.printed[at:start], torn=False)
            self._take(tool, event, line)
            if event["kind"] in SIGNS:
                self._weigh(tool, spoken=line.text.strip() == line.text[start:end].strip())
            else:
                self._has_figures = True
            at, self._after = end, None
        if at == 0 or line.text[at:].strip():
            self._message(line.printed[at:], torn=not line.whole)

    def end(self) -> None:
        """Finish after the last line; raise RawDataError if the file holds no output of these tools."""
        if self._has_figures or (self.outputs and self.may_be_silent):
            return
        if self._first is None:
            if self.may_be_silent:
                self._begin(self.expected).complaints.silent = True
                return
            raise RawDataError(self.path, None, "an empty file", WANTED)
        tool = self.expected or self._spoke
        enough = 1 if self.may_be_silent else max(1, self._n_unknown)
        if tool is None or self._n_spoken < enough:
            raise RawDataError(self.path, self._first.number, self._first.printed.strip(), WANTED)
        if not self.outputs:
            self._begin(tool)

    def _weigh(self, tool: str | None, *, spoken: bool) -> None:
        """Count a line without figures as printed by a tool (`spoken`), or as unknown."""
        self._n_spoken += spoken
        self._n_unknown += not spoken
        self._spoke = self._spoke or (tool if spoken else None)

    def _find(self, line, at, matches):
        """
        Return the first figures from position `at` on, as their start, end, tool and event; `matches` caches later
        figures.
        """
        text = line.text
        if lines.must_search(matches, "producer", at):
            matches["producer"] = producer.find_output(text, at, line.whole)
        if matches["producer"] and matches["producer"][0] == at:  # nothing can come before it
            start, end, event = matches["producer"]
            return start, end, "producer", event
        by_tool = {"producer": matches["producer"], "consumer": consumer.find_output(text, at, self._header, matches)}
        if lines.must_search(matches, "round trip", at):
            matches["round trip"] = producer.find_round_trip(text, at, line.whole)
        if lines.must_search(matches, "metric", at):
            matches["metric"] = self._metric(text, at)
        by_tool |= {tool: matches[tool] for tool in ("round trip", "metric")}
        present = [(match[0], match[1], tool, match[2]) for tool, match in by_tool.items() if match]
        return min(present, key=lambda match: match[0], default=None)

    def _metric(self, text, at):
        if ":{" not in text:
            return None
        begin = METRIC_BEGINNING.search(text, at)
        line = begin and METRIC.match(text, begin.start())
        return line and (line.start(), line.end(), {"kind": "metric", "line": line})

    def _take(self, tool, event, line):
        if event["kind"] == "metric":
            named = source_of(event["line"]["group"], event["line"]["labels"])
            tool = named or (self._latest and self._latest.tool) or self.expected
            tool = tool if tool in ("producer", "consumer") else "producer"
            output = self._of_tool.get(tool) or self._begin(tool)
            if row := metric_row(event["line"], output.tool):
                self._count(1, line)
                self.metrics.setdefault(id(output), []).append(row)
            return
        output = self._of_tool.get(tool)
        if output is None or not output.takes(event):
            self._count(OUTPUT_ROWS, line)
            output = self._begin(tool)
        if event["kind"] == "header":
            self._header = event["names"]
        self._count(1, line)
        output.add(event, line)
        output.complaints.other = None  # a line before figures does not explain why later figures are missing
        self._latest = output

    def _count(self, n: int, line: lines.Line) -> None:
        """Reject a file with more rows than its size allows."""
        self._rows_left -= n
        if self._rows_left < 0:
            expected = f"at most {FREE_ROWS:,} rows of figures, or one per {CHARACTERS_PER_ROW} characters"
            raise RawDataError(self.path, line.number, line.printed.strip(), expected)

    def _begin(self, tool):
        output = OUTPUTS[tool]()
        self.outputs.append(output)
        self._of_tool[tool] = output
        if tool == "consumer":
            self._header = None
        self._latest = output
        waiting, self._waiting = self._waiting, []
        for text, kind in waiting:
            self._note(text, kind)
        return output

    def _message(self, text, *, torn):
        if not text or text.isspace():
            self._after = lines.NOTHING
            return
        kind = lines.kind_of_line(text, self._after)
        self._after = kind
        if kind in (lines.NOTHING, lines.MORE):
            return
        if not self._has_figures:
            self._weigh(lines.tool_of_line(text), spoken=lines.is_spoken(text))
        output = self._whose(text)
        if torn and kind == lines.UNKNOWN and output is not None:
            output.complaints.torn = lines.formatted(text)[-60:]
        elif output is None:
            self._waiting.append((text, kind))
        else:
            self._note(text, kind)

    def _whose(self, text):
        return self._of_tool.get(lines.tool_of_line(text)) or self._latest

    def _note(self, text, kind):
        self._whose(text).complaints.add(text, kind)


METRIC_DECIMALS = 3
"""Number of decimals with which the tools print metrics."""

NO_NUMBERS = ("app-info:version", "app-info:commit-id")
METRIC = re.compile(
    r"(?P<group>[A-Za-z][\w.-]*):(?P<name>[A-Za-z0-9][\w.-]*):\{(?P<labels>[^{}]*)\} *: (?P<value>[^ ].*)"
)
METRIC_BEGINNING = re.compile(r"(?<![\w.-])[A-Za-z][\w.-]{0,200}:[A-Za-z0-9][\w.-]{0,200}:\{")
_METRIC_VALUE = re.compile(r"-?\d{1,30}(?:[.,]\d+)?(?:E-?\d+)?")


def source_of(group: str, labels: str) -> str | None:
    """Return which tool printed a metric, "producer" or "consumer", by its group or labels; None if unknown."""
    tools = ("producer", "consumer")
    named = [name for name in tools if group.startswith(name)] + [name for name in tools if name in labels]
    return next(iter(named), None)


def metric_row(line: re.Match, source: str) -> dict | None:
    """
    Return a row of table metrics, without context columns and host; None if the value is not a number.

    >>> line = METRIC.match("consumer-metrics:io-time:{client-id=a, node-id=node-1} : 16,100")
    >>> metric = metric_row(line, "consumer")
    >>> metric["metric"], metric["subject"], metric["value"]
    ('consumer-metrics:io-time', 'client-id=a, node-id=node-1', 16.1)
    """
    metric = f"{line['group']}:{line['name']}"
    text = line["value"].strip()
    if metric in NO_NUMBERS or not _METRIC_VALUE.fullmatch(text):
        return None
    try:
        value = float(text) if "E" in text else lines.real(text, METRIC_DECIMALS)
    except ValueError:
        return None
    if value is None or not isfinite(value):
        return None
    about = {"source": source, "host": None, "subject": line["labels"], "metric": metric, "unit": ""}
    return about | {"value": value, "cumulative": line["name"].endswith("-total")}
