"""How often prediction intervals contain the measured values."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from wanbench.figures import theme
from wanbench.figures.primitives import estimate_points, reference_line
from wanbench.formatting import count, percent, quantity

from .prediction_coverage import NAMES, PredictionCoverage

HEADROOM_PX = 24
"""Room for one line of panel titles."""
COLOURS = {"rtt_ms": theme.WITHIN, "throughput_bps": theme.OUTSIDE}
SITUATIONS = {"both": "pair left out", "one": "one region left out", "none": "both regions left out"}


def coverage(result: PredictionCoverage, *, note: str = "") -> go.Figure:
    """Coverage per quantity and situation against the stated level, and region by region."""
    figure = make_subplots(
        rows=1, cols=2, horizontal_spacing=0.1, subplot_titles=["all left-out pairs", "each region left out in turn"]
    )
    labels = []
    for row, ((name, situation), share) in enumerate(result.coverage.items()):
        labels.append(f"{NAMES[name]}, {SITUATIONS[situation]}<br>n = {count(share.n, 'pair')}")
        style = {"marker": {"size": 11, "color": COLOURS[name]}, "bar": {"thickness": 2.5}}
        estimate_points(figure, [row], [share], **style, showlegend=False, row=1, col=1)
    figure.update_yaxes(tickvals=list(range(len(labels))), ticktext=labels, autorange="reversed", row=1, col=1)
    by_region = _add_regions(figure, result)
    figure.update_xaxes(tickformat=".0%", title="share of measured values inside")
    lowest = min(0.6, *(share.estimate for share in result.estimates)) - 0.02
    figure.update_xaxes(range=[lowest, 1.02], row=1, col=1)
    reference_line(figure, x=result.level)
    worst = ""
    if len(by_region):
        row = by_region.iloc[0]
        worst = f" Least covered: {row.region} ({quantity(float(row.coverage), 'fraction')})."
    return theme.finish(
        figure,
        name="prediction-calibration",
        title="Do the prediction intervals hold?",
        subtitle=f"Dashed: the stated level, {percent(result.level)}. Left, point: share of left-out values inside "
        "their intervals; bar: its 95 % interval by region. Right: one point per left-out region.",
        alt=f"Coverage of prediction intervals on left-out values. {result.sentence}",
        caption="Pairs and regions were left out, predicted from the others, and compared with the "
        f"measurements.{worst}",
        table=result.table(),
        note=note,
        headroom_px=HEADROOM_PX,
    )


def _add_regions(figure: go.Figure, result: PredictionCoverage) -> pd.DataFrame:
    """A strip of regions per quantity in the right panel; returns the first strip's rows, the worst first."""
    frames = {name: result.by_region(name) for name, situation in result.coverage if situation == "one"}
    for row, (name, frame) in enumerate(frames.items()):
        figure.add_scatter(
            x=frame.coverage,
            y=row + theme.spread(len(frame)),
            mode="markers",
            marker={"size": 7, "opacity": 0.7, "color": COLOURS[name]},
            text=[theme.plain(region) for region in frame.region],
            hovertemplate="%{text}<br>%{x:.0%}<extra></extra>",
            showlegend=False,
            row=1,
            col=2,
        )
    ticks = {"tickvals": list(range(len(frames))), "ticktext": [NAMES[name] for name in frames]}
    figure.update_yaxes(**ticks, autorange="reversed", zeroline=False, row=1, col=2)
    return next(iter(frames.values()), pd.DataFrame())
