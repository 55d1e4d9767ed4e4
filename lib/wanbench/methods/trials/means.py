"""Means of trials and their ratios, with Student's t. The unit is the trial, the pair or the run."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite, nan, sqrt

import numpy as np
import pandas as pd
from scipy import stats

from wanbench.checks import refusal
from wanbench.formatting import count
from wanbench.methods.result import Estimate
from wanbench.methods.time.series import welch_freedom


def half_width(values, level: float) -> float:
    """
    Half the width of Student's interval of a mean; NaN for fewer than two values.

    >>> print(round(half_width([1.0, 2.0, 3.0], 0.95), 3))
    2.484
    """
    n = len(values)
    return stats.t.ppf((1 + level) / 2, n - 1) * np.std(values, ddof=1) / sqrt(n) if n > 1 else nan


def welch_half_width(sides: Sequence[np.ndarray], level: float) -> float:
    """
    Half the width of Welch's interval (1947) of a difference of means; NaN if a side has fewer than two values.

    >>> print(round(welch_half_width([np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 9.0])], 0.95), 3))
    8.208
    """
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


def geometric_mean(
    values, level: float, *, units: Sequence | None = None, unit_name: str = "trial", **about
) -> Estimate:
    """
    The geometric mean of positive values, with Student's t on their logarithms. Its interval stays above zero.

    Parameters
    ----------
    values : sequence of float
        One value per trial.
    units : sequence, optional
        The unit of replication of each value: the result is the mean of the units' means. Default: every value is a
        unit.
    unit_name : str
        Name of such a unit.
    **about
        Further fields of `Estimate`; `warnings` are kept.

    Examples
    --------
    >>> about = {"quantity": "q", "claim": "It is {}", "method": "m", "assumption": "a"}
    >>> geometric_mean([1.0, 4.0, 2.0, 2.0], 0.95, units=list("aabb"), unit_name="setting", **about).basis
    '4 trials of 2 settings'
    """
    values = np.asarray(values, dtype=float)
    if not ((values > 0) & np.isfinite(values)).all():
        bad = values[~((values > 0) & np.isfinite(values))][0]
        raise refusal(f"a value of {about['quantity']}", float(bad), "finite numbers above 0, which have a logarithm")
    logs = pd.Series(np.log(values))
    means = logs if units is None else logs.groupby(np.asarray(units)).mean()
    basis = count(len(logs), "trial")
    basis += "" if units is None else f" of {count(len(means), unit_name)}"
    half = float(half_width(means.to_numpy(), level))
    notes = about.pop("warnings", ())
    notes += () if isfinite(half) else (f"no interval: {'a single' if len(means) else 'no'} {unit_name}",)
    log = float(means.mean())
    return ratio_estimate(log, half, n=len(means), basis=basis, level=level, warnings=notes, **about)


def ratio_of_differences(a, b, base, level: float) -> tuple[float, float, float]:
    """
    (mean a - mean base) / (mean b - mean base), and both ends of its interval (Fieller 1954).

    Each of the three has its own variance (Welch 1947). The ends are NaN if one was measured once, and infinite if b
    does not differ significantly from the base; the ratio is NaN if b equals the base.

    >>> value, low, high = ratio_of_differences([3.0, 3.1], [5.0, 5.1], [1.0, 1.1], 0.95)
    >>> round(value, 2), low < 0.5 < high
    (0.5, True)
    """
    sides = [np.asarray(side, dtype=float) for side in (a, b, base)]
    (above, below, zero), sizes = (side.mean() for side in sides), [len(side) for side in sides]
    above, below = above - zero, below - zero
    value = float(above / below) if below else nan
    if min(sizes) < 2:
        return value, nan, nan
    variances = [side.var(ddof=1) / len(side) for side in sides]
    ratio = value if isfinite(value) else 1.0
    weighted = np.array([1.0, ratio**2, (1 - ratio) ** 2]) * variances
    scale = stats.t.ppf((1 + level) / 2, welch_freedom(weighted, sizes)) ** 2 * np.array(variances)
    # The roots of (above - r below)^2 = t^2 Var(above - r below); the base's mean is in both differences.
    square = below**2 - scale[1] - scale[2]
    middle = above * below - scale[2]
    last = above**2 - scale[0] - scale[2]
    if square <= 0:
        return value, -inf, inf
    low, high = ((middle + sign * sqrt(max(middle**2 - square * last, 0.0))) / square for sign in (-1, 1))
    return value, float(low), float(high)
