"""Compute latency distributions (`Tail`) from open-loop loads and from results of the OpenMessaging Benchmark."""

from functools import partial

import numpy as np
import pandas as pd

from wanbench.checks import check_choice, check_columns
from wanbench.errors import ParameterError
from wanbench.formatting import count, number
from wanbench.methods.tails import distribution
from wanbench.methods.tails.distribution import Parts, Tail

LOAD = ("run_id", "test_id", "attempt", "source_file")
"""The columns that identify a load, if the table has them."""
WHAT = ("end to end", "publish")
NEEDED = ("what", "group", "window", "warm_up", "n", "n_lost", "fell_behind", "clock_error_ms", "histogram")
WINDOW_S = 10.0
"""Length of the benchmark's windows."""
CLOCK_LIMITED = 0.01
"""A result has a caution if a larger share of latencies than this is below the uncertainty of the clocks."""


def of_benchmark(
    quantiles: pd.DataFrame, windows: pd.DataFrame, *, what: str = "end to end", name: str = "OpenMessaging Benchmark"
) -> Tail:
    """
    Reconstruct the latency distribution of one result of the OpenMessaging Benchmark.

    `quantiles` and `windows` are the result's rows of tables quantiles and benchmark_windows; `what` is the kind of
    latency. The benchmark counts end-to-end latency from the actual send time, in whole milliseconds of two clocks (so
    `resolution_ms` is 1), and drops values of zero or less. Compare the result with a load that ran before or after the
    benchmark: concurrent loads raise each other's latency. Raises ParameterError: the tables have no such latency.
    """
    rate = "publish_records_per_s" if str(what).startswith("publish") else "consume_records_per_s"
    check_columns("quantiles", quantiles, ["what", "window", "quantile", "latency_ms"])
    check_columns("windows", windows, ["window", rate])
    rows = quantiles[quantiles.what == what]
    total = rows[rows.window.isna()].drop_duplicates("quantile").sort_values("quantile")
    sizes = (windows[rate].fillna(0) * WINDOW_S).to_numpy()
    if len(total) < 2 or not sizes.sum() > 0:
        raise ParameterError(f"{name}: no quantiles of the whole run for {what!r}, or no records.")
    latencies, shares = np.maximum.accumulate(total.latency_ms.to_numpy()), total["quantile"].to_numpy()
    last = np.append(latencies[1:] != latencies[:-1], True)
    # shares are those of whole records
    counts = np.diff(np.ceil(shares[last] * round(sizes.sum()) - 1e-6), prepend=0.0)
    groups = rows.dropna(subset="window").groupby("window")
    by_window = {int(window): part.sort_values("quantile") for window, part in groups}
    maxima = {"end to end": "max_end_to_end_ms", "publish": "max_latency_ms"}.get(what)
    used = [k for k, window in enumerate(windows.window) if int(window) in by_window and sizes[k] > 0]
    curves = [_curve(by_window[int(windows.window.iloc[k])], windows[maxima].iloc[k] if maxima else None) for k in used]
    parts = Parts(np.zeros(len(used), dtype=int), sizes[used], partial(_below_in_windows, sizes[used], curves))
    resolution_ms = 1.0 if what == "end to end" else 0.0
    return Tail(name, latencies[last], counts, parts=parts if used else None, resolution_ms=resolution_ms)


def _below_in_windows(sizes: np.ndarray, curves: list[tuple[np.ndarray, np.ndarray]], x: float) -> np.ndarray:
    return np.array([size * np.interp(x, *curve) for size, curve in zip(sizes, curves, strict=True)])


def _curve(rows: pd.DataFrame, maximum: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the latencies in ms that a window reports, and the share of the window's records up to each of them."""
    known = maximum is not None and not np.isnan(maximum)
    latencies = [0.0, *rows.latency_ms, *([maximum] if known else [])]
    shares = [0.0, *rows["quantile"], *([1.0] if known else [])]
    # interpolation takes strictly increasing latencies
    steps = np.arange(len(latencies)) * 1e-9
    return np.maximum.accumulate(np.array(latencies)) + steps, np.maximum.accumulate(np.array(shares))


def of_open_loop(frame: pd.DataFrame, *, what: str = "end to end", name: str = "the load") -> Tail:
    """
    Return the latency distribution of open-loop loads, without their warm-up; latency counts from when a record is due.

    `frame` has the rows of one or several loads in table open_loop_histograms; `what` is "end to end" (until receipt)
    or "publish" (until acknowledgement). For intervals, each load is a run of the Tail, and each second a part, merged
    over consumer groups because their latencies depend on the same batches and brokers. A record that was never
    acknowledged, or never received by a group, counts as slower than all others. Raises ParameterError: no histogram
    is left.
    """
    check_columns("open_loop_histograms", frame, NEEDED)
    check_choice("what", what, WHAT)
    rows = frame[frame.what == what]
    if rows.empty:
        raise ParameterError(f"{name}: no histogram for {what!r}.")
    keys = [key for key in LOAD if key in rows]
    loads = [part for _, part in rows.groupby(keys, dropna=False, sort=False)] if keys else [rows]
    run, kept, n_cut = [], [], 0
    for k, load in enumerate(loads):
        merged = [_second(part) for _, part in load.groupby("window", sort=True)]
        first = load[load.warm_up].window.nunique()
        n_cut += sum(round(counts.sum()) + lost for (_, counts), lost in merged[:first])
        run += [k] * len(merged[first:])
        kept += merged[first:]
    if not kept:
        raise ParameterError(f"{name}: all seconds are warm-up.")
    seconds, n_lost = zip(*kept, strict=True)
    values_us, counts = distribution.summed(seconds)
    sizes = np.array([counts.sum() for _, counts in seconds]) + n_lost
    used = np.flatnonzero(sizes > 0)
    parts = Parts(np.array(run)[used], sizes[used], partial(_below_in_seconds, [seconds[k] for k in used]))
    error_ms = float(rows.clock_error_ms.max()) if what == "end to end" else 0.0
    cautions = _cautions(loads, values_us, counts, error_ms)
    more = {"resolution_ms": error_ms, "n_cut": n_cut, "cautions": cautions}
    return Tail(name, values_us / 1_000, counts, int(sum(n_lost)), parts if len(used) else None, **more)


def _below_in_seconds(seconds: list[tuple[np.ndarray, np.ndarray]], x: float) -> np.ndarray:
    return np.array([counts[us <= x * 1_000 + 1e-6].sum() for us, counts in seconds], dtype=float)


def _second(part: pd.DataFrame) -> tuple[tuple[np.ndarray, np.ndarray], int]:
    """Return the histogram of a second, merged over consumer groups, and the number of lost records."""
    return distribution.summed(distribution.decoded(text) for text in part.histogram), int(part.n_lost.sum())


def _cautions(loads: list[pd.DataFrame], values_us: np.ndarray, counts: np.ndarray, error_ms: float) -> tuple[str, ...]:
    behind = sum(bool(load.fell_behind.any()) for load in loads)
    late = f"the generator itself was late in {behind} of {count(len(loads), 'load')}"
    below = counts[values_us <= error_ms * 1_000].sum() / max(counts.sum(), 1.0) if error_ms else 0.0
    share = f"{number(100 * below, 0)} % of the latencies are below the uncertainty of the clocks"
    coarse = (f"{share}, {number(error_ms)} ms",) if below > CLOCK_LIMITED else ()
    return ((f"{late}, and its delay is part of the latency",) if behind else ()) + coarse
