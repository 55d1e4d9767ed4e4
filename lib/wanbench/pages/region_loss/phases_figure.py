"""Phases of the outage, one bar per episode."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from wanbench.figures import primitives, theme

from .phases import Phases


def phases(result: Phases, *, note: str = "") -> go.Figure:
    """Stacked bars from the fault on, episodes below each other."""
    rows = result.rows.reset_index(drop=True)
    figure = go.Figure()
    for (phase, title), shade in zip(result.QUANTITIES.items(), theme.SERIES_COLOURS, strict=False):
        cut_short = rows.get(f"{phase}_censored", pd.Series(False, rows.index))
        figure.add_bar(
            x=rows[phase],
            y=rows.index,
            orientation="h",
            name=title,
            marker={"color": shade, "pattern": {"shape": ["/" if each else "" for each in cut_short]}},
            hovertemplate="%{x:.2f} s<extra></extra>",
        )
    labels = [
        theme.plain(name) if name != before else ""
        for name, before in zip(rows.setting, [None, *rows.setting], strict=False)
    ]
    primitives.label_rows(figure, labels)
    worst = rows.resolution_s.max()
    figure.update_xaxes(title="time since the fault (s)")
    figure.update_layout(
        barmode="stack",
        height=max(340, 170 + 26 * len(rows)),
        legend={"orientation": "h", "y": -0.25, "traceorder": "normal"},
        bargap=0.25,
    )
    return theme.finish(
        figure,
        name="phases",
        title="What the seconds consist of",
        subtitle="One bar per episode, to the end of the worst partition's outage; hatched: healing ended it. "
        + (
            f"Sampled times may be up to {worst:.2f} s late." if worst else "Times of changes are from the nodes' logs."
        ),
        alt=f"Phases of outages. {result}",
        caption=str(result),
        table=rows,
        note=note,
    )
