"""What an analysis returns: one number with its interval, and everything needed to judge it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from html import escape
from math import inf, isnan, nan

import pandas as pd

from ...errors import ParameterError
from ...findings import Finding
from ...formatting import count, decimals, interval, percent, scale, span


@dataclass(frozen=True)
class Interval:
    """The two ends of an interval and how they were computed; NaN where it could not be."""

    method: str
    low: float = nan
    high: float = nan

    def __post_init__(self):
        object.__setattr__(self, "low", float(self.low))
        object.__setattr__(self, "high", float(self.high))


class Said:
    """A result whose `repr` is what it says, not a dump of its tables."""

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, repr=False)
class Estimate(Said):
    """
    One estimated number.

    Parameters
    ----------
    quantity : str
        Short name, for tables.
    claim : str
        What is said of the number: a clause with `{}` where number and unit stand.
    estimate, low, high : float
        Estimate and interval in `unit`; NaN where it could not be computed (a warning says why), infinite
        where the interval is open.
    unit : str
        Unit; "fraction" is written in per cent, "bit/s" and "bytes" with the prefix that fits.
    n_pairs, n_regions : int
        Unordered pairs in use, and the regions they join.
    n_places : int, optional
        Units of replication where these are not the regions: places, or other clusters of them.
    standard_error : float
        In `unit`; NaN where the interval does not rest on one.
    ends : callable, optional
        Both ends of the interval at a level, for `conf_int`.
    method, assumption : str
        How the interval was computed, with its source; what would break it.
    level : float
        Confidence level of every interval here.
    naive_low, naive_high : float
        The interval that takes pairs as independent, shown so that a reader sees what it hides.
    others : tuple of Interval
        The same interval by other methods.
    warnings : tuple of str
        What a reader must know before quoting the number.
    """

    quantity: str
    claim: str
    estimate: float
    low: float
    high: float
    unit: str
    n_pairs: int
    n_regions: int
    method: str
    assumption: str
    level: float = 0.95
    naive_low: float = nan
    naive_high: float = nan
    others: tuple[Interval, ...] = ()
    warnings: tuple[str, ...] = ()
    n_places: int | None = None
    standard_error: float = nan
    ends: Callable[[float], tuple[float, float]] | None = field(default=None, compare=False)

    def conf_int(self, level: float | None = None) -> tuple[float, float]:
        """
        Both ends of the interval at another level.

        Parameters
        ----------
        level : float, optional
            Between 0 and 1; default that of the estimate.

        Raises
        ------
        ParameterError
            For another level where the interval was not computed by a formula: fit again with `level=`.

        Examples
        --------
        >>> from wanbench.stats import fit_rtt, simulate
        >>> slope = fit_rtt(simulate.survey(12, seed=1), resamples=10).slope
        >>> narrow, wide = slope.conf_int(0.5), slope.conf_int(0.99)
        >>> slope.conf_int() == (slope.low, slope.high), wide[0] < narrow[0] < narrow[1] < wide[1]
        (True, True)
        """
        if level is None or level == self.level:
            return self.low, self.high
        level = check_level(level)
        if self.ends is None:
            raise ParameterError(
                f"the interval of {self.quantity} is known at the level {self.level:g} only; fit again with "
                f"level={level:g}"
            )
        return self.ends(level)

    def __str__(self) -> str:
        return " ".join([self._sentence(), *(f"Caution: {warning}." for warning in self.warnings)])

    def _sentence(self) -> str:
        if isnan(self.estimate):
            bounds = self.written_interval
            known = f" (it is {bounds} {self._scaled_unit})" if bounds else ""
            return f"{self.quantity[0].upper()}{self.quantity[1:]} cannot be estimated{known}."
        ends, naive = self.written_interval, self.written_naive_interval
        inside = [f"{percent(self.level)} interval {ends}" if ends else "no interval"]
        inside.append(self._basis)
        if ends and naive:
            inside.append(f"taking pairs as independent would say {naive}")
        return f"{self.claim.replace('{}', self.written)} ({'; '.join(inside)})."

    @property
    def without_cautions(self) -> str:
        """The sentence alone, for a place that shows the cautions once for several estimates."""
        return self._sentence()

    @property
    def _basis(self) -> str:
        basis = f"{count(self.n_pairs, 'pair')} of {count(self.n_regions, 'region')}"
        if self.n_places is None or self.n_places == self.n_regions:
            return basis
        return f"{basis} in {count(self.n_places, 'place')}"

    @property
    def written(self) -> str:
        """The estimate with its unit, as it should be quoted."""
        return interval(self.estimate, self.low, self.high, self.unit)[0]

    @property
    def written_interval(self) -> str:
        """The interval as it should be quoted, in the unit of `written`; "" where there is none."""
        return interval(self.estimate, self.low, self.high, self.unit)[1]

    @property
    def written_naive_interval(self) -> str:
        """The naive interval in the scale of `written`."""
        return self._spell(self.naive_low, self.naive_high)

    @property
    def _scaled_unit(self) -> str:
        return self._scale()[1]

    def _scale(self) -> tuple[float, str]:
        known = [value for value in (self.estimate, self.low, self.high) if abs(value) < float("inf")]
        return scale(self.unit, known[0] if known else 0.0)

    def _spell(self, low: float, high: float) -> str:
        factor = self._scale()[0]
        places = decimals(self.estimate / factor, low / factor, high / factor)
        return span(low / factor, high / factor, places)

    def _repr_html_(self) -> str:
        rows = [
            ("Estimate", self.written),
            (f"{percent(self.level)} interval", self.written_interval or "none"),
            ("Taking pairs as independent", self.written_naive_interval or "none"),
            *((f"By {other.method}", self._spell(other.low, other.high) or "none") for other in self.others),
            ("From", self._basis),
            ("Method", self.method),
            ("Would break it", self.assumption),
            *(("Caution", warning) for warning in self.warnings),
        ]
        cells = "".join(f"<tr><th scope='row'>{escape(a)}</th><td>{escape(b)}</td></tr>" for a, b in rows)
        return f'<p>{escape(self._sentence())}</p><table class="estimate"><tbody>{cells}</tbody></table>'

    def row(self) -> dict:
        """The estimate as a row of a table."""
        return {
            "quantity": self.quantity,
            "estimate": self.estimate,
            "low": self.low,
            "high": self.high,
            "standard_error": self.standard_error,
            "unit": self.unit,
            "level": self.level,
            "naive_low": self.naive_low,
            "naive_high": self.naive_high,
            "n_pairs": self.n_pairs,
            "n_regions": self.n_regions,
            "n_places": self.n_regions if self.n_places is None else self.n_places,
            "method": self.method,
            "assumption": self.assumption,
            "warnings": "; ".join(self.warnings),
        }

    def finding(self, name: str, page: str = "") -> Finding:
        """The finding whose sentence is `str` of this estimate."""
        return Finding(
            name=name,
            sentence=str(self),
            estimate=self.estimate,
            low=self.low,
            high=self.high,
            unit=self.unit,
            n=self.n_pairs,
            n_regions=self.n_regions,
            method=self.method,
            assumption=self.assumption,
            page=page,
        )

    def transformed(
        self, change: Callable[[float], float], *, quantity: str, claim: str, unit: str, note: str = ""
    ) -> Estimate:
        """
        The estimate of a monotone function of this number; the ends of every interval go through it.

        `note` is put in front of the method.
        """

        def changed(value: float) -> float:
            try:
                return change(value)
            except OverflowError:  # an end so far out that its power has no float
                return inf

        def ends(low, high):
            if isnan(low) or isnan(high):
                return nan, nan
            both = changed(low), changed(high)
            return (nan, nan) if any(map(isnan, both)) else (min(both), max(both))

        low, high = ends(self.low, self.high)
        naive_low, naive_high = ends(self.naive_low, self.naive_high)
        others = tuple(Interval(other.method, *ends(other.low, other.high)) for other in self.others)
        return replace(
            self,
            quantity=quantity,
            claim=claim,
            unit=unit,
            estimate=change(self.estimate),
            low=low,
            high=high,
            naive_low=naive_low,
            naive_high=naive_high,
            others=others,
            standard_error=nan,
            ends=None if self.ends is None else (lambda level: ends(*self.ends(level))),
            method=f"{note}; {self.method}" if note else self.method,
        )


def table(estimates: Iterable[Estimate]) -> pd.DataFrame:
    """One row per estimate; columns as `Estimate.row`."""
    return pd.DataFrame([estimate.row() for estimate in estimates])


def html(estimates: Iterable[Estimate], title: str = "") -> str:
    """A short HTML table of estimates: value, interval, naive interval; cautions below it."""
    estimates = list(estimates)
    levels = {percent(each.level) for each in estimates}
    names = ["Quantity", "Estimate", f"{', '.join(sorted(levels))} interval", "Pairs as independent"]
    rows = [
        [each.quantity, each.written, each.written_interval or "none", each.written_naive_interval or "none"]
        for each in estimates
    ]
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    cells = "".join(f"<th scope='col'>{escape(cell)}</th>" for cell in names)
    cautions = dict.fromkeys(warning for each in estimates for warning in each.warnings)
    below = "".join(f"<p>Caution: {escape(warning)}.</p>" for warning in cautions)
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    head = f"{caption}<thead><tr>{cells}</tr></thead>"
    return f'<table class="estimates">{head}<tbody>{body}</tbody></table>{below}'


def check_level(level: float) -> float:
    """The level; ParameterError unless it lies between 0 and 1."""
    if isinstance(level, bool) or not isinstance(level, (int, float)) or not 0 < level < 1:
        raise ParameterError(f"level {level!r}: a confidence level lies between 0 and 1, such as 0.95")
    return float(level)
