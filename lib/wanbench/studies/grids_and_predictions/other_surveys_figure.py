"""Predictions against what others measured of the same pairs."""

from __future__ import annotations

import plotly.graph_objects as go

from ...figures import theme
from ...figures.primitives import interval_bar
from ...stats.distance.pair_points import pair_labels
from .other_surveys import CheckedPredictions


def predicted_against_measured(result: CheckedPredictions, *, note: str = "") -> go.Figure:
    """Predicted RTT with its interval against RTTs of the same pairs that others measured."""
    rows = result.pairs
    figure = go.Figure()
    for covered, name, colour in (
        (True, "inside the interval", theme.WITHIN),
        (False, "outside", theme.OUTSIDE),
    ):
        part = rows[rows.covered == covered]
        bars = interval_bar(part.predicted_ms, part.low_ms, part.high_ms, thickness=1, width=0, color=colour)
        figure.add_scatter(
            x=part.measured_ms,
            y=part.predicted_ms,
            mode="markers",
            marker={"color": colour, "size": 7},
            error_y=bars,
            name=name,
            text=pair_labels(part),
            hovertemplate="%{text}<br>measured %{x:.0f} ms, predicted %{y:.0f} ms<extra></extra>",
        )
    ends = [0, float(rows[["measured_ms", "predicted_ms"]].to_numpy().max()) * 1.05]
    style = {"color": theme.MUTED, "dash": "dash", "width": 2}
    figure.add_scatter(x=ends, y=ends, mode="lines", line=style, name="equal", hoverinfo="skip")
    figure.update_xaxes(title="measured by others (ms)", rangemode="tozero")
    figure.update_yaxes(title="predicted (ms)", rangemode="tozero")
    return theme.finish(
        figure,
        name="predictions-elsewhere",
        title="Predicted round trips against what others measured",
        subtitle="One point per pair that the predicting survey lacks; bars: prediction intervals.",
        alt=f"Predicted against measured round-trip times. {result.sentence}",
        caption=str(result),
        table=rows,
        note=note,
    )
