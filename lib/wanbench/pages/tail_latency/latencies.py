"""Latency distributions of values and of another benchmark's result, and their quantiles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from wanbench.checks import check_columns, check_kind
from wanbench.errors import ParameterError
from wanbench.formatting import count
from wanbench.methods.result import Estimate, Result
from wanbench.methods.sizes import check_sizes, numbers
from wanbench.methods.tails import quantile_intervals as order
from wanbench.methods.tails.distribution import Parts, Tail, parts_of

QUANTILES = (0.5, 0.9, 0.99, 0.999, 0.9999)


@dataclass(frozen=True, repr=False)
class Quantiles(Result):
    """Several quantiles of one distribution, each with its intervals."""

    TITLE = "Quantiles of latency"
    DRAWN_BY = "percentiles_figure.one"

    tail: Tail
    quantiles: tuple[float, ...]
    numbers: tuple[Estimate, ...]

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """The estimate of each quantile."""
        return self.numbers

    @property
    def sentence(self) -> str:
        """The quantiles with their intervals."""
        parts = []
        for q, e in zip(self.quantiles, self.estimates, strict=True):
            ends = f" ({e.formatted_interval})" if e.formatted_interval else ""
            parts.append(f"{order.name(q)} {e.formatted}{ends}")
        level, records = self.estimates[0].formatted_level, count(self.tail.n, "record")
        return f"Latency of {self.tail.name} ({records}, {level} intervals): {', '.join(parts)}."

    def __getitem__(self, q: float) -> Estimate:
        return self.estimates[self.quantiles.index(q)]


def quantiles(tail: Tail, at: Sequence[float] = QUANTILES, *, level: float = 0.95, **settings) -> Quantiles:
    """
    Quantiles of a distribution with intervals; settings and errors are those of `Tail.estimate`.
    """
    check_kind("tail", tail, Tail)
    at = order.check_quantiles(at)
    return Quantiles(tail, tuple(at), tuple(tail.estimate(q, level=level, **settings) for q in at))


def of_values(runs: Sequence[np.ndarray], name: str = "the sample", **more) -> Tail:
    """
    The distribution of values in ms, in order of time, by run; lost records are infinite.

    >>> tail = of_values([np.random.default_rng(0).permutation(1_000) + 1.0])
    >>> tail.quantile(0.99), tail.n, tail.interval(0.5)
    (990.0, 1000, (469.0, 532.0))
    """
    arrays = [numbers(f"a run of {name}", run) for run in check_kind("runs", runs, Iterable)]
    runs = tuple(array for array in arrays if len(array))
    together = np.concatenate(runs) if runs else np.empty(0)
    if np.isnan(together).any():
        raise ParameterError(f"{name} has a latency that is NaN; allowed: numbers, infinite if lost.")
    check_sizes(f"latency of {name}", together)
    values, counts = np.unique(together[np.isfinite(together)], return_counts=True)
    n_lost = int(np.isinf(together).sum())
    return Tail(name, values, counts, n_lost, parts_of(runs), runs=runs, **more)


def of_benchmark(
    quantiles: pd.DataFrame,
    windows: pd.DataFrame,
    *,
    what: str = "end to end",
    name: str = "OpenMessaging Benchmark",
    window_s: float = 10.0,
) -> Tail:
    """
    The distribution behind one result of the OpenMessaging Benchmark, from its reported quantiles.

    Its end-to-end latency counts from the actual send time, in whole milliseconds of two wall clocks, and drops values
    of zero or less; `resolution_ms` is then 1. Compare it with a load that ran before or after it, not at the same
    time: each adds to the other's latency.

    Parameters
    ----------
    quantiles, windows : DataFrame
        Tables quantiles and benchmark_windows of one result.
    what : str
        A value of column what of quantiles.
    window_s : float
        Length of a window; the records are its rate times this.
    """
    rate = "publish_records_per_s" if str(what).startswith("publish") else "consume_records_per_s"
    check_columns("quantiles", quantiles, ["what", "window", "quantile", "latency_ms"])
    check_columns("windows", windows, ["window", rate])
    rows = quantiles[quantiles.what == what]
    total = rows[rows.window.isna()].drop_duplicates("quantile").sort_values("quantile")
    rate = windows.publish_records_per_s if what.startswith("publish") else windows.consume_records_per_s
    sizes = (rate.fillna(0) * window_s).to_numpy()
    if len(total) < 2 or not sizes.sum() > 0:
        raise ParameterError(f"{name}: no quantiles of the whole run for {what!r}, or no records.")
    latencies, shares = np.maximum.accumulate(total.latency_ms.to_numpy()), total["quantile"].to_numpy()
    last = np.append(latencies[1:] != latencies[:-1], True)
    # a reported share is one of whole records: at least so many took no longer
    counts = np.diff(np.ceil(shares[last] * round(sizes.sum()) - 1e-6), prepend=0.0)
    by_window = {
        int(number): part.sort_values("quantile") for number, part in rows.dropna(subset="window").groupby("window")
    }
    maxima = {"end to end": "max_end_to_end_ms", "publish": "max_latency_ms"}.get(what)
    used = [k for k, number in enumerate(windows.window) if int(number) in by_window and sizes[k] > 0]
    curves = [_curve(by_window[int(windows.window.iloc[k])], windows[maxima].iloc[k] if maxima else None) for k in used]
    parts = Parts(np.zeros(len(used), dtype=int), sizes[used], partial(_below, sizes[used], curves))
    return Tail(
        name, latencies[last], counts, parts=parts if used else None, resolution_ms=1.0 if what == "end to end" else 0.0
    )


def _below(sizes: np.ndarray, curves: list[tuple[np.ndarray, np.ndarray]], x: float) -> np.ndarray:
    return np.array([size * np.interp(x, *curve) for size, curve in zip(sizes, curves, strict=True)])


def _curve(rows: pd.DataFrame, maximum: float | None) -> tuple[np.ndarray, np.ndarray]:
    """The latencies that a window reports, and the share of its records up to each."""
    latencies, shares = [0.0, *rows.latency_ms], [0.0, *rows["quantile"]]
    if maximum is not None and not np.isnan(maximum):
        latencies, shares = [*latencies, maximum], [*shares, 1.0]
    # interpolation takes strictly increasing latencies
    steps = np.arange(len(latencies)) * 1e-9
    return np.maximum.accumulate(np.array(latencies)) + steps, np.maximum.accumulate(np.array(shares))
