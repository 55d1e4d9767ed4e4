"""
Find the rate at which the latency of each system begins to rise (its knee), and compare it with the rate links allow.

On logarithmic axes, a line that is horizontal up to the knee and rises beyond is fitted by least squares to the mean of
trials' quantiles at each step (segmented regression: Hudson 1966; Muggeo 2003). The knee's interval by the jackknife is
right only if the rising part is straight. So it is widened: to the last step below the knee, and to the first step
above at which latency is twice the horizontal level. In simulation (data/validity/knees.csv) the interval for the knee
of a second run contains this knee in 96 to 100 of 100 cases. Two alternatives are not used: Kneedle (Satopaa et al.
2011) depends on the first and last step, and the law of a queue, a + b x / (c - x), is undefined beyond saturation,
where some steps are measured on purpose.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from math import exp, inf, isfinite, log, nan, sqrt

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from wanbench.errors import MissingDataError, ParameterError
from wanbench.figures import primitives, theme
from wanbench.formatting import count, number, quantity
from wanbench.methods.result import Estimate, Fields, Result
from wanbench.methods.tails import quantile_intervals as order

from .allowed import Allowed
from .quantiles import difference
from .side_by_side import DASHES, SYMBOLS
from .step_curves import LEVEL, MIN_STEPS, RATE, StepCurve, ends, step_curve, student
from .trials import SystemTrials

POINTS = 2_000
"""
Number of candidate knees that a fit tries: if the steps span a factor of 30, neighbouring candidates differ by less
than 0.2 %.
"""
RISE = 2.0
"""A knee needs at least this ratio of the last step to the first: a smaller ratio may be an even rise, or scatter."""
WITHOUT = {
    "unknown": f"it is known at fewer than {MIN_STEPS} steps",
    "none": "it is not level first and then at least twice as high",
    "before the first step": "it rises from the first step on",
}
"""Values of `Knee.where` that mean "no knee", each with the reason."""
METHOD = (
    "level line and rising line on logarithmic axes, least squares (Hudson 1966); t on the jackknife over blocks "
    "(Shao & Tu 1995), widened to the last step below the knee and the first at twice the level"
)
ASSUMPTION = "Blocks are independent and represent further blocks; the curve is level and then rises"


@dataclass(frozen=True)
class Knee:
    """
    The knee of one system's latency curve.

    knee: Its rate in records/s; NaN if there is none.
    second_run: The same, with the prediction interval for the knee of a second run with the same steps and as many
        blocks.
    where: "inside", "none", "before the first step", "between the last two steps" (also if the second last step does
        not differ from the steps before) or "unknown" (fewer than `MIN_STEPS` steps).
    curve: The fitted steps: those before the first at which a trial's quantile is unknown, because the record at it was
        lost.
    level_ms: The latency before the knee.
    """

    curve: StepCurve
    knee: Estimate
    second_run: Estimate
    where: str
    level_ms: float = nan

    @property
    def sentence(self) -> str:
        """Say where the knee is, or why there is none."""
        if self.where not in WITHOUT:
            return self.knee.sentence
        name, rates = order.name(self.curve.q), [f"{rate:,.0f}" for rate in self.curve.rates]
        if self.where == "unknown":
            known = f"{', '.join(rates) or 'none'} records/s"
            return f"{name} has no knee, because {name} is known only at {known}; a knee needs {MIN_STEPS} steps."
        if self.where == "before the first step":
            below = f"a knee would lie below {rates[0]} records/s (no interval; {self.knee.basis})"
            return f"{name} rises from the first step on, so {below}."
        rises, lowest = np.exp(self.curve.mean[-1] - self.curve.mean), int(self.curve.mean.argmin())
        over = f", and {number(rises[lowest], 1)} times the lowest {name}, which is at {rates[lowest]} records/s"
        return (
            f"{name} has no knee between {rates[0]} and {rates[-1]} records/s. At the last step {name} is "
            f"{rises[0]:.2g} "
            f"times that at the first step{over if 0 < lowest < len(rises) - 1 else ''}."
        )


def knee_of(curve: StepCurve) -> Knee:
    """Fit the knee of a curve to the steps before the first in `curve.lost`, where a trial's quantile is unknown."""
    name, r = order.name(curve.q), len(curve.blocks)
    if curve.lost:
        first = curve.lost[0]
        note = (
            f"steps from {number(first, 0)} records/s on are left out, because {name} of a trial falls on a lost record"
        )
        curve = replace(curve.below(first), notes=(*curve.notes, note))
    x, notes = np.log(curve.rates), curve.notes
    about: Fields = {"claim": f"{name} of latency begins to rise at {{}}", "unit": "records/s", "n": r, "level": LEVEL}
    about |= {"basis": f"{count(r, 'block')} of {count(len(x), 'step')}", "method": METHOD, "assumption": ASSUMPTION}
    where, second = _where(x, curve), "knee of a second run"
    if where in WITHOUT:
        about |= dict.fromkeys(("estimate", "low", "high"), nan)
        about["warnings"] = (f"{name} has no knee, because {WITHOUT[where]}", *notes)
        return Knee(curve, Estimate("knee", **about), Estimate(second, **about), where)
    value, error = curve.jackknife(lambda logs: broken_line(x, logs)[0])
    level, last, estimates = broken_line(x, curve.mean)[1], curve.rates[-2:].tolist(), []
    least, most = _steps_around(curve, value, level)
    if where == "between the last two steps":
        least, most = min(least, last[0]), last[1]
        notes += (
            f"only the last step lies clearly above the level, so the knee may be as high as {last[1]:,.0f} records/s, "
            f"and the estimate is near the lowest possible value; steps above {last[0]:,.0f} records/s would narrow it",
        )
    for what, factor in (("knee", 1.0), (second, sqrt(2.0))):
        low, high = ends(value, factor * student(LEVEL, r) * error)
        low, high = min(low, least), max(high, most)
        estimates.append(Estimate(what, estimate=exp(value), low=low, high=high, warnings=notes, **about))
    return Knee(curve, estimates[0], estimates[1], where, exp(level))


def _steps_around(curve: StepCurve, value: float, level: float) -> tuple[float, float]:
    """
    Return two rates between which the knee lies, whatever the shape of the rising part.

    They are the last step below the fitted knee (log rate `value`), and the first step above it at which latency is
    `RISE` times the horizontal level (log latency `level`).
    """
    x = np.log(curve.rates)
    below = curve.rates[x < value - 2 * (x[-1] - x[0]) / POINTS]
    risen = curve.rates[(x > value) & (curve.mean >= level + log(RISE))]
    return (float(below[-1]) if len(below) else float(curve.rates[0])), float([*risen, curve.rates[-1]][0])


def broken_line(x: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    """
    Fit by least squares a line that is horizontal up to a knee and rises beyond it.

    Returns the x of the knee, the y of the horizontal part and the slope beyond; all NaN if no such line rises.

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


def _where(x: np.ndarray, curve: StepCurve) -> str:
    """
    Return where the knee lies, as a value of `Knee.where`.

    If only the last step is above the horizontal line, any knee between the last two steps fits equally well, and
    scatter of the second last step can push the fitted knee below it. So the second last step counts as part of the
    horizontal line unless it exceeds the mean of the steps before by more than its scatter over blocks.
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
    level_until_last = at >= x[-3] and above.mean() <= student(LEVEL, len(above)) * scatter
    return "between the last two steps" if at >= x[-2] - 1e-9 or level_until_last else "inside"


@dataclass(frozen=True, repr=False)
class Knees(Result):
    """
    The knee, the latency curve over all steps, and the rate that links allow (`links`), of each system.

    Knees are fitted to the steps up to the first at which the system handled the requested rate in no trial.
    """

    knees: dict[str, Knee]
    curves: dict[str, StepCurve]
    links: dict[str, Estimate]

    TITLE = "The knee of each system"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return tuple(one.knee for one in self.knees.values()) + self.ratio

    @property
    def ratio(self) -> tuple[Estimate, ...]:
        """The ratio of the second system's knee to the first system's; () unless both have one."""
        (a, first), (b, second) = ((name, one.knee) for name, one in self.knees.items())
        if not (isfinite(first.estimate) and isfinite(second.estimate)):
            return ()
        value, low, high = map(exp, difference(*(np.log((e.estimate, e.low, e.high)) for e in (first, second))))
        claim = f"The rate at the knee of “{b}” is {{}} the rate at the knee of “{a}”"
        about: Fields = {"unit": "times", "n": min(first.n, second.n), "level": LEVEL, "basis": first.basis}
        about |= {"claim": claim, "method": f"ratio of both knees, intervals combined (Zou & Donner 2008); {METHOD}"}
        about["assumption"] = f"{ASSUMPTION}; both knees are estimated independently"
        return (Estimate(f"knee, {b} over {a}", estimate=value, low=low, high=high, **about),)

    @property
    def headline(self) -> str:
        at = [f"at {one.knee.formatted} with “{name}”" for name, one in self.knees.items() if one.where not in WITHOUT]
        return f"The tail of the latency begins to rise {' and '.join(at)}." if at else ""

    @property
    def sentence(self) -> str:
        links = {name: f" The links allow this system {one.formatted}." for name, one in self.links.items()}
        found = [f"System “{name}”: {one.sentence}{links.get(name, '')}" for name, one in self.knees.items()]
        found += [ratio.sentence for ratio in self.ratio]
        if self.ratio and {*self.knees} <= {*self.links}:
            (a, of_a), (b, of_b) = ((name, self.links[name].estimate) for name in self.knees)
            found.append(f"The links allow “{b}” {number(of_b / of_a, 2)} times the rate of “{a}”.")
        return " ".join(found)

    @property
    def cautions(self) -> tuple[str, ...]:
        return tuple(f"“{name}”: {text}" for name, one in self.knees.items() for text in one.knee.warnings)

    def formatted_table(self) -> pd.DataFrame:
        rows = []
        for name, one in self.knees.items():
            row = {"system": name, "knee": one.knee.formatted if isfinite(one.knee.estimate) else one.where}
            row[f"{one.knee.formatted_level} interval"] = one.knee.formatted_interval
            row["interval for a second run"] = one.second_run.formatted_interval
            row["latency before it"] = quantity(one.level_ms, "ms") if isfinite(one.level_ms) else ""
            rows.append(row | {"links allow": self.links[name].formatted if name in self.links else ""})
        return pd.DataFrame(rows)

    def figure(self) -> go.Figure:
        """Draw a typical trial's percentile against the rate, the knees, and the rates that links allow."""
        figure, tables = go.Figure(), []
        for k, (name, one) in enumerate(self.knees.items()):
            shade, table = theme.SERIES_COLOURS[k], self.curves[name].table()
            tables.append(table.assign(system=name))
            marker = {"size": 8, "color": shade, "symbol": SYMBOLS[k]}
            points = (table[RATE], table.latency_ms, table.low_ms, table.high_ms)
            primitives.interval_points(figure, *points, marker=marker, vertical=True, name=theme.plain(name))
            figure.data[-1].update(mode="lines+markers", line={"color": shade, "dash": DASHES[k], "width": 1.5})
            if np.isfinite(one.knee.estimate):
                marker = {"size": 15, "color": shade, "symbol": "diamond-open", "line": {"width": 3}}
                label = theme.plain(f"knee of {name}")
                primitives.estimate_points(figure, [one.level_ms], [one.knee], marker=marker, name=label)
            if name in self.links:
                more = {"annotation_text": theme.plain(f"links: {name}"), "annotation_font_size": 11}
                more["line"] = {"color": shade, "dash": "dot", "width": 2}
                primitives.reference_line(figure, x=self.links[name].estimate, **more)
        values = np.concatenate([table.latency_ms for table in tables])
        p = order.name(next(iter(self.knees.values())).curve.q)
        axis = theme.log_axis(values[np.isfinite(values)], "ms")
        figure.update_yaxes(title=f"{p} of a typical trial (ms, log axis)", **axis)
        figure.update_xaxes(title="requested records/s, all producers together", rangemode="tozero")
        figure.update_layout(legend={"orientation": "h", "y": -0.2})
        return theme.finish(
            figure,
            name="knees",
            title=theme.headline(self.sentence, "Where latency begins to rise"),
            subtitle="Diamond: the knee with its interval, drawn at the latency below the knee. Dotted: the rate at "
            "which a link is full.",
            alt=f"{p} against the rate for each system. {self.sentence}",
            caption=str(self),
            table=pd.concat(tables, ignore_index=True),
        )


def knees(trials: SystemTrials, links: Allowed | None = None, *, q: float = 0.99, **at: float) -> Knees:
    """
    Find the knee of each system's curve of the quantile `q`, with other settings fixed by `at` (such as partitions=9).

    Steps above the first at which a system handled the requested rate in no trial are left out, because there a queue
    grows and the quantile depends on how long a trial lasts. Steps from the first at which a trial's quantile is
    unknown, because the record at it was lost, are left out, too. With `links`, a knee gets a caution if processors
    were nearer to full than links at the upper end of its interval, where latency has risen. Raises MissingDataError:
    a system has too few steps or blocks.
    """
    fitted, curves = {}, {}
    for name in trials.systems:
        rows = trials.stepped(name, **at)
        try:
            curves[name] = step_curve(rows, q)
            found = knee_of(_until_full(curves[name], rows))
        except ParameterError as error:
            raise MissingDataError(f"no knee of {name}: {error}") from error
        notes = links.processors_fuller(name, found.knee.high) if links and isfinite(found.knee.high) else ()
        fitted[name] = replace(found, knee=replace(found.knee, warnings=(*found.knee.warnings, *notes)))
    return Knees(fitted, curves, {} if links is None else links.rates)


def highest_before_knees(trials: SystemTrials, **at: float) -> float:
    """
    Return the highest rate in records/s that every system handled in every trial and that lies below every known knee.

    Beyond a knee, a percentile depends on how long a queue has grown. Raises MissingDataError: there is no such rate.
    """
    known = [inf]
    with suppress(MissingDataError):
        known += [one.knee.estimate for one in knees(trials, None, **at).knees.values() if isfinite(one.knee.estimate)]
    return trials.highest_kept(min(known), **at)


def _until_full(curve: StepCurve, rows: pd.DataFrame) -> StepCurve:
    """Return the curve up to the first step at which the system kept up in no trial; `rows` are its trials."""
    kept_up = rows.groupby(RATE).kept_up.any()
    above = [rate for rate in curve.rates if not kept_up[kept_up.index < rate].all()]
    if not above or (curve.lost and curve.lost[0] <= above[0]):
        return curve  # steps with a lost quantile are left out in any case
    note = (
        f"steps from {number(above[0], 0)} records/s on are left out, because at a lower step the system never keeps up"
    )
    return replace(curve.below(above[0]), notes=(*curve.notes, note))
