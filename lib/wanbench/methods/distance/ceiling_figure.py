"""Throughput against distance if near pairs reach a ceiling."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from wanbench.figures import theme
from wanbench.figures.primitives import REFERENCE
from wanbench.formatting import count

from .ceiling import CeilingFit
from .pair_points import DISTANCE_AXIS, add_line, distance_ends, pair_labels
from .straight_lines import THOUSAND_KM


def throughput_with_ceiling(fit: CeilingFit, *, note: str = "") -> go.Figure:
    """Throughput (log axis) of every ordered pair, those at the ceiling marked; the lines with and without it."""
    rows = fit.rows
    figure = go.Figure()
    clouds = rows.from_region.str.partition(":")[0]
    for (cloud, at_ceiling), part in rows.groupby([clouds, rows.censored]):
        figure.add_scatter(
            x=part.distance_km,
            y=part.throughput_bps,
            mode="markers",
            marker={
                "color": theme.colour(cloud),
                "size": 8 if at_ceiling else 4,
                "opacity": 0.6,
                "symbol": "triangle-up-open" if at_ceiling else "circle",
            },
            name=f"from {theme.plain(theme.cloud_name(cloud))}{', at its ceiling' if at_ceiling else ''}",
            text=pair_labels(part, ("from_region", "to_region"), " to "),
            hovertemplate="%{text}<br>%{x:,.0f} km<br>%{y:.3s}bit/s<extra></extra>",
        )
    x = distance_ends(rows)
    figure.add_scatter(
        x=x,
        y=10 ** (fit.plain_intercept + fit.plain_slope.estimate * x / THOUSAND_KM),
        mode="lines",
        name="values as measured",
        line=REFERENCE,
        hoverinfo="skip",
    )
    add_line(figure, x, fit.throughput_bps(x), "values at the ceiling as lower limits")
    shown = np.concatenate([rows.throughput_bps, fit.throughput_bps(x)])
    figure.update_xaxes(title=DISTANCE_AXIS, range=x, tickformat=",d")
    figure.update_yaxes(title="throughput (bit/s, log axis)", **theme.log_axis(shown, "bit/s"))
    return theme.finish(
        figure,
        name="throughput-with-ceiling",
        title="Throughput against distance, with its ceiling",
        subtitle=f"One point per ordered pair. Triangles: at their ceiling ({fit.listed_ceilings or 'none'}).",
        alt=f"Scatter of throughput on a log axis against distance for {count(len(rows), 'ordered pair')}. "
        f"{fit.sentence}",
        caption=str(fit),
        table=rows,
        note=note,
    )
