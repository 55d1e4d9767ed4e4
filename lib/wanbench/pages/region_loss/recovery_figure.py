"""Outages per setting: each episode, and the median with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import plotly.graph_objects as go

from wanbench.figures import primitives, theme
from wanbench.methods.result.means import Median

from .recovery import Recovery

SHOWN = ("writes", "writes_partition", "reads_partition")
"""Quantities drawn: the whole service, and the worst partition to write and to read. The others are in the table."""


def recovery(result: Recovery, *, note: str = "") -> go.Figure:
    """One row per setting; per quantity a colour, small points for episodes and a large one for their median."""
    figure, settings, rows = go.Figure(), result.settings, result.rows
    for k, name in enumerate(SHOWN):
        shade, offset = theme.SERIES_COLOURS[k], 0.24 * (k - 1)
        censored = rows[f"{name}_censored"].astype("boolean").fillna(False)
        figure.add_scatter(
            x=rows[name],
            y=rows.setting.map(settings.index) + offset + theme.spread(len(rows), 0.1),
            mode="markers",
            showlegend=False,
            marker={
                "size": 6,
                "color": shade,
                "opacity": 0.5,
                "symbol": ["triangle-right" if each else "circle" for each in censored],
            },
            hovertemplate="one episode: %{x:.2f} s<extra></extra>",
        )
        there = {setting: estimate for setting in settings if (estimate := result.of(setting, name)).n}
        primitives.estimate_points(
            figure,
            [settings.index(setting) + offset for setting in there],
            list(there.values()),
            marker={"size": 11, "color": shade, "symbol": ("circle", "square", "diamond")[k]},
            name=result.QUANTITIES[name],
        )
        at = [settings.index(setting) + offset for setting in there]
        open_ends(figure, at, list(there.values()), 1.04 * rows[list(SHOWN)].max(axis=None), shade)
    primitives.label_rows(figure, [theme.plain(name) for name in settings])
    figure.update_xaxes(title="outage (s)", rangemode="tozero")
    figure.update_layout(
        margin={"b": 110},
        height=240 + 64 * len(settings),
        legend={"orientation": "h", "y": 0, "yref": "container", "yanchor": "bottom"},
    )
    return theme.finish(
        figure,
        name="outages",
        title="How long nothing was answered",
        subtitle="Small: one episode (a triangle: at least this long). Large: median; bars: its interval, with fewer "
        "than six episodes from the smallest to the largest; dotted: without an upper end.",
        alt=f"Outages per setting. {result}",
        caption=str(result),
        table=rows,
        note=note,
    )


def open_ends(figure: go.Figure, at: Sequence[float], medians: Sequence[Median], edge: float, shade: str) -> None:
    """For intervals that are open above, a dotted line from the median to an arrow at `edge`."""
    for y, median in zip(at, medians, strict=True):
        if median.high == inf:
            figure.add_scatter(
                x=[median.estimate, edge],
                y=[y, y],
                mode="lines+markers",
                line={"color": shade, "dash": "dot", "width": 2},
                marker={"symbol": "triangle-right", "size": [0, 10], "opacity": 1, "line": {"width": 0}},
                showlegend=False,
                hoverinfo="skip",
            )
