"""A panel per metric, a line per trial, a colour per setting, like the source's charts."""

from __future__ import annotations

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from wanbench.figures import theme

from .over_time import KEY, PANELS, OverTime

COLUMNS = 3
PANEL_PX = 190


def over_time(result: OverTime, *, note: str = "") -> go.Figure:
    """Small multiples of all metrics that were measured."""
    rows = result.rows
    panels = [name for name in PANELS if (rows.quantity == name).any()]
    lines = -(-len(panels) // COLUMNS)
    titles = [f"{name} ({PANELS[name]})" for name in panels]
    figure = make_subplots(rows=lines, cols=COLUMNS, subplot_titles=titles, vertical_spacing=0.35 / max(lines, 1))
    settings = list(dict.fromkeys(rows.setting))
    shades = {name: theme.SERIES_COLOURS[k % len(theme.SERIES_COLOURS)] for k, name in enumerate(settings)}
    named = set()
    for k, panel in enumerate(panels):
        for (setting, *_), part in rows[rows.quantity == panel].groupby(["setting", *KEY], sort=False):
            part = part.sort_values("at_s")
            figure.add_scatter(
                x=part.at_s,
                y=part.value,
                mode="lines+markers",
                marker={"size": 4},
                line={"color": shades[setting], "width": 1.5},
                name=theme.plain(setting),
                legendgroup=setting,
                showlegend=setting not in named,
                hovertemplate="%{x:.0f} s: %{y:,.4g}<extra></extra>",
                row=k // COLUMNS + 1,
                col=k % COLUMNS + 1,
            )
            named.add(setting)
    figure.update_yaxes(rangemode="tozero")
    figure.update_layout(height=max(lines, 1) * PANEL_PX + 150)
    return theme.finish(
        figure,
        name="metrics-over-time",
        title="Every metric over time",
        subtitle=f"A line per trial, in steps of {result.step_s:g} s; seconds from the end of the warm-up. Processors "
        "and disks are the machine's, which clients share; messages and requests are summed over brokers; latency is "
        "that of producers.",
        alt=f"Small charts of metrics over time. {result}",
        caption=str(result),
        table=rows,
        note=note,
        headroom_px=theme.PANEL_TITLES_PX,
    )
