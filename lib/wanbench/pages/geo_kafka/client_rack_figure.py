"""Bytes across regions per byte of payload, by how consumers read."""

from __future__ import annotations

import plotly.graph_objects as go

from wanbench.figures import theme

from .client_rack import LEADERS, NONE, RACK, ClientRack


def client_rack(result: ClientRack, *, note: str = "") -> go.Figure:
    """A point per trial; bars are means."""
    figure, order = go.Figure(), (NONE, LEADERS, RACK)
    means = [result.trials.crossings[result.trials.reading == name].mean() for name in order]
    figure.add_bar(x=[0, 1, 2], y=means, width=0.5, marker={"color": theme.WITHIN, "opacity": 0.35}, name="mean")
    for k, name in enumerate(order):
        part = result.trials[result.trials.reading == name]
        figure.add_scatter(
            x=k + theme.spread(len(part), 0.3),
            y=part.crossings,
            mode="markers",
            marker={"size": 8, "color": theme.FIT},
            name="a trial",
            showlegend=k == 0,
        )
    ticks = [f"consumers read {name}" if name != NONE else name for name in order]
    figure.update_xaxes(tickvals=[0, 1, 2], ticktext=ticks)
    figure.update_yaxes(title="bytes across regions per byte of payload", rangemode="tozero")
    figure.update_layout(legend=theme.LEGEND_ON_TOP)
    return theme.finish(
        figure,
        name="client-rack",
        title="What client.rack saves",
        subtitle="All links together, headers included, over whole trials. The first column shows the "
        "bytes of producers and replicas.",
        alt=f"Bytes across regions. {result}",
        caption=str(result),
        table=result.trials,
        note=note,
    )
