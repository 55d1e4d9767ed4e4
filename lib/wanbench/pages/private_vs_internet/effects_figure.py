"""Effect of each factor on throughput, and combinations in which latency matters more than bandwidth."""

from __future__ import annotations

from math import log2

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from wanbench.figures import theme
from wanbench.figures.primitives import estimate_points, interval_points, reference_line
from wanbench.formatting import count, percent
from wanbench.methods.factorial.terms import level_label, word

from .result import Factorial

STYLES = {
    "holds": (theme.WITHIN, "circle"),
    "undecided": (theme.UNKNOWN, "diamond"),
    "fails": (theme.OUTSIDE, "square"),
}
HEADROOM_PX = 24
"""Room for one line of panel titles."""
MAX_TICKS = 8


def elasticities(fit: Factorial, *, note: str = "") -> go.Figure:
    """The ratio of throughput when each factor is doubled, and the thesis at each combination of levels."""
    has_thesis = len(fit.combinations) > 0
    titles = ["doubling a factor, or its high level over its low one"]
    if has_thesis:
        titles.append("halved delay over doubled rate, by combination")
    figure = make_subplots(rows=1, cols=len(titles), horizontal_spacing=0.12, subplot_titles=titles)
    estimates = [*fit.doublings.values(), *fit.effects.values()]
    labels = [*(f"2 × {word(name)}" for name in fit.doublings), *(effect.quantity for effect in fit.effects.values())]
    table = pd.DataFrame([estimate.row() for estimate in estimates])
    rows = list(range(len(estimates)))
    marker, where = {"size": 11, "color": theme.FIT}, {"row": 1, "col": 1}
    estimate_points(figure, rows, estimates, marker=marker, bar={"width": 5}, showlegend=False, **where)
    figure.update_yaxes(
        tickvals=rows, ticktext=[theme.plain(label) for label in labels], autorange="reversed", row=1, col=1
    )
    figure.update_xaxes(
        title=f"multiplies {theme.plain(word(fit.response))} by (log axis)",
        **_ratio_axis([*table.low, *table.high]),
        row=1,
        col=1,
    )
    level = percent(estimates[0].level)
    right = ""
    if has_thesis:
        _add_thesis(figure, fit)
        right = f" Right: one point per combination of levels; bars: {level} for all together."
    reference_line(figure, x=1)
    return theme.finish(
        figure,
        name="factorial-elasticities",
        title=f"What moves {word(fit.response)}",
        subtitle=f"Left: on average between the levels; bars: {level} intervals over runs.{right} "
        "Dashed: no difference.",
        alt=f"Factors of a fitted factorial experiment. {fit.sentence}",
        caption=f"Factorial experiment of {estimates[0].basis}. {fit.verdict()}".strip(),
        table=fit.combinations.sort_values("gain") if has_thesis else fit.table(),
        note=note,
        headroom_px=HEADROOM_PX,
    )


def _add_thesis(figure: go.Figure, fit: Factorial) -> None:
    points = fit.combinations.sort_values("gain", ignore_index=True)
    for verdict, (colour, symbol) in STYLES.items():
        part = points[points.verdict == verdict]
        if part.empty:
            continue
        interval_points(
            figure,
            part.index,
            part.gain,
            part.low,
            part.high,
            name=f"{verdict} ({count(len(part), 'combination')})",
            marker={"size": 8, "color": colour, "symbol": symbol},
            bar={"width": 5},
            text=[
                "<br>".join(theme.plain(f"{word(name)} {level_label(name, level)}") for name, level in row.items())
                for row in part[fit.factors].to_dict("records")
            ],
            hovertemplate="%{text}<br>%{x:.3g} times<extra></extra>",
            row=1,
            col=2,
        )
    figure.update_yaxes(showticklabels=False, title="combinations of levels, sorted", zeroline=False, row=1, col=2)
    axis = _ratio_axis([*points.low, *points.high])
    figure.update_xaxes(title="times (log axis); above 1 latency matters more", **axis, row=1, col=2)


def _ratio_axis(values) -> dict:
    """A logarithmic axis of ratios that holds 1, with ticks at powers of 2."""
    logs = [0.0, *(log2(value) for value in values if np.isfinite(value) and value > 0)]
    low, high = int(np.floor(min(logs))), int(np.ceil(max(logs)))
    ticks = [2.0**power for power in range(low, high + 1, max(1, (high - low) // MAX_TICKS))]
    ends = np.log10([min(2.0 ** min(logs), 0.9) / 1.05, max(2.0 ** max(logs), 1.1) * 1.05]).tolist()
    return {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:.3g}" for tick in ticks], "range": ends}
