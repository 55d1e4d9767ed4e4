"""Traces that figures of pairs share: points by pair of clouds, a line within its band, the floor set by light."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from wanbench.figures import primitives, theme
from wanbench.formatting import count
from wanbench.regions import light_rtt_ms

BAND_POINTS = 60  # Points of a line with its band: enough for a smooth edge
FEW_PAIRS = 100  # More pairs than this are drawn smaller and fainter, as they overlap
BAND_COLOUR = "rgba(31, 41, 51, 0.15)"
POINTS = "One point per pair of regions"
DISTANCE_AXIS = "great-circle distance (km)"


def add_points(
    figure: go.Figure, frame: pd.DataFrame, x: pd.Series, y: pd.Series, hover: str, *, legend=True, **cell
) -> None:
    """One trace of points per pair of clouds, those within one cloud first; `cell` is row and col of a panel."""
    names = sorted(frame.cloud_pair.unique(), key=lambda name: (len(set(name.split("-"))), name))
    size = {"size": 7, "opacity": 0.75} if len(frame) > FEW_PAIRS else {"size": 9, "opacity": 0.95}
    for name in names:
        part = frame.cloud_pair == name
        figure.add_scatter(
            x=x[part],
            y=y[part],
            mode="markers",
            name=theme.cloud_name(name),
            legendgroup=name,
            showlegend=legend,
            marker={"color": theme.colour(name), "symbol": theme.SYMBOLS.get(name, "circle")} | size,
            text=pair_labels(frame[part]),
            hovertemplate=f"%{{text}}<br>{hover}<extra></extra>",
            **cell,
        )


def add_line(figure: go.Figure, x, y, name: str, dash: str = "solid", **cell) -> None:
    """A fitted line."""
    style = {"color": theme.FIT, "width": 2.5, "dash": dash}
    figure.add_scatter(x=x, y=y, mode="lines", name=name, line=style, hoverinfo="skip", **cell)


def add_band(figure: go.Figure, band: pd.DataFrame, y: str, name: str) -> None:
    """A fitted line over its band (distance_km, y, low, high); no band without an interval."""
    primitives.band(figure, band.distance_km, band.low, band.high, color=BAND_COLOUR)
    add_line(figure, band.distance_km, band[y], name)


def add_light(figure: go.Figure, ends: np.ndarray, **cell) -> None:
    """The round trip of light in fibre between two distances in km."""
    figure.add_scatter(
        x=ends,
        y=light_rtt_ms(ends),
        mode="lines",
        name="light in fibre",
        line=primitives.REFERENCE,
        hoverinfo="skip",
        **cell,
    )


def distance_ends(frame: pd.DataFrame) -> np.ndarray:
    """Both ends of the axis of distances: 0, and a little more than the longest."""
    return np.array([0.0, frame.distance_km.max() * 1.02])


def pair_labels(frame: pd.DataFrame, ends=("region_a", "region_b"), join: str = " – ") -> list[str]:
    """The two regions of each pair, as Plotly shows them."""
    return [theme.plain(join.join(pair)) for pair in frame[list(ends)].to_numpy()]


def basis(sample) -> str:
    """The sample behind a figure: "66 pairs of 12 regions"."""
    return f"{count(sample.n_pairs, 'pair')} of {count(sample.n_regions, 'region')}"
