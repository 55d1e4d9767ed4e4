"""
Find the highest rate of each system at which a latency quantile meets an objective, by two methods.

- From trials at stepped rates: the curve of the typical trial's quantile is interpolated on logarithmic axes, to find
  where it crosses the objective.
- From searches by bisection: each gives a bracket from the highest rate that met the objective to the lowest that
  failed.

The latency of a queue is far from linear between two steps. So an interval is never narrower than the steps, or
brackets, around the rate. If the curve does not cross the objective, with all blocks or without one of them, the
interval comes from Student's intervals of single steps: it runs from the last step up to which all intervals are within
the objective, to the first step from which on all exceed it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import exp, inf, isfinite, isnan, log, nan

import numpy as np
import pandas as pd

from wanbench.checks import check_choice, check_columns, check_kind, check_number
from wanbench.errors import MissingDataError, ParameterError
from wanbench.formatting import count, number, span
from wanbench.methods.result import Estimate, Result
from wanbench.methods.result.means import half_width
from wanbench.methods.tails import quantile_intervals as order

from .step_curves import LEVEL, RATE, StepCurve, ends, rising, step_curve, student
from .trials import SystemTrials

STEPS = (
    "the curve of trials' quantiles, interpolated on log axes; t on the jackknife over blocks (Shao & Tu 1995), "
    "widened "
    "to the two steps around the rate; t at each step if the curve does not always cross the objective"
)
SEARCHES = (
    "geometric mean of the middles of the searches' brackets; t over searches, added beyond both ends of the brackets"
)
ASSUMPTION = "Blocks are independent and represent further blocks; the quantile rises with the rate"
SEARCHED = "Searches are independent; apart from differences between searches, the rate lies in every bracket"


@dataclass(frozen=True)
class BestRate:
    """
    The highest rate that meets an objective, in records/s.

    The estimate is NaN if no step is shown to meet the objective, if all steps meet it, or if a step fails below one
    that meets it. `bracket` contains the rate. For rates measured in steps, the bracket runs from the last step that
    meets the objective to the first that does not; for searches, from the lowest rate that met the objective to the
    highest that failed.
    """

    rate: Estimate
    bracket: tuple[float, float]
    n_steps: int

    @property
    def formatted_bracket(self) -> str:
        """The bracket, as text."""
        return span(*self.bracket, 0)

    @property
    def widest(self) -> tuple[float, float]:
        """The bracket, widened to the interval."""
        low, high = self.bracket
        known = [end for end in (self.rate.low, self.rate.high) if not isnan(end)]
        return min([low, *known]), max([high, *known])


def best_rate(curve: StepCurve, objective_ms: float) -> BestRate:
    """Estimate the highest rate at which the quantile of a curve is at most `objective_ms`."""
    check_kind("curve", curve, StepCurve)
    check_number("objective_ms", objective_ms, 0, above=True)
    x, goal, r, p = np.log(curve.rates), log(objective_ms), len(curve.blocks), order.name(curve.q)
    half = student(LEVEL, r) * curve.logs.std(axis=0, ddof=1) / r**0.5
    value, error = curve.jackknife(lambda logs: crossing(x, logs, goal))
    notes = curve.notes
    if curve.lost:
        of = f"{p} of a trial at {_listed(curve.lost)} records/s"
        notes += (f"{of} falls on a lost record, which counts as the slowest record that arrived in any trial",)
    early = curve.rates[(curve.mean - half > goal) & (x < value)]
    low, high = ends(value, student(LEVEL, r) * error) if isfinite(value) and not len(early) else (nan, nan)
    if isfinite(low):
        # between two steps the curve is known only to rise
        above = int(np.searchsorted(x, value))
        low, high = min(low, curve.rates[max(above - 1, 0)]), max(high, curve.rates[above])
    else:
        within = int(np.cumprod(curve.mean + half <= goal).sum())
        beyond = int(np.cumprod((curve.mean - half > goal)[::-1]).sum())
        low, high = float(curve.rates[within - 1]) if within else 0.0, float(curve.rates[-beyond]) if beyond else inf
        bounds = [f"at least {number(low, 0)}"] * (low > 0) + [f"below {number(high, 0)}"] * isfinite(high)
        bound = f"is {' and '.join(bounds)} records/s" if bounds else "has no limit"
        if len(early):
            why = f"at {_listed(early)} records/s {p} exceeds the objective, though not at a higher rate"
        elif isfinite(value):
            why = "without one of the blocks, the curve does not cross the objective within the steps"
        else:
            why = f"{'every' if curve.mean[-1] <= goal else 'no'} step meets the objective"
        notes += (f"{why}; by the intervals of single steps the rate {bound}",)
        # no step is shown to meet the objective, or one below the rate is shown to fail it
        value = value if low and not len(early) else nan
    about = {"basis": f"{count(r, 'block')} of {count(len(x), 'step')}", "method": STEPS, "assumption": ASSUMPTION}
    interval = exp(value) if isfinite(value) else nan, low, high
    rate = _estimate(curve.q, objective_ms, interval, "a typical trial", n=r, level=LEVEL, warnings=notes, **about)
    met = (curve.mean <= goal) & ~np.isin(curve.rates, curve.lost)
    last = float(curve.rates[met].max()) if met.any() else 0.0
    above = curve.rates[~met & (curve.rates > last)]
    return BestRate(rate, (last, float(above.min()) if len(above) else inf if met.all() else nan), len(x))


def _listed(rates: Iterable[float]) -> str:
    return ", ".join(number(rate, 0) for rate in rates)


def crossing(x: np.ndarray, y: np.ndarray, goal: float) -> float:
    """
    Interpolate where a rising curve crosses a goal; NaN if the whole curve lies above or below it.

    >>> crossing(np.array([0.0, 1.0, 2.0]), np.array([0.0, 0.5, 2.5]), 1.5), crossing(np.arange(2.0), np.zeros(2), 1.0)
    (1.5, nan)
    """
    y = rising(y)
    if not y[0] <= goal < y[-1]:
        return nan
    k = int(np.searchsorted(y, goal, "right"))
    return float(x[k - 1] + (goal - y[k - 1]) / (y[k] - y[k - 1]) * (x[k] - x[k - 1]))


def searched_rate(steps: pd.DataFrame, objective_ms: float, q: float = 0.99) -> BestRate:
    """
    Estimate the highest rate that meets an objective from searches.

    The interval is Student's, around the mean of the lower ends and the mean of the upper ends of the brackets. If a
    search met the objective at every rate or at none, the interval runs from the lowest rate that met it to the highest
    that failed; its level is then at most 1 - 0.5^searches, 87.5 % for three.

    `steps` has one row per step of a search: `search`, `rate_records_per_s`, `met` (null if the step was invalid).
    """
    check_columns("steps", steps, ["search", RATE, "met"])
    rows, known = [], steps.dropna(subset=["met"])
    for name, part in known.groupby("search", sort=False):
        for flag, rate in zip(part.met, part[RATE], strict=True):
            check_choice(f"met of search {name}", flag, (True, False))
            check_number(f"{RATE} of search {name}", rate, 0, above=True)
        met = part.met.astype(bool)
        low, high = part[RATE][met].max(), part[RATE][~met].min()
        rows.append(sorted((0.0 if pd.isna(low) else float(low), inf if pd.isna(high) else float(high))))
    if not rows:
        raise ParameterError("no step says whether it met the objective.")
    (lows, highs), n, level = np.array(rows).T, len(rows), LEVEL
    closed = (lows > 0) & np.isfinite(highs)
    notes, value, low, high = (), nan, nan, nan
    if not closed.all():
        low, high = float(lows.min()), float(highs.max())
        # each search ends above the typical rate with probability 0.5 (sign test)
        level = min(level, 1 - 0.5**n)
        notes = (
            f"{count(int((~closed).sum()), 'search', 'searches')} of {n} met the objective at every rate "
            "tried or at none, so the rate has a bound on one side only",
        )
    else:
        below, above = np.log(lows), np.log(highs)
        value = exp((below.mean() + above.mean()) / 2)
        if n > 1:
            low, high = exp(below.mean() - half_width(below, level)), exp(above.mean() + half_width(above, level))
        else:
            notes = ("no interval, because there is a single search; its bracket shows only the error of that search",)
    if silent := steps.search.nunique() - n:
        notes += (f"{count(silent, 'search', 'searches')} left out: the generator was late in every step",)
    width = np.sqrt(highs[closed] / lows[closed]) - 1
    error = f"; brackets of ±{number(100 * float(width.max()), 1)} % or less" if closed.any() else ""
    about = {"basis": f"{count(n, 'search', 'searches')}{error}", "method": SEARCHES, "assumption": SEARCHED}
    rate = _estimate(q, objective_ms, (value, low, high), "latency", n=n, level=level, warnings=notes, **about)
    return BestRate(rate, (float(lows.min()), float(highs.max())), len(known))


def _estimate(q: float, objective_ms: float, ends: tuple[float, float, float], of: str, **about) -> Estimate:
    name, within = order.name(q), f"within {number(objective_ms)} ms"
    quantity, claim = f"highest rate with {name} {within}", f"{name} of {of} keeps {within} up to {{}}"
    return Estimate(quantity, claim, *ends, unit="records/s", **about)


@dataclass(frozen=True, repr=False)
class BestRates(Result):
    """
    The highest rate of each system, from steps and from searches.

    `searched` has only systems with a search in which a step met or failed the objective. `silent` has, by system, the
    number of searches in which the generator was late in every step.
    """

    stepped: dict[str, BestRate]
    searched: dict[str, BestRate]
    silent: dict[str, int]

    TITLE = "The highest rate that meets the objective"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return tuple(one.rate for one in (*self.stepped.values(), *self.searched.values()))

    @property
    def sentence(self) -> str:
        parts = []
        for name, steps in self.stepped.items():
            rate = steps.rate
            if isfinite(rate.estimate):
                around = f"The steps around this rate are {steps.formatted_bracket}."
                parts.append(f"System “{name}”: {rate.sentence} {around}")
            else:
                ends = f"interval {rate.formatted_interval} records/s" if rate.formatted_interval else "no limit"
                parts.append(f"System “{name}”: the {rate.quantity} is not established by its steps ({ends}).")
            if search := self.searched.get(name):
                both = "which agrees" if self.agree(name) else "which does not agree"
                parts.append(f"Searches give {search.rate.formatted} ({search.formatted_bracket}), {both}.")
            elif name in self.silent:
                searches = count(self.silent[name], "search", "searches")
                parts.append(f"Searches give no rate, because the generator was late in each ({searches}).")
        return " ".join(parts)

    def agree(self, name: str) -> bool:
        """Return whether the brackets of both methods, each widened to its interval, overlap."""
        (a, b), (c, d) = self.stepped[name].widest, self.searched[name].widest
        return a <= d and c <= b

    def formatted_table(self) -> pd.DataFrame:
        rows = []
        for name, steps in self.stepped.items():
            row = {"system": name, "by its steps": steps.rate.formatted, "interval": steps.rate.formatted_interval}
            row["steps around it"] = steps.formatted_bracket if isfinite(steps.rate.estimate) else "not established"
            if search := self.searched.get(name):
                row |= {"by search": search.rate.formatted, "met and failed": search.formatted_bracket}
                row |= {"steps of searches": str(search.n_steps), "both agree": "yes" if self.agree(name) else "no"}
            rows.append(row)
        return pd.DataFrame(rows).fillna("")


def best_rates(
    trials: SystemTrials, tables: Mapping[str, pd.DataFrame], objective_ms: float, *, q: float = 0.99, **at
) -> BestRates:
    """
    Estimate the highest rate of each system at which a percentile meets an objective.

    `at` fixes other settings of the stepped trials, such as partitions=9. Searches are read from rate_search_steps, if
    `tables` has it. MissingDataError if a system has too few steps or blocks.
    """
    stepped, searched, silent, keys = {}, {}, {}, ["run_id", "test_id"]
    steps = tables.get("rate_search_steps", pd.DataFrame(columns=[*keys, "met"]))
    steps = steps.merge(tables["trials"][[*keys, "system"]], on=keys).assign(search=lambda rows: rows.test_id)
    for name in trials.systems:
        try:
            stepped[name] = best_rate(step_curve(trials.stepped(name, **at), q), objective_ms)
        except ParameterError as error:
            raise MissingDataError(f"no highest rate of {name}: {error}") from error
        own = steps[steps.system == name]
        if own.met.notna().any():
            searched[name] = searched_rate(own, objective_ms, q)
        elif len(own):
            silent[name] = own.search.nunique()
    return BestRates(stepped, searched, silent)
