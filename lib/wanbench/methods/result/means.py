"""Means, medians, ratios and shares of few trials or episodes, as estimates with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite, nan, sqrt
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from wanbench.checks import check_level, check_number, refusal
from wanbench.formatting import count, percent
from wanbench.methods.result import Estimate, Fields, exact_binomial
from wanbench.methods.result.estimate import t_quantile
from wanbench.methods.sizes import numbers
from wanbench.methods.tails.quantile_intervals import ranks
from wanbench.methods.time.series import welch_freedom


def half_width(values: Sequence[float] | np.ndarray | pd.Series, level: float) -> float:
    """
    Compute half the width of Student's interval of a mean; NaN for fewer than two values.

    >>> print(round(half_width([1.0, 2.0, 3.0], 0.95), 3))
    2.484
    """
    n = len(values)
    return float(t_quantile(level, n - 1) * np.std(values, ddof=1) / sqrt(n)) if n > 1 else nan


def welch_half_width(sides: Sequence[np.ndarray], level: float) -> float:
    """
    Compute half the width of Welch's interval (1947) of a difference of means; NaN if a side has fewer than two values.

    >>> print(round(welch_half_width([np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 9.0])], 0.95), 3))
    8.208
    """
    sizes = [len(side) for side in sides]
    if min(sizes) < 2:
        return nan
    variances = [float(np.var(side, ddof=1)) / len(side) for side in sides]
    return t_quantile(level, welch_freedom(variances, sizes)) * sqrt(sum(variances))


def ratio_estimate(log: float, half: float, *, unit: str = "times", **about: Any) -> Estimate:
    """
    Make the Estimate of a ratio from its natural logarithm.

    log, half: The logarithm of the ratio, and half the width of the logarithm's interval.
    **about: Further fields of `Estimate`.
    """
    with np.errstate(over="ignore"):  # if a few trials scatter widely, the end may be beyond the largest float
        value, low, high = map(float, np.exp([log, log - half, log + half]))
    return Estimate(estimate=value, low=low, high=high, unit=unit, **about)


def geometric_mean(
    values: ArrayLike, level: float, *, units: ArrayLike | None = None, unit_name: str = "trial", **about: Any
) -> Estimate:
    """
    Estimate the geometric mean of positive values by Student's t on logarithms, so the interval stays above zero.

    values: One value per trial.
    units: The unit of replication of each value; the units' means then have equal weight. Default: each value is a
        unit.
    unit_name: What a unit is, such as "setting".
    **about: Further fields of `Estimate`.

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
    of_units = count(len(means), unit_name)
    basis = of_units if units is None else f"{count(len(logs), 'trial')} of {of_units}"
    half = half_width(means.to_numpy(), level)
    notes = about.pop("warnings", ())
    notes += () if isfinite(half) else (f"no interval: {'a single' if len(means) else 'no'} {unit_name}",)
    log = float(means.mean())
    return ratio_estimate(log, half, n=len(means), basis=basis, level=level, warnings=notes, **about)


def ratio_of_differences(a: ArrayLike, b: ArrayLike, base: ArrayLike, level: float) -> tuple[float, float, float]:
    """
    Compute (mean a - mean base) / (mean b - mean base), and both ends of its interval (Fieller 1954).

    Each of the three samples has its own variance (Welch 1947). The ends are NaN if one of the samples has a single
    value, and infinite if b does not differ significantly from the base. The ratio is NaN if b equals the base.

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
    scale = t_quantile(level, welch_freedom(weighted, sizes)) ** 2 * np.array(variances)
    # The ends are the roots r of (above - r below)^2 = t^2 Var(above - r below); both differences contain the base.
    square = below**2 - scale[1] - scale[2]
    middle = above * below - scale[2]
    last = above**2 - scale[0] - scale[2]
    if square <= 0:
        return value, -inf, inf
    low, high = ((middle + sign * sqrt(max(middle**2 - square * last, 0.0))) / square for sign in (-1, 1))
    return value, float(low), float(high)


MEDIAN = "order statistics of the episodes (Hahn & Meeker 1991, section 5.2)"
ALIKE = "Episodes are independent and alike"


@dataclass(frozen=True, repr=False)
class Median(Estimate):
    """
    The median over episodes of one number per episode, such as the length of an outage.

    With `at_least` it is a lower bound, because in too many episodes the outage outlasted the episode.
    """

    at_least: bool = False

    @property
    def formatted_with_interval(self) -> str:
        """
        The median as text, with unit, interval and, if below 95 %, the interval's level; "not seen" if there is no
        episode.

        >>> median_of([3.14, 3.3, 3.59], quantity="x", claim="{}").formatted_with_interval
        '3.30 s (75 % interval 3.14 to 3.59)'
        >>> median_of([3.14, 8, 8], [False, True, True], quantity="x", claim="{}").formatted_with_interval
        'at least 8.00 s (75 % interval at least 3.14)'
        """
        if not self.n:
            return "not seen"
        level = f"{percent(self.level)} interval " if self.level < 0.95 else ""
        ends = f" ({level}{self.formatted_interval})" if self.formatted_interval else ""
        return f"{'at least ' if self.at_least else ''}{self.formatted}{ends}"


def median_of(
    values: ArrayLike, censored: Sequence[bool] | pd.Series = (), *, level: float = 0.95, **about: Any
) -> Median:
    """
    Estimate the median over episodes, with an interval that is valid for any distribution.

    No 95 % interval exists for fewer than six values. The interval then spans the smallest to the largest value, at the
    level 1 - 2^(1 - n): 75 % for three episodes.

    values: One per episode, in seconds unless `unit` says otherwise; NaN is left out, with a caution.
    censored: Whether each value is a lower bound. The true value may then be as low as the bound, or above all other
        values; the interval allows for both.
    level: Requested level of the interval.
    **about: Fields `quantity`, `claim` and `unit` of the Estimate.
    """
    values, level = numbers("values", values), check_level(level)
    if len(censored) not in (0, len(values)):
        raise refusal("censored", censored, f"a flag for each of {count(len(values), 'value')}, or none")
    open_end = np.zeros(len(values), dtype=bool) if len(censored) == 0 else np.asarray(censored, dtype=bool)
    missing = int(np.isnan(values).sum())
    values, open_end = values[~np.isnan(values)], open_end[~np.isnan(values)]
    n = len(values)
    # The true value of a lower limit may be that limit, or above all other values; the interval allows for both.
    lowest, highest = np.sort(values), np.sort(np.where(open_end, inf, values))
    notes = [f"{count(missing, 'episode')} without this number left out"] if missing else []
    if open_end.any():
        notes.append(
            f"{open_end.sum()} of {n} had not ended when their episode ended, and may be longer than all others"
        )
    low, high, estimate, at_least = nan, nan, nan, False
    if n:
        middle = [(n - 1) // 2, n // 2]
        estimate, at_least = float(lowest[middle].mean()), bool((lowest[middle] < highest[middle]).any())
        about |= {"claim": about["claim"].replace("{}", "at least {}")} if at_least else {}
    if n > 1:
        first, last = ranks(n, 0.5, level)
        if first is None or last is None:
            first, last, level = 1, n, 1 - 2.0 ** (1 - n)
        low, high = float(lowest[first - 1]), float(highest[last - 1])
    elif n:
        notes.append("no interval: a single episode")
    measured: Fields = {"estimate": estimate, "low": low, "high": high, "n": n, "at_least": at_least, "level": level}
    measured["warnings"] = tuple(notes)
    method = f"median; interval from {MEDIAN}; with fewer than six episodes, from the smallest to the largest value"
    how: Fields = {"unit": "s", "basis": count(n, "episode"), "method": method, "assumption": ALIKE}
    return Median(**measured, **how | about)


def upper_bound(n: int, level: float = 0.95) -> float:
    """
    Return the one-sided upper bound of a share with 0 hits in n: about 3/n at 95 % (the "rule of three").

    >>> round(upper_bound(3), 2), round(upper_bound(1000) * 1000, 2)
    (0.63, 2.99)
    """
    return 1 - (1 - level) ** (1 / n) if n else nan


def share_of(hits: int, n: int, *, level: float = 0.95, unit_name: str = "episode", **about: Any) -> Estimate:
    """
    Estimate the share of hits among n, with its exact interval; without hits, the interval is from 0 to `upper_bound`.

    unit_name: Name of what n counts, such as "episode".
    **about: Further fields of `Estimate`.
    """
    check_number("n", n, 0, whole=True)
    check_number("hits", hits, 0, n, whole=True)
    low, high = (0.0, upper_bound(n, level)) if not hits else exact_binomial(hits, n, level)
    words: Fields = {
        "basis": f"{hits:,} of {count(n, unit_name)}",
        "method": "Clopper & Pearson 1934" if hits else "one-sided exact bound, about 3/n",
        "assumption": f"{unit_name.capitalize()}s are independent",
    }
    share, low = (hits / n, low) if n else (nan, nan)
    return Estimate(estimate=share, low=low, high=high, unit="fraction", n=n, level=level, **words | about)


def mean_of(values: ArrayLike, level: float, *, unit_name: str = "trial", **about: Any) -> Estimate:
    """
    Estimate the mean of independent, nearly normal values by Student's t; a single value has no interval.

    unit_name: What a value stands for, such as "trial".
    **about: Further fields of `Estimate`.
    """
    values = np.asarray(values, dtype=float)
    mean, half = float(values.mean()), half_width(values, level)
    words: Fields = {"basis": count(len(values), unit_name)}
    return Estimate(estimate=mean, low=mean - half, high=mean + half, n=len(values), level=level, **words | about)
