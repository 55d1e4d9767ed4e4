"""Outages per setting: each episode, and the median with its interval."""

from __future__ import annotations

import plotly.graph_objects as go

from ...figures import primitives, theme
from .recovery import Recovery

SHOWN = ("writes", "writes_partition", "reads_partition")
"""Whole service, and the worst partition to write and to read: the others are in the table."""


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
        "than six episodes from the smallest to the largest.",
        alt=f"Outages per setting. {result}",
        caption=str(result),
        table=rows,
        note=note,
    )
