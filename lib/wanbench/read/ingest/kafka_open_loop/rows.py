"""
An open-loop load as tables open_loop_loads, open_loop_seconds and open_loop_histograms.

- Records belong to the second in which they were due; rates, `n_sent`, `n_acknowledged` and `n_received` of a second
  count what happened in it.
- A due record that was never acknowledged, or never received by a group, is lost, whether sent or not.
- Whether the generator fell behind: see `wanbench.open_loop`.
"""

from __future__ import annotations

from collections import Counter
from math import ceil
from pathlib import Path

import pandas as pd

from wanbench import open_loop
from wanbench.read.ingest.json_values import Members
from wanbench.read.ingest.rows import fitting

from .files import MOST_SECONDS, Printed, groups, open_load, producers
from .histograms import encoded_counts

_SETTINGS = (
    "record_bytes", "topics", "partitions", "replication", "producers", "groups", "consumers", "batch_bytes",
)  # fmt: skip
_TEXTS = ("payload", "acks", "compression")


def read(path) -> dict[str, pd.DataFrame]:
    """
    The tables of <stem>.load.json and the files that it names.

    Raises
    ------
    RawDataError
        If a file is missing, damaged, or not what such a load leaves.
    """
    path = Path(path)
    load = _Load(path)
    return {
        "open_loop_loads": fitting(path, "open_loop_loads", [load.row()]),
        "open_loop_seconds": fitting(path, "open_loop_seconds", load.seconds()),
        "open_loop_histograms": fitting(path, "open_loop_histograms", load.histograms()),
    }


class _Load:
    def __init__(self, path: Path):
        self.top = top = open_load(path)
        self.settings = settings = top.members("settings")
        self.sent, self.groups = producers(path, top), groups(path, top)
        self.rate = _needed(settings, "rate_records_per_s")
        self.warmup_s, self.duration_s = _needed(settings, "warmup_s"), _needed(settings, "duration_s")
        self.length_s = self.warmup_s + self.duration_s
        if not self.rate or self.length_s > MOST_SECONDS:
            settings.refuse(f"{self.rate:g} records/s for {self.length_s:g} s", "a schedule")
        self.start_s = top.number("start_s")
        self.numbers = range(ceil(self.length_s - 1e-9)) if self.start_s is not None else range(0)
        self.counted = [n for n in self.numbers if n >= self.warmup_s]
        self.clocks = [program.members("clock") for program in top.list("consumers")]
        self.late = sum((self.sent.second(n).histograms.get("late", Counter()) for n in self.counted), Counter())

    @property
    def clock_error_ms(self) -> float:
        return max((clock.number("error_ms") or 0.0 for clock in self.clocks), default=0.0)

    @property
    def fell_behind(self) -> bool:
        """Whether the generator itself was late: see the module."""
        published = sum((self.sent.second(n).histograms.get("publish", Counter()) for n in self.counted), Counter())
        return open_loop.fell_behind(self.late, published)

    def row(self) -> dict:
        """The row of open_loop_loads."""
        settings, sent = self.settings, self.sent
        length_s = sum(self._length_s(n) for n in self.counted)
        worst = max(self.clocks, key=lambda clock: clock.number("error_ms") or 0.0, default=Members.none(self.top))
        late_p99 = open_loop.quantile(self.late, 0.99)
        errors = sum((each.errors for each in (sent, *self.groups)), Counter())
        n_sent, n_acknowledged = sent.total("n_handed"), sent.total("n_answered")
        last = self.numbers[-1] if self.numbers else None

        def per_s(printed: Printed, name: str):
            return printed.total(name, self.counted) / length_s if length_s else None

        received = [per_s(group, "n_received_in") for group in self.groups]
        return {
            **{name: settings.count(name) for name in _SETTINGS},
            **{name: settings.text(name) for name in _TEXTS},
            "step": self.top.count("step"),
            "rate_records_per_s": self.rate,
            "sent_records_per_s": per_s(sent, "n_sent_in"),
            "acknowledged_records_per_s": per_s(sent, "n_acknowledged_in"),
            "received_records_per_s": sum(received) / len(received) if received and length_s else None,
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
            "backlog_records": None if last is None else self._backlog(last),
            "fell_behind": self.fell_behind if self.start_s is not None else None,
            "clock_offset_ms": worst.values.get("offset_ms"),
            "clock_error_ms": worst.number("error_ms"),
            "clock_method": worst.text("method"),
            "client_errors": "; ".join(f"{name} {n:,}" for name, n in errors.most_common()) or None,
            "error": self.top.text("error"),
        }

    def seconds(self) -> list[dict]:
        """The rows of open_loop_seconds."""
        rows = []
        for number in self.numbers:
            second = self.sent.second(number)
            received = [group.second(number)["n_received_in"] for group in self.groups]
            rows.append(
                self._about(number)
                | {
                    "second": number,
                    "at_s": self.start_s + number,
                    "n_intended": self._n_intended(number),
                    "n_sent": second["n_sent_in"],
                    "n_acknowledged": second["n_acknowledged_in"],
                    "n_received": sum(received) / len(received) if received else 0.0,
                    "n_resent": second.counts.get("n_resent_in"),
                    "late_max_ms": second["late_max_us"] / 1e3,
                    "backlog_records": self._backlog(number),
                    "blocked_ms": second["blocked_us"] / 1e3,
                }
            )
        return rows

    def histograms(self) -> list[dict]:
        """The rows of open_loop_histograms."""
        sources = [("publish", None, self.sent, "publish", 0.0)]
        for number, group in enumerate(self.groups):
            error_ms = self.clocks[number].number("error_ms") or 0.0
            sources.append(("end to end", number, group, "latency", error_ms))
        fell_behind, rows = self.fell_behind, []
        for what, group, printed, key, error_ms in sources:
            for number in self.numbers:
                second = printed.second(number)
                counts = second.histograms.get(key, Counter())
                n = sum(counts.values())
                rows.append(
                    self._about(number)
                    | {
                        "what": what,
                        "group": group,
                        "window": number,
                        "start_s": self.start_s + number,
                        "length_s": self._length_s(number),
                        "n": n,
                        "n_lost": max(self._n_intended(number) - n, 0),
                        "n_negative": second["n_negative"],
                        "fell_behind": fell_behind,
                        "clock_error_ms": error_ms,
                        "unit": "us",
                        "histogram": encoded_counts(counts),
                    }
                )
        return rows

    def _about(self, number: int) -> dict:
        return {"step": self.top.count("step"), "warm_up": number < self.warmup_s}

    def _length_s(self, number: int) -> float:
        return min(1.0, self.length_s - number)

    def _n_intended(self, number: int) -> int:
        """Records due in a second: as counted by the producers, or by the schedule if they ended early."""
        first, after = (ceil((number + more) * self.rate - 1e-6) for more in (0, 1))
        n_all = max(1, round(self.rate * self.length_s))
        return max(self.sent.second(number)["n_due"], min(after, n_all) - min(first, n_all))

    def _backlog(self, number: int) -> int | None:
        return self.sent.second(number).counts.get("backlog")


def _needed(settings: Members, name: str) -> float:
    value = settings.number(name)
    if value is None:
        settings.refuse(f"settings without {name}", "settings of an open-loop load")
    return value
