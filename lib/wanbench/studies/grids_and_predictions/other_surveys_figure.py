"""Predictions against what others measured of the same pairs."""

from __future__ import annotations

import plotly.graph_objects as go

from ...figures import theme
from .other_surveys import Elsewhere


def checked_elsewhere(found: Elsewhere, *, note: str = "") -> go.Figure:
    """Predicted RTT with its interval against what others measured of the same pairs."""
    rows = found.pairs
    figure = go.Figure()
    for covered, name, tone in (
        (True, "inside the interval", theme.WITHIN),
        (False, "outside", theme.OUTSIDE),
    ):
        part = rows[rows.covered == covered]
        bar = {"type": "data", "symmetric": False, "thickness": 1, "width": 0, "color": tone}
        bar |= {"array": part.high_ms - part.predicted_ms, "arrayminus": part.predicted_ms - part.low_ms}
        figure.add_scatter(
            x=part.measured_ms,
            y=part.predicted_ms,
            mode="markers",
            marker={"color": tone, "size": 7},
            error_y=bar,
            name=name,
            text=[
                f"{theme.plain(a)} – {theme.plain(b)}"
                for a, b in zip(part.region_a, part.region_b, strict=True)
            ],
            hovertemplate="%{text}<br>measured %{x:.0f} ms, predicted %{y:.0f} ms<extra></extra>",
        )
    ends = [0, float(max(rows.measured_ms.max(), rows.predicted_ms.max())) * 1.05]
    style = {"color": theme.MUTED, "dash": "dash", "width": 2}
    figure.add_scatter(x=ends, y=ends, mode="lines", line=style, name="equal", hoverinfo="skip")
    figure.update_xaxes(title="measured by others (ms)", rangemode="tozero")
    figure.update_yaxes(title="predicted (ms)", rangemode="tozero")
    return theme.finish(
        figure,
        name="predictions-elsewhere",
        title="Predicted round trips against what others measured",
        subtitle="One point per pair that the predicting matrix lacks; bars: prediction intervals.",
        alt=f"Predicted against measured round-trip times. {found}",
        caption=str(found),
        table=rows,
        note=note,
    )
