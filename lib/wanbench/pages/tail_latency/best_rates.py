"""
Find the highest rate of each system at which a latency quantile meets an objective, from trials at stepped rates.

The rate is where the curve of trials' quantiles (geometric mean), interpolated on logarithmic axes, is the objective.
The latency of a queue is far from linear between two steps, so the interval always includes the two steps around the
rate. If the curve does not cross the objective, or does not without one of the blocks, the interval comes from
Student's intervals at the single steps: from the last step up to which all of these lie below the objective, to the
first step from which on all lie above it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import exp, inf, isfinite, log, nan

import numpy as np
import pandas as pd

from wanbench.checks import check_kind, check_number
from wanbench.errors import MissingDataError, ParameterError
from wanbench.formatting import count, number, span
from wanbench.methods.result import Estimate, Fields, Result
from wanbench.methods.tails import quantile_intervals as order

from .step_curves import LEVEL, StepCurve, ends, rising, step_curve, student
from .trials import SystemTrials

STEPS = (
    "the curve of trials' quantiles, interpolated on log axes; t on the jackknife over blocks (Shao & Tu 1995), "
    "widened to the two steps around the rate; t at each step if the curve does not always cross the objective"
)
ASSUMPTION = "Blocks are independent and represent further blocks; the quantile rises with the rate"


@dataclass(frozen=True)
class BestRate:
    """
    The highest rate at which latency meets an objective, in records/s.

    `rate` is NaN if no step is shown to meet the objective, if all steps meet it, or if a lower step fails it than one
    that meets it. `bracket` has the two steps around the rate: the last that meets the objective, and the first that
    does not.
    """

    rate: Estimate
    bracket: tuple[float, float]

    @property
    def formatted_bracket(self) -> str:
        """The two steps of `bracket` as text."""
        return span(*self.bracket, 0)


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
    about: Fields = {"basis": f"{count(r, 'block')} of {count(len(x), 'step')}", "method": STEPS}
    about |= {"assumption": ASSUMPTION, "unit": "records/s", "n": r, "level": LEVEL, "warnings": notes}
    within = f"within {number(objective_ms)} ms"
    claim = f"{p} of a typical trial keeps {within} up to {{}}"
    interval = exp(value) if isfinite(value) else nan, low, high
    rate = Estimate(f"highest rate with {p} {within}", claim, *interval, **about)
    met = (curve.mean <= goal) & ~np.isin(curve.rates, curve.lost)
    last = float(curve.rates[met].max()) if met.any() else 0.0
    above = curve.rates[~met & (curve.rates > last)]
    return BestRate(rate, (last, float(above.min()) if len(above) else inf if met.all() else nan))


def _listed(rates: Iterable[float]) -> str:
    return ", ".join(number(rate, 0) for rate in rates)


def crossing(x: np.ndarray, y: np.ndarray, goal: float) -> float:
    """
    Return the x at which a rising curve, interpolated between its points, crosses `goal`; NaN if it does not.

    >>> crossing(np.array([0.0, 1.0, 2.0]), np.array([0.0, 0.5, 2.5]), 1.5), crossing(np.arange(2.0), np.zeros(2), 1.0)
    (1.5, nan)
    """
    y = rising(y)
    if not y[0] <= goal < y[-1]:
        return nan
    k = int(np.searchsorted(y, goal, "right"))
    return float(x[k - 1] + (goal - y[k - 1]) / (y[k] - y[k - 1]) * (x[k] - x[k - 1]))


@dataclass(frozen=True, repr=False)
class BestRates(Result):
    """The highest rate of each system at which latency meets an objective."""

    stepped: dict[str, BestRate]

    TITLE = "The highest rate that meets the objective"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return tuple(one.rate for one in self.stepped.values())

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
        return " ".join(parts)

    def formatted_table(self) -> pd.DataFrame:
        rows = []
        for name, steps in self.stepped.items():
            row = {"system": name, "highest rate": steps.rate.formatted, "interval": steps.rate.formatted_interval}
            row["steps around it"] = steps.formatted_bracket if isfinite(steps.rate.estimate) else "not established"
            rows.append(row)
        return pd.DataFrame(rows)


def best_rates(trials: SystemTrials, objective_ms: float, *, q: float = 0.99, **at: float) -> BestRates:
    """
    Estimate the highest rate of each system at which the quantile `q` of latency is at most `objective_ms`.

    `at` fixes other settings of the trials, such as partitions=9. Raises MissingDataError: a system has too few steps
    or blocks.
    """
    stepped = {}
    for name in trials.systems:
        try:
            stepped[name] = best_rate(step_curve(trials.stepped(name, **at), q), objective_ms)
        except ParameterError as error:
            raise MissingDataError(f"no highest rate of {name}: {error}") from error
    return BestRates(stepped)
