"""Predictions for pairs that were not measured, and how often such predictions hold."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from ...figures import theme
from ...formatting import count, percent, quantity
from ...regions import light_rtt_ms
from ..regions.unordered_pairs import unordered
from ..result import Estimate
from .predict import SITUATIONS, Prediction
from .prediction_calibration import WHAT, Calibration

HEADROOM_PX = 24
POINT = {"size": 6, "opacity": 0.55}
SHADES = {"rtt_ms": theme.WITHIN, "throughput_bps": theme.OUTSIDE}
SAYS = {"both": "pair left out", "one": "one region left out", "none": "both regions left out"}


def prediction(found: Prediction, *, note: str = "") -> go.Figure:
    """A predicted RTT, and throughput, with its interval among the measured pairs, over distance."""
    names = ["rtt_ms", "throughput_bps"][: len(found.estimates)]
    figure = make_subplots(rows=1, cols=len(names), horizontal_spacing=0.18)
    for column, (name, estimate) in enumerate(zip(names, found.estimates, strict=True), start=1):
        _measured(figure, found, name, column)
        _predicted(figure, found, name, estimate, column)
        figure.update_xaxes(
            title="great-circle distance (km)",
            tickformat=",d",
            rangemode="tozero",
            nticks=5,
            tickangle=0,
            col=column,
        )
    figure.update_layout(legend={"orientation": "h", "y": -0.2, "x": 0})
    figure.update_yaxes(title="round-trip time (ms)", rangemode="tozero", col=1)
    if len(names) == 2:
        shown = [*found.pairs.throughput_bps, *_finite(found.throughput)]
        figure.update_yaxes(title="throughput (bit/s, log axis)", **theme.log_axis(shown, "bit/s"), col=2)
    level, ends = percent(found.rtt.level), f"{found.from_region} to {found.to_region}"
    return theme.finish(
        figure,
        name="prediction",
        title=f"Predicted: {ends}",
        subtitle=f"Small points: measured pairs of regions. Large point: the prediction; bar: its {level} interval "
        f"for one measurement ({SITUATIONS[found.situation]}). Dashed: light in fibre.",
        alt=f"Measured pairs over distance, and the prediction. {found}",
        caption=f"What to expect from {ends}, {quantity(found.distance_km, 'km')} apart, which was "
        f"{'also' if found.in_use else 'not'} used: {SITUATIONS[found.situation]}.",
        table=found.table(),
        note=note,
    )


def _measured(figure: go.Figure, found: Prediction, name: str, column: int) -> None:
    frame = unordered(
        found.pairs, name, combine="geometric mean" if name == "throughput_bps" else "median"
    ).frame
    own = frame.region_a.isin([found.from_region, found.to_region])
    own &= frame.region_b.isin([found.from_region, found.to_region])
    touches = frame.region_a.isin([found.from_region, found.to_region])
    touches |= frame.region_b.isin([found.from_region, found.to_region])
    parts = {
        "other pairs": (~touches, {**POINT, "color": theme.LAND}),
        f"pairs of {theme.plain(found.from_region)} or {theme.plain(found.to_region)}": (
            touches & ~own,
            {**POINT, "color": theme.WITHIN},
        ),
        "measured" if found.in_use else "measured after all": (
            own,
            {"size": 13, "symbol": "x-thin", "line": {"width": 3, "color": theme.TEXT}},
        ),
    }
    for label, (rows, marker) in parts.items():
        if not rows.any():
            continue
        text = [
            f"{theme.plain(a)} – {theme.plain(b)}"
            for a, b in frame[rows][["region_a", "region_b"]].to_numpy()
        ]
        figure.add_scatter(
            x=frame.distance_km[rows],
            y=frame.value[rows],
            mode="markers",
            name=label,
            legendgroup=label,
            showlegend=column == 1,
            marker=marker,
            text=text,
            hovertemplate="%{text}<br>%{x:,.0f} km<br>%{y:.4s}<extra></extra>",
            row=1,
            col=column,
        )
    if name == "rtt_ms":
        ends = np.array([0.0, max(frame.distance_km.max(), found.distance_km) * 1.02])
        style = {"color": theme.LIGHT, "width": 2, "dash": "dash"}
        floor = {"x": ends, "y": light_rtt_ms(ends), "mode": "lines", "name": "light in fibre", "line": style}
        figure.add_scatter(**floor, hoverinfo="skip", row=1, col=column)


def _predicted(figure: go.Figure, found: Prediction, name: str, estimate: Estimate, column: int) -> None:
    low, high = estimate.low, estimate.high
    bar = None
    if np.isfinite([low, high]).all():
        bar = {"type": "data", "symmetric": False, "color": theme.FIT, "thickness": 2.5, "width": 7}
        bar |= {"array": [high - estimate.estimate], "arrayminus": [estimate.estimate - low]}
    figure.add_scatter(
        x=[found.distance_km],
        y=[estimate.estimate],
        mode="markers",
        name="prediction",
        legendgroup="prediction",
        showlegend=column == 1,
        marker={"size": 13, "color": theme.FIT, "symbol": "diamond"},
        error_y=bar,
        hovertemplate=f"{estimate.written}<br>{estimate.written_interval or 'open interval'}<extra></extra>",
        row=1,
        col=column,
    )


def calibration(found: Calibration, *, note: str = "") -> go.Figure:
    """Coverage per quantity and situation against the stated level; beside it, coverage region by region."""
    figure = make_subplots(
        rows=1,
        cols=2,
        column_widths=[0.5, 0.5],
        horizontal_spacing=0.1,
        subplot_titles=["all left-out pairs", "each region left out in turn"],
    )
    labels = []
    for row, ((name, situation), share) in enumerate(found.coverage.items()):
        labels.append(f"{WHAT[name]}, {SAYS[situation]}<br>n = {count(share.n, 'pair')}")
        bar = {"type": "data", "symmetric": False, "color": SHADES[name], "thickness": 2.5, "width": 6}
        bar |= {"array": [share.high - share.estimate], "arrayminus": [share.estimate - share.low]}
        figure.add_scatter(
            x=[share.estimate],
            y=[row],
            mode="markers",
            marker={"size": 11, "color": SHADES[name]},
            error_x=bar if np.isfinite(share.low) else None,
            hovertemplate=f"{share.written} ({share.written_interval})<extra></extra>",
            showlegend=False,
            row=1,
            col=1,
        )
    figure.update_yaxes(
        tickvals=list(range(len(labels))), ticktext=labels, autorange="reversed", row=1, col=1
    )
    regional = _regional(figure, found)
    figure.update_xaxes(tickformat=".0%", title="share of measured values inside")
    figure.update_xaxes(
        range=[min(0.6, *(e.estimate for e in found.coverage.values())) - 0.02, 1.02], row=1, col=1
    )
    for column in (1, 2):
        style = {"color": theme.LIGHT, "dash": "dash", "width": 2}
        figure.add_vline(x=found.level, line=style, row=1, col=column)
    worst = (
        f" Least covered: {regional.region.iloc[0]} ({quantity(float(regional.coverage.iloc[0]), 'fraction')})."
        if len(regional)
        else ""
    )
    return theme.finish(
        figure,
        name="prediction-calibration",
        title="Do the prediction intervals hold?",
        subtitle=f"Dashed: the stated level, {percent(found.level)}. Left, point: share of left-out values inside "
        "their intervals; bar: its 95 % interval by region. Right: one point per left-out region.",
        alt=f"Coverage of prediction intervals on what had been left out. {found}",
        caption="Pairs and regions were left out and predicted from the others, and the predictions compared with "
        f"what had been measured.{worst}",
        table=found.table(),
        note=note,
        headroom_px=HEADROOM_PX,
    )


def _regional(figure: go.Figure, found: Calibration) -> pd.DataFrame:
    names = [name for name, situation in found.coverage if situation == "one"]
    frames = [found.by_region(name) for name in names]
    for row, (name, frame) in enumerate(zip(names, frames, strict=True)):
        figure.add_scatter(
            x=frame.coverage,
            y=row + theme.spread(len(frame)),
            mode="markers",
            marker={"size": 7, "opacity": 0.7, "color": SHADES[name]},
            text=[theme.plain(region) for region in frame.region],
            hovertemplate="%{text}<br>%{x:.0%}<extra></extra>",
            showlegend=False,
            row=1,
            col=2,
        )
    ticks = {"tickvals": list(range(len(names))), "ticktext": [WHAT[name] for name in names]}
    figure.update_yaxes(**ticks, autorange="reversed", zeroline=False, row=1, col=2)
    return frames[0] if frames else pd.DataFrame()


def _finite(estimate: Estimate) -> list[float]:
    return [each for each in (estimate.estimate, estimate.low, estimate.high) if np.isfinite(each)]
