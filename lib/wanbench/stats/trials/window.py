"""
Which seconds of a trial count: those in which every producer ran and none was warming up any more.

The first and the last line that a producer prints say when it was at work; the log of the brokers says what arrived in
each second. A second without a row in the log is one in which nothing arrived, and counts as such.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, nan

import numpy as np
import pandas as pd

KEY = ["run_id", "test_id", "attempt"]
COUNTS = ["batches", "records", "bytes"]
BY_LOAD = "the load's own times"
BY_PRODUCERS = "the producers' lines"
BY_LOG = "the log alone"
RULE = (
    "Whole seconds in which all producers ran and none was warming up: by what the load noted, else from the end of "
    "the last one's warm-up to the last line of the one that ended first; where no producer says when it ran, the "
    "seconds of the log without its first {} and its last"
)


@dataclass(frozen=True)
class Window:
    """
    The seconds of one trial that count: from `start_s` (Unix s) up to, not including, `end_s`.

    `rule` says what they follow from; `fault` why there are none ("" where there are).
    """

    start_s: float = nan
    end_s: float = nan
    rule: str = ""
    fault: str = ""

    @property
    def seconds(self) -> int:
        return 0 if self.fault else int(self.end_s - self.start_s)


def window(
    lines: pd.DataFrame,
    log: pd.DataFrame,
    load: pd.DataFrame,
    *,
    producers: int | None,
    warmup_s: float,
    fewest_s: int,
) -> Window:
    """
    The window of one trial.

    Parameters
    ----------
    lines : DataFrame
        Its rows of table producer_windows.
    log : DataFrame
        Its rows of table batches.
    load : DataFrame
        Its row of table loads.
    producers : int or None
        How many there should be; None: as many as have lines.
    warmup_s : float
        Taken off where nobody says when a warm-up was over: of a producer from its first line on, of the log from its
        first second on.
    fewest_s : int
        Fewer whole seconds than these are no measurement.
    """
    timed = lines[lines.printed_at_s.notna()]
    noted = load[["counts_from_s", "counts_until_s"]].astype("float64").dropna()
    if len(noted):
        start, end, rule = ceil(noted.counts_from_s.max()), floor(noted.counts_until_s.min()), BY_LOAD
    elif len(timed):
        spans = [_span(part, warmup_s) for _, part in timed.groupby("producer")]
        if producers is not None and len(spans) < producers:
            return Window(fault=f"where only {len(spans)} of {producers} producers said when they ran")
        start, end = ceil(max(first for first, _ in spans)), floor(min(last for _, last in spans))
        rule = BY_PRODUCERS
    elif len(log):
        start, end, rule = ceil(log.at_s.min() + warmup_s), int(log.at_s.max()), BY_LOG
    else:
        return Window(fault="where neither a producer nor the log says when the load ran")
    if end - start < fewest_s:
        return Window(fault=f"with fewer than {fewest_s} whole seconds in which all producers ran")
    return Window(float(start), float(end), rule)


def _span(lines: pd.DataFrame, warmup_s: float) -> tuple[float, float]:
    """When a producer's warm-up was over, and when it printed its last line."""
    starts = lines.printed_at_s - lines.length_s.fillna(0.0)
    warm = lines.warmup.astype("boolean")
    if warm.isna().all():
        return float(starts.min()) + warmup_s, float(lines.printed_at_s.max())
    working = starts[~warm.fillna(True).astype(bool)]
    return float(working.min()) if len(working) else np.inf, float(lines.printed_at_s.max())


def inside(lines: pd.DataFrame, found: Window) -> pd.DataFrame:
    """The producers' lines that lie inside the counted seconds as a whole."""
    begun = lines.printed_at_s - lines.length_s.fillna(0.0)
    return lines[(begun >= found.start_s) & (lines.printed_at_s <= found.end_s)]


def one_broker_each(log: pd.DataFrame) -> pd.DataFrame:
    """
    The log with each partition counted once: on the broker that has the most of it, where several were read.

    The same batch is in the log of every replica.
    """
    part = [*KEY, "topic", "partition"]
    sums = log.groupby([*part, "broker"], dropna=False, as_index=False).batches.sum()
    sums = sums.sort_values(["batches", "broker"], ascending=[False, True], kind="stable")
    chosen = sums.drop_duplicates(part)[[*part, "broker"]]
    return log.merge(chosen, on=[*part, "broker"])


def per_second(log: pd.DataFrame, found: Window) -> pd.DataFrame:
    """One row per counted second: at_s, batches, records, bytes; 0 where nothing arrived."""
    seconds = pd.RangeIndex(int(found.start_s), int(found.end_s), name="at_s")
    sums = log.groupby("at_s")[COUNTS].sum()
    return sums.reindex(seconds, fill_value=0).reset_index()
