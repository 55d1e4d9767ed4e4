"""
Tables of a log of Kafka's perf tools: producers, consumers, round trips, their intervals and metrics.

A line without figures that is an error, a warning, or an unreadable figure counts in `n_errors`, and the first is
`error`; other lines may be a script's. A file without output of these tools is rejected. Percentiles stay as printed,
one per process, and are never averaged.

Next to `<stem>.producer-0.txt` there may be `<stem>.producer-0.lines.json` (time of each line),
`<stem>.producer-0.stderr.txt` (its errors and warnings count with those of the output) and `<stem>.times.json` (when
the warm-up of the whole load was over, and whether its producers were stopped on purpose). If the file's name
identifies the tool, as here, a tool without output is a row too.
"""

from __future__ import annotations

import pandas as pd

from wanbench.errors import RawDataError
from wanbench.read.ingest.content import plain_name, read_text
from wanbench.read.ingest.rows import fitting

from . import round_trip
from .lines import LARGEST_BYTES, OTHERWISE, lines
from .outputs import WANTED, OutputReader
from .times import NAME, LoadTimes, sibling, times_of_lines

TABLES = {
    "producer": ("producers", "producer_windows", "metrics"),
    "consumer": ("consumers", "consumer_windows", "metrics"),
    "round trip": ("round_trips", "quantiles"),
}


def read(source) -> dict[str, pd.DataFrame]:
    """
    Tables, without their context, of one file: those of each tool with output in it.

    Producers and consumers are numbered from the number in the file's name (`<stem>.producer-2.txt`), or from 0.

    Parameters
    ----------
    source : path-like or bytes

    Raises
    ------
    RawDataError
        If the file holds output of none of the tools, or it or a file next to it cannot be read.

    Examples
    --------
    >>> log = b"500 records sent, 99.9 records/sec (0.10 MB/sec), 2.5 ms avg latency, 9.0 ms max latency.\\n"
    >>> tables = read(log + b"java.net.ConnectException: refused\\n")
    >>> tables["producer_windows"][["records", "mean_latency_ms"]].values.tolist()
    [[500.0, 2.5]]
    >>> tables["producers"].error[0]
    'no summary: java.net.ConnectException: refused'
    """
    return _read(source, None)


def read_round_trips(source) -> dict[str, pd.DataFrame]:
    """
    Tables round_trips and quantiles from EndToEndLatency's output, without their context.

    Raises
    ------
    RawDataError
        If the file holds nothing of it.

    Examples
    --------
    >>> log = b"0\\t61.2\\nAvg latency: 41,2031 ms\\n\\nPercentiles: 50th = 40, 99th = 52, 99.9th = 61\\n"
    >>> tables = read_round_trips(log)
    >>> tables["round_trips"][["mean_latency_ms", "p99_latency_ms"]].values.tolist()
    [[41.2031, 52.0]]
    >>> tables["quantiles"].latency_ms.tolist()
    [40.0, 52.0, 61.0]
    """
    return _read(source, round_trip.TOOL)


def _read(source, expected: str | None) -> dict[str, pd.DataFrame]:
    """As `read`; with `expected`, only of this tool, recognised even if it only printed errors."""
    path, text = _text(source)
    named = NAME.search(plain_name(path))
    reader = OutputReader(path, len(text), expected or (named and named["tool"]), may_be_silent=bool(named))
    for line in lines(path, text, times_of_lines(source)):
        reader.feed(line)
    if stderr := sibling(source, ".stderr.txt"):
        for line in lines(*_text(stderr)):
            reader.feed(line)
    reader.end()
    if expected is not None and not any(output.tool == expected for output in reader.outputs):
        raise RawDataError(path, None, f"output of a {reader.outputs[0].tool}", WANTED)
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
    wanted = [expected] if expected else dict.fromkeys(output.tool for output in reader.outputs)
    return {name: fitting(path, name, rows.get(name, [])) for tool in wanted for name in TABLES[tool]}


def _text(source) -> tuple[object, str]:
    return read_text(source, most_bytes=LARGEST_BYTES, otherwise=OTHERWISE)


def _rows(reader: OutputReader, first: int) -> dict[str, list[dict]]:
    """Rows by table; the outputs of each tool are numbered from `first`."""
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
