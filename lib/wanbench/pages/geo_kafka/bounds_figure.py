"""Measured throughput against the lowest bound, coloured by the name of that bound."""

from __future__ import annotations

import plotly.graph_objects as go

from wanbench.figures import primitives, theme
from wanbench.formatting import count

from .bounds import NAMES, Bounds

SYMBOLS = ("square", "circle", "diamond", "triangle-up")


def bounds(result: Bounds, *, note: str = "") -> go.Figure:
    """A point per trial on log axes; on the line a trial reaches its lowest bound."""
    trials, figure = result.trials, go.Figure()
    ends = [trials.measured.min(), trials.allowed.max()]
    line = {"mode": "lines", "line": primitives.REFERENCE, "hoverinfo": "skip"}
    figure.add_scatter(x=ends, y=ends, name="measured = allowed", **line)
    for name, shade, symbol in zip(NAMES, theme.SERIES_COLOURS, SYMBOLS, strict=False):
        part = trials[trials.limit == name]
        if len(part):
            figure.add_scatter(
                x=part.allowed,
                y=part.measured,
                mode="markers",
                name=f"{name} ({count(len(part), 'trial')})",
                marker={"size": 9, "color": shade, "symbol": symbol, "opacity": 0.8},
                text=[theme.plain(name) for name in part.setting],
                hovertemplate="%{text}<br>allowed %{x:.3s}bit/s, measured %{y:.3s}bit/s<extra></extra>",
            )
    figure.update_xaxes(
        title="payload that the lowest bound allows (log axis)", **theme.log_axis(trials.allowed, "bit/s")
    )
    figure.update_yaxes(title="payload measured (log axis)", **theme.log_axis([*trials.measured, *ends], "bit/s"))
    return theme.finish(
        figure,
        name="bounds",
        title="What bounds throughput",
        subtitle="One point per trial, by its lowest bound. Link, window and replication follow from "
        "settings; the machine's bound follows from processor utilisation, so the distance of "
        "its points from the line shows only that.",
        alt=f"Measured against allowed throughput. {result}",
        caption=str(result),
        table=trials[["setting", "test_id", *NAMES, "allowed", "limit", "measured"]],
        note=note,
    )
