"""One number out of an experiment, whose unit is a run or a stretch of time rather than a region."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from html import escape
from math import isnan, nan

import pandas as pd

from ...errors import ParameterError
from ...findings import Finding
from ...formatting import decimals, interval, percent, scale, span
from .estimate import Interval, check_level

NONE = Interval("values taken as independent")


@dataclass(frozen=True)
class Contrast:
    """
    An estimated number with its interval.

    Parameters
    ----------
    quantity, claim : str
        Short name for tables; a clause with `{}` where number and unit stand.
    estimate, low, high : float
        In `unit`; NaN where it could not be computed (a warning says why).
    n : int
        Units of replication in all.
    basis : str
        What these are, in words: "4 runs against 4".
    method, assumption : str
        How the interval was computed, with its source; what would break it.
    naive : Interval
        The interval that takes all values as independent, shown so that a reader sees what it hides.
    others : tuple of Interval
        The same interval by other methods.
    standard_error : float
        In `unit`; NaN where there is none. `method` says what the interval is, which need not be symmetric.
    again : function
        The interval at another level.
    """

    quantity: str
    claim: str
    estimate: float
    low: float
    high: float
    unit: str
    n: int
    basis: str
    method: str
    assumption: str
    level: float = 0.95
    naive: Interval = NONE
    others: tuple[Interval, ...] = ()
    warnings: tuple[str, ...] = ()
    standard_error: float = nan
    again: Callable[[float], tuple[float, float]] | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return " ".join([self.sentence, *(f"Caution: {warning}." for warning in self.warnings)])

    __repr__ = __str__

    def conf_int(self, level: float | None = None) -> tuple[float, float]:
        """
        The interval at a level, by default the one it has.

        Raises
        ------
        ParameterError
            If the level does not lie between 0 and 1, or the interval is known at its own level only.
        """
        if level is None or check_level(level) == self.level:
            return self.low, self.high
        if self.again is None:
            raise ParameterError(
                f"{self.quantity}: level {level:g}; the interval is known at {self.level:g} only"
            )
        return self.again(level)

    @property
    def sentence(self) -> str:
        """The claim with number, interval and basis, without warnings."""
        if isnan(self.estimate):
            return f"{self.quantity[0].upper()}{self.quantity[1:]} cannot be estimated ({self.basis})."
        ends, naive = self.written_interval, self.spell(self.naive)
        inside = [f"{percent(self.level)} interval {ends}" if ends else "no interval", self.basis]
        if naive:
            inside.append(f"{self.naive.method} would say {naive}")
        return f"{self.claim.replace('{}', self.written)} ({'; '.join(inside)})."

    @property
    def written(self) -> str:
        """The estimate with its unit, as it should be quoted."""
        return interval(self.estimate, self.low, self.high, self.unit)[0]

    @property
    def written_interval(self) -> str:
        """The interval in the unit of `written`; "" where there is none."""
        return interval(self.estimate, self.low, self.high, self.unit)[1]

    def spell(self, other: Interval) -> str:
        """Another interval in the unit of `written`."""
        factor = scale(self.unit, self.estimate)[0]
        low, high = other.low / factor, other.high / factor
        return span(low, high, decimals(self.estimate / factor, low, high))

    def _repr_html_(self) -> str:
        return html([self])

    def row(self) -> dict:
        """The number as a row of a table."""
        return {
            "quantity": self.quantity,
            "estimate": self.estimate,
            "low": self.low,
            "high": self.high,
            "unit": self.unit,
            "level": self.level,
            "naive_low": self.naive.low,
            "naive_high": self.naive.high,
            "naive_method": self.naive.method,
            "n": self.n,
            "basis": self.basis,
            "method": self.method,
            "assumption": self.assumption,
            "warnings": "; ".join(self.warnings),
        }

    def finding(self, name: str, page: str = "") -> Finding:
        """The finding whose sentence is `str` of this number."""
        return Finding(
            name=name,
            sentence=str(self),
            estimate=self.estimate,
            low=self.low,
            high=self.high,
            unit=self.unit,
            n=self.n,
            n_regions=None,
            method=self.method,
            assumption=self.assumption,
            page=page,
        )


def table(contrasts: Iterable[Contrast]) -> pd.DataFrame:
    """One row per number; columns as `Contrast.row`."""
    return pd.DataFrame([contrast.row() for contrast in contrasts])


def html(contrasts: Iterable[Contrast], title: str = "") -> str:
    """A short HTML table: value, interval, naive interval, basis; cautions below it."""
    contrasts = list(contrasts)
    levels = sorted({percent(each.level) for each in contrasts})
    names = ["Quantity", "Estimate", f"{', '.join(levels)} interval", "Values as independent", "From"]
    rows = [
        [
            each.quantity,
            each.written,
            each.written_interval or "none",
            each.spell(each.naive) or "none",
            each.basis,
        ]
        for each in contrasts
    ]
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    cells = "".join(f"<th scope='col'>{escape(cell)}</th>" for cell in names)
    notes = dict.fromkeys(warning for each in contrasts for warning in each.warnings)
    below = "".join(f"<p>Caution: {escape(warning)}.</p>" for warning in notes)
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    head = f"{caption}<thead><tr>{cells}</tr></thead>"
    return f'<table class="estimates">{head}<tbody>{body}</tbody></table>{below}'
