"""
The knee of latency against rate: where a quantile stops being level and begins to rise.

On logarithmic axes a line that is level up to the knee, and rises beyond it, is fitted to the typical trial's quantile
at each step by least squares (segmented regression: Hudson 1966; Muggeo 2003). The knee need not lie at a step. Kneedle
(Satopaa et al. 2011), the point farthest from the chord of the curve, is given for comparison: it depends on
the first and last step. In simulation (data/validity/knees.csv) the knee of a second run at the same steps
falls into Kneedle's interval in 85 to 96 of 100 cases, and into the broken line's, up to three times
narrower, in 90 to 95. A queue's law, a + b x / (c - x), gives the rate of saturation, but is undefined beyond
it, where studies measure on purpose.

Two intervals, both by leaving out blocks: that of the knee, and the wider one into which the knee of a second run, with
the same steps and as many blocks, falls.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, log, nan, sqrt

import numpy as np
import pandas as pd
from scipy.interpolate import PchipInterpolator

from wanbench.checks import check_level
from wanbench.formatting import count, number, quantity
from wanbench.methods.result import Estimate, Result
from wanbench.methods.tails import quantile_intervals as order

from .step_curves import MIN_STEPS, StepCurve, ends, rising, step_curve, student

POINTS = 2_000
"""
Number of knees tried between the first and the last step: they are closer than 0.2 % if the steps span a factor of 30.
"""
RISE = 2.0
"""
Minimum ratio of the quantile at the last step to that at the first: a curve that rises less cannot be distinguished
from an even rise, or from scatter.
"""
WITHOUT = {
    "unknown": f"it needs {MIN_STEPS} steps at which it is known",
    "none": "it is not level and then at least twice as high",
    "before the first step": "it rises from the first step on",
}
"""Where there is no knee, and why."""
METHOD = (
    "level line and rising line on logarithmic axes, least squares (Hudson 1966); t on the jackknife over blocks "
    "(Shao & Tu 1995)"
)
ASSUMPTION = "Blocks are independent and represent further ones; the curve is level and then rises"


@dataclass(frozen=True, repr=False)
class Knee(Result):
    """
    The knee of one system.

    Attributes
    ----------
    curve : StepCurve
        The steps below the first at which the quantile of a trial is that of a lost record, and so unknown.
    knee : Estimate
        The rate of the knee in records/s, with its confidence interval; NaN if there is none in the range.
    second_run : Estimate
        The same rate, with the interval into which the knee of a second run falls.
    where : "inside", "none", "before the first step", "between the last two steps", "unknown"
        "between the last two steps" also applies if the last step but one cannot be distinguished from the level;
        "unknown" if fewer than `MIN_STEPS` steps are left.
    kneedle : float
        The rate that Kneedle gives on the same curve; NaN if there is no knee.
    level_ms, exponent : float
        The fitted level, and the exponent of the rate beyond the knee; NaN if there is no knee.
    """

    curve: StepCurve
    knee: Estimate
    second_run: Estimate
    where: str
    kneedle: float
    level_ms: float
    exponent: float

    TITLE = "The knee"
    DRAWN_BY = "knee_figure.knee"

    @property
    def sentence(self) -> str:
        """The place of the knee, and the interval for that of a second run."""
        name = order.name(self.curve.q)
        if self.where == "unknown":
            known = ", ".join(f"{rate:,.0f}" for rate in self.curve.rates) or "none"
            return f"{name} is known at too few steps to have a knee: {known} records/s; it takes {MIN_STEPS}."
        span = f"{self.curve.rates[0]:,.0f} to {self.curve.rates[-1]:,.0f} records/s"
        if self.where == "none":
            rises, lowest = np.exp(self.curve.mean[-1] - self.curve.mean), int(self.curve.mean.argmin())
            over = f", and {number(rises[lowest], 1)} times the lowest, at {self.curve.rates[lowest]:,.0f} records/s"
            return (
                f"There is no knee of {name} from {span}: the last step has {rises[0]:.2g} times that of the first"
                f"{over if 0 < lowest < len(rises) - 1 else ''}."
            )
        if self.where == "before the first step":
            first = f"{self.curve.rates[0]:,.0f} records/s"
            return (
                f"{name} rises from the first step on, so a knee would lie below {first} (no interval; "
                f"{self.knee.basis})."
            )
        second, kneedle = self.second_run, quantity(self.kneedle, "records/s")
        within = f"within {second.formatted_interval} records/s" if second.formatted_interval else "anywhere"
        return (
            f"{self.knee.sentence} That of a second run lies {within} in {second.formatted_level} of cases. "
            f"Kneedle gives {kneedle}."
        )


def knee(trials: pd.DataFrame, q: float = 0.99, *, level: float = 0.95) -> Knee:
    """
    The knee of one system's trials at stepped rates.

    Parameters
    ----------
    trials : DataFrame
        One row per trial: `block`, `rate_records_per_s`, `tail`. At least 4 steps and 2 blocks; better 3 blocks,
        because t with one degree of freedom gives no useful interval.
    """
    return knee_of(step_curve(trials, q), level=level)


def knee_of(curve: StepCurve, *, level: float = 0.95) -> Knee:
    """The knee of a curve, from the steps below the first at which the quantile of a trial is that of a lost record."""
    level = check_level(level)
    name, r = order.name(curve.q), len(curve.blocks)
    if curve.lost:
        first = curve.lost[0]
        note = f"steps from {number(first, 0)} records/s on are left out: {name} of a trial is that of a lost record"
        curve = replace(curve.below(first), notes=(*curve.notes, note))
    x = np.log(curve.rates)
    about = {"unit": "records/s", "n": r, "level": level, "basis": f"{count(r, 'block')} of {count(len(x), 'step')}"}
    about |= {"method": METHOD, "assumption": ASSUMPTION}
    claim = f"{name} of latency begins to rise at {{}}"
    where = _where(x, curve, level)
    if where in WITHOUT:
        warning = f"no knee of {name}: {WITHOUT[where]}"
        estimates = [
            Estimate(
                quantity=what, claim=claim, estimate=nan, low=nan, high=nan, warnings=(warning, *curve.notes), **about
            )
            for what in ("knee", "knee of a second run")
        ]
        return Knee(curve, *estimates, where, nan, nan, nan)
    value, error = curve.jackknife(lambda logs: broken_line(x, logs)[0])
    notes, last = curve.notes, curve.rates[-2:].tolist()
    if where == "between the last two steps":
        notes += (
            f"only the last step lies clearly above the level, so the knee may be as high as {last[1]:,.0f} records/s; "
            f"the fit gives about the lowest rate that agrees with the steps: add some from {last[0]:,.0f} on",
        )
    halfway = _halfway(x, value)
    estimates = []
    for what, factor in (("knee", 1.0), ("knee of a second run", sqrt(2.0))):
        low, high = ends(value, factor * student(level, r) * error)
        if halfway is not None:
            low, high = min(low, halfway[0]), max(high, halfway[1])
        if where == "between the last two steps":
            low, high = min(low, last[0]), max(high, last[1])
        estimates.append(
            Estimate(quantity=what, claim=claim, estimate=exp(value), low=low, high=high, warnings=notes, **about)
        )
    _, base, slope = broken_line(x, curve.mean)
    return Knee(curve, *estimates, where, kneedle(curve.rates, curve.mean), exp(base), slope)


def _halfway(x: np.ndarray, value: float) -> tuple[float, float] | None:
    """
    The rates halfway (in logarithms) to the steps beside a knee that lies at a step; None if it lies between steps.

    A rising part that is not straight can hold the fitted knee at a step, whichever block is left out: the jackknife
    then gives a width of zero, although trials only tell that the knee is nearer to this step than to the next.
    """
    step = int(np.abs(x - value).argmin())
    if not 0 < step < len(x) - 1 or abs(x[step] - value) > 2 * (x[-1] - x[0]) / POINTS:
        return None
    return exp((x[step - 1] + x[step]) / 2), exp((x[step] + x[step + 1]) / 2)


def broken_line(x: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    """
    Knee, level and slope of the best line that is level up to the knee and rises beyond it; NaN if it rises nowhere.

    >>> x = np.arange(6.0)
    >>> [round(number, 2) for number in broken_line(x, 1 + 2 * np.maximum(x - 2.5, 0))]
    [2.5, 1.0, 2.0]
    """
    knees = np.linspace(x[0], x[-1], POINTS, endpoint=False)
    beyond = np.maximum(x - knees[:, None], 0.0)
    centred, off = beyond - beyond.mean(axis=1, keepdims=True), y - y.mean()
    square = (centred**2).sum(axis=1)
    slopes = centred @ off / square
    best = int(np.where(slopes > 0, slopes**2 * square, -1.0).argmax())
    if slopes[best] <= 0:
        return nan, nan, nan
    return float(knees[best]), float(y.mean() - slopes[best] * beyond[best].mean()), float(slopes[best])


def kneedle(rates: np.ndarray, logs: np.ndarray) -> float:
    """
    The knee by Kneedle (Satopaa et al. 2011) of a curve interpolated without overshoot between its steps.

    The rate is on a linear axis and the latency on a logarithmic one.

    >>> rates = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    >>> round(kneedle(rates, np.array([0.0, 0.0, 0.0, 2.0, 4.0])), 1)
    3.1
    """
    logs = rising(logs)
    if logs[-1] <= logs[0]:
        return nan
    grid = np.linspace(rates[0], rates[-1], POINTS)
    at = PchipInterpolator(rates, logs)(grid)
    above = (grid - grid[0]) / (grid[-1] - grid[0]) - (at - at[0]) / (at[-1] - at[0])
    return float(grid[above.argmax()])


def _where(x: np.ndarray, curve: StepCurve, level: float) -> str:
    """
    Where the knee lies. With only the last step above the level, every knee between the last two fits equally well, and
    scatter of the step before can push the fitted one below it: that step counts as level unless it lies above the mean
    of those before by more than its scatter over blocks.
    """
    if len(x) < MIN_STEPS:
        return "unknown"
    y = curve.mean
    at = broken_line(x, y)[0]
    if y[-1] - y[0] < log(RISE) or not np.isfinite(at):
        return "none"
    if at <= x[0] + (x[1] - x[0]) / 10:
        return "before the first step"
    above = curve.logs[:, -2] - curve.logs[:, :-2].mean(axis=1)
    scatter = above.std(ddof=1) / sqrt(len(above)) if len(above) > 1 else 0.0
    level_until_last = at >= x[-3] and above.mean() <= student(level, len(above)) * scatter
    return "between the last two steps" if at >= x[-2] - 1e-9 or level_until_last else "inside"
