"""Any analysis on all pairs, and without those that the plausibility gate doubts: what changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from html import escape
from math import isfinite, nan

import pandas as pd

from ...errors import ParameterError
from ...formatting import count, quantity
from ...plausibility.report import concerning, suspects
from ..result import Estimate, Result


@dataclass(frozen=True, repr=False)
class Sensitivity(Result):
    """
    An analysis done twice.

    Attributes
    ----------
    everything, without : object
        What the analysis returned for all pairs, and for those without a doubt; the latter is None where too few
        were left (`why` says so).
    left_out : DataFrame
        The pairs left out.
    by_rule : DataFrame
        rule, region (blamed; null where a row is), n_pairs: how many ordered pairs each leaves out. A pair may be
        doubted by several.
    n_pairs : int
        Ordered pairs in all.
    why : str
        Why the analysis could not be done without them.
    columns : tuple of str
        What is doubted of whole columns: it holds for both analyses.
    """

    everything: object
    without: object | None
    left_out: pd.DataFrame
    by_rule: pd.DataFrame
    n_pairs: int
    why: str
    columns: tuple[str, ...]

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """Those without the doubted pairs, if they could be computed; else those of all."""
        return _estimates(self.everything if self.without is None else self.without)

    def table(self) -> pd.DataFrame:
        """
        One row per estimate: quantity, unit, estimate, low, high with all pairs; without_estimate, without_low,
        without_high; change (relative), outside (the estimate without lies outside the interval with all).
        """
        rows = []
        after = {} if self.without is None else {each.quantity: each for each in _estimates(self.without)}
        for each in _estimates(self.everything):
            other = after.get(each.quantity)
            ends = (other.estimate, other.low, other.high) if other else (nan, nan, nan)
            change = ends[0] / each.estimate - 1 if each.estimate and isfinite(each.estimate) else nan
            rows.append(
                {
                    "quantity": each.quantity,
                    "unit": each.unit,
                    "estimate": each.estimate,
                    "low": each.low,
                    "high": each.high,
                    "without_estimate": ends[0],
                    "without_low": ends[1],
                    "without_high": ends[2],
                    "change": change,
                    "outside": bool(ends[0] < each.low or ends[0] > each.high),
                }
            )
        return pd.DataFrame(rows)

    def __str__(self) -> str:
        columns = "".join(f" Of a whole column it holds: {each}." for each in self.columns)
        if self.left_out.empty:
            return f"The plausibility gate doubts none of {count(self.n_pairs, 'ordered pair')}.{columns}"
        rules = ", ".join(
            f"{row.n_pairs:,} by {row.rule}" + (f" of {row.region}" if isinstance(row.region, str) else "")
            for row in self.by_rule.itertuples(index=False)
        )
        said = f"{len(self.left_out):,} of {count(self.n_pairs, 'ordered pair')} left out as doubtful ({rules}). "
        if self.without is None:
            return f"{said}Without them nothing can be said: {self.why}.{columns}"
        changes = [self._change(row) for row in self.table().itertuples(index=False)]
        return f"{said}Without them: {'; '.join(changes)}.{columns}"

    @staticmethod
    def _change(row) -> str:
        before = quantity(row.estimate, row.unit, row.low, row.high)
        after = quantity(row.without_estimate, row.unit, row.without_low, row.without_high)
        outside = ", outside the interval with all" if row.outside else ""
        return f"{row.quantity} {after} instead of {before}{outside}"

    def _repr_html_(self) -> str:
        heads = ("Quantity", "All pairs", "Interval", "Without", "Interval", "Change")
        cells = "".join(f"<th scope='col'>{head}</th>" for head in heads)
        body = ""
        for row in self.table().itertuples(index=False):
            ends = [
                _ends(row.low, row.high, row.unit),
                _ends(row.without_low, row.without_high, row.unit),
            ]
            values = [
                row.quantity,
                quantity(row.estimate, row.unit, row.low, row.high),
                ends[0],
                quantity(row.without_estimate, row.unit, row.without_low, row.without_high),
                ends[1],
                quantity(row.change, "fraction"),
            ]
            body += "<tr>" + "".join(f"<td>{escape(value)}</td>" for value in values) + "</tr>"
        table = f'<table class="estimates"><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>'
        return f"<p>{escape(str(self))}</p>{table}"


def with_and_without(
    analysis: Callable[[pd.DataFrame], object],
    pairs: pd.DataFrame,
    flags: pd.DataFrame,
    *,
    about: str | None = None,
) -> Sensitivity:
    """
    Run an analysis on all pairs, and on those that the gate does not doubt.

    Parameters
    ----------
    analysis : callable
        Takes table `pairs`; returns an Estimate, several, or an object whose `estimates` they are.
    pairs, flags : DataFrame
        Tables of these names.
    about : "rtt" or "throughput", optional
        Leave out the pairs whose RTT (or throughput) or place is doubted, and no others.

    Raises
    ------
    ParameterError
        If the analysis cannot be done with all pairs either.
    """
    doubted = suspects(pairs, flags, about=about)
    flags = concerning(flags, about)
    everything = analysis(pairs)
    _estimates(everything)
    without, why = everything, ""
    if doubted.any():
        try:
            without = analysis(pairs[~doubted].reset_index(drop=True))
        except ParameterError as error:
            without, why = None, str(error)
    wide = flags[flags.scope.isin(["column", "table"])]
    columns = tuple(f"{flag.found} ({flag.cause})" for flag in wide.itertuples(index=False))
    left_out = pairs[doubted].reset_index(drop=True)
    return Sensitivity(everything, without, left_out, _by_rule(pairs, flags), len(pairs), why, columns)


def _by_rule(pairs: pd.DataFrame, flags: pd.DataFrame) -> pd.DataFrame:
    """Ordered pairs that each region blamed, and each rule by its rows, leaves out."""
    rows = []
    for region, group in flags[flags.scope == "region"].groupby("region", sort=False):
        rows.append((", ".join(group.rule.unique()), region, int(suspects(pairs, group).sum())))
    for rule, group in flags[flags.scope == "row"].groupby("rule", sort=False):
        rows.append((rule, None, int(suspects(pairs, group).sum())))
    rows = [row for row in rows if row[2]]
    return pd.DataFrame(rows, columns=["rule", "region", "n_pairs"])


def _estimates(result) -> tuple[Estimate, ...]:
    found = getattr(result, "estimates", result)
    found = (found,) if isinstance(found, Estimate) else found
    found = tuple(found) if isinstance(found, Iterable) else (found,)
    if not all(isinstance(each, Estimate) for each in found):
        raise ParameterError(
            f"the analysis returned {type(result).__name__}; allowed are estimates, or what has them"
        )
    return found


def _ends(low: float, high: float, unit: str) -> str:
    if not (isfinite(low) or isfinite(high)):
        return "none"
    return f"{quantity(low, unit)} to {quantity(high, unit)}"
