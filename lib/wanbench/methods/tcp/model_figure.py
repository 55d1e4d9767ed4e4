"""Throughput against RTT with the curve of one fitted model."""

from __future__ import annotations

import re

import numpy as np
import plotly.graph_objects as go

from wanbench.figures import theme
from wanbench.formatting import count
from wanbench.methods.distance.pair_points import add_points

from .fit_model import ModelFit


def model_curve(fit: ModelFit, *, note: str = "") -> go.Figure:
    """Every pair of a fit, and the model's throughput at their RTTs."""
    frame = fit.pairs
    figure = go.Figure()
    rtt_and_throughput(figure, frame, frame.model_bps)
    curve = frame.sort_values("rtt_ms")
    add_curve(figure, curve.rtt_ms, curve.model_bps, fit.model)
    parameters = "; ".join(f"{each.quantity} {each.formatted} ({each.formatted_interval})" for each in fit.estimates)
    return theme.finish(
        figure,
        name=f"model-{re.sub('[^a-z0-9]+', '-', fit.model.lower())}",
        title=f"Throughput against round-trip time: {fit.model}",
        subtitle=f"{fit.formula}. Both axes: logarithmic. {parameters}.",
        alt=f"Scatter of throughput against round-trip time on log axes for {count(len(frame), 'pair')}. {fit}",
        caption=fit.sentence,
        table=frame,
        note=note,
    )


def rtt_and_throughput(figure: go.Figure, frame, model_bps) -> None:
    """Points of throughput against RTT on log axes that also hold the model's throughput."""
    add_points(figure, frame, frame.rtt_ms, frame.throughput_bps, "%{x:.1f} ms<br>%{y:.3s}bit/s")
    shown = np.concatenate([frame.throughput_bps, model_bps])
    figure.update_xaxes(title="round-trip time (ms, log axis)", **theme.log_axis(frame.rtt_ms, ""))
    figure.update_yaxes(title="throughput (bit/s, log axis)", **theme.log_axis(shown, "bit/s"))


def add_curve(figure: go.Figure, rtt_ms, throughput_bps, name: str, style: dict | None = None) -> None:
    """A line without hover text, in the style of fits unless another is given."""
    line = style or {"color": theme.FIT, "width": 2.5}
    figure.add_scatter(x=rtt_ms, y=throughput_bps, mode="lines", name=name, line=line, hoverinfo="skip")
