"""Throughput to the nearest region of the other cloud over the best."""

from __future__ import annotations

import plotly.graph_objects as go

from wanbench.figures import theme
from wanbench.figures.primitives import reference_line
from wanbench.formatting import percent

from .nearest_region import NEARLY, NearestRegion


def nearest_over_best(result: NearestRegion, *, note: str = "") -> go.Figure:
    """Per source and target cloud: throughput to the nearest region over the best, against the distance to it."""
    figure = go.Figure()
    for cloud, part in result.sources.groupby("to_cloud"):
        texts = [
            f"{theme.plain(row.from_region)}: nearest {theme.plain(row.nearest)}, best {theme.plain(row.best)}"
            for row in part.itertuples()
        ]
        figure.add_scatter(
            x=part.nearest_km,
            y=part.relative,
            mode="markers",
            marker={"color": theme.colour(cloud), "size": 9, "opacity": 0.8},
            name=f"to {theme.cloud_name(cloud)}",
            text=texts,
            hovertemplate="%{text}<br>%{y:.0%}<extra></extra>",
        )
    reference_line(figure, y=NEARLY)
    title = "distance to the nearest region of the other cloud (km)"
    figure.update_xaxes(title=title, tickformat=",d", rangemode="tozero")
    figure.update_yaxes(title="its throughput over the best", range=[0, 1.05], tickformat=".0%")
    return theme.finish(
        figure,
        name="nearest-region",
        title="Is the nearest region of the other cloud the fastest?",
        subtitle=f"One point per source region and target cloud. Dashed: {percent(NEARLY)} of the best.",
        alt=f"Throughput to the nearest target over the best one, against distance. {result}",
        caption=result.share.sentence,
        table=result.sources,
        note=note,
    )
