"""Latency against the rate, with its knee."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from wanbench.figures import primitives, theme
from wanbench.formatting import percent
from wanbench.methods.tails import quantile_intervals as order

from .knee_rate import Knee
from .step_curves import RATE


def knee(result: Knee, *, note: str = "") -> go.Figure:
    """The typical trial's quantile at each step, each block's curve, the fitted line, and the knee's intervals."""
    curve, name = result.curve, order.name(result.curve.q)
    table = curve.table(result.knee.level)
    figure = go.Figure()
    second = result.second_run
    if np.isfinite([second.low, second.high]).all():
        figure.add_vrect(x0=second.low, x1=second.high, fillcolor=primitives.BAND_COLOUR, line_width=0)
    for block, logs in zip(curve.blocks, curve.logs, strict=True):
        figure.add_scatter(
            x=curve.rates,
            y=np.exp(logs),
            mode="lines",
            line={"color": theme.LAND, "width": 1},
            hovertext=theme.plain(f"block {block}"),
            showlegend=False,
        )
    primitives.interval_points(
        figure,
        table[RATE],
        table.latency_ms,
        table.low_ms,
        table.high_ms,
        vertical=True,
        marker={"color": theme.WITHIN, "size": 8},
        name="typical trial",
    )
    if np.isfinite(result.knee.estimate):
        grid = np.geomspace(curve.rates[0], curve.rates[-1], 200)
        beyond = np.maximum(grid / result.knee.estimate, 1.0) ** result.exponent
        line = {"color": theme.OUTSIDE, "width": 2}
        figure.add_scatter(x=grid, y=result.level_ms * beyond, mode="lines", line=line, name="level, then rising")
        primitives.reference_line(figure, x=result.knee.estimate)
    figure.update_xaxes(title="rate (log axis)", **theme.log_axis(curve.rates, "records/s"))
    values = [*np.exp(curve.logs).ravel(), result.level_ms]
    figure.update_yaxes(title=f"{name} of latency (ms, log axis)", **theme.log_axis(values, "ms"))
    return theme.finish(
        figure,
        name="knee",
        title=f"The knee of {name}",
        subtitle=f"Geometric mean over trials with {percent(result.knee.level)} intervals; grey: each block. Dashed: "
        "the knee; shaded: the interval for that of a second run.",
        alt=f"{name} of latency against the rate. {result.sentence}",
        caption=result.sentence,
        table=table,
        note=note,
    )
