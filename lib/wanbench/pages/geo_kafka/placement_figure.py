"""Brokers and partitions of one topic: who leads, who follows."""

from __future__ import annotations

import plotly.graph_objects as go

from wanbench.figures import theme
from wanbench.formatting import count

from .placement import Placement

AROUND_PX = 190
ROW_PX = 34


def placement(result: Placement, *, note: str = "") -> go.Figure:
    """A square per replica: partitions from left to right, brokers from top to bottom, the leader filled."""
    rows, figure = result.replicas, go.Figure()
    brokers = rows[["broker", "region"]].drop_duplicates().sort_values(["region", "broker"], ignore_index=True)
    at = {broker: k for k, broker in enumerate(brokers.broker)}
    regions = list(dict.fromkeys(brokers.region))
    for name, leads, symbol in (("leader", True, "square"), ("follower", False, "square-open")):
        part = rows[rows.leads == leads]
        figure.add_scatter(
            x=part.partition,
            y=[at[broker] for broker in part.broker],
            mode="markers",
            name=name,
            marker={
                "symbol": symbol,
                "size": 11,
                "color": [theme.SERIES_COLOURS[regions.index(region)] for region in part.region],
            },
            text=[theme.plain(f"broker {row.broker} in {row.region}") for row in part.itertuples()],
            hovertemplate="partition %{x}, %{text}<extra></extra>",
        )
    labels = [f"{row.broker} ({theme.plain(row.region)})" for row in brokers.itertuples()]
    figure.update_yaxes(
        title="broker", tickvals=list(range(len(labels))), ticktext=labels, range=[len(labels) - 0.5, -0.5]
    )
    figure.update_xaxes(title="partition", zeroline=False)
    figure.update_layout(height=AROUND_PX + ROW_PX * len(labels), legend=theme.LEGEND_ON_TOP)
    return theme.finish(
        figure,
        name="placement",
        title="Where leaders and replicas lie",
        subtitle="One topic of the run. Filled: the leader of a partition; hollow: its followers; colours: regions.",
        alt=f"Leaders and followers of {count(rows.partition.nunique(), 'partition')}. {result}",
        caption=str(result),
        table=rows[["partition", "replica", "broker", "region", "leads", "in_sync"]],
        note=note,
    )
