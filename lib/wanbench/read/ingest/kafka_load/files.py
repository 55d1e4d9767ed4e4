"""
Read files that the experiment `kafka_load` writes next to the tools' logs.

<stem>.times.json has the times of the whole load (table loads), <name>.lines.json the time of each line of <name>.txt,
and <stem>.batches.json the batches counted in the brokers' logs and the placement of replicas (tables batches and
placements).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from wanbench.errors import RawDataError
from wanbench.read.ingest.content import Source, plain_name
from wanbench.read.ingest.json_values import is_time, read_json
from wanbench.read.ingest.rows import Row, fitting

TIMES = (
    "started_at_s", "all_sending_at_s", "counts_from_s", "counts_until_s", "asked_to_stop_at_s", "ended_at_s",
)  # fmt: skip
"""
Times of a load; the first and the last are never null. The second to the fourth come from the clocks of the producers'
hosts, unless the producers were stopped; the others come from the clock of the measuring machine.
"""

OF_A_LOAD = "the times of a load, as a JSON object"
NAME = re.compile(r"\.(?P<tool>producer|consumer)-(?:(?P<group>\d{1,9})-|[^/]*-)?(?P<number>\d{1,9})\.[a-z]+$")
"""Matches the name of a tool's log: `<stem>.producer-2.txt`, `<stem>.consumer-<group>-<number>.txt`."""


def read_times(path: str | Path) -> dict[str, pd.DataFrame]:
    """
    Read table loads (one row) without context (run, test, regions, file); raise RawDataError if the file is invalid.
    """
    content = read_json(path, dict, OF_A_LOAD)
    times = [content.get(name) for name in TIMES]
    if None in (times[0], times[-1]) or not all(time is None or is_time(time) for time in times):
        raise RawDataError(path, None, times, f"Unix times in seconds: {', '.join(TIMES)}")
    spans = ((times[0], times[-1]), (times[2], times[3]))
    if any((first is None) != (last is None) or (first or 0) > (last or 0) for first, last in spans):
        raise RawDataError(path, None, times, "times in which each start comes before its end")
    missing = content.get("missing")
    if not isinstance(missing, list) or not all(isinstance(text, str) for text in missing):
        raise RawDataError(path, None, missing, "missing: a list of texts")
    unfinished = content.get("unfinished")
    if not isinstance(unfinished, str | None):
        raise RawDataError(path, None, unfinished, "unfinished: a string or null")
    return {"loads": fitting(path, "loads", [content | {"missing": "; ".join(missing) or None}])}


class LoadTimes(NamedTuple):
    """
    Content of <stem>.times.json: the end of the warm-up (Unix s), from which on records count; whether producers were
    stopped; and the target rate of each producer (None if it has none, or if it is unknown).
    """

    counts_from_s: float | None = None
    stopped: bool = False
    target_records_per_s: float | None = None

    @classmethod
    def of_log(cls, source: Source) -> LoadTimes:
        """Read the times of the load to which the log `source` belongs; raise RawDataError if their file is damaged."""
        if isinstance(source, bytes | bytearray) or not (named := NAME.search(plain_name(source))):
            return cls()
        path = Path(str(source)[: named.start()] + ".times.json")
        if not is_file(path):
            return cls()
        content = read_json(path, dict, OF_A_LOAD)
        times = [content.get(name) for name in ("counts_from_s", "asked_to_stop_at_s")]
        if not all(value is None or is_time(value) for value in times):
            raise RawDataError(path, None, times, "Unix times or null: counts_from_s, asked_to_stop_at_s")
        target = content.get("target_records_per_s")
        if target is not None and not (is_time(target) and target > 0):
            raise RawDataError(path, None, target, "target_records_per_s: a rate above zero, or null")
        return cls(times[0], times[1] is not None, target)

    def behind_s(self, windows: Sequence[Row]) -> list[float | None]:
        """
        Return a producer's lag behind its target rate in s at the end of each of its windows: the length of its windows
        so far, less the time that their records take at the target rate.

        >>> windows = [{"producer": 0, "length_s": 1.0, "records": n} for n in (100, 50, 50)]
        >>> LoadTimes(target_records_per_s=100).behind_s(windows)
        [0.0, 0.5, 1.0]
        """
        if self.target_records_per_s is None:
            return [None] * len(windows)
        behind_s: defaultdict[int, float] = defaultdict(float)
        by_window: list[float | None] = []
        for window in windows:
            due_s = window["records"] / self.target_records_per_s
            behind_s[window["producer"]] += (window["length_s"] or 0.0) - due_s
            by_window.append(behind_s[window["producer"]])
        return by_window

    def warmup(self, window: Row) -> bool | None:
        """Return whether a producer's window began during the warm-up; None if unknown."""
        if self.counts_from_s is None or window["printed_at_s"] is None:
            return None
        return window["printed_at_s"] - (window["length_s"] or 0.0) < self.counts_from_s


def times_of_lines(source: Source) -> list[float] | None:
    """Read the time of each line of <name>.txt from <name>.lines.json; None without such a file."""
    path = sibling(source, ".lines.json")
    if path is None:
        return None
    times = read_json(path, dict, "the times of lines, as a JSON object").get("lines")
    if not isinstance(times, list) or not all(map(is_time, times)) or times != sorted(times):
        raise RawDataError(path, None, times, "lines: a list of Unix times in order")
    return [float(time) for time in times]


def sibling(source: Source, ending: str) -> Path | None:
    """Return the file <name><ending> next to <name>.txt; None if there is none."""
    if isinstance(source, bytes | bytearray) or Path(plain_name(source)).suffix != ".txt":
        return None
    path = Path(plain_name(source)).with_suffix(ending)
    return path if is_file(path) else None


def is_file(path: Path) -> bool:
    """Return whether a path is a file; raise RawDataError for an invalid name."""
    try:
        return path.is_file()
    except (OSError, ValueError) as error:
        raise RawDataError(path, None, error, "a file that can be read") from error


COUNTED = ("broker", "topic", "partition", "at_s", "batches", "records", "bytes")
"""Columns of the member `rows`."""
PLACED = ("topic", "partition", "leader", "replicas", "in_sync")
"""Columns of the member `replicas`."""


def read_batches(path: str | Path) -> dict[str, pd.DataFrame]:
    """
    Read tables batches and placements, without context (run, test, regions, file), from <stem>.batches.json.

    Its member `rows` has at most one row per broker, partition and second; if no batches were counted, the member
    `left_out` says why. Raise RawDataError if both are missing, or if `rows` or `replicas` are invalid.
    """
    content = read_json(path, dict, "counts of batches, as a JSON object")
    rows = content.get("rows", [])
    if "rows" not in content and not isinstance(content.get("left_out"), str):
        raise RawDataError(path, None, ", ".join(map(str, content)), "rows, or left_out with the reason")
    if not isinstance(rows, list):
        raise RawDataError(path, None, rows, f"a list of rows of {', '.join(COUNTED)}")
    for number, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != len(COUNTED):
            raise RawDataError(path, None, f"row {number}: {row}", ", ".join(COUNTED))
    batches = fitting(path, "batches", [dict(zip(COUNTED, row, strict=True)) for row in rows])
    keys = list(COUNTED[:4])
    if (again := batches.duplicated(keys)).any():
        repeated = batches.loc[again, keys].iloc[0].tolist()
        raise RawDataError(path, None, repeated, "one row per second of a partition")
    empty = batches[(batches.batches < 1) | (batches.records < batches.batches) | (batches.bytes < batches.records)]
    if len(empty):
        expected = "at least one record in every batch, and one byte in every record"
        raise RawDataError(path, None, empty.iloc[0].tolist(), expected)
    return {"batches": batches, "placements": _placements(path, content)}


def _placements(path: str | Path, content: dict[str, Any]) -> pd.DataFrame:
    rows = []
    try:
        regions = dict(content.get("regions", []))
        for placed in content.get("replicas", []):
            of = dict(zip(PLACED, placed, strict=True))
            rows += [
                {"topic": of["topic"], "partition": of["partition"], "replica": number, "broker": broker}
                | {"region": regions[broker], "leads": broker == of["leader"], "in_sync": broker in of["in_sync"]}
                for number, broker in enumerate(of["replicas"])
            ]
    except (TypeError, ValueError, KeyError) as error:
        expected = f"replicas as rows of {', '.join(PLACED)}, on brokers of regions"
        raise RawDataError(path, None, error, expected) from error
    return fitting(path, "placements", rows)
