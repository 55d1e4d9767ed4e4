"""
The highest rate at which a latency quantile meets an objective.

Two methods that can check each other: stepped rates: the rate at which the curve of the typical trial's quantile
crosses the objective, interpolated on log axes; and bisection, which ends with a bracket, the highest rate that met the
objective and the lowest that failed. A queue's curve is far from straight between two steps, so the interval is never
narrower than the steps or brackets around the rate. Bisection has the smaller brackets and is the better method.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, isfinite, log, nan

import numpy as np
import pandas as pd

from ...checks import check_columns, check_level, check_number
from ...errors import ParameterError
from ...formatting import count, number
from ..result import Estimate, Result, exact_binomial, text_table
from ..trials.means import half_width
from . import quantile_intervals as order
from .step_curves import RATE, StepCurve, ends, rising, step_curve, student

STEPS = (
    "the curve of trials' quantiles, interpolated on log axes; t on the jackknife over blocks (Shao & Tu 1995), and at "
    "least the two steps between which the rate lies"
)
SEARCHES = "geometric mean of the middles of the searches' brackets; t over searches, beyond both ends of the brackets"
ASSUMPTION = "Blocks are independent and represent further ones; the quantile rises with the rate"
SEARCHED = (
    "Searches are independent; the rate lies within each search's bracket, apart from what differs among them"
)


@dataclass(frozen=True, repr=False)
class BestRate(Result):
    """
    The highest rate that meets an objective.

    Attributes
    ----------
    rate : Estimate
        In records/s; NaN if no step meets the objective, or all do.
    rows : DataFrame
        Per step: `rate_records_per_s`, `n`, `met` (trials that met the objective), `share_met` with `low`, `high`
        (Clopper & Pearson 1934), `latency_ms` (geometric mean). Of searches, per search: `search`, `met_records_per_s`,
        `failed_records_per_s`, `n_steps`.
    q, objective_ms : float
    """

    rate: Estimate
    rows: pd.DataFrame
    q: float
    objective_ms: float

    TITLE = "Trials within the objective"

    def table(self) -> pd.DataFrame:
        """`rows`."""
        return self.rows

    def shown(self) -> pd.DataFrame:
        """`rows` as text."""
        return text_table(self.rows)


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
        share_met=shares.met / shares.n, low=limits[:, 0], high=limits[:, 1], latency_ms=np.exp(curve.mean)
    )
    value, error = curve.jackknife(lambda logs: crossing(x, logs, goal))
    notes, name = curve.notes, order.name(curve.q)
    low, high = ends(value, student(level, r) * error) if isfinite(value) else (nan, nan)
    if isfinite(low):
        # nothing but that it rises is known of the curve between two steps
        above = int(np.searchsorted(x, value))
        low, high = min(low, curve.rates[max(above - 1, 0)]), max(high, curve.rates[above])
    if not isfinite(value):
        within = curve.mean[-1] <= goal
        edge = exp(x[-1] if within else x[0])
        low, high = (edge, inf) if within else (0.0, edge)
        notes += (
            f"{'every' if within else 'no'} step meets the objective: the rate is "
            f"{'at least' if within else 'below'} {number(edge, 0)} records/s",
        )
    elif not isfinite(low):
        notes += (
            "no interval: without one of the blocks, the curve does not cross the objective within the steps",
        )
    return BestRate(
        Estimate(
            quantity=f"highest rate with {name} within {number(objective_ms)} ms",
            claim=f"{name} of a typical trial keeps within {number(objective_ms)} ms up to {{}}",
            estimate=exp(value) if isfinite(value) else nan,
            low=low,
            high=high,
            unit="records/s",
            n=r,
            basis=f"{count(r, 'block')} of {count(len(x), 'step')}",
            method=STEPS,
            assumption=ASSUMPTION,
            level=level,
            warnings=notes,
        ),
        rows,
        curve.q,
        objective_ms,
    )


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
    narrower than the brackets.

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
        lows, highs = (
            np.log(table[column].to_numpy()) for column in ("met_records_per_s", "failed_records_per_s")
        )
        value = exp((lows.mean() + highs.mean()) / 2)
        low, high = exp(lows.mean() - _half(lows, level)), exp(highs.mean() + _half(highs, level))
        if len(table) < 2:
            low, high = nan, nan
            notes = ("no interval: a single search; its bracket is the error of the search alone",)
    else:
        low = float(table.met_records_per_s.min()) if (table.met_records_per_s > 0).all() else 0.0
        high = float(table.failed_records_per_s.max())
        notes = (
            f"{count(int((~closed).sum()), 'search', 'searches')} of {len(table)} met the objective at every rate "
            "tried or at none, so the rate is bounded on one side only",
        )
    if silent:
        notes += (
            f"{count(silent, 'search', 'searches')} left out: no step says whether it met the objective",
        )
    width = np.sqrt(table.failed_records_per_s[closed] / table.met_records_per_s[closed]) - 1
    error = f"; brackets of ±{number(100 * float(width.max()), 1)} % or less" if closed.any() else ""
    name = order.name(q)
    return BestRate(
        Estimate(
            quantity=f"highest rate with {name} within {number(objective_ms)} ms",
            claim=f"{name} of latency keeps within {number(objective_ms)} ms up to {{}}",
            estimate=value,
            low=low,
            high=high,
            unit="records/s",
            n=len(table),
            basis=f"{count(len(table), 'search', 'searches')}{error}",
            method=SEARCHES,
            assumption=SEARCHED,
            level=level,
            warnings=notes,
        ),
        table,
        q,
        objective_ms,
    )


def _half(logs: np.ndarray, level: float) -> float:
    half = float(half_width(logs, level))
    return half if isfinite(half) else 0.0
