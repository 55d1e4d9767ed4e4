"""Throughput against RTT, with the window-limited model."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from ...figures import theme
from ...formatting import count, percent
from ..distance.pair_points import POINTS, add_points
from ..result import Estimate
from .window_fit import WindowFit

CURVE_POINTS = 200


def throughput_against_rtt(fit: WindowFit, *, note: str = "") -> go.Figure:
    """Throughput against RTT on log axes, with the fitted min(C, 8 W / RTT) and its two limits."""
    frame = fit.pairs
    figure = go.Figure()
    add_points(figure, frame, frame.rtt_ms, frame.throughput_bps, "%{x:.1f} ms<br>%{y:.3s}bit/s")
    rtt = np.geomspace(frame.rtt_ms.min() / 1.1, frame.rtt_ms.max() * 1.1, CURVE_POINTS)
    limits = {"C": fit.capacity, "W": fit.window}
    lines = {"C": np.full_like(rtt, fit.capacity.estimate), "W": 8000 * fit.window.estimate / rtt}
    for symbol, dash, name in (("C", "dot", "C"), ("W", "dash", "8 W / RTT")):
        if np.isfinite(limits[symbol].estimate):
            style = {"color": theme.LIGHT, "width": 1.5, "dash": dash}
            figure.add_scatter(x=rtt, y=lines[symbol], mode="lines", name=name, line=style, hoverinfo="skip")
    model = fit.throughput_bps(rtt)
    style = {"color": theme.FIT, "width": 2.5}
    figure.add_scatter(x=rtt, y=model, mode="lines", name="min(C, 8 W / RTT)", line=style, hoverinfo="skip")
    shown = np.concatenate([frame.throughput_bps, model])
    figure.update_xaxes(title="round-trip time (ms, log axis)", **theme.log_axis(frame.rtt_ms, ""))
    figure.update_yaxes(title="throughput (bit/s, log axis)", **theme.log_axis(shown, "bit/s"))
    level = percent(fit.window.level)
    fitted = "; ".join(_said(symbol, limit, level) for symbol, limit in limits.items())
    sides = frame.limit.value_counts()
    said = ", ".join(f"{count(int(n), 'pair')} limited by the {name}" for name, n in sides.items())
    return theme.finish(
        figure,
        name="throughput-against-rtt",
        title="Throughput against round-trip time",
        subtitle=f"{POINTS}. Line: fitted min(C, 8 W / RTT). Both axes: logarithmic. {fitted}.",
        alt=f"Scatter of throughput against round-trip time on log axes for {count(len(frame), 'pair')}. {fit}",
        caption="TCP throughput against round-trip time with the window-limited model: the capacity C holds "
        f"up to the knee, beyond it one window W per round trip ({said}).",
        table=frame.drop(columns="n_directions", errors="ignore"),
        note=note,
    )


def _said(symbol: str, limit: Estimate, level: str) -> str:
    if np.isnan(limit.estimate):
        return f"{symbol} is not identified"
    ends = limit.written_interval
    return f"{symbol} = {limit.written}" + (f" ({level} interval by place {ends})" if ends else "")
