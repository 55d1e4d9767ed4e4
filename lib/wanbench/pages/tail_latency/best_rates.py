"""The highest rate of each system that meets an objective, from stepped trials and from searches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, isfinite, isnan

import pandas as pd

from wanbench.errors import MissingDataError, ParameterError
from wanbench.formatting import count, span
from wanbench.methods.result import Estimate, Result

from .tails_best_rates import BestRate, best_rate, searched_rate
from .trials import RATE, SystemTrials


@dataclass(frozen=True, repr=False)
class BestRates(Result):
    """
    The highest rate of each system that meets an objective.

    Attributes
    ----------
    stepped, searched : dict of str to BestRate
        By system; `searched` lacks systems without a search of which a step met or failed the objective.
    silent : dict of str to int
        Systems whose searches all say nothing, as the generator was late, and how many these are.
    """

    stepped: dict[str, BestRate]
    searched: dict[str, BestRate]
    silent: dict[str, int]

    TITLE = "The highest rate that meets the objective"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """The highest rate of each system, first from steps, then from searches."""
        return tuple(each.rate for found in (self.stepped, self.searched) for each in found.values())

    @property
    def sentence(self) -> str:
        """The rate of each system by both methods, and whether they agree."""
        parts = []
        for name, steps in self.stepped.items():
            rate = steps.rate
            if isfinite(rate.estimate):
                text = f"{name}, by its steps: {rate.sentence[:-1]}; the steps around it: {_span(steps)}."
            else:
                ends = f"{rate.formatted_interval} records/s" if rate.formatted_interval else "no limit"
                text = f"{name}: the {rate.quantity} is not established by its steps ({ends})."
            if name in self.searched:
                search = self.searched[name]
                both = "both agree" if self.agree(name) else "both do not agree"
                text += f" By search: {search.rate.formatted} ({_span(search)}), {both}."
            elif name in self.silent:
                searches = count(self.silent[name], "search", "searches")
                text += f" By search: not known, as the generator was late in each ({searches})."
            parts.append(text)
        return " ".join(parts)

    def agree(self, name: str) -> bool:
        """Whether the brackets of both methods, each widened to its interval, overlap."""
        ends = []
        for found in (self.stepped[name], self.searched[name]):
            low, high = _bracket(found)
            known = [end for end in (found.rate.low, found.rate.high) if not isnan(end)]
            ends.append((min([low, *known]), max([high, *known])))
        (a, b), (c, d) = ends
        return a <= d and c <= b

    def formatted_table(self) -> pd.DataFrame:
        """One row per system."""
        rows = []
        for name, steps in self.stepped.items():
            row = {"system": name, "by its steps": steps.rate.formatted, "interval": steps.rate.formatted_interval}
            row["steps around it"] = _span(steps) if isfinite(steps.rate.estimate) else "not established"
            if name in self.searched:
                search = self.searched[name]
                row |= {"by search": search.rate.formatted, "met and failed": _span(search)}
                row |= {"steps of searches": str(search.rows.n_steps.sum())}
                row |= {"both agree": "yes" if self.agree(name) else "no"}
            rows.append(row)
        return pd.DataFrame(rows).fillna("")


def _bracket(found: BestRate) -> tuple[float, float]:
    """
    The range that must contain the rate: from the last step that meets the objective to the first that does not; for
    searches, from the lowest rate that met it to the highest that failed.
    """
    rows = found.rows
    if "met_records_per_s" in rows:
        return float(rows.met_records_per_s.min()), float(rows.failed_records_per_s.max())
    met = rows.latency_ms <= found.objective_ms
    low = rows[RATE][met].max() if met.any() else 0.0
    return float(low), float(rows[RATE][~met & (rows[RATE] > low)].min()) if not met.all() else inf


def _span(found: BestRate) -> str:
    return span(*_bracket(found), 0)


def best_rates(
    trials: SystemTrials,
    tables: Mapping[str, pd.DataFrame],
    objective_ms: float,
    *,
    q: float = 0.99,
    level: float = 0.95,
    **at,
) -> BestRates:
    """
    The highest rate of each system at which a percentile meets an objective.

    Parameters
    ----------
    tables : mapping of DataFrame
        Tables of the same run: rate_search_steps, if there were searches.
    at
        Fixed values of other settings, for the stepped trials: partitions=...

    Raises
    ------
    MissingDataError
        If a system has too few steps or blocks.
    """
    stepped, searched, silent = {}, {}, {}
    steps = tables.get("rate_search_steps", pd.DataFrame())
    if len(steps):
        systems = tables["trials"][["run_id", "test_id", "system"]]
        steps = steps.merge(systems, on=["run_id", "test_id"]).assign(search=lambda rows: rows.test_id)
    for name in trials.systems:
        try:
            stepped[name] = best_rate(trials.stepped(name, **at), objective_ms, q, level=level)
        except ParameterError as error:
            raise MissingDataError(f"no highest rate of {name}: {error}") from error
        own = steps[steps.system == name] if len(steps) else steps
        if len(own) and own.met.notna().any():
            searched[name] = searched_rate(own, objective_ms, q, level=level)
        elif len(own):
            silent[name] = own.search.nunique()
    return BestRates(stepped, searched, silent)
