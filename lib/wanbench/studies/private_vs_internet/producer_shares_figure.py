"""The rates of single producers."""

from __future__ import annotations

import plotly.graph_objects as go

from ...figures import primitives, theme
from ...formatting import percent
from .producer_shares import ProducerShares


def producer_shares(result: ProducerShares, *, note: str = "") -> go.Figure:
    """Each producer's rate in every trial, and its mean with an interval."""
    figure = go.Figure()
    names = list(dict.fromkeys(result.trials.setting.astype(str)))
    marks = theme.arm_marks(names)
    for k, name in enumerate(names):
        shade, symbol = marks[name]
        part = result.trials[result.trials.setting.astype(str) == name]
        offset = 0.22 * (k - (len(names) - 1) / 2)
        figure.add_scatter(
            x=part.producer.astype(float) + 1 + offset + theme.spread(len(part), 0.08),
            y=part.records_per_s,
            mode="markers",
            name=theme.plain(name),
            marker={"size": 6, "color": shade, "symbol": symbol, "opacity": 0.5},
        )
        mean = result.rows[result.rows.setting.astype(str) == name]
        primitives.interval_points(
            figure,
            mean.producer.astype(float) + 1 + offset + 0.07,
            mean.records_per_s,
            mean.low,
            mean.high,
            marker={"size": 11, "color": shade, "symbol": symbol, "line": {"width": 1, "color": theme.TEXT}},
            vertical=True,
            showlegend=False,
        )
    producers = sorted(result.rows.producer.unique())
    figure.update_xaxes(
        title="producer",
        tickvals=[float(producer) + 1 for producer in producers],
        ticktext=[f"Producer {int(producer) + 1}" for producer in producers],
    )
    figure.update_yaxes(title="records/s", rangemode="tozero")
    return theme.finish(
        figure,
        name="producer-shares",
        title="What each producer reached",
        subtitle=f"Small: a trial; large: mean of trials with its {percent(result.level)} interval (t over trials).",
        alt=f"Rates of single producers. {result}",
        caption=str(result),
        table=result.rows,
        note=note,
    )
