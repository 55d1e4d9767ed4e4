"""
Tails of latencies: of a probe's records, of merged histograms, of another benchmark's result, one against another.

Histograms are merged, and percentiles are never averaged. `tail` says what an interval here is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np
import pandas as pd

from ...errors import ParameterError
from ..result import Estimate, Result, html, table
from . import histograms, stationarity
from .distribution import Tail
from .exceedances import Parts, parts_of
from .probe_latencies import PROBE, queueing, timed

QUANTILES = (0.5, 0.9, 0.99, 0.999, 0.9999)


@dataclass(frozen=True, repr=False)
class Quantiles(Result):
    """Several quantiles of one distribution, each with its intervals."""

    tail: Tail
    quantiles: tuple[float, ...]
    numbers: tuple[Estimate, ...]

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """One per quantile."""
        return self.numbers

    def table(self):
        """One row per quantile."""
        return table(self.estimates)

    def __getitem__(self, q: float) -> Estimate:
        return self.estimates[self.quantiles.index(q)]

    DRAWN_BY = "tails_figures.one"

    def __str__(self) -> str:
        return " ".join(map(str, self.estimates))

    def _repr_html_(self) -> str:
        return html(self.estimates, f"Latency of {self.tail.name}")


def quantiles(tail: Tail, at: Sequence[float] = QUANTILES, *, level: float = 0.95, **settings) -> Quantiles:
    """
    Quantiles of a distribution with intervals.

    Settings are those of `Tail.contrast`: resamples and seed of the bootstrap.

    Raises
    ------
    ParameterError
        If there is no record, or a quantile or the level does not lie between 0 and 1.
    """
    return Quantiles(tail, tuple(at), tuple(tail.contrast(q, level=level, **settings) for q in at))


def of_values(runs: Sequence[np.ndarray], name: str = "the sample", **more) -> Tail:
    """
    The distribution of values in ms, in order of time, by run; infinite are those that never arrived.

    >>> tail = of_values([np.random.default_rng(0).permutation(1_000) + 1.0])
    >>> tail.quantile(0.99), tail.n, tail.interval(0.5)
    (990.0, 1000, (469.0, 532.0))
    """
    runs = tuple(np.asarray(run, dtype=float) for run in runs if len(run))
    together = np.concatenate(runs) if runs else np.empty(0)
    if np.isnan(together).any():
        raise ParameterError(f"{name}: a latency is not a number")
    values, counts = np.unique(together[np.isfinite(together)], return_counts=True)
    never = int(np.isinf(together).sum())
    return Tail(name, values, counts, never, parts_of(runs), runs=runs, **more)


def of_records(
    records: pd.DataFrame,
    *,
    group: int = 0,
    name: str = "the probe",
    warm_up: float | str = "mser",
    since: str = "intended",
    what: str = "end to end",
) -> Tail:
    """
    The distribution of a probe's latencies, as one consumer group saw them.

    First receipts count. A record that was sent, or should have been, and never received by this group took longer
    than any other.

    Parameters
    ----------
    records : DataFrame
        Table probe_records of one probe or several; each test and attempt is a run.
    warm_up : "mser", or a number
        What is cut at the start of each run: by `wanbench.stats.tails.stationarity.warm_up`, or so many seconds.
    since : "intended" or "sent"
        Whether latency counts from the intended send time, or from the actual one, as OpenMessaging Benchmark's does:
        that leaves out what a producer that is late makes its records wait.
    what : "end to end" or "publish"
        Until receipt, or until the producer has the acknowledgement: then one never acknowledged took longer than any.

    Raises
    ------
    ParameterError
        If there are no records of this group, or their latencies are not known because the clocks are not.
    """
    seen = timed(records, what, group, since, name)
    keys = [key for key in PROBE if key in records]
    runs, notes, cut_in_all = [], [], 0
    for _, run in records.groupby(keys, dropna=False, sort=False) if keys else [(None, records)]:
        latencies = seen.loc[seen.index.isin(run.index)].set_index("sequence").latency_ms
        once = run.drop_duplicates("sequence").sort_values("sequence")
        values = latencies.reindex(once.sequence).fillna(inf).to_numpy()
        cut, why = stationarity.cut(values, once.intended_at_s.to_numpy(), warm_up)
        runs.append(values[cut:])
        cut_in_all += cut
        notes += [why] if why else []
    tail = of_values(runs, name)
    check = stationarity.check(runs)
    notes += [*([] if check.steady else [check.sentence]), *queueing(records)]
    return replace(tail, cut=cut_in_all, notes=tuple(dict.fromkeys(notes)))


def of_histograms(frame: pd.DataFrame, *, group: int = 0, name: str = "the probe") -> Tail:
    """
    The distribution of merged histograms: table histograms, of one run or several.

    Records that never arrived are in no histogram, so here they are left out.
    """
    rows = frame[frame.group == group]
    if rows.empty:
        raise ParameterError(f"{name}: no histogram of group {group}")
    keys = [key for key in ("run_id", "test_id", "attempt") if key in rows]
    by_run = [part for _, part in rows.groupby(keys, dropna=False, sort=False)] if keys else [rows]
    windows = [histograms.decoded(text) for part in by_run for text in part.sort_values("window").histogram]
    values_us, counts = histograms.summed(windows)
    parts = Parts(
        np.repeat(np.arange(len(by_run)), [len(part) for part in by_run]),
        np.array([each.sum() for _, each in windows], dtype=float),
        lambda x: np.array([each[us <= x * 1_000 + 1e-6].sum() for us, each in windows], dtype=float),
    )
    return Tail(name, values_us / 1_000, counts, parts=parts)


def of_benchmark(
    quantiles: pd.DataFrame,
    windows: pd.DataFrame,
    *,
    what: str = "end to end",
    name: str = "OpenMessaging Benchmark",
    window_s: float = 10.0,
) -> Tail:
    """
    The distribution behind one result of the OpenMessaging Benchmark, from the quantiles that it states for its run.

    End to end it counts from the actual send time, in whole milliseconds of two wall clocks, and leaves out what is not
    above zero; `resolution_ms` is 1 for it. Set it against a probe that ran before or after it, not at the same time:
    each adds to the other's latency.

    Parameters
    ----------
    quantiles, windows : DataFrame
        Tables quantiles and benchmark_windows of one result.
    what : str
        As in column what of quantiles.
    window_s : float
        Length of a window; the records are its rate times this.
    """
    rows = quantiles[quantiles.what == what]
    total = rows[rows.window.isna()].drop_duplicates("quantile").sort_values("quantile")
    rate = windows.publish_records_per_s if what.startswith("publish") else windows.consume_records_per_s
    sizes = (rate.fillna(0) * window_s).to_numpy()
    if len(total) < 2 or not sizes.sum() > 0:
        raise ParameterError(f"{name}: no quantiles of the whole run for {what!r}, or no records")
    latencies, shares = np.maximum.accumulate(total.latency_ms.to_numpy()), total["quantile"].to_numpy()
    last = np.append(latencies[1:] != latencies[:-1], True)
    # a share that is stated is that of whole records: at least so many took no longer
    counts = np.diff(np.ceil(shares[last] * round(sizes.sum()) - 1e-6), prepend=0.0)
    stated = {
        int(number): part.sort_values("quantile")
        for number, part in rows.dropna(subset="window").groupby("window")
    }
    greatest = {"end to end": "max_end_to_end_ms", "publish": "max_latency_ms"}.get(what)
    known = [k for k, number in enumerate(windows.window) if int(number) in stated and sizes[k] > 0]
    curves = [
        _curve(stated[int(windows.window.iloc[k])], windows[greatest].iloc[k] if greatest else None)
        for k in known
    ]
    parts = Parts(
        np.zeros(len(known), dtype=int),
        sizes[known],
        lambda x: np.array(
            [size * np.interp(x, *curve) for size, curve in zip(sizes[known], curves, strict=True)]
        ),
    )
    return Tail(
        name,
        latencies[last],
        counts,
        parts=parts if known else None,
        resolution_ms=1.0 if what == "end to end" else 0.0,
    )


def _curve(rows: pd.DataFrame, greatest: float | None) -> tuple[np.ndarray, np.ndarray]:
    """A window's latencies and the shares up to each, as far as it states them."""
    latencies, shares = [0.0, *rows.latency_ms], [0.0, *rows["quantile"]]
    if greatest is not None and greatest == greatest:
        latencies, shares = [*latencies, greatest], [*shares, 1.0]
    steps = np.arange(len(latencies)) * 1e-9
    return np.maximum.accumulate(np.array(latencies)) + steps, np.maximum.accumulate(np.array(shares))
