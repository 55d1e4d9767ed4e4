"""
Read an open-loop load into tables open_loop_loads and open_loop_histograms.

- A latency counts in the second in which its record was due. Rates count records in the second in which they were sent,
  acknowledged or received.
- A due record that was never acknowledged, or never received by a group, is lost, whether it was sent or not.
- `wanbench.open_loop` decides whether the generator (producers or a consumer group) fell behind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path

import numpy as np
import pandas as pd
from hdrh.histogram import HdrHistogram

from wanbench import open_loop
from wanbench.errors import RawDataError

from .json_values import LARGEST, Members, text
from .programs import json_lines, named_file, open_document
from .rows import Row, fitting

_SETTINGS = (
    "record_bytes", "topics", "partitions", "replication", "producers", "groups", "consumers", "batch_bytes",
)  # fmt: skip
_TEXTS = ("payload", "acks", "compression")


def read(path: str | Path) -> dict[str, pd.DataFrame]:
    """
    Read <stem>.load.json and the files that it names into tables; raise RawDataError if one is missing or damaged.
    """
    path = Path(path)
    load = _Load(path)
    return {
        "open_loop_loads": fitting(path, "open_loop_loads", [load.row()]),
        "open_loop_histograms": fitting(path, "open_loop_histograms", load.histograms()),
    }


class _Load:
    def __init__(self, path: Path):
        self.top = top = open_document(path, "an open-loop load in JSON")
        self.settings = settings = top.members("settings")
        self.sent, self.groups = Printed(), []
        for program in top.list("producers"):
            _read(path, program, "open-loop producer", _OF_PRODUCER, ("late", "publish"), self.sent)
        for program in top.list("consumers"):
            self.groups.append(Printed())
            _read(path, program, "open-loop consumer", _OF_CONSUMER, ("latency", "late"), self.groups[-1])
        self.rate = _needed(settings, "rate_records_per_s")
        self.warmup_s, self.duration_s = _needed(settings, "warmup_s"), _needed(settings, "duration_s")
        self.length_s = self.warmup_s + self.duration_s
        if not self.rate or self.length_s > MOST_SECONDS:
            settings.refuse(f"{self.rate:g} records/s for {self.length_s:g} s", "a schedule")
        self.start_s = top.number("start_s")
        self.numbers = range(ceil(self.length_s - 1e-9)) if self.start_s is not None else range(0)
        self.counted = [n for n in self.numbers if n >= self.warmup_s]
        self.clocks = [program.members("clock") for program in top.list("consumers")]
        sides = [(self.sent, "publish"), *((group, "latency") for group in self.groups)]
        self.lates = [self._counted(printed, "late") for printed, _ in sides]
        latencies = [self._counted(*side) for side in sides]
        self.fell_behind = any(map(open_loop.fell_behind, self.lates, latencies))

    def _counted(self, printed: Printed, name: str) -> Counter[int]:
        return sum((printed.second(n).histograms.get(name, Counter()) for n in self.counted), Counter())

    def row(self) -> Row:
        settings, sent = self.settings, self.sent
        length_s = sum(self._length_s(n) for n in self.counted)
        worst = max(self.clocks, key=lambda clock: clock.number("error_ms") or 0.0, default=self.top.of({}))
        late_p99 = max((open_loop.quantile(late, 0.99) or 0 for late in self.lates if late), default=None)
        errors = sum((each.errors for each in (sent, *self.groups)), Counter())
        n_sent, n_acknowledged = sent.total("n_handed"), sent.total("n_answered")
        last = self.numbers[-1] if self.numbers else None

        def per_s(printed: Printed, name: str) -> float | None:
            return printed.total(name, self.counted) / length_s if length_s else None

        received = [per_s(group, "n_received_in") or 0.0 for group in self.groups]
        return {
            **{name: settings.count(name) for name in _SETTINGS},
            **{name: settings.text(name) for name in _TEXTS},
            "rate_records_per_s": self.rate,
            "sent_records_per_s": per_s(sent, "n_sent_in"),
            "acknowledged_records_per_s": per_s(sent, "n_acknowledged_in"),
            "received_records_per_s": sum(received) / len(received) if received and length_s else None,
            "reread_records_per_s": self.top.number("reread_records_per_s"),
            "linger_ms": settings.number("linger_ms"),
            "idempotence": settings.flag("idempotence"),
            "client": sent.client or next((group.client for group in self.groups), None),
            "start_s": self.start_s,
            "warmup_s": self.warmup_s,
            "duration_s": self.duration_s,
            "n_intended": max(1, round(self.rate * self.length_s)),
            "n_sent": n_sent,
            "n_acknowledged": n_acknowledged,
            "n_failed": n_sent - n_acknowledged,
            "n_received_per_group_min": min((group.total("n_received") for group in self.groups), default=0),
            "n_duplicates": sum(group.total("n_duplicates") for group in self.groups),
            "late_p99_ms": None if late_p99 is None else late_p99 * open_loop.LATE_UNIT_MS,
            "late_max_ms": max((sent.second(n)["late_max_us"] / 1e3 for n in self.counted), default=None),
            "blocked_s": sent.total("blocked_us") / 1e6,
            "backlog_records": None if last is None else sent.second(last).counts.get("backlog"),
            "fell_behind": self.fell_behind if self.start_s is not None else None,
            "clock_offset_ms": worst.values.get("offset_ms"),
            "clock_error_ms": worst.number("error_ms"),
            "clock_method": worst.text("method"),
            "client_errors": "; ".join(f"{name} {n:,}" for name, n in errors.most_common()) or None,
            "error": self.top.text("error"),
        }

    def histograms(self) -> list[Row]:
        sources: list[tuple[str, int | None, Printed, str, float]] = [("publish", None, self.sent, "publish", 0.0)]
        for number, group in enumerate(self.groups):
            error_ms = self.clocks[number].number("error_ms") or 0.0
            sources.append(("end to end", number, group, "latency", error_ms))
        rows = []
        for what, group, printed, key, error_ms in sources:
            for number in self.numbers:
                second = printed.second(number)
                counts = second.histograms.get(key, Counter())
                n = sum(counts.values())
                row = {"warm_up": number < self.warmup_s, "what": what, "group": group, "window": number}
                row |= {"n": n, "unit": "us"}
                row |= {"start_s": (self.start_s or 0.0) + number, "length_s": self._length_s(number)}
                row |= {"n_lost": max(self._n_intended(number) - n, 0), "n_negative": second["n_negative"]}
                row |= {"fell_behind": self.fell_behind, "clock_error_ms": error_ms}
                rows.append(row | {"histogram": encoded_counts(counts)})
        return rows

    def _length_s(self, number: int) -> float:
        return min(1.0, self.length_s - number)

    def _n_intended(self, number: int) -> int:
        """Return the records due in a second: the producers' count, or the schedule's if they ended early."""
        first, after = (ceil((number + more) * self.rate - 1e-6) for more in (0, 1))
        n_all = max(1, round(self.rate * self.length_s))
        return max(self.sent.second(number)["n_due"], min(after, n_all) - min(first, n_all))


def _needed(settings: Members, name: str) -> float:
    value = settings.number(name)
    if value is None:
        settings.refuse(f"settings without {name}", "settings of an open-loop load")
    return value


MOST_SECONDS = 100_000
"""Maximum length of a schedule: a day and several hours of warm-up."""
_OF_PRODUCER = (
    "n_due", "n_handed", "n_answered", "n_sent_in", "n_acknowledged_in", "backlog", "blocked_us", "late_max_us",
)  # fmt: skip
_OF_CONSUMER = ("n_received", "n_duplicates", "n_negative", "n_received_in")


@dataclass
class Second:
    """One second of a program's output: counts by name, and histograms by name (number of records by value)."""

    counts: dict[str, int] = field(default_factory=dict)
    histograms: dict[str, Counter[int]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> int:
        return self.counts.get(name, 0)

    def add(self, other: Second) -> None:
        """Add the counts of the same second of another program; of `late_max_us`, keep the larger value."""
        for name, n in other.counts.items():
            self.counts[name] = max(self[name], n) if name == "late_max_us" else self[name] + n
        for name, counts in other.histograms.items():
            self.histograms.setdefault(name, Counter()).update(counts)


@dataclass
class Printed:
    """
    The output of all producers, or of one consumer group: its seconds by number, its error counts and its version of
    librdkafka.
    """

    seconds: dict[int, Second] = field(default_factory=dict)
    errors: Counter[str] = field(default_factory=Counter)
    client: str | None = None

    def second(self, number: int) -> Second:
        """Return a second of the schedule; an empty `Second` if nothing was printed about it."""
        return self.seconds.get(number) or Second()

    def total(self, name: str, numbers: Iterable[int] | None = None) -> int:
        """Return the sum of the count `name` over the seconds `numbers`, by default over all seconds."""
        return sum(self.second(n)[name] for n in (self.seconds if numbers is None else numbers))


def _read(
    path: Path, program: Members, title: str, counts: Iterable[str], histograms: Iterable[str], printed: Printed
) -> None:
    """Add one program's output to `printed`; a program that failed early has none."""
    file, sha256 = named_file(program, path)
    for number, value in json_lines(file, sha256):
        if not isinstance(value, dict):
            raise RawDataError(file, number, text(str(value)[:80]), "a JSON object")
        line = Members(file, number, value)
        if number == 1:
            if line.text("program") != title or line.count("format") != 1:
                line.refuse(text(str(value)[:80]), f"the first line of an {title}, format 1")
            printed.client = line.text("client")
        elif "error" in value:
            error = value["error"]
            valid = isinstance(error, list) and [type(part) for part in error] == [str, str, int]
            if not valid or not 0 <= error[2] <= LARGEST:
                line.refuse(text(str(error)[:80]), "name, text and number of an error")
            printed.errors[text(error[0])] += error[2]
        elif "second" in value:
            second = line.count("second")
            if second is None or second >= MOST_SECONDS:
                line.refuse(f"second = {str(second)[:40]}", f"a second below {MOST_SECONDS:,}")
            if title == "open-loop consumer":
                value.setdefault("late", [])  # consumers of older loads did not count it
            read = Second({key: n for key in counts if (n := line.count(key)) is not None})
            read.histograms = {key: _histogram(line, key) for key in histograms}
            printed.seconds.setdefault(second, Second()).add(read)


def _histogram(line: Members, name: str) -> Counter[int]:
    values = line.values.get(name)
    if not isinstance(values, list) or len(values) % 2:
        line.refuse(f"{name} = {str(values)[:40]}", "a list of alternating values and counts")
    if not all(type(value) is int and 0 <= value <= LARGEST for value in values):
        line.refuse(f"{name} = {str(values)[:40]}", "whole numbers from 0")
    return Counter(dict(zip(values[::2], values[1::2], strict=True)))


LOWEST_US = 1
HIGHEST_US = 3_600_000_000
"""Highest value of a histogram: an hour."""
DIGITS = 3
"""Significant digits of a histogram's values: their error is at most 0.1 %."""


def encoded_counts(counts: Mapping[int, int]) -> str:
    """
    Encode counts by value in µs as an HdrHistogram (V2, compressed, base64); values are clipped to the range from 0 to
    an hour.
    """
    histogram = HdrHistogram(LOWEST_US, HIGHEST_US, DIGITS)
    values = np.fromiter(counts, np.int64).clip(0, HIGHEST_US)
    half = histogram.sub_bucket_half_count
    shift = (np.frexp(values)[1] - half.bit_length()).clip(0)  # bits of a value that its bucket leaves out
    filled = np.frombuffer(histogram.counts, np.uint64)
    np.add.at(filled, (values >> shift) + half * shift, np.fromiter((n % 2**64 for n in counts.values()), np.uint64))
    histogram.record_value(int(values.max(initial=0)), 0)  # so that the histogram knows its largest value
    histogram.total_count = sum(counts.values())
    return histogram.encode().decode()
