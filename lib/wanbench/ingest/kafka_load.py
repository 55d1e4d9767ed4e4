"""
Reads what Kafka's perf tools printed under load: producers, consumers, their intervals, errors and metrics. Imports
the readers of the tools, `tables` and `errors`; nothing that measures.

What a line is, is told by itself (`kafka_output`). Nothing is dropped silently: a line that is neither figures nor
known to mean nothing counts in `n_errors`, the first of them stands in `error`; a file in which none of these tools
says anything is refused. Percentiles stay as printed, one per process, and are never averaged.

Beside `<stem>.producer-0.txt` there may be `<stem>.producer-0.lines.json` (when each line came),
`<stem>.producer-0.stderr.txt`, whose errors and warnings count with those of the output, and `<stem>.times.json` (when
the warm-up of the whole load was over, and whether its producers were stopped, as is meant where no count ends them).
Where the name tells the tool, as there, one that printed nothing is a row too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from ..errors import RawDataError
from ..tables import CONTEXT, table
from .content import plain_name, read_text
from .kafka_lines import LARGEST_BYTES, OTHERWISE, beside, is_time, lines, times_beside
from .kafka_output import WANTED, Reading

TABLES = {
    "producer": ("producers", "producer_windows", "metrics"),
    "consumer": ("consumers", "consumer_windows", "metrics"),
    "round trip": ("round_trips", "quantiles"),
}
NAMED = re.compile(
    r"\.(?P<tool>producer|consumer)-(?:(?P<group>\d{1,9})-|[^/]*-)?(?P<number>\d{1,9})\.[a-z]+$"
)


def read(source) -> dict[str, pd.DataFrame]:
    """
    Tables, without their context, of one file: those of each tool whose output is in it.

    Producers and consumers are numbered from the number in the file's name (`<stem>.producer-2.txt`), or from 0.

    Parameters
    ----------
    source : path-like or bytes

    Raises
    ------
    RawDataError
        If none of the tools says anything in it, it cannot be read, or the times of its lines cannot.

    Examples
    --------
    >>> log = b"500 records sent, 99.9 records/sec (0.10 MB/sec), 2.5 ms avg latency, 9.0 ms max latency.\\n"
    >>> found = read(log + b"java.net.ConnectException: refused\\n")
    >>> found["producer_windows"][["records", "mean_latency_ms"]].values.tolist()
    [[500.0, 2.5]]
    >>> found["producers"].error[0]
    'no summary: java.net.ConnectException: refused'
    """
    return read_as(source, None)


def tools(source) -> tuple[str, ...]:
    """
    Whose output is in a file: "producer", "consumer" and "round trip" (EndToEndLatency), in order of appearance.

    It is told by what stands there, not by the file's name; () where none of them says anything.

    >>> tools(b"Avg latency: 4.1 ms\\n"), tools(b"PING ::1\\n")
    (('round trip',), ())
    """
    path, text = _text(source)
    reading = Reading(path, len(text))
    try:
        for line in lines(path, text):
            reading.feed(line)
        reading.end()
    except RawDataError:
        return ()
    return tuple(dict.fromkeys(output.tool for output in reading.outputs))


def read_as(source, expected: str | None) -> dict[str, pd.DataFrame]:
    """As `read`, of the tool that is expected; one that only complained is then known all the same."""
    path, text = _text(source)
    named = NAMED.search(plain_name(path))
    reading = Reading(path, len(text), expected or (named and named["tool"]), may_be_silent=bool(named))
    for line in lines(path, text, times_beside(source)):
        reading.feed(line)
    for line in _stderr(source):
        reading.feed(line)
    reading.end()
    if expected is not None and not any(output.tool == expected for output in reading.outputs):
        raise RawDataError(path, None, f"output of a {reading.outputs[0].tool}", WANTED)
    about = LoadTimes.beside(source)
    for output in reading.outputs:
        output.complaints.stopped = about.stopped and output.tool == "producer"
    rows = _rows(reading, int(named["number"]) if named else 0)
    group = int(named["group"]) if named and named["group"] else None
    for row in (*rows.get("consumers", ()), *rows.get("consumer_windows", ())):
        row["group"] = group
    windows = rows.get("producer_windows", ())
    for row, behind_s in zip(windows, about.behind_s(windows), strict=True):
        row["warmup"] = about.warmup(row) if row["warmup"] is None else row["warmup"]
        row["behind_s"] = behind_s
    wanted = [expected] if expected else dict.fromkeys(output.tool for output in reading.outputs)
    return {name: _frame(name, rows.get(name, [])) for tool in wanted for name in TABLES[tool]}


class LoadTimes(NamedTuple):
    """
    What `<stem>.times.json` says: when a load began to count (Unix s), whether producers were stopped, and the rate
    that was asked of each (None: flat out, or not known).
    """

    counts_from_s: float | None = None
    stopped: bool = False
    target_records_per_s: float | None = None

    @classmethod
    def beside(cls, source) -> LoadTimes:
        """Of the load whose tool left `source`; RawDataError if the file is damaged."""
        if isinstance(source, bytes | bytearray) or not (named := NAMED.search(plain_name(source))):
            return cls()
        path = Path(str(source)[: named.start()] + ".times.json")
        content = beside(path, "the times of a load: an object in JSON", dict)
        if content is None:
            return cls()
        known = [content.get(name) for name in ("counts_from_s", "asked_to_stop_at_s")]
        if not all(value is None or is_time(value) for value in known):
            raise RawDataError(path, None, known, "Unix times or null: counts_from_s, asked_to_stop_at_s")
        target = content.get("target_records_per_s")
        if target is not None and not (is_time(target) and target > 0):
            raise RawDataError(path, None, target, "target_records_per_s: a rate above zero, or null")
        return cls(known[0], known[1] is not None, target)

    def behind_s(self, windows: Sequence[dict]) -> list[float | None]:
        """
        By producer, how far each of its windows ends behind the rate: the time so far less what its records take.

        >>> windows = [{"producer": 0, "length_s": 1.0, "records": n} for n in (100, 50, 50)]
        >>> LoadTimes(target_records_per_s=100).behind_s(windows)
        [0.0, 0.5, 1.0]
        """
        behind_s: dict[int, float] = {}
        found: list[float | None] = []
        for window in windows:
            if self.target_records_per_s is None:
                found.append(None)
                continue
            due_s = window["records"] / self.target_records_per_s
            more_s = (window["length_s"] or 0.0) - due_s
            behind_s[window["producer"]] = behind_s.get(window["producer"], 0.0) + more_s
            found.append(behind_s[window["producer"]])
        return found

    def warmup(self, window: dict) -> bool | None:
        """Whether a window of a producer began before the load counted; None if nobody knows."""
        if self.counts_from_s is None or window["printed_at_s"] is None:
            return None
        return window["printed_at_s"] - (window["length_s"] or 0.0) < self.counts_from_s


def _stderr(source):
    if isinstance(source, bytes | bytearray) or Path(plain_name(source)).suffix != ".txt":
        return []
    path = Path(plain_name(source)).with_suffix(".stderr.txt")
    return lines(*_text(path)) if path.is_file() else []


def _text(source) -> tuple[object, str]:
    return read_text(source, most_bytes=LARGEST_BYTES, otherwise=OTHERWISE)


def _rows(reading: Reading, first: int) -> dict[str, list[dict]]:
    found: dict[str, list[dict]] = {}
    after: dict[str, int] = {}
    for output in reading.outputs:
        number = after.get(output.tool, first)
        for row in reading.metrics.get(id(output), ()):
            row["host"] = f"{output.tool} {number}"
            found.setdefault("metrics", []).append(row)
            output.metric(row)
        rows = output.rows(number)
        for name, more in rows.items():
            found.setdefault(name, []).extend(more)
        counted = [row[output.tool] for name in rows for row in rows[name] if output.tool in row]
        after[output.tool] = max(counted, default=number) + 1
    return found


def _frame(name: str, rows: list[dict]) -> pd.DataFrame:
    columns = [column for column in table(name).columns if column not in CONTEXT]
    data = {
        column.name: pd.Series([row.get(column.name) for row in rows], dtype=object) for column in columns
    }
    return pd.DataFrame({column.name: column.check(data[column.name], name) for column in columns})


READS = {"*.producer-*.txt": read, "*.consumer-*.txt": read}
"""Which raw files of the experiment `kafka_load` this reads, by pattern of their names."""
