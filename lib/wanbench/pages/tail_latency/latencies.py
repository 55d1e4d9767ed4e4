"""Latency distributions: of values, of open-loop loads, and of the OpenMessaging Benchmark's results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np
import pandas as pd

from wanbench.checks import check_choice, check_columns, check_kind, refusal
from wanbench.errors import ParameterError
from wanbench.formatting import count, number
from wanbench.methods.sizes import check_sizes, numbers
from wanbench.methods.tails import distribution
from wanbench.methods.tails.distribution import Parts, Tail, parts_of


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
    parts = Parts(np.zeros(len(used), dtype=int), sizes[used], partial(_below_in_windows, sizes[used], curves))
    return Tail(
        name, latencies[last], counts, parts=parts if used else None, resolution_ms=1.0 if what == "end to end" else 0.0
    )


def _below_in_windows(sizes: np.ndarray, curves: list[tuple[np.ndarray, np.ndarray]], x: float) -> np.ndarray:
    return np.array([size * np.interp(x, *curve) for size, curve in zip(sizes, curves, strict=True)])


def _curve(rows: pd.DataFrame, maximum: float | None) -> tuple[np.ndarray, np.ndarray]:
    """The latencies that a window reports, and the share of its records up to each."""
    latencies, shares = [0.0, *rows.latency_ms], [0.0, *rows["quantile"]]
    if maximum is not None and not np.isnan(maximum):
        latencies, shares = [*latencies, maximum], [*shares, 1.0]
    # interpolation takes strictly increasing latencies
    steps = np.arange(len(latencies)) * 1e-9
    return np.maximum.accumulate(np.array(latencies)) + steps, np.maximum.accumulate(np.array(shares))


LOAD = ("run_id", "test_id", "attempt", "source_file")
"""The columns that identify a load, if the table has them."""
WHAT = ("end to end", "publish")
MARKED, MSER = "marked", "mser"
NEEDED = ("what", "group", "window", "warm_up", "n", "n_lost", "fell_behind", "clock_error_ms", "histogram")
CLOCK_LIMITED = 0.01
"""From this share of latencies below the clocks' uncertainty on, there is a caution."""
MIN_SECONDS = 20
"""Fewer cannot show a warm-up."""


def of_open_loop(
    frame: pd.DataFrame,
    *,
    what: str = "end to end",
    group: int | None = None,
    warm_up: str | float = MARKED,
    name: str = "the load",
) -> Tail:
    """
    The latency distribution of open-loop loads, counted from when each record was due.

    Each load is a run and its seconds are stretches of time; all groups share one stretch per second, as their
    latencies depend on the same batches and brokers. A record that was due and never acknowledged, or never received by
    a group, counts as slower than all others.

    Parameters
    ----------
    frame : DataFrame
        Table open_loop_histograms of one load or several of one kind.
    what : "end to end" or "publish"
        Until receipt by a consumer group, or until acknowledgement to the producer.
    group : int, optional
        Only the receipts of this consumer group. None: those of every group.
    warm_up : "marked", "mser" or a number
        The part left out at the start of each load: the seconds marked as warm-up, the seconds cut by
        `start_of_steady_state` of their medians, or a number of seconds.

    Raises
    ------
    ParameterError
        If nothing is left, or the table has no such latency or group.
    """
    check_columns("open_loop_histograms", frame, NEEDED)
    check_choice("what", what, WHAT)
    rows = frame[frame.what == what]
    if group is not None:
        rows = rows[(rows.group == group).fillna(False)]
    if rows.empty:
        of_group = "" if group is None else f" of group {group}"
        raise ParameterError(f"{name}: no histogram{of_group} for {what!r}.")
    keys = [key for key in LOAD if key in rows]
    loads = [part for _, part in rows.groupby(keys, dropna=False, sort=False)] if keys else [rows]
    run, seconds, n_lost, n_cut = [], [], [], 0
    for k, load in enumerate(loads):
        merged = [_second(part) for _, part in load.groupby("window", sort=True)]
        first = _first_that_counts(load, [second for second, _ in merged], warm_up)
        n_cut += sum(round(counts.sum()) + lost for (_, counts), lost in merged[:first])
        kept = merged[first:]
        run += [k] * len(kept)
        seconds += [second for second, _ in kept]
        n_lost += [lost for _, lost in kept]
    if not seconds:
        raise ParameterError(f"{name}: all seconds are warm-up.")
    values_us, counts = distribution.summed(seconds)
    sizes = np.array([counts.sum() for _, counts in seconds]) + n_lost
    used = np.flatnonzero(sizes > 0)
    parts = Parts(np.array(run)[used], sizes[used], partial(_below_in_seconds, [seconds[k] for k in used]))
    error_ms = float(rows.clock_error_ms.max()) if what == "end to end" else 0.0
    return Tail(
        name,
        values_us / 1_000,
        counts,
        int(sum(n_lost)),
        parts if len(used) else None,
        resolution_ms=error_ms,
        n_cut=n_cut,
        cautions=_cautions(loads, values_us, counts, error_ms),
    )


def _below_in_seconds(seconds: list[tuple[np.ndarray, np.ndarray]], x: float) -> np.ndarray:
    return np.array([counts[us <= x * 1_000 + 1e-6].sum() for us, counts in seconds], dtype=float)


def _second(part: pd.DataFrame) -> tuple[tuple[np.ndarray, np.ndarray], int]:
    """The merged histogram of a second over the groups, and its lost records."""
    return distribution.summed(distribution.decoded(text) for text in part.histogram), int(part.n_lost.sum())


def _first_that_counts(load: pd.DataFrame, seconds: list, rule: str | float) -> int:
    """Number of seconds to skip at the start of a load."""
    if rule == MARKED:
        return load[load.warm_up].window.nunique()
    if rule == MSER:
        medians = np.array([_median(*second) for second in seconds])
        finite = medians[np.isfinite(medians)]
        medians[~np.isfinite(medians)] = finite.max() if len(finite) else 1.0
        return start_of_steady_state(np.log(np.maximum(medians, 1.0)))
    if isinstance(rule, bool) or not isinstance(rule, int | float) or not 0 <= rule < float("inf"):
        raise refusal("warm_up", rule, f"{MARKED!r}, {MSER!r} or a number of seconds from 0")
    return int(np.ceil(rule))


def _median(values_us: np.ndarray, counts: np.ndarray) -> float:
    """The median in us; infinite for a second without latencies."""
    if not counts.sum():
        return np.inf
    return float(values_us[np.searchsorted(np.cumsum(counts), counts.sum() / 2)])


def _cautions(loads: list[pd.DataFrame], values_us, counts, error_ms: float) -> tuple[str, ...]:
    cautions = []
    behind = sum(bool(load.fell_behind.any()) for load in loads)
    if behind:
        cautions.append(
            f"the generator itself was late in {behind} of {count(len(loads), 'load')} (fell_behind): that is in the "
            "latency"
        )
    below = counts[values_us <= error_ms * 1_000].sum() / max(counts.sum(), 1.0) if error_ms else 0.0
    if below > CLOCK_LIMITED:
        cautions.append(
            f"{number(100 * below, 0)} % of the latencies are below the uncertainty of the clocks, "
            f"{number(error_ms)} ms"
        )
    return tuple(cautions)


def start_of_steady_state(values: np.ndarray) -> int:
    """
    Number of values to cut from the start, by MSER (White 1997); 0 with fewer than `MIN_SECONDS`.

    The start that leaves the smallest standard error of the mean of what remains; at most half is cut.

    >>> start_of_steady_state(np.r_[np.linspace(300, 30, 10), np.tile([20.0, 21.0, 20.5, 21.5, 20.2], 9)])
    10
    """
    n = len(values)
    if n < MIN_SECONDS:
        return 0
    starts = np.arange(n // 2 + 1)
    left = n - starts
    sums = np.cumsum(values[::-1])[::-1][starts]
    squares = np.cumsum(values[::-1] ** 2)[::-1][starts]
    spread = squares - sums**2 / left
    spread[spread < 1e-12 * squares] = 0.0  # rounding must not choose between starts of a constant series
    return int(starts[np.argmin(spread / left**2)])
