"""Report a factorial experiment, and whether it shows that latency matters more than bandwidth (the thesis)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product
from math import ceil, log2

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from wanbench.errors import ParameterError
from wanbench.figures import theme
from wanbench.figures.primitives import estimate_points, interval_points, reference_line
from wanbench.findings import Finding
from wanbench.formatting import count, number, percent
from wanbench.methods.factorial.terms import UNITS, level_label, word
from wanbench.methods.result import Estimate, Fields, Result

from .gain_map import METHOD, VERDICTS

MAX_PANELS = 8  # More panels than this would be too small to read.
PANEL_COLUMNS = 2
COLOURS = [[0.0, theme.OUTSIDE], [0.5, "#FFFFFF"], [1.0, theme.WITHIN]]
MIN_LOG2_GAIN = 0.25  # The colour scale reaches at least this far, so that small differences do not look large.
ROW_PX = 300
WITHIN, UNKNOWN, OUTSIDE = theme.WITHIN, theme.UNKNOWN, theme.OUTSIDE
STYLES = {"holds": (WITHIN, "circle"), "undecided": (UNKNOWN, "diamond"), "fails": (OUTSIDE, "square")}
HEADROOM_PX = 24  # Room for one line of panel titles.
MAX_TICKS = 8
# Path factors that are always best small: maps show their lowest level, shares average over them.
PATH = ("jitter_ms", "loss")


@dataclass(frozen=True, repr=False)
class Factorial(Result):
    """
    A fitted factorial experiment, and its verdict on the thesis that latency matters more than bandwidth.

    elasticities: By factor: the elasticity of the response, averaged over the levels of all factors.
    interactions: By tuple of factors: how the elasticity to one factor changes per e-fold of the other or, if the other
        is a contrast, between its two levels.
    doublings: By factor: the ratio by which the response changes if this factor doubles, averaged in the same way.
    effects: By contrast: the ratio of the response at its high level to the response at its low level.
    thesis: The gain from halving `delay` over the gain from doubling `rate`, averaged in the same way (above 1: delay
        matters more). A gain is the factor by which the response grows.
    combinations: One row per measured combination of levels: the factors, `gain` (the gain from halving the delay over
        that from doubling the rate) with `low` and `high`, and `verdict`: "holds", "fails" or "undecided". The
        intervals are simultaneous over all combinations and all of `grid`.
    grid: The same columns on a grid of delay and rate, at each combination of the other factors' levels.
    lack_of_fit_p: p-value of the lack of fit, tested against replicates or, without replicates, against curvature; NaN
        if there are too few runs for a test.
    runs: One row per run: the factors, `response`, `block`.
    """

    elasticities: dict[str, Estimate]
    interactions: dict[tuple[str, ...], Estimate]
    doublings: dict[str, Estimate]
    effects: dict[str, Estimate]
    thesis: Estimate | None
    combinations: pd.DataFrame
    grid: pd.DataFrame
    response: str
    delay: str
    rate: str
    lack_of_fit_p: float
    runs: pd.DataFrame

    TITLE = "Logarithm of the response on the factors"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        groups = (self.doublings, self.effects, self.elasticities, self.interactions)
        estimates = tuple(estimate for group in groups for estimate in group.values())
        return estimates if self.thesis is None else (self.thesis, *estimates)

    @property
    def factors(self) -> list[str]:
        """All factors, in the order of the design."""
        return [name for name in self.runs.columns if name in self.doublings or name in self.effects]

    @property
    def others(self) -> list[str]:
        """All factors except delay and rate."""
        return [name for name in self.factors if name not in (self.delay, self.rate)]

    @property
    def sentence(self) -> str:
        effects = [estimate.sentence for estimate in (*self.doublings.values(), *self.effects.values())]
        return " ".join([*effects, self.verdict(), self.shares_sentence()]).strip()

    @property
    def cautions(self) -> tuple[str, ...]:
        two = [name for name in (self.delay, self.rate) if name in self.runs and self.runs[name].nunique() == 2]
        if self.thesis is None or not two:
            return super().cautions
        levels = f"two levels of {' and of '.join(map(word, two))} cannot show curvature"
        return (
            *super().cautions,
            f"{levels}: if the bottleneck changes between them, a gain is an average that may hold at neither level",
        )

    def map(self) -> go.Figure:
        """
        Draw the gain from halving the delay over the gain from doubling the rate, against delay and rate.

        There is one panel per combination of the other factors' levels; jitter_ms and loss are at their lowest level.
        """
        return _gain_map(self)

    def verdict(self) -> str:
        """Say in how many combinations of levels the thesis holds and fails; "" if it was not tested."""
        if self.thesis is None:
            return ""
        counts = self.combinations.verdict.value_counts()
        holds, fails, undecided = (int(counts.get(name, 0)) for name in VERDICTS)
        total = count(len(self.combinations), "combination")
        more = f"alving the {word(self.delay)} gains more than doubling the {word(self.rate)}"
        together = f"(gains in {word(self.response)}; {percent(self.thesis.level)} intervals, simultaneous)"
        if not holds and not fails:
            return f"Whether h{more} is undecided in all {total} of levels {together}."
        return f"H{more} in {holds} of {total} of levels and less in {fails}; {undecided} are undecided {together}."

    def shares_sentence(self) -> str:
        """Say in which shares of the factor space the thesis holds and fails; "" if it was not tested."""
        if self.thesis is None:
            return ""
        holds, fails, undecided = (_percent((self.grid.verdict == name).mean()) for name in VERDICTS)
        gains = f"halving the {word(self.delay)} gains more in {holds} and less in {fails}; {undecided} is undecided."
        return f"Over the space between the levels, {gains}"

    def finding(self, name: str, page: str = "") -> Finding:
        """Return the finding on the thesis; its number is the share of the factor space where the thesis holds."""
        sentence = " ".join([self.verdict(), self.shares_sentence()]).strip()
        share: Fields = {"estimate": float((self.grid.verdict == "holds").mean()), "low": None, "high": None}
        about: Fields = {"sentence": sentence, "unit": "fraction", "n": len(self.runs), "method": METHOD}
        return replace(super().finding(name, page), **about, **share)

    def figure(self) -> go.Figure:
        has_thesis = len(self.combinations) > 0
        titles = ["factor doubled, or high over low"]
        titles += ["halved delay over doubled rate"] * has_thesis
        figure = make_subplots(rows=1, cols=len(titles), horizontal_spacing=0.12, subplot_titles=titles)
        estimates = [*self.doublings.values(), *self.effects.values()]
        labels = [f"2 × {word(name)}" for name in self.doublings] + [one.quantity for one in self.effects.values()]
        top = max(range(len(estimates)), key=lambda k: abs(log2(estimates[k].estimate)))
        rows = list(range(len(estimates)))
        where: theme.Settings = {"row": 1, "col": 1}
        style: theme.Settings = {"marker": {"size": 11, "color": theme.FIT}, "bar": {"width": 5}, "showlegend": False}
        estimate_points(figure, rows, estimates, **style, **where)
        ticks = {"tickvals": rows, "ticktext": [theme.plain(label) for label in labels]}
        figure.update_yaxes(**ticks, autorange="reversed", **where)
        axis = _ratio_axis([end for one in estimates for end in (one.low, one.high)])
        figure.update_xaxes(title=f"multiplies {theme.plain(word(self.response))} by (log axis)", **axis, **where)
        level = percent(estimates[0].level)
        right = (
            f" Right: one point per combination of levels; bars: simultaneous {level} intervals; above 1, halving the "
            "delay gains more than doubling the rate."
            if has_thesis
            else ""
        )
        if has_thesis:
            _add_thesis(figure, self)
        reference_line(figure, x=1)
        return theme.finish(
            figure,
            name="factorial-elasticities",
            title=theme.headline(
                f"{labels[top]}: {estimates[top].formatted} times {word(self.response)}",
                f"What moves {word(self.response)}",
            ),
            subtitle=f"Left: average effect between the levels; bars: {level} intervals, with runs as the "
            f"units.{right} Dashed: no difference.",
            alt=f"Factors of a fitted factorial experiment. {self.sentence}",
            caption=f"Factorial experiment of {estimates[0].basis}. {self.verdict()}".strip(),
            table=self.combinations.sort_values("gain") if has_thesis else self.table(),
            headroom_px=HEADROOM_PX,
        )


def _levels(levels: Iterable[tuple[str, object]]) -> str:
    """Format (factor, level) pairs as text."""
    return ", ".join(f"{word(name)} {level_label(name, level)}" for name, level in levels)


def _percent(share: float) -> str:
    return f"{number(100 * share, 0)} %"


def _add_thesis(figure: go.Figure, fit: Factorial) -> None:
    points, right = fit.combinations.sort_values("gain", ignore_index=True), {"row": 1, "col": 2}
    for verdict, (colour, symbol) in STYLES.items():
        part = points[points.verdict == verdict]
        if part.empty:
            continue
        text = [
            "<br>".join(theme.plain(f"{word(name)} {level_label(name, level)}") for name, level in row.items())
            for row in part[fit.factors].to_dict("records")
        ]
        style = {"marker": {"size": 8, "color": colour, "symbol": symbol}, "bar": {"width": 5}, "text": text}
        style |= {"hovertemplate": "%{text}<br>%{x:.3g} times<extra></extra>"} | right
        name = f"{verdict} ({count(len(part), 'combination')})"
        interval_points(figure, part.index, part.gain, part.low, part.high, name=name, **style)
    figure.update_yaxes(showticklabels=False, title="combinations of levels, sorted", zeroline=False, **right)
    axis = _ratio_axis([*points.low, *points.high])
    figure.update_xaxes(title="times (log axis)", **axis, **right)


def _ratio_axis(values: Iterable[float]) -> theme.Settings:
    """Return a logarithmic axis for ratios that includes 1, with ticks at powers of 2."""
    logs = [0.0, *(log2(value) for value in values if np.isfinite(value) and value > 0)]
    low, high = int(np.floor(min(logs))), int(np.ceil(max(logs)))
    ticks = [2.0**power for power in range(low, high + 1, max(1, (high - low) // MAX_TICKS))]
    ends = np.log10([min(2.0 ** min(logs), 0.9) / 1.05, max(2.0 ** max(logs), 1.1) * 1.05]).tolist()
    return {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:.3g}" for tick in ticks], "range": ends}


def _gain_map(fit: Factorial) -> go.Figure:
    """
    Draw the gain against delay and rate, one panel per combination of the other factors' levels.
    """
    if fit.thesis is None:
        raise ParameterError(f"{fit.delay} and {fit.rate} are not both factors with a logarithm; no map")
    grid, fixed = fit.grid, {name: fit.grid[name].min() for name in fit.others if name in PATH}
    for name, level in fixed.items():
        grid = grid[grid[name] == level]
    free = [name for name in fit.others if name not in fixed]
    panels = list(product(*(sorted(grid[name].unique()) for name in free)))
    if len(panels) > MAX_PANELS:
        raise ParameterError(f"the map would have {len(panels)} panels; allowed: at most {MAX_PANELS}")
    columns = min(PANEL_COLUMNS, len(panels))
    rows = ceil(len(panels) / columns)
    titles = [theme.plain(_levels(zip(free, panel, strict=True))) for panel in panels]
    spacing = {"horizontal_spacing": 0.06, "vertical_spacing": 0.12 if rows > 1 else 0.0}
    shared = {"shared_xaxes": True, "shared_yaxes": True}
    figure = make_subplots(rows=rows, cols=columns, subplot_titles=titles, **shared, **spacing)
    reach = max(float(np.abs(np.log2(grid.gain)).max()), MIN_LOG2_GAIN)
    for k, panel in enumerate(panels):
        part = grid[(grid[free] == list(panel)).all(axis=1)]
        _add_panel(figure, fit, part, reach, bar=k == 0, row=1 + k // columns, col=1 + k % columns)
    figure.update_xaxes(**theme.log_axis(grid[fit.delay], UNITS.get(fit.delay, ""), 6))
    figure.update_xaxes(title=theme.plain(f"{word(fit.delay)} (log axis)"), row=rows)
    figure.update_yaxes(**theme.log_axis(grid[fit.rate], UNITS.get(fit.rate, ""), 6))
    figure.update_yaxes(title=theme.plain(f"{word(fit.rate)} (log axis)"), col=1)
    figure.update_layout(height=160 + ROW_PX * rows)
    shown, n = _levels(fixed.items()), len(fit.grid)
    more, less, open_ = (_percent((fit.grid.verdict == name).sum() / n) for name in VERDICTS)
    return theme.finish(
        figure,
        name="thesis-map",
        title=f"Halving the {word(fit.delay)} gains more in {more}, less in {less}, undecided in {open_}",
        subtitle="Blue, above 1: halving the delay gains more; orange, below 1: doubling the rate gains more. "
        f"Crosses: undecided at {percent(fit.thesis.level)}, simultaneous over the whole space."
        f"{f' At {shown}.' if shown else ''}",
        alt=f"Map of gains over delay and rate. {fit.verdict()} {fit.shares_sentence()}",
        caption=fit.shares_sentence(),
        table=grid,
        headroom_px=HEADROOM_PX,
    )


def _add_panel(figure: go.Figure, fit: Factorial, part: pd.DataFrame, reach: float, *, bar: bool, **cell: int) -> None:
    gain, low, high = (part.pivot(index=fit.rate, columns=fit.delay, values=name) for name in ("gain", "low", "high"))
    powers = list(range(-ceil(reach), ceil(reach) + 1))
    ticks = {"title": "times", "tickvals": powers, "ticktext": [f"{2.0**power:.3g}" for power in powers]}
    scale = {"zmin": -reach, "zmax": reach, "colorscale": COLOURS, "showscale": bar, "colorbar": ticks}
    times = "%{customdata[0]:.3g} times (%{customdata[1]:.3g} to %{customdata[2]:.3g})"
    hover = {
        "customdata": np.dstack([gain, low, high]),
        "hovertemplate": f"%{{x:.4g}}, %{{y:.4g}}: {times}<extra></extra>",
    }
    figure.add_heatmap(x=gain.columns, y=gain.index, z=np.log2(gain.to_numpy()), **scale, **hover, **cell)
    undecided = part[part.verdict == "undecided"]
    cross = {"symbol": "x-thin", "size": 8, "line": {"width": 1.2, "color": theme.MUTED}}
    style = {"mode": "markers", "marker": cross, "hoverinfo": "skip", "name": "undecided", "showlegend": False}
    figure.add_scatter(x=undecided[fit.delay], y=undecided[fit.rate], **style, **cell)
