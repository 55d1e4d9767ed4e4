"""
Select the seconds of a trial that count: all producers run and none is warming up.

The times that the load recorded decide; without them, the producers' first and last lines; without those, the
brokers' log. The log also gives what arrived in each second; a second without a row in it counts as 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, nan

import numpy as np
import pandas as pd

from wanbench.methods.lab.utilisation import KEY

COUNTS = ["batches", "records", "bytes"]
RULE_LOAD = "the load's own times"
RULE_PRODUCERS = "the producers' lines"
RULE_LOG = "the log alone"
RULE = (
    "Whole seconds count if all producers ran and none was warming up: by the times that "
    "the load recorded, otherwise from the end of the last warm-up to the last line of "
    "the first producer to end; if no producer reports its times, the seconds of the log "
    "without its first {} and its last"
)
MIN_SECONDS = 2
"""A single whole second gives no reliable rate: batches may arrive in bursts."""


@dataclass(frozen=True)
class CountedSeconds:
    """
    The seconds of one trial that count: from `start_s` (Unix s) up to, not including, `end_s`.

    `rule` says how they were chosen; `fault` says why there are none, "" otherwise.
    """

    start_s: float = nan
    end_s: float = nan
    rule: str = ""
    fault: str = ""

    @property
    def n(self) -> int:
        """The number of counted seconds."""
        return 0 if self.fault else int(self.end_s - self.start_s)

    def inside(self, lines: pd.DataFrame) -> pd.DataFrame:
        """The producers' lines that lie wholly within the counted seconds."""
        printed = lines.printed_at_s.to_numpy()
        starts = printed - lines.length_s.fillna(0.0).to_numpy()
        return lines[(starts >= self.start_s) & (printed <= self.end_s)]

    def per_second(self, log: pd.DataFrame) -> pd.DataFrame:
        """One row per counted second: at_s, batches, records, bytes."""
        seconds = np.arange(int(self.start_s), int(self.end_s))
        at = log.at_s.to_numpy() - int(self.start_s)
        inside = (at >= 0) & (at < len(seconds))
        sums = {"at_s": seconds}
        for name in COUNTS:
            sums[name] = np.zeros(len(seconds), dtype="int64")
            np.add.at(sums[name], at[inside], log[name].to_numpy()[inside])
        return pd.DataFrame(sums)


def counted_seconds(
    lines: pd.DataFrame, log: pd.DataFrame, load: pd.DataFrame, *, producers: int | None, warmup_s: float
) -> CountedSeconds:
    """
    The counted seconds of one trial.

    Parameters
    ----------
    lines, log, load : DataFrame
        The trial's rows of tables producer_windows, batches and loads.
    producers : int or None
        Expected number of producers; None: as many as have lines.
    warmup_s : float
        Time to cut if no warm-up is reported, counted from the first line of a producer, or from the first second of
        the log.
    """
    timed = lines[lines.printed_at_s.notna()]
    noted = load[["counts_from_s", "counts_until_s"]]
    noted = noted.astype("float64").dropna() if len(noted) else noted
    if len(noted):
        start, end, rule = ceil(noted.counts_from_s.max()), floor(noted.counts_until_s.min()), RULE_LOAD
    elif len(timed):
        spans = _spans(timed, warmup_s)
        if producers is not None and len(spans) < producers:
            return CountedSeconds(fault=f"where only {len(spans)} of {producers} producers reported times")
        start, end = ceil(max(first for first, _ in spans)), floor(min(last for _, last in spans))
        rule = RULE_PRODUCERS
    elif len(log):
        start, end, rule = ceil(log.at_s.min() + warmup_s), int(log.at_s.max()), RULE_LOG
    else:
        return CountedSeconds(fault="where neither a producer nor the log reports when the load ran")
    if end - start < MIN_SECONDS:
        return CountedSeconds(fault=f"with fewer than {MIN_SECONDS} whole seconds in which all producers ran")
    return CountedSeconds(float(start), float(end), rule)


def _spans(lines: pd.DataFrame, warmup_s: float) -> list[tuple[float, float]]:
    """When each producer ended its warm-up, and when it printed its last line."""
    printed = lines.printed_at_s.to_numpy()
    starts = printed - lines.length_s.fillna(0.0).to_numpy()
    said = lines.warmup.astype("boolean")
    known, warm = said.notna().to_numpy(), said.fillna(True).to_numpy(dtype=bool)
    producers, names = pd.factorize(lines.producer)
    spans = []
    for own in (producers == k for k in range(len(names))):
        last = float(printed[own].max())
        if known[own].any():
            working = starts[own & ~warm]
            spans.append((float(working.min()) if len(working) else np.inf, last))
        else:
            spans.append((float(starts[own].min()) + warmup_s, last))
    return spans


def one_replica(log: pd.DataFrame) -> pd.DataFrame:
    """
    The log with each partition counted once: of several replicas, that of the broker with the most batches.

    The same batch is in the log of every replica.
    """
    part = [*KEY, "topic", "partition"]
    sums = log.groupby([*part, "broker"], dropna=False, as_index=False).batches.sum()
    sums = sums.sort_values(["batches", "broker"], ascending=[False, True], kind="stable")
    return log.merge(sums.drop_duplicates(part)[[*part, "broker"]], on=[*part, "broker"])
