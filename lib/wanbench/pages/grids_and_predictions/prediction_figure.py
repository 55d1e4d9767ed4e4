"""The prediction of a pair that was not measured, among the measured pairs."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from wanbench.figures import theme
from wanbench.figures.primitives import interval_bar
from wanbench.formatting import percent, quantity
from wanbench.methods.distance.pair_points import DISTANCE_AXIS, add_light, pair_labels
from wanbench.methods.regions.unordered_pairs import unordered
from wanbench.methods.result import Estimate

from .prediction import SITUATIONS, UNITS, Prediction

POINT = {"size": 6, "opacity": 0.55}


def prediction(prediction: Prediction, *, note: str = "") -> go.Figure:
    """A predicted RTT, and throughput, with its interval among the measured pairs, over distance."""
    estimates = dict(zip(UNITS, prediction.estimates, strict=False))
    figure = make_subplots(rows=1, cols=len(estimates), horizontal_spacing=0.18)
    for col, (name, estimate) in enumerate(estimates.items(), start=1):
        _add_measured(figure, prediction, name, col)
        _add_predicted(figure, prediction.distance_km, estimate, col)
    figure.update_xaxes(title=DISTANCE_AXIS, tickformat=",d", rangemode="tozero", nticks=5, tickangle=0)
    figure.update_layout(legend={"orientation": "h", "y": -0.2, "x": 0})
    figure.update_yaxes(title="round-trip time (ms)", rangemode="tozero", col=1)
    if prediction.throughput is not None:
        bps = prediction.throughput
        shown = [*prediction.pairs.throughput_bps, bps.estimate, bps.low, bps.high]
        figure.update_yaxes(title="throughput (bit/s, log axis)", **theme.log_axis(shown, "bit/s"), col=2)
    level, ends = percent(prediction.rtt.level), f"{prediction.from_region} to {prediction.to_region}"
    return theme.finish(
        figure,
        name="prediction",
        title=f"Predicted: {ends}",
        subtitle=f"Small points: measured pairs of regions. Large point: the prediction; bar: its {level} interval "
        f"for one measurement ({SITUATIONS[prediction.situation]}). Dashed: light in fibre.",
        alt=f"Measured pairs over distance, and the prediction. {prediction.sentence}",
        caption=f"What to expect from {ends}, {quantity(prediction.distance_km, 'km')} apart, which was "
        f"{'also' if prediction.in_use else 'not'} used: {SITUATIONS[prediction.situation]}.",
        table=prediction.table(),
        note=note,
    )


def _add_measured(figure: go.Figure, prediction: Prediction, name: str, col: int) -> None:
    combine = "geometric mean" if name == "throughput_bps" else "median"
    frame = unordered(prediction.pairs, name, combine=combine).frame
    ends = (prediction.from_region, prediction.to_region)
    n_shared = frame.region_a.isin(ends).astype(int) + frame.region_b.isin(ends)
    cross = {"size": 13, "symbol": "x-thin", "line": {"width": 3, "color": theme.TEXT}}
    for n, label, marker in (
        (0, "other pairs", POINT | {"color": theme.LAND}),
        (1, f"pairs of {' or '.join(map(theme.plain, ends))}", POINT | {"color": theme.WITHIN}),
        (2, "measured" if prediction.in_use else "measured after all", cross),
    ):
        part = frame[n_shared == n]
        if part.empty:
            continue
        figure.add_scatter(
            x=part.distance_km,
            y=part.value,
            mode="markers",
            name=label,
            legendgroup=label,
            showlegend=col == 1,
            marker=marker,
            text=pair_labels(part),
            hovertemplate="%{text}<br>%{x:,.0f} km<br>%{y:.4s}<extra></extra>",
            row=1,
            col=col,
        )
    if name == "rtt_ms":
        farthest = max(frame.distance_km.max(), prediction.distance_km)
        add_light(figure, np.array([0.0, farthest * 1.02]), row=1, col=col)


def _add_predicted(figure: go.Figure, distance_km: float, estimate: Estimate, col: int) -> None:
    bar = None
    if np.isfinite([estimate.low, estimate.high]).all():
        style = {"color": theme.FIT, "thickness": 2.5, "width": 7}
        bar = interval_bar([estimate.estimate], [estimate.low], [estimate.high], **style)
    figure.add_scatter(
        x=[distance_km],
        y=[estimate.estimate],
        mode="markers",
        name="prediction",
        legendgroup="prediction",
        showlegend=col == 1,
        marker={"size": 13, "color": theme.FIT, "symbol": "diamond"},
        error_y=bar,
        hovertemplate=f"{estimate.formatted}<br>{estimate.formatted_interval or 'open interval'}<extra></extra>",
        row=1,
        col=col,
    )
