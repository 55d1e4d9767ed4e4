"""
The warm-up cut from the start of a latency series, and whether the rest is stationary.

The cut is by MSER-5 (White 1997): the start that leaves the smallest standard error of the mean of what remains, by
batches of 5. Batches are medians of logarithms, so that a few slow records late in the series do not move the cut. At
most half is cut.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from math import isfinite

import numpy as np
from statsmodels.tools.sm_exceptions import InterpolationWarning
from statsmodels.tsa.stattools import kpss

from ...checks import refusal
from ...formatting import count

RECORDS_PER_BATCH = 5
"""The 5 of MSER-5."""
MIN_BATCHES = 20
"""Fewer batches cannot show a warm-up or a drift."""
MAX_BATCHES = 200
"""Batches of a test of stationarity: enough for its power, few enough to be nearly independent."""
DRIFT_P = 0.05
"""A run drifts if its p-value times the number of tests (Bonferroni) is below this."""
LARGEST_P = 0.1
"""The largest p-value in the table of the KPSS test."""


def warm_up(values: np.ndarray) -> int:
    """
    Number of values to cut from the start, by MSER-5.

    >>> warm_up(np.concatenate([np.linspace(300, 21, 50), np.tile([20.0, 21.0, 20.5, 21.5, 20.2], 90)]))
    50
    """
    return start_of_steady_state(_batch_medians(values, RECORDS_PER_BATCH)) * RECORDS_PER_BATCH


def start_of_steady_state(batches: np.ndarray) -> int:
    """Number of batches to cut from the start, by MSER (White 1997); 0 with fewer than `MIN_BATCHES`."""
    n = len(batches)
    if n < MIN_BATCHES:
        return 0
    starts = np.arange(n // 2 + 1)
    left = n - starts
    sums = np.cumsum(batches[::-1])[::-1][starts]
    squares = np.cumsum(batches[::-1] ** 2)[::-1][starts]
    spread = squares - sums**2 / left
    spread[spread < 1e-12 * squares] = 0.0  # rounding must not choose between starts of a constant series
    return int(starts[np.argmin(spread / left**2)])


def cut(values: np.ndarray, times_s: np.ndarray, rule: float | str) -> tuple[int, tuple[str, ...]]:
    """Number of values to cut from the start by a rule ("mser", or a number of seconds), and cautions."""
    if rule == "mser":
        n = warm_up(values)
        if n and n * 2 + 2 * RECORDS_PER_BATCH > len(values):
            half = f"half of {count(len(values), 'record')}"
            return n, (f"the warm-up cut (MSER-5) reached its limit, {half}: the warm-up may last longer",)
        return n, ()
    if isinstance(rule, bool) or not isinstance(rule, int | float) or not 0 <= rule < float("inf"):
        raise refusal("warm_up", rule, "'mser' or a number of seconds from 0")
    n = int(np.searchsorted(times_s, times_s[0] + rule)) if len(times_s) else 0
    if n >= len(values):
        raise refusal("warm_up", rule, "a number of seconds that leaves records of every run")
    return n, ()


def drift_cautions(runs: Sequence[np.ndarray]) -> tuple[str, ...]:
    """
    A caution if the level or tail of a run drifts; runs too short to judge are skipped.

    Tested by KPSS (Kwiatkowski et al. 1992): medians of batches, and the share of each batch above the 90th percentile.

    >>> drift_cautions([np.random.default_rng(0).lognormal(3, 0.1, 1_000)])
    ()
    >>> drift_cautions([np.linspace(20, 40, 1_000)])[0].partition(":")[0]
    'the records after the warm-up cut are not stationary'
    """
    levels, tails = [], []
    for run in runs:
        size = max(RECORDS_PER_BATCH, -(-len(run) // MAX_BATCHES))
        medians = _batch_medians(run, size)
        if len(medians) >= MIN_BATCHES:
            limit = np.quantile(run, 0.9, method="inverted_cdf")
            above = (run[: len(medians) * size] > limit).reshape(-1, size).mean(axis=1)
            levels.append(_kpss_p(medians))
            tails.append(_kpss_p(above))
    if not levels:
        return ()
    tests = 2 * len(levels)
    smallest = {name: min(min(p) * tests, 1.0) for name, p in (("level", levels), ("tail", tails))}
    drifting = [name for name, p in smallest.items() if p < DRIFT_P]
    if not drifting:
        return ()
    verb = "drift" if len(drifting) > 1 else "drifts"
    return (
        f"the records after the warm-up cut are not stationary: their {' and '.join(drifting)} {verb} "
        f"(KPSS, p below {DRIFT_P:g})",
    )


def _batch_medians(values: np.ndarray, size: int) -> np.ndarray:
    """Medians of batches of the logarithm; a lost record counts as slow as the slowest received one."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return np.empty(0)
    smallest = max(float(np.abs(finite).max()) * 1e-6, 1e-9)
    filled = np.log(np.clip(np.where(np.isfinite(values), values, finite.max()), smallest, None))
    whole = len(filled) // size * size
    return np.median(filled[:whole].reshape(-1, size), axis=1)


def _kpss_p(series: np.ndarray) -> float:
    if np.ptp(series) <= 1e-12:
        return LARGEST_P
    with warnings.catch_warnings():
        # p-values beyond the table, and a future change of what kpss returns
        for kind in (InterpolationWarning, FutureWarning):
            warnings.simplefilter("ignore", kind)
        p = float(kpss(series, regression="c", nlags="auto")[1])
    return p if isfinite(p) else LARGEST_P
