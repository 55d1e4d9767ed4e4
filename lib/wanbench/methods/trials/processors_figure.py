"""The share of their limit that trials reached, against how busy the processors were."""

from __future__ import annotations

import plotly.graph_objects as go

from wanbench.figures import primitives, theme
from wanbench.formatting import count

from .processors import ProcessorEffect


def processor_effect(result: ProcessorEffect, *, note: str = "") -> go.Figure:
    """A point per trial; dashed: the limit."""
    figure = go.Figure()
    marks = theme.arm_marks(result.trials.setting)
    for name, part in result.trials.groupby("setting", sort=False):
        shade, symbol = marks[str(name)]
        figure.add_scatter(
            x=part.busy_percent,
            y=part.reached,
            mode="markers",
            name=f"{theme.plain(name)} ({count(len(part), 'trial')})",
            marker={"size": 10, "color": shade, "symbol": symbol, "opacity": 0.8},
            hovertemplate="processors %{x:.0f} % busy<br>reached %{y:.3g}<extra></extra>",
        )
    primitives.reference_line(figure, y=1)
    figure.update_xaxes(title="processor utilisation in the counted seconds (%)")
    figure.update_yaxes(title="measured rate over limit", rangemode="tozero")
    return theme.finish(
        figure,
        name="processor-effect",
        title="Did busy processors slow trials down?",
        subtitle="One point per trial: the share of its lowest limit that it reached. Dashed: the limit.",
        alt=f"Share of their limit that trials reached, against processor utilisation. {result}",
        caption=str(result),
        table=result.trials,
        note=note,
    )
