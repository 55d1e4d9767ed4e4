"""Throughput against RTT with the curve of one fitted model."""

from __future__ import annotations

import re

import numpy as np
import plotly.graph_objects as go

from ...figures import theme
from ...formatting import count
from ..distance.pair_points import add_points
from .fit_model import ModelFit


def model_curve(fit: ModelFit, *, note: str = "") -> go.Figure:
    """Every pair of a fit, and what its model says at these RTTs."""
    frame = fit.pairs
    figure = go.Figure()
    add_points(figure, frame, frame.rtt_ms, frame.throughput_bps, "%{x:.1f} ms<br>%{y:.3s}bit/s")
    curve = frame.sort_values("rtt_ms")
    style = {"color": theme.FIT, "width": 2.5}
    figure.add_scatter(
        x=curve.rtt_ms, y=curve.model_bps, mode="lines", name=fit.model, line=style, hoverinfo="skip"
    )
    shown = np.concatenate([frame.throughput_bps, frame.model_bps])
    figure.update_xaxes(title="round-trip time (ms, log axis)", **theme.log_axis(frame.rtt_ms, ""))
    figure.update_yaxes(title="throughput (bit/s, log axis)", **theme.log_axis(shown, "bit/s"))
    numbers = "; ".join(f"{each.quantity} {each.written} ({each.written_interval})" for each in fit.estimates)
    return theme.finish(
        figure,
        name=f"model-{re.sub('[^a-z0-9]+', '-', fit.model.lower())}",
        title=f"Throughput against round-trip time: {fit.model}",
        subtitle=f"{fit.says}. Both axes: logarithmic. {numbers}.",
        alt=f"Scatter of throughput against round-trip time on log axes for {count(len(frame), 'pair')}. {fit}",
        caption=" ".join(each.sentence for each in fit.estimates),
        table=frame,
        note=note,
    )
