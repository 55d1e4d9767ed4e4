"""Models of throughput: their scores on left-out regions, and the pairs that none of them explains."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from wanbench.errors import ParameterError
from wanbench.figures import theme
from wanbench.figures.primitives import draw_regions, interval_points, unit_vectors, world
from wanbench.formatting import count, percent, quantity

from .compare_models import RULE, ModelComparison
from .scores import BEST, TIED, WORSE

TONES = {BEST: theme.WITHIN, TIED: theme.FIT, WORSE: theme.OUTSIDE}
ROW_PX = 44
"""Height of a model's row: its name, and the point with its interval, without touching the next."""
TOP_PX = 150
"""Room for title, subtitle and legend."""
MIN_ROWS = 5
"""The figure is at least as high as with so many models, so that its title does not fill it."""


def model_scores(comparison: ModelComparison, *, note: str = "") -> go.Figure:
    """The error of each model on left-out regions with its interval, and in sample, the best on top."""
    scores = comparison.scores
    worst = float(np.nanmax(scores[["error_factor", "high", "in_sample_factor"]].to_numpy()))
    figure = go.Figure()
    figure.add_scatter(
        x=scores.in_sample_factor,
        y=scores.model,
        mode="markers",
        name="in sample",
        marker={"symbol": "circle-open", "size": 9, "color": theme.LIGHT},
        hovertemplate="%{y}, in sample: factor %{x:.3f}<extra></extra>",
    )
    for verdict, tone in TONES.items():
        part = scores[scores.verdict == verdict]
        if part.empty:
            continue
        interval_points(
            figure,
            part.model,
            part.error_factor,
            part.low,
            part.high,
            name=verdict,
            marker={"size": 9, "color": tone},
            bar={"width": 4},
            customdata=[theme.plain(text) for text in part.fitted],
            hovertemplate="%{y}: factor %{x:.3f}<br>%{customdata}<extra></extra>",
        )
    figure.update_yaxes(categoryorder="array", categoryarray=list(scores.model)[::-1])
    figure.update_xaxes(
        title="error of the predicted throughput (factor, log axis)", type="log", range=[-0.01, np.log10(worst * 1.05)]
    )
    figure.update_layout(height=TOP_PX + ROW_PX * max(len(scores), MIN_ROWS))
    return theme.finish(
        figure,
        name="throughput-models",
        title="Models of throughput on regions they have not seen",
        subtitle="Exponential of the mean absolute log error when a pair's region is left out of the fit; bars: "
        f"{percent(comparison.level)} interval by region. {comparison.counted} of "
        f"{count(comparison.n_regions, 'region')}.",
        alt=f"Points with intervals for {count(len(scores), 'model')}. {comparison.sentence}",
        caption=f"{comparison.sentence} Verdicts come from the differences pair by pair, not from whether these bars "
        "overlap.",
        table=scores,
        note=note,
    )


def unexplained_map(comparison: ModelComparison, regions: pd.DataFrame, *, note: str = "") -> go.Figure:
    """The pairs that none of the models explains, as great circles: faster or slower than all models say."""
    frame = comparison.unexplained
    catalogue = regions.set_index("name")
    used = sorted({*comparison.pairs.region_a, *comparison.pairs.region_b})
    if missing := [name for name in used if name not in catalogue.index]:
        raise ParameterError(f"table regions lacks {', '.join(missing[:3])} of {len(missing)} in the pairs")
    figure = world()
    counts = []
    for name, part, dash in (
        ("faster than all models say", frame[frame.closest_ratio > 1], "dot"),
        ("slower than all models say", frame[frame.closest_ratio < 1], "solid"),
    ):
        counts.append(f"{len(part):,} {name}")
        if not part.empty:
            _circles(figure, part, catalogue, name, dash)
    draw_regions(figure, catalogue.loc[used].reset_index())
    share = f"{len(frame):,} of {comparison.counted}"
    sides = "; ".join(counts)
    return theme.finish(
        figure,
        name="throughput-unexplained",
        title="Pairs whose throughput no model explains",
        subtitle=f"{share}: {sides}. A pair is drawn if {RULE}.",
        alt=f"World map with {share} that no model explains: {sides}.",
        caption=f"{share} whose throughput no model explains ({sides}). Coastline: Natural Earth.",
        table=frame,
        note=note,
    )


def _circles(figure: go.Figure, part: pd.DataFrame, catalogue: pd.DataFrame, name: str, dash: str) -> None:
    """Great circles of one style, and a point halfway along each for its label."""
    ends = [catalogue.loc[part[end]] for end in ("region_a", "region_b")]
    gap = np.full(len(part), np.nan)
    line = {
        axis: np.column_stack([ends[0][column], ends[1][column], gap]).ravel()
        for axis, column in (("lon", "longitude_deg"), ("lat", "latitude_deg"))
    }
    figure.add_scattergeo(
        **line,
        mode="lines",
        name=name,
        line={"color": theme.FIT, "width": 1.5, "dash": dash},
        opacity=0.6,
        hoverinfo="skip",
    )
    middle = sum(unit_vectors(end) for end in ends)
    figure.add_scattergeo(
        lon=np.degrees(np.arctan2(middle[:, 1], middle[:, 0])).round(2),
        lat=np.degrees(np.arctan2(middle[:, 2], np.hypot(middle[:, 0], middle[:, 1]))).round(2),
        mode="markers",
        marker={"size": 6, "opacity": 0},
        text=[
            f"{theme.plain(row.region_a)} – {theme.plain(row.region_b)}<br>"
            f"{quantity(row.throughput_bps, 'bit/s')}, {row.closest_ratio:.2f} times the closest model"
            for row in part.itertuples()
        ],
        hovertemplate="%{text}<extra></extra>",
        showlegend=False,
    )
