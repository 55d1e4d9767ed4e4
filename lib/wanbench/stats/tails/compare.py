"""
Two tails, quantile by quantile: two systems, or two tools on one system.

The difference of a quantile has its interval from those of both ("method of variance estimates recovery": Zou & Donner
2008), so that it is asymmetric where they are, and open where one is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import hypot, isfinite, nan

import pandas as pd

from ...formatting import count, quantity
from ..result import Estimate, Interval, Result, html
from . import order_statistics as order
from .distribution import NAIVE, Tail
from .latencies import QUANTILES, Quantiles, quantiles

METHOD = "the intervals of both put together (Zou & Donner 2008), each by {}"


@dataclass(frozen=True, repr=False)
class TailComparison(Result):
    """
    Two tails side by side.

    Attributes
    ----------
    a, b : Quantiles
    differences : tuple of Estimate
        b less a in ms, one for each quantile.
    """

    a: Quantiles
    b: Quantiles
    differences: tuple[Estimate, ...]

    def table(self) -> pd.DataFrame:
        """
        A row per quantile: both with their intervals, the difference with its own, whether the intervals `overlap`, and
        whether they `agree`: the difference may be zero. Both are null where a quantile is not known, and where nothing
        speaks against it only because an end is open.
        """
        rows = []
        for q, a, b, apart in zip(
            self.a.quantiles, self.a.estimates, self.b.estimates, self.differences, strict=True
        ):
            overlap = a.low <= b.high and b.low <= a.high
            agree = apart.low <= 0 <= apart.high
            rows.append(
                {
                    "quantile": q,
                    **{f"a_{name}": getattr(a, name) for name in ("estimate", "low", "high")},
                    **{f"b_{name}": getattr(b, name) for name in ("estimate", "low", "high")},
                    **{f"difference_{name}": getattr(apart, name) for name in ("estimate", "low", "high")},
                    "overlap": _told_apart(overlap, a, b),
                    "agree": _told_apart(agree, apart),
                }
            )
        return pd.DataFrame(rows)

    @property
    def sentence(self) -> str:
        """Where the two agree within the intervals of both, and where they do not."""
        table = self.table()
        names = {
            word: [order.name(q) for q in table["quantile"][table.agree == word]] for word in (True, False)
        }
        said = []
        for word, means in ((True, "agree within the intervals of both"), (False, "differ")):
            if names[word]:
                said.append(f"{means} at {', '.join(names[word])}")
        unknown = count(int(table.agree.isna().sum()), "quantile")
        said += [f"cannot be compared at {unknown}"] if table.agree.isna().any() else []
        return f"{self.b.tail.name} and {self.a.tail.name} {'; '.join(said)}."

    DRAWN_BY = "tails_figures.both"

    def __str__(self) -> str:
        return " ".join([self.sentence, *map(str, self.differences)])

    def _repr_html_(self) -> str:
        return html(self.differences, f"Latency of {self.b.tail.name} less that of {self.a.tail.name}")


def compare_tails(
    a: Tail, b: Tail, at: Sequence[float] = QUANTILES, *, level: float = 0.95, **settings
) -> TailComparison:
    """
    The same quantiles of two distributions, and what they differ by.

    Settings are those of `Tail.contrast`. Values of both are taken as independent of each other: for two tools on one
    cluster at one time that leaves the intervals wider than need be.
    """
    both = [quantiles(tail, at, level=level, **settings) for tail in (a, b)]
    differences = []
    for q, one, other in zip(at, *(each.estimates for each in both), strict=True):
        apart = difference(*((each.estimate, each.low, each.high) for each in (one, other)))
        naive = difference(
            *(
                (tail.quantile(q), *tail.independent_interval(q, level))
                for tail in (a, b)
                if isfinite(tail.quantile(q))
            )
        )
        differences.append(
            Estimate(
                quantity=f"difference of {order.name(q)}, {b.name} less {a.name}",
                claim=f"{order.name(q)} of latency of {b.name} less that of {a.name} is {{}}",
                estimate=apart[0],
                low=apart[1],
                high=apart[2],
                unit="ms",
                n=a.n + b.n,
                basis=f"{_told(other, b)} against {_told(one, a)}",
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
    return difference(*((each.estimate, *each.conf_int(level)) for each in (one, other)))[1:]


def difference(*ends: tuple[float, float, float]) -> tuple[float, float, float]:
    """
    b less a, with an interval, from (estimate, low, high) of either; NaN unless both are known.

    >>> [round(each, 3) for each in difference((10.0, 9.0, 12.0), (20.0, 16.0, 21.0))]
    [10.0, 5.528, 11.414]
    """
    if len(ends) < 2 or not all(isfinite(each[0]) for each in ends):
        return nan, nan, nan
    a, b = ends
    apart = b[0] - a[0]
    return apart, apart - hypot(b[0] - b[1], a[2] - a[0]), apart + hypot(b[2] - b[0], a[0] - a[1])


def _told_apart(word: bool, *found: Estimate) -> bool | None:
    """The word; None if a number is not known, or the word is "yes" and an end is open."""
    if not all(isfinite(each.estimate) for each in found):
        return None
    closed = all(isfinite(end) for each in found for end in (each.low, each.high))
    return word if closed or not word else None


def _told(found: Estimate, tail: Tail) -> str:
    return f"{quantity(found.estimate, 'ms', found.low, found.high)} of {count(tail.n, 'record')}"
