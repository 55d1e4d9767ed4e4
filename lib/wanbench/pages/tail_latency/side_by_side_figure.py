"""A percentile of two systems against rate or partitions."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from wanbench.figures import primitives, theme
from wanbench.formatting import count, number, percent
from wanbench.methods.tails import quantile_intervals as order

from .side_by_side import SideBySide
from .trials import RATE

SYMBOLS = ("circle", "square")
DASHES = ("solid", "dash")


def side_by_side(result: SideBySide, *, note: str = "") -> go.Figure:
    """Each system's percentile with its interval at each step; small: single trials; hollow: it did not keep up."""
    figure, ends, along_rate = go.Figure(), [], result.along == RATE
    for k, name in enumerate(result.names):
        shade, symbol = theme.SERIES_COLOURS[k], SYMBOLS[k]
        own = result.points[result.points.system == name]
        # beside the mark of their step, those of the first system to the right
        aside = 0.02 * (own.groupby("step").cumcount() + 1) * (-1) ** k
        figure.add_scatter(
            x=own.step * (1 + aside) if not along_rate else own.step + aside * max(result.points.step) / 2,
            y=own.latency_ms,
            mode="markers",
            marker={"size": 6, "color": shade, "opacity": 0.4, "symbol": symbol},
            showlegend=False,
            legendgroup=name,
            hovertemplate=f"one trial of {theme.plain(name)}: %{{y:.3g}} ms<extra></extra>",
        )
        estimates = [(step.a, step.b)[k] for step in result.steps]
        at = [step.step for step in result.steps]
        line = {"color": shade, "width": 1.5, "dash": DASHES[k]}
        figure.add_scatter(
            x=at, y=[one.estimate for one in estimates], mode="lines", line=line, hoverinfo="skip",
            showlegend=False, legendgroup=name,
        )  # fmt: skip
        symbols = [symbol if step.kept_up[k] else f"{symbol}-open" for step in result.steps]
        primitives.estimate_points(
            figure,
            at,
            estimates,
            marker={"size": 11, "color": shade, "symbol": symbols, "line": {"width": 2, "color": shade}},
            vertical=True,
            name=theme.plain(name),
            legendgroup=name,
        )
        ends += [*own.latency_ms, *(end for one in estimates for end in (one.estimate, one.low, one.high))]
    known = np.asarray(ends, dtype=float)
    figure.update_yaxes(**theme.log_axis(known[np.isfinite(known) & (known > 0)], "ms"))
    p = order.name(result.q)
    figure.update_yaxes(title=f"{p} end to end (ms, log axis)")
    title = "records/s asked for, all producers together" if along_rate else "partitions of all topics"
    figure.update_xaxes(title=title, tickvals=[step.step for step in result.steps])
    if not along_rate:
        ticks = [step.step for step in result.steps]
        figure.update_xaxes(type="log", ticktext=[number(tick) for tick in ticks])
    figure.update_layout(legend=theme.LEGEND_ON_TOP)
    level = percent(result.steps[0].a.level)
    return theme.finish(
        figure,
        name=f"{p.replace('.', '-')}-by-{'rate' if along_rate else 'partitions'}",
        title=f"{result.name}, two systems",
        subtitle=f"Small: single trials. Large: all records of a step, {level} interval. Hollow: it did not keep up. "
        "Not drawn: beyond the time waited.",
        alt=f"{result.name}, {count(len(result.steps), 'step')}. {result.sentence}",
        caption=str(result),
        table=result.table(),
        note=note,
    )
