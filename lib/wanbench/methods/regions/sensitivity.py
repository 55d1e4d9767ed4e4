"""Run any analysis with all pairs and without the flagged ones, and compare the results."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from wanbench.checks import refusal
from wanbench.errors import ParameterError
from wanbench.formatting import count, interval, quantity
from wanbench.methods.result import Estimate, Result
from wanbench.read.plausibility.rules import concerning, suspects


@dataclass(frozen=True, repr=False)
class Sensitivity(Result):
    """
    The results of an analysis with all pairs and without the flagged ones.

    with_all: The result with all pairs.
    without: The result without flagged pairs; None if too few pairs are left, as `why` says.
    left_out: The pairs left out.
    by_rule: The number of ordered pairs that each rule, and each flagged region, leaves out.
    n_pairs: The number of ordered pairs.
    columns: Flags of whole columns, which affect both analyses.
    """

    TITLE: ClassVar[str] = "With all pairs, and without the flagged ones"

    with_all: object
    without: object | None
    left_out: pd.DataFrame
    by_rule: pd.DataFrame
    n_pairs: int
    why: str
    columns: tuple[str, ...]

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return _estimates(self.with_all if self.without is None else self.without)

    @property
    def cautions(self) -> tuple[str, ...]:
        return (*super().cautions, *(f"a whole column is flagged: {text}" for text in self.columns))

    def table(self) -> pd.DataFrame:
        """
        Return a row per estimate: quantity, unit; estimate, low, high with all pairs; without_estimate, without_low,
        without_high; change (relative); outside: whether the estimate without flagged pairs lies outside the interval
        with all pairs.
        """
        rows = _rows(self.with_all)
        without = rows.head(0) if self.without is None else _rows(self.without)
        rows = rows.join(without.drop(columns="unit").set_index("quantity").add_prefix("without_"), on="quantity")
        usable = (rows.estimate != 0) & np.isfinite(rows.estimate)
        outside = (rows.without_estimate < rows.low) | (rows.without_estimate > rows.high)
        return rows.assign(change=(rows.without_estimate / rows.estimate - 1).where(usable), outside=outside)

    def _written(self) -> list[tuple[str, str, str, str, str, str, bool]]:
        """
        Return rows of text: quantity, estimate and interval with all pairs, both without flagged pairs, change,
        `outside`.
        """
        return [
            (
                row.quantity,
                *interval(row.estimate, row.low, row.high, row.unit),
                *interval(row.without_estimate, row.without_low, row.without_high, row.unit),
                quantity(row.change, "fraction"),
                row.outside,
            )
            for row in self.table().itertuples(index=False)
        ]

    def formatted_table(self) -> pd.DataFrame:
        heads = ["Quantity", "All pairs", "Interval", "Without flagged pairs", "Interval without them", "Change"]
        return pd.DataFrame([row[:-1] for row in self._written()], columns=heads)

    @property
    def sentence(self) -> str:
        if self.left_out.empty:
            return f"The plausibility rules flag none of {count(self.n_pairs, 'ordered pair')}."
        rules = ", ".join(
            f"{row.n_pairs:,} by the rule “{row.rule}”" + (f" for {row.region}" if isinstance(row.region, str) else "")
            for row in self.by_rule.itertuples(index=False)
        )
        flagged = f"{len(self.left_out):,} of {count(self.n_pairs, 'ordered pair')} are flagged and left out ({rules})."
        if self.without is None:
            return f"{flagged} The analysis is impossible without them: {self.why.rstrip('.')}."
        changes = "; ".join(
            f"{name} {after} instead of {before}{', outside the interval with all pairs' if outside else ''}"
            for name, before, _, after, _, _, outside in self._written()
        )
        return f"{flagged} Without them: {changes}."


def with_and_without(
    analysis: Callable[[pd.DataFrame], object], pairs: pd.DataFrame, flags: pd.DataFrame, *, about: str | None = None
) -> Sensitivity:
    """
    Run an analysis on all pairs, and on the pairs without a flag.

    analysis: Takes table `pairs` and returns an Estimate, several, or a Result.
    about: "rtt" or "throughput": leave out only pairs whose RTT, throughput or location is flagged. Default: all flags.

    Raises ParameterError: the analysis is impossible even with all pairs.
    """
    if not callable(analysis):
        raise refusal("analysis", type(analysis).__name__, "Callable")
    flagged = suspects(pairs, flags, about=about)
    flags = concerning(flags, about)
    with_all = analysis(pairs)
    _estimates(with_all)
    without, why = with_all, ""
    if flagged.any():
        try:
            without = analysis(pairs[~flagged].reset_index(drop=True))
        except ParameterError as error:
            without, why = None, str(error)
    wide = flags[flags.scope.isin(["column", "table"])]
    columns = tuple(f"{flag.found} ({flag.cause})" for flag in wide.itertuples(index=False))
    left_out = pairs[flagged].reset_index(drop=True)
    return Sensitivity(with_all, without, left_out, _by_rule(pairs, flags), len(pairs), why, columns)


def _rows(result: object) -> pd.DataFrame:
    names = ["quantity", "unit", "estimate", "low", "high"]
    return pd.DataFrame([[getattr(one, name) for name in names] for one in _estimates(result)], columns=names)


def _by_rule(pairs: pd.DataFrame, flags: pd.DataFrame) -> pd.DataFrame:
    """Count the ordered pairs that each flagged region, and each rule that flags rows, leaves out."""
    rows = [
        (", ".join(group.rule.unique()), key if by == "region" else None, int(suspects(pairs, group).sum()))
        for scope, by in (("region", "region"), ("row", "rule"))
        for key, group in flags[flags.scope == scope].groupby(by, sort=False)
    ]
    return pd.DataFrame([row for row in rows if row[2]], columns=["rule", "region", "n_pairs"])


def _estimates(result: object) -> tuple[Estimate, ...]:
    estimates: Any = getattr(result, "estimates", result)
    if isinstance(estimates, Estimate) or not isinstance(estimates, Iterable):
        estimates = (estimates,)
    estimates = tuple(estimates)
    if not all(isinstance(estimate, Estimate) for estimate in estimates):
        raise refusal("the result of the analysis", result, "an Estimate, several, or a Result")
    return estimates
