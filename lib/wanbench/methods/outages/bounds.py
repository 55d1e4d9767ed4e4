"""Statistics for few episodes: distribution-free medians, and shares with upper bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, nan

import numpy as np

from wanbench.checks import check_level, check_number, refusal
from wanbench.formatting import count, percent
from wanbench.methods.result import Estimate, Interval, exact_binomial
from wanbench.methods.sizes import numbers
from wanbench.methods.tails.quantile_intervals import ranks
from wanbench.methods.trials.means import half_width

MEDIAN = "order statistics of the episodes (Hahn & Meeker 1991, section 5.2)"
LOG_T = "Student's t on logarithms"
ALIKE = "Episodes are independent and alike"


@dataclass(frozen=True, repr=False)
class Median(Estimate):
    """A median over episodes; `at_least` if it is a lower limit, because too few outages ended within their episode."""

    at_least: bool = False

    @property
    def formatted_with_interval(self) -> str:
        """
        Median and interval with the unit, and its level if that is below 95 %; "at least" for a lower limit, "not seen"
        if there is none.

        >>> median_of([3.14, 3.3, 3.59], quantity="x", claim="{}").formatted_with_interval
        '3.30 s (75 %: 3.14 to 3.59)'
        >>> median_of([3.14, 8, 8], [False, True, True], quantity="x", claim="{}").formatted_with_interval
        'at least 8.00 s (75 %: at least 3.14)'
        """
        if not self.n:
            return "not seen"
        level = f"{percent(self.level)}: " if self.level < 0.95 else ""
        ends = f" ({level}{self.formatted_interval})" if self.formatted_interval else ""
        return f"{'at least ' if self.at_least else ''}{self.formatted}{ends}"


def median_of(values: Sequence[float], censored: Sequence[bool] = (), *, level: float = 0.95, **about) -> Median:
    """
    The median over episodes, with an interval for any distribution.

    With fewer than six values no 95 % interval exists. The widest possible one, from the smallest to the largest value,
    is then given with its own level, 1 - 2^(1 - n): 75 % for three episodes.

    Parameters
    ----------
    values : sequence of float
        One per episode, in seconds unless `unit` says otherwise; NaN is left out, with a caution.
    censored : sequence of bool
        Whether the value is a lower limit. The interval allows for it to be exact or above all other values.
    level : float
        Requested level of the interval.
    **about
        `quantity`, `claim`, `unit` of the Estimate; the claim says "at least" if the median is a lower limit.
    """
    values, level = numbers("values", values), check_level(level)
    if len(censored) not in (0, len(values)):
        raise refusal("censored", censored, f"a flag for each of {count(len(values), 'value')}, or none")
    open_end = np.zeros(len(values), dtype=bool) if len(censored) == 0 else np.asarray(censored, dtype=bool)
    missing = int(np.isnan(values).sum())
    values, open_end = values[~np.isnan(values)], open_end[~np.isnan(values)]
    n = len(values)
    # A lower limit may be as low as it says, or lie above all: the ends of an interval hold for both.
    lowest, highest = np.sort(values), np.sort(np.where(open_end, inf, values))
    notes = [f"{count(missing, 'episode')} without this number left out"] if missing else []
    if open_end.any():
        notes.append(f"{open_end.sum()} of {n} had not ended when their episode did, and may be longer than all others")
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
    others = ()
    if n > 1 and (values > 0).all() and np.isfinite(values).all() and not open_end.any():
        half, middle = half_width(np.log(values), 0.95), np.log(values).mean()
        others = (Interval(f"{LOG_T}, 95 %, of the geometric mean", *np.exp([middle - half, middle + half])),)
    return Median(
        at_least=at_least,
        estimate=estimate,
        low=low,
        high=high,
        n=n,
        basis=count(n, "episode"),
        method=f"Median; {MEDIAN}; of fewer than six episodes from the smallest to the largest",
        assumption=ALIKE,
        level=level,
        others=others,
        warnings=tuple(notes),
        **{"unit": "s"} | about,
    )


def upper_bound(n: int, level: float = 0.95) -> float:
    """
    The one-sided upper bound of a share after zero hits in n: about 3/n at 95 % (the "rule of three").

    >>> round(upper_bound(3), 2), round(upper_bound(1000) * 1000, 2)
    (0.63, 2.99)
    """
    return 1 - (1 - level) ** (1 / n) if n else nan


def share_of(hits: int, n: int, *, level: float = 0.95, unit_name: str = "episode", **about) -> Estimate:
    """The share of hits among n with its exact interval; for no hit the one-sided bound of `upper_bound`."""
    check_number("n", n, 0, whole=True)
    check_number("hits", hits, 0, n, whole=True)
    low, high = (0.0, upper_bound(n, level)) if not hits else exact_binomial(hits, n, level)
    return Estimate(
        estimate=hits / n if n else nan,
        low=low if n else nan,
        high=high,
        unit="fraction",
        n=n,
        basis=f"{hits:,} of {count(n, unit_name)}",
        method="one-sided exact bound, about 3/n" if not hits else "Clopper & Pearson 1934",
        assumption=f"{unit_name.capitalize()}s are independent",
        level=level,
        **about,
    )
