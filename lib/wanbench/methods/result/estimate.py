"""An estimated number with its interval, sample size, method and assumption; and intervals of means and shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from html import escape
from math import inf, isnan, nan
from typing import Any

import numpy as np
import scipy

from wanbench.findings import Finding
from wanbench.formatting import count, first_finite, interval, percent, places_of, scale, span

LEVEL = 0.95
"""Default confidence level of intervals."""
PAIRS_INDEPENDENT = "naive interval"
VALUES_INDEPENDENT = "values taken as independent"
Fields = dict[str, Any]
"""Values by name: the fields of an Estimate, or of a row of a table."""


@dataclass(frozen=True)
class Interval:
    """An interval and its method; both ends are NaN if it could not be computed."""

    method: str
    low: float = nan
    high: float = nan

    def __post_init__(self):
        object.__setattr__(self, "low", float(self.low))
        object.__setattr__(self, "high", float(self.high))


@dataclass(frozen=True, repr=False)
class Estimate:
    """
    An estimated number with its interval, sample size, method and assumption.

    quantity: Short name, for tables.
    claim: The statement about the number, with `{}` in place of number and unit.
    estimate, low, high: Estimate and interval in `unit`; NaN if not computable (a warning says why), infinite where the
        interval has no end.
    unit: "fraction" is shown in per cent, "bit/s" and "bytes" with a suitable prefix.
    n: Number of units of replication: unordered pairs, runs or trials.
    method: How the interval was computed, with its source.
    assumption: What must hold for the interval to be valid.
    basis: The n units as text, such as "4 runs against 4". Default: pairs of `n_regions` regions in `n_places` places.
    n_regions, n_places: Number of regions in the pairs, and of the places (or other clusters) that count as
        independent.
    level: Confidence level of all intervals.
    naive: The interval that ignores dependence, for comparison; `method` says which values it takes as independent.
    others: Intervals by other methods.
    warnings: Warnings to read before quoting the number.
    standard_error: In `unit`; NaN if the interval does not use one.
    """

    quantity: str
    claim: str
    estimate: float
    low: float
    high: float
    unit: str
    n: int
    method: str
    assumption: str
    basis: str = ""
    n_regions: int | None = None
    n_places: int | None = None
    level: float = LEVEL
    naive: Interval = Interval(VALUES_INDEPENDENT)
    others: tuple[Interval, ...] = ()
    warnings: tuple[str, ...] = ()
    standard_error: float = nan

    @property
    def sentence(self) -> str:
        """The claim with number, interval and basis, without warnings."""
        ends = self.formatted_interval
        if isnan(self.estimate):
            basis = f"it is {ends} {self._scale()[1]}; {self.counted}" if ends else self.counted
            return f"{self.quantity[0].upper()}{self.quantity[1:]} cannot be estimated ({basis})."
        details = [f"{self.kind_of_interval} {ends}" if ends else "no interval", self.counted]
        return f"{self.claim.replace('{}', self.formatted)} ({'; '.join(details)})."

    @property
    def counted(self) -> str:
        """The sample size as text, such as "66 pairs"."""
        if self.basis or self.n_regions is None:
            return self.basis or count(self.n, "value")
        pairs = f"{count(self.n, 'pair')} of {count(self.n_regions, 'region')}"
        if self.n_places in (None, self.n_regions):
            return pairs
        return f"{pairs} in {count(self.n_places, 'place')}"

    @property
    def formatted(self) -> str:
        """The estimate with its unit, rounded as its interval allows."""
        return interval(self.estimate, self.low, self.high, self.unit)[0]

    @property
    def formatted_interval(self) -> str:
        """The interval in the unit and with the decimals of `formatted`; "" if there is none."""
        return interval(self.estimate, self.low, self.high, self.unit)[1]

    @property
    def with_ends(self) -> str:
        """The estimate and the ends of its interval as text, such as "3.30 s (3.14 to 3.59)"."""
        return f"{self.formatted} ({self.formatted_interval or 'no interval'})"

    @property
    def formatted_level(self) -> str:
        """The confidence level: "95 %"."""
        return percent(self.level)

    @property
    def kind_of_interval(self) -> str:
        """ "95 % interval", or "range" if no value outside it is possible (level 1), as for printed numbers."""
        return "range" if self.level == 1 else f"{self.formatted_level} interval"

    @property
    def formatted_naive(self) -> str:
        """The naive interval in the unit of `formatted`; "" if there is none."""
        return self.formatted_other(self.naive)

    def formatted_other(self, other: Interval) -> str:
        """Return another interval of the same number as text, in the unit of `formatted`; "" if there is none."""
        factor = self._scale()[0]
        value, low, high = (end / factor for end in (self.estimate, other.low, other.high))
        places = places_of(value, low, high)
        if places is not None and low <= value <= high and not round(low, places) <= value <= round(high, places):
            places = None  # round each end separately, as common decimals would leave the estimate outside
        return span(low, high, places)

    def _scale(self) -> tuple[float, str]:
        return scale(self.unit, first_finite(self.estimate, self.low, self.high))

    def __str__(self) -> str:
        return " ".join([self.sentence, *(f"Caution: {warning}." for warning in self.warnings)])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        rows = [
            ("Estimate", self.formatted),
            (self.kind_of_interval.capitalize(), self.formatted_interval or "none"),
            *([(self.naive.method.capitalize(), self.formatted_naive)] if self.formatted_naive else []),
            *((f"By {other.method}", self.formatted_other(other) or "none") for other in self.others),
            ("From", self.counted),
            ("Method", self.method),
            ("Assumption", self.assumption),
            *(("Caution", warning) for warning in self.warnings),
        ]
        cells = "".join(f"<tr><th scope='row'>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in rows)
        return f'<p>{escape(self.sentence)}</p><table class="estimate"><tbody>{cells}</tbody></table>'

    def row(self) -> Fields:
        """Return the estimate as a table row."""
        names = ("quantity", "estimate", "low", "high", "standard_error", "unit", "level")
        row: Fields = {name: getattr(self, name) for name in names}
        row |= {"naive_low": self.naive.low, "naive_high": self.naive.high, "n": self.n, "n_regions": self.n_regions}
        row["n_places"] = self.n_regions if self.n_places is None else self.n_places
        row |= {"basis": self.counted, "method": self.method, "assumption": self.assumption}
        return row | {"warnings": "; ".join(self.warnings)}

    def __float__(self) -> float:
        return float(self.estimate)

    def finding(self, name: str, page: str = "") -> Finding:
        """Make a finding from this estimate."""
        names = ("sentence", "estimate", "low", "high", "unit", "n", "n_regions", "method", "assumption", "counted")
        about = {each: getattr(self, each) for each in names}
        return Finding(name=name, cautions=self.warnings, page=page, **about)

    def transformed(
        self, change: Callable[[float], float], *, quantity: str, claim: str, unit: str, note: str = ""
    ) -> Estimate:
        """
        Return the estimate of a monotone function of this number, and transform all intervals.

        note: Text put before the method.
        """

        def changed(value: float) -> float:
            try:
                return change(value)
            except OverflowError:  # the power of a distant end may exceed the range of floats
                return inf

        def ends(low: float, high: float):
            if isnan(low) or isnan(high):
                return nan, nan
            both = sorted((changed(low), changed(high)))
            return (nan, nan) if any(map(isnan, both)) else tuple(both)

        low, high = ends(self.low, self.high)
        naive, *others = (Interval(one.method, *ends(one.low, one.high)) for one in (self.naive, *self.others))
        names = {"quantity": quantity, "claim": claim, "unit": unit}
        names["method"] = f"{note}; {self.method}" if note else self.method
        changed_too = {"naive": naive, "others": tuple(others), "standard_error": nan}
        return replace(self, estimate=change(self.estimate), low=low, high=high, **names, **changed_too)


def tails(level: float = LEVEL) -> list[float]:
    """
    Return the shares of a distribution below the two ends of a percentile interval.

    >>> [round(share, 3) for share in tails()]
    [0.025, 0.975]
    """
    return [(1 - level) / 2, (1 + level) / 2]


def t_quantile(level: float | np.ndarray, freedom: np.typing.ArrayLike) -> Any:
    """
    Return half the width, in standard errors, of a two-sided interval by Student's t; NaN if `freedom` is not positive.

    >>> round(float(t_quantile(0.95, 10)), 3)
    2.228
    """
    return scipy.special.stdtrit(freedom, (1 + level) / 2)


def t_interval(value: float, error: float, freedom: float, level: float = 0.95) -> tuple[float, float]:
    """
    Compute both ends of the interval of a value by Student's t.

    error, freedom: The value's standard error, and the degrees of freedom.

    >>> [round(float(end), 3) for end in t_interval(5, 2, 10)]
    [0.544, 9.456]
    """
    half = t_quantile(level, freedom) * error
    return value - half, value + half


def exact_binomial(successes: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """
    Return the exact interval of a share of successes (Clopper & Pearson 1934); (NaN, NaN) for n = 0.

    >>> low, high = exact_binomial(950, 1000)
    >>> round(low, 4), round(high, 4)
    (0.9346, 0.9627)
    """
    if not n:
        return nan, nan
    ends = scipy.stats.binomtest(int(successes), int(n)).proportion_ci(level, method="exact")
    return float(ends.low), float(ends.high)
