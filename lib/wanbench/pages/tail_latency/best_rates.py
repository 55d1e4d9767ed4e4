"""
The highest rate of each system at which a latency quantile meets an objective.

Two methods that can check each other:

- Stepped rates: where the curve of the typical trial's quantile, interpolated on log axes, crosses the objective.
- Bisection: a bracket, from the highest rate that met the objective to the lowest that failed.

A queue's curve is far from straight between two steps, so the interval is never narrower than the steps or brackets
around the rate. Near the first or last step the curve may cross the objective in some samples only. The interval then
comes from steps alone: it begins at the last step up to which Student's intervals of all steps keep within the
objective, and ends at the first from which on all exceed it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, inf, isfinite, isnan, log, nan

import numpy as np
import pandas as pd

from wanbench.checks import check_choice, check_columns, check_level, check_number
from wanbench.errors import MissingDataError, ParameterError
from wanbench.formatting import count, number, span
from wanbench.methods.result import Estimate, Result, RowsResult, exact_binomial
from wanbench.methods.result.means import half_width
from wanbench.methods.tails import quantile_intervals as order

from .step_curves import RATE, StepCurve, ends, rising, step_curve, student
from .trials import SystemTrials

STEPS = (
    "the curve of trials' quantiles, interpolated on log axes; t on the jackknife over blocks (Shao & Tu 1995), and at "
    "least the two steps between which the rate lies; without a crossing in some sample, t at each step"
)
SEARCHES = "geometric mean of the middles of the searches' brackets; t over searches, beyond both ends of the brackets"
ASSUMPTION = "Blocks are independent and represent further ones; the quantile rises with the rate"
SEARCHED = "Searches are independent; the rate lies within each search's bracket, apart from what differs among them"


@dataclass(frozen=True, repr=False)
class BestRate(RowsResult):
    """
    The highest rate that meets an objective.

    Attributes
    ----------
    rate : Estimate
        In records/s; NaN if no step is shown to meet the objective, all do, or a step below the rate is shown to fail
        it.
    rows : DataFrame
        Per step: `rate_records_per_s`, `n`, `met` (trials that met the objective), `share_met` with `low`, `high`
        (Clopper & Pearson 1934), `latency_ms` (geometric mean). Of searches, per search: `search`, `met_records_per_s`,
        `failed_records_per_s`, `n_steps`.
    q, objective_ms : float
    """

    rate: Estimate
    q: float
    objective_ms: float

    TITLE = "Trials within the objective"


def best_rate(trials: pd.DataFrame, objective_ms: float, q: float = 0.99, *, level: float = 0.95) -> BestRate:
    """
    The highest rate that meets an objective, from one system's trials at stepped rates.

    Parameters
    ----------
    trials : DataFrame
        One row per trial: `block`, `rate_records_per_s`, `tail`.
    objective_ms : float
        The largest latency allowed for the quantile.
    """
    curve = step_curve(trials, q)
    met = [tail.quantile(q) <= objective_ms for tail in trials["tail"]]
    groups = pd.Series(met, dtype=float).groupby(trials[RATE].to_numpy(dtype=float))
    shares = pd.DataFrame({"n": groups.size(), "met": groups.sum().astype(int)}).reset_index(names=RATE)
    return best_rate_of(curve, objective_ms, shares, level=level)


def best_rate_of(
    curve: StepCurve, objective_ms: float, shares: pd.DataFrame | None = None, *, level: float = 0.95
) -> BestRate:
    """Like `best_rate`, from a curve; `shares` has the number of trials per step, and how many met the objective."""
    level = check_level(level)
    check_number("objective_ms", objective_ms, 0, above=True)
    x, goal, r = np.log(curve.rates), log(objective_ms), len(curve.blocks)
    if shares is None:
        met = (curve.logs <= goal).sum(axis=0)
        shares = pd.DataFrame({RATE: curve.rates, "n": r, "met": met})
    limits = np.array([exact_binomial(row.met, row.n, level) for row in shares.itertuples()])
    rows = shares.assign(
        share_met=shares.met / shares.n, low=limits[:, 0], high=limits[:, 1], latency_ms=curve.table().latency_ms
    )
    value, error = curve.jackknife(lambda logs: crossing(x, logs, goal))
    notes = curve.notes
    if curve.lost:
        at = ", ".join(number(rate, 0) for rate in curve.lost)
        notes += (
            f"{order.name(curve.q)} of a trial at {at} records/s is that of a lost record, which counts as the slowest "
            "that arrived in any trial",
        )
    early = curve.rates[(curve.mean - _half_widths(curve, level) > goal) & (x < value)]
    low, high = ends(value, student(level, r) * error) if isfinite(value) and not len(early) else (nan, nan)
    if isfinite(low):
        # between two steps the curve is known only to rise
        above = int(np.searchsorted(x, value))
        low, high = min(low, curve.rates[max(above - 1, 0)]), max(high, curve.rates[above])
    if not isfinite(low):
        low, high = _by_steps(curve, goal, level)
        ends_known = [f"at least {number(low, 0)}"] * (low > 0) + [f"below {number(high, 0)}"] * isfinite(high)
        bound = f"is {' and '.join(ends_known)} records/s" if ends_known else "has no limit"
        if len(early):
            at = ", ".join(number(rate, 0) for rate in early)
            why = f"at {at} records/s {order.name(curve.q)} exceeds the objective, though not at a higher rate"
        elif isfinite(value):
            why = "without one of the blocks, the curve does not cross the objective within the steps"
        else:
            why = f"{'every' if curve.mean[-1] <= goal else 'no'} step meets the objective"
        notes += (f"{why}: by the intervals of single steps the rate {bound}",)
        # no step is shown to meet the objective, or one below the rate is shown to fail it
        value = value if low and not len(early) else nan
    about = {
        "of": "a typical trial",
        "basis": f"{count(r, 'block')} of {count(len(x), 'step')}",
        "method": STEPS,
        "assumption": ASSUMPTION,
    }
    found = exp(value) if isfinite(value) else nan, low, high
    return _best_rate(rows, curve.q, objective_ms, found, n=r, level=level, warnings=notes, **about)


def _by_steps(curve: StepCurve, goal: float, level: float) -> tuple[float, float]:
    """The last step up to which all meet the objective by their intervals, and the first from which on all fail it."""
    half = _half_widths(curve, level)
    within = int(np.cumprod(curve.mean + half <= goal).sum())
    beyond = int(np.cumprod((curve.mean - half > goal)[::-1]).sum())
    low = float(curve.rates[within - 1]) if within else 0.0
    return low, float(curve.rates[-beyond]) if beyond else inf


def _half_widths(curve: StepCurve, level: float) -> np.ndarray:
    r = len(curve.blocks)
    return student(level, r) * curve.logs.std(axis=0, ddof=1) / r**0.5


def crossing(x: np.ndarray, y: np.ndarray, goal: float) -> float:
    """
    The point at which a rising curve crosses a goal, interpolated; NaN if the curve lies wholly above or below it.

    >>> crossing(np.array([0.0, 1.0, 2.0]), np.array([0.0, 0.5, 2.5]), 1.5), crossing(np.arange(2.0), np.zeros(2), 1.0)
    (1.5, nan)
    """
    y = rising(y)
    if not y[0] <= goal < y[-1]:
        return nan
    k = int(np.searchsorted(y, goal, "right"))
    return float(x[k - 1] + (goal - y[k - 1]) / (y[k] - y[k - 1]) * (x[k] - x[k - 1]))


def searched_rate(
    steps: pd.DataFrame, objective_ms: float, q: float = 0.99, *, search: str = "search", level: float = 0.95
) -> BestRate:
    """
    The highest rate that meets an objective, from searches.

    The interval is Student's, around the means of the lower and of the upper ends of the brackets, so it is never
    narrower than the brackets. If a search met the objective at every rate tried or at none, it is from the lowest rate
    that met it to the highest that failed, whose level is at most 1 - 0.5^searches: 87.5 % for three.

    Parameters
    ----------
    steps : DataFrame
        Table rate_search_steps of one system: one row per step of a search, with column `search` (whatever it is
        called, such as test_id), `rate_records_per_s` and `met` (flag; null: the step says nothing).
    """
    level = check_level(level)
    check_columns("steps", steps, [search, RATE, "met"])
    rows = []
    known = steps.dropna(subset=["met"])
    silent = steps[search].nunique() - known[search].nunique()
    for name, part in known.groupby(search, sort=False):
        for flag, rate in zip(part.met, part[RATE], strict=True):
            check_choice(f"met of {search} {name}", flag, (True, False))
            check_number(f"{RATE} of {search} {name}", rate, 0, above=True)
        met = part.met.astype(bool)
        low, high = part[RATE][met].max(), part[RATE][~met].min()
        low, high = 0.0 if pd.isna(low) else float(low), inf if pd.isna(high) else float(high)
        rows.append((name, *sorted((low, high)), len(part)))
    if not rows:
        raise ParameterError("no step met or failed the objective.")
    table = pd.DataFrame(rows, columns=["search", "met_records_per_s", "failed_records_per_s", "n_steps"])
    closed = (table.met_records_per_s > 0) & np.isfinite(table.failed_records_per_s)
    notes, value, low, high = (), nan, nan, nan
    if closed.all():
        lows, highs = (np.log(table[column].to_numpy()) for column in ("met_records_per_s", "failed_records_per_s"))
        value = exp((lows.mean() + highs.mean()) / 2)
        low, high = exp(lows.mean() - _half(lows, level)), exp(highs.mean() + _half(highs, level))
        if len(table) < 2:
            low, high = nan, nan
            notes = ("no interval: a single search; its bracket is the error of the search alone",)
    else:
        low = float(table.met_records_per_s.min()) if (table.met_records_per_s > 0).all() else 0.0
        high = float(table.failed_records_per_s.max())
        # half of all searches end above the typical rate, so all of them do so with this probability (sign test)
        level = min(level, 1 - 0.5 ** len(table))
        notes = (
            f"{count(int((~closed).sum()), 'search', 'searches')} of {len(table)} met the objective at every rate "
            "tried or at none, so the rate is bounded on one side only",
        )
    if silent:
        notes += (f"{count(silent, 'search', 'searches')} left out: no step says whether it met the objective",)
    width = np.sqrt(table.failed_records_per_s[closed] / table.met_records_per_s[closed]) - 1
    error = f"; brackets of ±{number(100 * float(width.max()), 1)} % or less" if closed.any() else ""
    basis = f"{count(len(table), 'search', 'searches')}{error}"
    about = {"of": "latency", "n": len(table), "basis": basis, "method": SEARCHES, "assumption": SEARCHED}
    return _best_rate(table, q, objective_ms, (value, low, high), level=level, warnings=notes, **about)


def _best_rate(rows: pd.DataFrame, q: float, objective_ms: float, found: tuple, *, of: str, **about) -> BestRate:
    name, within = order.name(q), f"within {number(objective_ms)} ms"
    texts = {"quantity": f"highest rate with {name} {within}", "claim": f"{name} of {of} keeps {within} up to {{}}"}
    value, low, high = found
    rate = Estimate(estimate=value, low=low, high=high, unit="records/s", **texts, **about)
    return BestRate(rows, rate, q, objective_ms)


def _half(logs: np.ndarray, level: float) -> float:
    half = float(half_width(logs, level))
    return half if isfinite(half) else 0.0


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
