"""Throughput against distance and against RTT, with the lines compared."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from wanbench.figures import theme
from wanbench.formatting import number
from wanbench.methods.distance.pair_points import DISTANCE_AXIS, add_line, add_points

from .shape import Shapes

CURVE_POINTS = 120
"""Enough for a smooth curve on a log axis."""
DASHES = {"distance": "dot", "log distance": "dash", "log RTT": "solid"}


def throughput_lines(shapes: Shapes, *, note: str = "") -> go.Figure:
    """Throughput (log axis) of every unordered pair with each line: on distance left, on log RTT right if fitted."""
    frame = shapes.pairs
    panels = [("distance_km", DISTANCE_AXIS, ["distance", "log distance"])]
    if "log RTT" in shapes.errors:
        panels.append(("rtt_ms", "round-trip time (ms, log axis)", ["log RTT"]))
    factors = {name: f"{name} (off by {number(each.estimate, 2)})" for name, each in shapes.errors.items()}
    titles = [" and ".join(factors[name] for name in names) for _, _, names in panels]
    figure = make_subplots(rows=1, cols=len(panels), subplot_titles=titles, shared_yaxes=True, horizontal_spacing=0.03)
    for col, (column, title, names) in enumerate(panels, start=1):
        cell = {"row": 1, "col": col}
        add_points(figure, frame, frame[column], frame.throughput_bps, "%{y:.3s}bit/s", legend=col == 1, **cell)
        logarithmic = column == "rtt_ms"
        space = np.geomspace if logarithmic else np.linspace
        x = space(frame[column].min(), frame[column].max(), CURVE_POINTS)
        for name in names:
            add_line(figure, x, shapes.fitted(name, x), f"on {name}", DASHES[name], **cell)
        axis = theme.log_axis(frame[column], "") if logarithmic else {"tickformat": ",d"}
        figure.update_xaxes(title=title, **axis, **cell)
    figure.update_yaxes(**theme.log_axis(frame.throughput_bps, "bit/s"))
    figure.update_yaxes(title="throughput (bit/s, log axis)", col=1)
    basis = shapes.errors[shapes.best].counted
    return theme.finish(
        figure,
        name="throughput-lines-compared",
        title="Which line throughput follows",
        subtitle="One point per pair of regions. In brackets: the factor by which each line is typically off when "
        "it predicts a region that was left out.",
        alt=f"Scatters of throughput against distance and round-trip time for {basis}, with fitted lines. "
        f"{shapes.sentence}",
        caption=f"{shapes} From {basis}.",
        table=frame,
        note=note,
        headroom_px=20,
    )
