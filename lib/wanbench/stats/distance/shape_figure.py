"""Throughput against distance and against RTT, with the lines compared."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from ...figures import theme
from ...formatting import count, number
from .shape import Shapes

CURVE_POINTS = 120
DASHES = {"distance": "dot", "log distance": "dash", "log RTT": "solid"}


def throughput_lines(found: Shapes, *, note: str = "") -> go.Figure:
    """Throughput (log axis) of every unordered pair with each line: on distance left, on log RTT right if fitted."""
    frame = found.pairs
    panels = [("distance_km", "great-circle distance (km)", ["distance", "log distance"])]
    if "log RTT" in found.errors:
        panels.append(("rtt_ms", "round-trip time (ms, log axis)", ["log RTT"]))
    titles = [" and ".join(_titled(found, name) for name in names) for _, _, names in panels]
    figure = make_subplots(
        rows=1, cols=len(panels), subplot_titles=titles, shared_yaxes=True, horizontal_spacing=0.03
    )
    for at, (column, title, names) in enumerate(panels, start=1):
        for cloud_pair in sorted(frame.cloud_pair.unique()):
            part = frame[frame.cloud_pair == cloud_pair]
            marker = {"color": theme.colour(cloud_pair), "size": 5, "opacity": 0.6}
            marker["symbol"] = theme.SYMBOLS.get(cloud_pair, "circle")
            ends = zip(part.region_a, part.region_b, strict=True)
            figure.add_scatter(
                x=part[column],
                y=part.throughput_bps,
                mode="markers",
                marker=marker,
                name=theme.plain(theme.cloud_name(cloud_pair)),
                legendgroup=cloud_pair,
                showlegend=at == 1,
                text=[f"{theme.plain(a)} – {theme.plain(b)}" for a, b in ends],
                hovertemplate="%{text}<br>%{y:.3s}bit/s<extra></extra>",
                row=1,
                col=at,
            )
        span = frame[column].min(), frame[column].max()
        x = np.geomspace(*span, CURVE_POINTS) if column == "rtt_ms" else np.linspace(*span, CURVE_POINTS)
        for name in names:
            style = {"color": theme.FIT, "width": 2.5, "dash": DASHES[name]}
            y = found.fitted(name, **{column: x})
            figure.add_scatter(
                x=x, y=y, mode="lines", line=style, name=f"on {name}", hoverinfo="skip", row=1, col=at
            )
        axis = theme.log_axis(frame[column], "") if column == "rtt_ms" else {"tickformat": ",d"}
        figure.update_xaxes(title=title, **axis, row=1, col=at)
    figure.update_yaxes(**theme.log_axis(frame.throughput_bps, "bit/s"))
    figure.update_yaxes(title="throughput (bit/s, log axis)", col=1)
    basis = next(iter(found.errors.values()))
    said = f"{count(basis.n, 'pair')} of {count(basis.n_regions, 'region')}"
    return theme.finish(
        figure,
        name="throughput-lines-compared",
        title="Which line throughput follows",
        subtitle="One point per pair of regions. In brackets: the factor by which each line is typically off when "
        "it predicts a region that was left out.",
        alt=f"Scatters of throughput against distance and round-trip time for {said}, with fitted lines. {found}",
        caption=f"{found} From {said}.",
        table=frame,
        note=note,
        headroom_px=20,
    )


def _titled(found: Shapes, name: str) -> str:
    return f"{name} (off by {number(found.errors[name].estimate, 2)})"
