"""Means of trials and their ratios, with Student's t. The unit is the trial, the pair or the run."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan, sqrt

import numpy as np
from scipy import stats

from ..result import Estimate
from ..time.series import welch_freedom


def half_width(values, level: float) -> float:
    """
    Half the width of Student's interval of a mean; NaN for fewer than two values.

    >>> print(round(half_width([1.0, 2.0, 3.0], 0.95), 3))
    2.484
    """
    n = len(values)
    return stats.t.ppf((1 + level) / 2, n - 1) * np.std(values, ddof=1) / sqrt(n) if n > 1 else nan


def welch_half_width(sides: Sequence[np.ndarray], level: float) -> float:
    """Half the width of Welch's interval (1947) of a difference of means; NaN if a side has fewer than two values."""
    sizes = [len(side) for side in sides]
    if min(sizes) < 2:
        return nan
    variances = [np.var(side, ddof=1) / len(side) for side in sides]
    return stats.t.ppf((1 + level) / 2, welch_freedom(variances, sizes)) * sqrt(sum(variances))


def ratio_estimate(log: float, half: float, *, unit: str = "times", **about) -> Estimate:
    """The estimate of a ratio from its logarithm and the half width of the logarithm's interval."""
    with np.errstate(over="ignore"):  # a few trials that scatter widely: the end is beyond the largest float
        value, low, high = np.exp([log, log - half, log + half]).tolist()
    return Estimate(estimate=value, low=low, high=high, unit=unit, **about)
