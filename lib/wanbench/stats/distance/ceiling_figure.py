"""Throughput against distance where near pairs reach a ceiling."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from ...figures import theme
from ...formatting import count, quantity
from .ceiling import CeilingFit


def throughput_with_ceiling(found: CeilingFit, *, note: str = "") -> go.Figure:
    """Throughput (log axis) of every ordered pair; those at the ceiling apart; the lines with it and without."""
    rows = found.rows
    figure = go.Figure()
    clouds = rows.from_region.str.partition(":")[0]
    for cloud in sorted(clouds.unique()):
        for at_ceiling in (False, True):
            part = rows[(clouds == cloud) & (rows.censored == at_ceiling)]
            if part.empty:
                continue
            marker = {"color": theme.colour(cloud), "size": 8 if at_ceiling else 4, "opacity": 0.6}
            marker["symbol"] = "triangle-up-open" if at_ceiling else "circle"
            ends = zip(part.from_region, part.to_region, strict=True)
            figure.add_scatter(
                x=part.distance_km,
                y=part.throughput_bps,
                mode="markers",
                marker=marker,
                name=f"from {theme.plain(theme.cloud_name(cloud))}{', at its ceiling' if at_ceiling else ''}",
                text=[f"{theme.plain(a)} to {theme.plain(b)}" for a, b in ends],
                hovertemplate="%{text}<br>%{x:,.0f} km<br>%{y:.3s}bit/s<extra></extra>",
            )
    x = np.array([0.0, rows.distance_km.max() * 1.02])
    plain = 10 ** (found.plain_intercept + found.plain_slope.estimate * x / 1000)
    lines = (
        ("values as they stand", plain, {"color": theme.LIGHT, "width": 2, "dash": "dash"}),
        (
            "values at the ceiling as at least that",
            found.throughput_bps(x),
            {"color": theme.FIT, "width": 2.5},
        ),
    )
    for name, y, style in lines:
        figure.add_scatter(x=x, y=y, mode="lines", name=name, line=style, hoverinfo="skip")
    shown = np.concatenate([rows.throughput_bps, found.throughput_bps(x)])
    figure.update_xaxes(title="great-circle distance (km)", range=x, tickformat=",d")
    figure.update_yaxes(title="throughput (bit/s, log axis)", **theme.log_axis(shown, "bit/s"))
    tops = ", ".join(
        f"{quantity(each.ceiling_bps, 'bit/s')} from {each.source}"
        for each in found.ceilings.itertuples()
        if each.n
    )
    return theme.finish(
        figure,
        name="throughput-with-ceiling",
        title="Throughput against distance, with its ceiling",
        subtitle=f"One point per ordered pair. Triangles: at their ceiling ({tops or 'none'}).",
        alt=f"Scatter of throughput on a log axis against distance for {count(len(rows), 'ordered pair')}. {found}",
        caption=str(found),
        table=rows,
        note=note,
    )
