"""Throughput against RTT, with the window-limited model."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from wanbench.figures import theme
from wanbench.formatting import count, percent
from wanbench.methods.distance.pair_points import POINTS
from wanbench.methods.result import Estimate

from .model_figure import add_curve, rtt_and_throughput
from .window_fit import WindowFit

CURVE_POINTS = 200
"""Enough that the bend at the knee looks sharp on a page 1,000 pixels wide."""


def throughput_against_rtt(fit: WindowFit, *, note: str = "") -> go.Figure:
    """Throughput against RTT on log axes, with the fitted min(C, 8 W / RTT) and its two limits."""
    frame = fit.pairs
    rtt = np.geomspace(frame.rtt_ms.min() / 1.1, frame.rtt_ms.max() * 1.1, CURVE_POINTS)
    model = fit.throughput_bps(rtt)
    figure = go.Figure()
    rtt_and_throughput(figure, frame, model)
    window, capacity = fit.window.estimate, fit.capacity.estimate
    for name, dash, limit, y in (
        ("C", "dot", capacity, np.full_like(rtt, capacity)),
        ("8 W / RTT", "dash", window, 8000 * window / rtt),
    ):
        if np.isfinite(limit):
            add_curve(figure, rtt, y, name, {"color": theme.LIGHT, "width": 1.5, "dash": dash})
    add_curve(figure, rtt, model, "min(C, 8 W / RTT)")
    level = percent(fit.window.level)
    fitted = f"{_label('C', fit.capacity, level)}; {_label('W', fit.window, level)}"
    return theme.finish(
        figure,
        name="throughput-against-rtt",
        title="Throughput against round-trip time",
        subtitle=f"{POINTS}. Line: fitted min(C, 8 W / RTT). Both axes: logarithmic. {fitted}.",
        alt=f"Scatter of throughput against round-trip time on log axes for {count(len(frame), 'pair')}. {fit}",
        caption="TCP throughput against round-trip time with the window-limited model: the capacity C holds "
        f"up to the knee, beyond it one window W per round trip ({fit.limits}).",
        table=frame,
        note=note,
    )


def _label(symbol: str, limit: Estimate, level: str) -> str:
    if np.isnan(limit.estimate):
        return f"{symbol} is not identified"
    ends = limit.formatted_interval
    return f"{symbol} = {limit.formatted}" + (f" ({level} interval by place {ends})" if ends else "")
