"""
What is cut from the start of a latency series, and whether what remains is stationary.

The rule of the cut is MSER-5 (White 1997): of all starts, that one leaves the least standard error of the mean of what
remains, by batches of 5. Batches are taken by their medians, of the logarithm, so that a few slow records late in the
series do not decide over its start. No more than half is cut.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np
from statsmodels.tools.sm_exceptions import InterpolationWarning
from statsmodels.tsa.stattools import kpss

from ...errors import ParameterError
from ...formatting import count, number

BATCH = 5
FEWEST = 20
BATCHES = 200
LEAST_P = 0.05


@dataclass(frozen=True)
class Steadiness:
    """
    Whether series keep their level and their tail.

    Attributes
    ----------
    p_level, p_tail : float
        P-values of stationarity (KPSS: Kwiatkowski et al. 1992) of the medians of batches, and of the share above the
        90th percentile, the least of all runs, times the number of tests (Bonferroni). 0.1 is the greatest that its
        table knows; NaN for runs that are too short.
    """

    steady: bool
    p_level: float
    p_tail: float
    sentence: str


def warm_up(values: np.ndarray) -> int:
    """
    How many values to cut from the start, by MSER-5.

    >>> warm_up(np.concatenate([np.linspace(300, 21, 50), np.tile([20.0, 21.0, 20.5, 21.5, 20.2], 90)]))
    50
    """
    batches = _middles(values, BATCH)
    n = len(batches)
    if n < FEWEST:
        return 0
    starts = np.arange(n // 2 + 1)
    left = n - starts
    sums = np.cumsum(batches[::-1])[::-1][starts]
    squares = np.cumsum(batches[::-1] ** 2)[::-1][starts]
    spread = squares - sums**2 / left
    spread[spread < 1e-12 * squares] = 0.0
    return int(starts[np.argmin(spread / left**2)]) * BATCH


def cut(values: np.ndarray, times_s: np.ndarray, rule: float | str) -> tuple[int, str]:
    """How many values to cut from the start by a rule ("mser", or a number of seconds), and what to say of it."""
    if rule == "mser":
        n = warm_up(values)
        if n * 2 + 2 * BATCH > len(values) and n:
            said = (
                f"the cut of the warm-up (MSER-5) came to its limit, half of {count(len(values), 'record')}"
            )
            return n, f"{said}: it may last longer"
        return n, ""
    if isinstance(rule, bool) or not isinstance(rule, int | float) or not 0 <= rule < float("inf"):
        raise ParameterError(f"warm_up is {rule!r}; allowed is 'mser' or a number of seconds")
    n = int(np.searchsorted(times_s, times_s[0] + rule)) if len(times_s) else 0
    if n >= len(values):
        raise ParameterError(f"a warm-up of {rule:g} s leaves no record")
    return n, ""


def check(runs: Sequence[np.ndarray]) -> Steadiness:
    """
    Judge runs, each in order of time.

    >>> check([np.random.default_rng(0).lognormal(3, 0.1, 1_000)]).steady
    True
    >>> check([np.linspace(20, 40, 1_000)]).steady
    False
    """
    levels, tails = [], []
    for run in runs:
        size = max(BATCH, -(-len(run) // BATCHES))
        middles = _middles(run, size)
        if len(middles) < FEWEST:
            continue
        limit = np.quantile(run, 0.9, method="inverted_cdf")
        above = (run[: len(middles) * size] > limit).reshape(-1, size).mean(axis=1)
        levels.append(_kpss(middles))
        tails.append(_kpss(above))
    tests = max(2 * len(levels), 1)
    least = [min(min(found, default=float("nan")) * tests, 1.0) for found in (levels, tails)]
    if not levels:
        return Steadiness(True, *least, "the runs are too short to judge whether they are stationary")
    drifting = [what for p, what in zip(least, ("level", "tail"), strict=True) if p < LEAST_P]
    if not drifting:
        return Steadiness(True, *least, "nothing speaks against stationarity after the cut (KPSS)")
    p = min(least)
    return Steadiness(
        False,
        *least,
        f"what remains after the cut is not stationary: its {' and '.join(drifting)} drift"
        f"{'s' * (len(drifting) == 1)} (KPSS, p {'below 0.05' if p else number(p)})",
    )


def _middles(values: np.ndarray, size: int) -> np.ndarray:
    """Medians of batches of the logarithm; what never arrived is as slow as the slowest that did."""
    known = values[np.isfinite(values)]
    if not len(known):
        return np.empty(0)
    least = max(float(np.abs(known).max()) * 1e-6, 1e-9)
    filled = np.log(np.clip(np.where(np.isfinite(values), values, known.max()), least, None))
    whole = len(filled) // size * size
    return np.median(filled[:whole].reshape(-1, size), axis=1)


def _kpss(series: np.ndarray) -> float:
    if np.ptp(series) <= 1e-12:
        return 0.1
    with warnings.catch_warnings():
        for kind in (InterpolationWarning, FutureWarning):  # the latter about the shape of what it returns
            warnings.simplefilter("ignore", kind)
        p = float(kpss(series, regression="c", nlags="auto")[1])
    return p if isfinite(p) else 0.1
