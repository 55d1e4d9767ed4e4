"""Predictions against others' measurements of the same pairs."""

from __future__ import annotations

import plotly.graph_objects as go

from wanbench.figures import theme
from wanbench.figures.primitives import REFERENCE, interval_points
from wanbench.methods.distance.pair_points import pair_labels

from .other_surveys import CheckedPredictions


def predicted_against_measured(result: CheckedPredictions, *, note: str = "") -> go.Figure:
    """Predicted RTT with its interval against RTTs of the same pairs that others measured."""
    rows = result.pairs
    figure = go.Figure()
    for covered, name, colour in ((True, "inside the interval", theme.WITHIN), (False, "outside", theme.OUTSIDE)):
        part = rows[rows.covered == covered]
        interval_points(
            figure,
            part.measured_ms,
            part.predicted_ms,
            part.low_ms,
            part.high_ms,
            vertical=True,
            marker={"color": colour, "size": 7},
            bar={"thickness": 1, "width": 0},
            name=name,
            text=pair_labels(part),
            hovertemplate="%{text}<br>measured %{x:.0f} ms, predicted %{y:.0f} ms<extra></extra>",
        )
    ends = [0, float(rows[["measured_ms", "predicted_ms"]].to_numpy().max()) * 1.05]
    figure.add_scatter(x=ends, y=ends, mode="lines", line=REFERENCE, name="equal", hoverinfo="skip")
    figure.update_xaxes(title="measured by others (ms)", rangemode="tozero")
    figure.update_yaxes(title="predicted (ms)", rangemode="tozero")
    return theme.finish(
        figure,
        name="predictions-elsewhere",
        title="Predicted round-trip times against those measured by others",
        subtitle="One point per pair that the predicting survey lacks; bars: prediction intervals.",
        alt=f"Predicted against measured round-trip times. {result.sentence}",
        caption=str(result),
        table=rows,
        note=note,
    )
