"""
Two tails, quantile by quantile: two systems, or two tools on one system.

The interval of a difference follows from those of both quantiles ("method of variance estimates recovery": Zou & Donner
2008), so it is asymmetric if they are, and open if one is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import hypot, isfinite, nan

import pandas as pd

from wanbench.formatting import count, quantity
from wanbench.methods.result import Estimate, Interval, Result
from wanbench.methods.tails import quantile_intervals as order
from wanbench.methods.tails.distribution import NAIVE, Tail

from .latencies import QUANTILES, Quantiles, quantiles

METHOD = "the intervals of both quantiles combined (Zou & Donner 2008), each by {}"
NUMBERS = ("estimate", "low", "high")


@dataclass(frozen=True, repr=False)
class TailComparison(Result):
    """
    Two tails compared.

    Attributes
    ----------
    a, b : Quantiles
    differences : tuple of Estimate
        b minus a in ms, one for each quantile.
    """

    a: Quantiles
    b: Quantiles
    differences: tuple[Estimate, ...]

    TITLE = "Difference of latency by quantile"
    DRAWN_BY = "percentiles_figure.both"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """The differences, one per quantile."""
        return self.differences

    def table(self) -> pd.DataFrame:
        """
        A row per quantile: both values and the difference with intervals; whether intervals `overlap`, and whether the
        values `agree` (the interval of the difference contains 0).

        Both are null if a quantile is unknown, or if the intervals meet only because an end is open.
        """
        rows = []
        for q, a, b, difference in zip(
            self.a.quantiles, self.a.estimates, self.b.estimates, self.differences, strict=True
        ):
            row = {"quantile": q}
            for prefix, one in (("a", a), ("b", b), ("difference", difference)):
                row |= {f"{prefix}_{name}": getattr(one, name) for name in NUMBERS}
            row["overlap"] = _verdict(a.low <= b.high and b.low <= a.high, a, b)
            row["agree"] = _verdict(difference.low <= 0 <= difference.high, difference)
            rows.append(row)
        return pd.DataFrame(rows)

    @property
    def sentence(self) -> str:
        """At which quantiles the two agree, differ, or cannot be compared."""
        table = self.table()
        parts = []
        for agree, verb in ((True, "agree within the intervals of both"), (False, "differ")):
            names = [order.name(q) for q in table["quantile"][table.agree == agree]]
            parts += [f"{verb} at {', '.join(names)}"] if names else []
        unknown = int(table.agree.isna().sum())
        parts += [f"cannot be compared at {count(unknown, 'quantile')}"] if unknown else []
        return f"{self.b.tail.name} and {self.a.tail.name} {'; '.join(parts)}."


def compare_tails(
    a: Tail, b: Tail, at: Sequence[float] = QUANTILES, *, level: float = 0.95, **settings
) -> TailComparison:
    """
    Quantiles of two distributions, and their differences.

    Settings are those of `Tail.estimate`. Both are treated as independent: for two tools on one cluster at one time the
    intervals are then too wide.
    """
    both = [quantiles(tail, at, level=level, **settings) for tail in (a, b)]
    differences = []
    for q, one, other in zip(both[0].quantiles, both[0].estimates, both[1].estimates, strict=True):
        value, low, high = difference(*((e.estimate, e.low, e.high) for e in (one, other)))
        naive = difference(*((tail.quantile(q), *tail.independent_interval(q, level)) for tail in (a, b)))
        differences.append(
            Estimate(
                quantity=f"difference of {order.name(q)}, {b.name} minus {a.name}",
                claim=f"{order.name(q)} of latency of {b.name} minus that of {a.name} is {{}}",
                estimate=value,
                low=low,
                high=high,
                unit="ms",
                n=a.n + b.n,
                basis=f"{_basis(other, b)} against {_basis(one, a)}",
                method=METHOD.format(one.method),
                assumption=f"{one.assumption}; the two are measured independently of each other",
                level=level,
                naive=Interval(NAIVE, *naive[1:]),
                warnings=tuple(dict.fromkeys([*one.warnings, *other.warnings])),
                standard_error=hypot(one.standard_error, other.standard_error),
                ends=partial(_ends, one, other),
            )
        )
    return TailComparison(*both, tuple(differences))


def _ends(one: Estimate, other: Estimate, level: float) -> tuple[float, float]:
    return difference(*((e.estimate, *e.conf_int(level)) for e in (one, other)))[1:]


def difference(a: tuple[float, float, float], b: tuple[float, float, float]) -> tuple[float, float, float]:
    """
    b minus a with its interval, from (estimate, low, high) of either; NaN unless both estimates are finite.

    >>> [round(end, 3) for end in difference((10.0, 9.0, 12.0), (20.0, 16.0, 21.0))]
    [10.0, 5.528, 11.414]
    """
    if not (isfinite(a[0]) and isfinite(b[0])):
        return nan, nan, nan
    value = b[0] - a[0]
    return value, value - hypot(b[0] - b[1], a[2] - a[0]), value + hypot(b[2] - b[0], a[0] - a[1])


def _verdict(holds: bool, *estimates: Estimate) -> bool | None:
    """Whether the condition holds; None if an estimate is unknown, or if it may hold only because an end is open."""
    if not all(isfinite(e.estimate) for e in estimates):
        return None
    closed = all(isfinite(end) for e in estimates for end in (e.low, e.high))
    return holds if closed or not holds else None


def _basis(estimate: Estimate, tail: Tail) -> str:
    return f"{quantity(estimate.estimate, 'ms', estimate.low, estimate.high)} of {count(tail.n, 'record')}"
