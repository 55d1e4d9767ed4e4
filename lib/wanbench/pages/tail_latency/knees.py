"""
The knee of latency against rate of each system, next to the rate that its links allow.

On logarithmic axes a line that is level up to the knee, and rises beyond it, is fitted to the typical trial's quantile
at each step by least squares (segmented regression: Hudson 1966; Muggeo 2003). Kneedle (Satopaa et al. 2011), the point
farthest from the chord of the curve, is given for comparison: it depends on the first and last step. In simulation
(data/validity/knees.csv) the knee of a second run at the same steps falls into Kneedle's interval in 85 to 96 of 100
cases, and into the broken line's, up to three times narrower, in 90 to 95. A queue's law, a + b x / (c - x), gives the
rate of saturation, but is undefined beyond it, where studies measure on purpose.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, isfinite, log, nan, sqrt

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from scipy.interpolate import PchipInterpolator

from wanbench.checks import check_level
from wanbench.errors import MissingDataError, ParameterError
from wanbench.figures import primitives, theme
from wanbench.formatting import count, number, quantity
from wanbench.methods.result import Estimate, Result
from wanbench.methods.tails import quantile_intervals as order

from .allowed import Allowed
from .side_by_side import DASHES, SYMBOLS
from .step_curves import MIN_STEPS, StepCurve, ends, rising, step_curve, student
from .trials import RATE, SystemTrials

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


@dataclass(frozen=True, repr=False)
class Knees(Result):
    """
    The knee of each system.

    Attributes
    ----------
    knees : dict of str to Knee
        By system, from `stats.tails.knee`: up to the first step at which the system never kept up.
    curves : dict of str to StepCurve
        By system, all steps.
    links : dict of str to Estimate
        The rate that the links allow each system, if links were sampled.
    """

    knees: dict[str, Knee]
    curves: dict[str, StepCurve]
    links: dict[str, Estimate]

    TITLE = "The knee of each system"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """The knee of each system."""
        return tuple(one.knee for one in self.knees.values())

    @property
    def sentence(self) -> str:
        """The knee of each system, and the rate that its links allow; the table has more."""
        parts = []
        for name, one in self.knees.items():
            links = f" The links allow it {self.links[name].formatted}." if name in self.links else ""
            rises = one.knee.sentence if isfinite(one.knee.estimate) else one.sentence
            parts.append(f"{name}: {rises}{links}")
        return " ".join(parts)

    @property
    def cautions(self) -> tuple[str, ...]:
        """The cautions of each knee, with the system's name."""
        return tuple(f"{name}: {text}" for name, one in self.knees.items() for text in one.knee.warnings)

    def formatted_table(self) -> pd.DataFrame:
        """One row per system."""
        rows = []
        for name, one in self.knees.items():
            row = {
                "system": name,
                "knee": one.knee.formatted if isfinite(one.knee.estimate) else one.where,
                f"{one.knee.formatted_level} interval": one.knee.formatted_interval,
                "a second run's": one.second_run.formatted_interval,
                "by Kneedle": quantity(one.kneedle, "records/s") if isfinite(one.kneedle) else "",
                "level before it": quantity(one.level_ms, "ms") if isfinite(one.level_ms) else "",
            }
            links = self.links.get(name)
            row["links allow"] = "" if links is None else links.formatted
            rows.append(row)
        return pd.DataFrame(rows)

    def figure(self, *, note: str = "") -> go.Figure:
        """A typical trial's percentile against the rate; diamonds: knees with their intervals; dashed: what links allow."""
        figure, tables = go.Figure(), []
        for k, (name, one) in enumerate(self.knees.items()):
            shade, table = theme.SERIES_COLOURS[k], self.curves[name].table(one.knee.level)
            tables.append(table.assign(system=name))
            primitives.interval_points(
                figure,
                table[RATE],
                table.latency_ms,
                table.low_ms,
                table.high_ms,
                marker={"size": 8, "color": shade, "symbol": SYMBOLS[k]},
                vertical=True,
                name=theme.plain(name),
            )
            figure.data[-1].update(mode="lines+markers", line={"color": shade, "dash": DASHES[k], "width": 1.5})
            if np.isfinite(one.knee.estimate):
                primitives.estimate_points(
                    figure,
                    [one.level_ms],
                    [one.knee],
                    marker={"size": 15, "color": shade, "symbol": "diamond-open", "line": {"width": 3}},
                    name=theme.plain(f"knee of {name}"),
                )
            if name in self.links:
                label = {"annotation_text": theme.plain(f"links: {name}"), "annotation_font_size": 11}
                line = {"color": shade, "dash": "dot", "width": 2}
                primitives.reference_line(figure, x=self.links[name].estimate, line=line, **label)
        values = np.concatenate([table.latency_ms for table in tables])
        figure.update_yaxes(**theme.log_axis(values[np.isfinite(values)], "ms"))
        p = order.name(next(iter(self.knees.values())).curve.q)
        figure.update_yaxes(title=f"{p} of a typical trial (ms, log axis)")
        figure.update_xaxes(title="requested records/s, all producers together", rangemode="tozero")
        figure.update_layout(legend={"orientation": "h", "y": -0.2})
        return theme.finish(
            figure,
            name="knees",
            title="Where latency begins to rise",
            subtitle="Diamonds: the knee with its interval, at the level before it. Dotted: where a link is full.",
            alt=f"{p} against the rate for each system. {self.sentence}",
            caption=str(self),
            table=pd.concat(tables, ignore_index=True),
            note=note,
        )


def knees(trials: SystemTrials, links: Allowed | None = None, *, q: float = 0.99, level: float = 0.95, **at) -> Knees:
    """
    The knee of each system in its trials at stepped rates.

    Steps above the first at which a system never kept up are left out: there the quantile only shows how long a trial
    and its wait for answers are. Such a step bends the fitted line, and so moves the knee. So are steps from the first
    with a lost quantile on. If too few remain, the knee is not known.

    Parameters
    ----------
    links : Allowed, optional
        The rate that the links allow each system, for comparison; the knee does not depend on it.
    at
        Fixed values of other settings: partitions=...

    Raises
    ------
    MissingDataError
        If a system has too few steps or blocks.
    """
    found, curves = {}, {}
    for name in trials.systems:
        rows = trials.stepped(name, **at)
        try:
            curves[name] = step_curve(rows, q)
            found[name] = knee_of(_until_full(curves[name], rows), level=level)
        except ParameterError as error:
            raise MissingDataError(f"no knee of {name}: {error}") from error
    return Knees(found, curves, {} if links is None else links.rates)


def _until_full(curve: StepCurve, rows: pd.DataFrame) -> StepCurve:
    """The curve up to the first step at which the system never kept up."""
    kept_up = rows.groupby(RATE).kept_up.any()
    above = [rate for rate in curve.rates if not kept_up[kept_up.index < rate].all()]
    if not above or (curve.lost and curve.lost[0] <= above[0]):
        return curve  # steps with a lost quantile are left out in any case
    note = f"steps from {number(above[0], 0)} records/s on are left out: at a lower one the system never keeps up"
    return replace(curve.below(above[0]), notes=(*curve.notes, note))
