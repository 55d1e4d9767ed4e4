"""
Read result files of the OpenMessaging Benchmark and its forks, old and new.

Its latencies are defined in LocalWorker, WorkerStats and WorkloadGenerator:

==============  ==========================================================  ==================================
latency         start, end and clock                                        unit, and which values it drops
==============  ==========================================================  ==================================
publish         actual send to acknowledgement; the producer's monotonic    ms, from whole microseconds; at
                clock                                                       most 60 s
publish delay   intended to actual send; the producer's monotonic clock     whole µs, converted to ms here
end to end      actual send, as the record's timestamp says, to receipt;    ms, from whole milliseconds;
                wall clocks of producer and consumer                        values of 0 or less are dropped
send call       the call that hands a message to the client, from its       ms, from whole microseconds; only
                start to its return ("schedule")                            in Redpanda's fork
==============  ==========================================================  ==================================

The end-to-end latency of an open-loop load (`kafka_open_loop`), in contrast, starts at the intended send and drops no
value. Messages that could not be sent have no latency.

Names of members may be in upper or lower case, with or without underscores; unknown members are ignored. Percentiles of
windows are separate rows and are never combined.
"""

import json
import re
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from math import nan
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from wanbench.errors import RawDataError

from .content import read_text
from .json_values import check_values, members_once, text
from .rows import Row, fitting

LARGEST_BYTES = 16 << 20
"""Largest allowed file; the result of a day has about 4 MB."""

BYTES_PER_VALUE = 6
"""A larger file may have at most one value per this many bytes; real results have one per 7 bytes or more."""

MOST_WINDOWS = 100_000
"""Maximum number of windows: eleven days of windows of ten seconds."""

LARGEST = 1e15
"""Largest allowed number; whole numbers up to it are exact in floats."""

COUNTS = {name: name for name in ("topics", "partitions")} | {"record_bytes": "messageSize"}
COUNTS |= {"producers_per_topic": "producersPerTopic", "consumers_per_topic": "consumersPerTopic"}
WINDOWED = {f"{what}_records_per_s": f"{what}Rate" for what in ("publish", "consume")} | {"backlog_records": "backlog"}
WINDOWED |= {"mean_latency_ms": "publishLatencyAvg", "max_latency_ms": "publishLatencyMax"}
WINDOWED |= {"mean_end_to_end_ms": "endToEndLatencyAvg", "max_end_to_end_ms": "endToEndLatencyMax"}
WHAT = {"publish": "publish", "publishdelay": "publish delay", "endtoend": "end to end", "schedule": "send call"}
UNITS_PER_MS = {"publish": 1, "publish delay": 1_000, "end to end": 1, "send call": 1}
PERCENT = re.compile(
    r"(?P<aggregated>aggregated)?(?P<what>publish|publishdelay|endtoend|schedule)latency(?P<digits>[0-9]{2,7})pct"
)
PERCENTAGE = re.compile(r"[0-9]{1,3}(\.[0-9]{1,30})?([eE][-+]?[0-9]{1,2})?", re.ASCII)
QUANTILES = re.compile(r"aggregated(?P<what>publish|publishdelay|endtoend|schedule)latencyquantiles")


def read(path: str | Path) -> dict[str, pd.DataFrame]:
    """Read tables benchmark_runs, benchmark_windows and quantiles; a RawDataError names an invalid member."""
    path = Path(path)
    result = _Result(path, _members(path))
    columns = {
        "benchmark_runs": {name: [value] for name, value in result.run().items()},
        "benchmark_windows": result.windows(),
        "quantiles": result.quantiles,
    }
    return {name: fitting(path, name, values) for name, values in columns.items()}


class _Result:
    """A result, whose members are stored under lower-case names without underscores."""

    def __init__(self, path: Path, members: dict[str, Any]):
        self.path, self.members = path, {}
        for name, value in members.items():
            first, its = self.members.setdefault(re.sub(r"[_\- ]", "", name).lower(), (name, value))
            if first != name and its != value:
                raise RawDataError(path, None, f"{first[:60]!r} and {name[:60]!r}", "only one of these two members")
        self.n_windows = len(self.series("publishRate")) or len(self.series("consumeRate"))
        if not self.n_windows and not any(QUANTILES.fullmatch(name) for name in self.members):
            self.refuse("publishRate", "a result with a list of rates or with the quantiles of its run")

    def run(self) -> Row:
        return {
            **{name: self.text(name) for name in ("workload", "driver")},
            **{column: self.count(name) for column, name in COUNTS.items()},
            "n_windows": self.n_windows,
        }

    def windows(self) -> dict[str, np.ndarray]:
        unknown = np.full(self.n_windows, nan)
        values = {column: self.windowed(name) for column, name in WINDOWED.items()}
        values["window"] = np.arange(self.n_windows)
        return {column: numbers if len(numbers) else unknown for column, numbers in values.items()}

    @cached_property
    def quantiles(self) -> dict[str, Any]:
        parts = [_part("publish", nan, nan, np.array([]))]
        for name in self.members:
            if found := QUANTILES.fullmatch(name):
                shares, values = np.array(self.steps(name), float).reshape(-1, 2).T
                parts.append(_part(WHAT[found["what"]], nan, shares, values))
            elif found := PERCENT.fullmatch(name):
                what, share = WHAT[found["what"]], int(found["digits"]) / 10 ** len(found["digits"])
                if found["aggregated"]:
                    parts.append(_part(what, nan, share, np.array([self.number(name)], float)))
                else:
                    values = self.windowed(name)
                    parts.append(_part(what, np.arange(len(values)), share, values))
        whats, *numbers = zip(*parts, strict=True)
        columns = dict[str, Any](zip(("window", "quantile", "latency_ms"), map(np.concatenate, numbers), strict=True))
        columns["what"] = pd.array(whats, dtype="str").repeat([len(values) for *_, values in parts])
        known = ~np.isnan(columns["latency_ms"])
        return columns if known.all() else {name: values[known] for name, values in columns.items()}

    def series(self, name: str) -> np.ndarray:
        """Return a member that is a list of numbers, NaN if not measured; empty if the member is missing."""
        value = self.get(name)
        if value is None:
            return np.array([])
        if isinstance(value, np.ndarray):
            return value
        if not isinstance(value, list) or len(value) > MOST_WINDOWS:
            self.refuse(name, "a list of numbers")
        if not (set(map(type, value)) <= {int, float} and all(-LARGEST <= number <= LARGEST for number in value)):
            value = [self.checked(name, number) for number in value]
        numbers = np.array(value, float)
        given, _ = self.members[name.lower()]
        self.members[name.lower()] = (given, numbers)  # a quarter of the list's memory
        return numbers

    def windowed(self, name: str) -> np.ndarray:
        values = self.series(name)
        if len(values) not in (0, self.n_windows):
            self.refuse(name, f"{self.n_windows} numbers, one for each window", f"{len(values)} numbers")
        return values

    def steps(self, name: str) -> list[tuple[float, float]]:
        """Return (fraction, latency) pairs of a member that maps percentages, as text, to latencies."""
        value = self.get(name)
        if value is None:
            return []
        if not isinstance(value, dict):
            self.refuse(name, "an object that maps percentages to latencies")
        found = []
        for key, latency in value.items():
            latency = self.checked(name, latency)
            if not PERCENTAGE.fullmatch(key) or float(key) > 100 or latency is None:
                self.refuse(name, "an object that maps percentages to latencies", f"{key[:40]!r}: {latency!r}")
            found.append((float(Decimal(key) / 100), latency))
        found.sort()
        if any(a[1] > b[1] for a, b in pairwise(found)):
            self.refuse(name, "latencies that do not decrease from one percentage to the next")
        return found

    def number(self, name: str) -> float | None:
        return self.checked(name, self.get(name))

    def count(self, name: str) -> int | None:
        value = self.number(name)
        if value is not None and (value < 0 or value != int(value)):
            self.refuse(name, "a whole number from 0")
        return None if value is None else int(value)

    def text(self, name: str) -> str | None:
        value = self.get(name)
        if not isinstance(value, str | None):
            self.refuse(name, "text")
        return None if value is None else text(value)

    def get(self, name: str) -> Any:
        return self.members.get(name.lower(), (name, None))[1]

    def checked(self, name: str, value: object) -> float | None:
        """Check that a value is a finite number; return None for null and NaN, which mean "not measured"."""
        if value is None or value == "NaN" or value != value:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
            self.refuse(name, "a number", repr(value)[:60])
        return float(value)

    def refuse(self, name: str, expected: str, found: str | None = None) -> NoReturn:
        given, value = self.members.get(name.lower(), (name, None))
        found = (type(value).__name__ if value is not None else "nothing") if found is None else found
        raise RawDataError(self.path, None, text(f"{given[:60]} = {found}"), expected)


def _part(what: str, windows: float | np.ndarray, shares: float | np.ndarray, values: np.ndarray) -> tuple[Any, ...]:
    """Return columns of table quantiles for one kind of latency: what, window, quantile, latency in ms."""
    latencies = values if UNITS_PER_MS[what] == 1 else values / UNITS_PER_MS[what]
    return what, *np.broadcast_arrays(windows, shares, latencies)


def _members(path: Path) -> dict[str, Any]:
    _, content = read_text(path, most_bytes=LARGEST_BYTES)
    check_values(path, content, BYTES_PER_VALUE)
    try:
        members = json.loads(content, object_pairs_hook=members_once)
    except (ValueError, RecursionError) as error:
        raise RawDataError(path, getattr(error, "lineno", None), error, "a result in JSON") from error
    if not isinstance(members, dict):
        raise RawDataError(path, None, type(members).__name__, "a result, an object in JSON")
    return members
