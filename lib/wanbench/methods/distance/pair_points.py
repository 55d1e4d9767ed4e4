"""Draw pairs of regions: points by pair of clouds, a line with its band, and the round trip of light."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from wanbench.figures import primitives, theme
from wanbench.formatting import count
from wanbench.methods.regions.pairs import Sample
from wanbench.regions import light_rtt_ms

BAND_POINTS = 60  # Points of a line with its band: enough for a smooth edge
FEW_PAIRS = 100  # More pairs than this are drawn smaller and fainter, as they overlap
BAND_COLOUR = "rgba(31, 41, 51, 0.15)"
POINTS = "One point per pair of regions"
HOVER = {"rtt_ms": "%{y:.1f} ms", "throughput_bps": "%{y:.3s}bit/s"}
DISTANCE_AXIS = "great-circle distance (km)"


def add_points(figure: go.Figure, frame: pd.DataFrame, x: pd.Series, y: pd.Series, hover: str) -> None:
    """
    Add a trace of points per pair of clouds; pairs within one cloud come first.

    x, y: A value per row of `frame`.
    hover: Plotly's template of the hover text below a pair's name.
    """
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
            showlegend=True,
            marker={"color": theme.colour(name), "symbol": theme.SYMBOLS.get(name, "circle")} | size,
            text=pair_labels(frame[part]),
            hovertemplate=f"%{{text}}<br>{hover}<extra></extra>",
        )


def against_distance(
    frame: pd.DataFrame, band_of: Callable[[np.ndarray], pd.DataFrame], column: str, name: str
) -> go.Figure:
    """
    Draw the values of pairs against distance, with a fitted line and its band.

    band_of: Takes distances in km and returns the line with its band: distance_km, `column`, low, high.
    column: "rtt_ms" (which also draws the round trip of light in fibre) or "throughput_bps".
    name: The line's name in the legend.
    """
    figure, ends = go.Figure(), distance_ends(frame)
    add_points(figure, frame, frame.distance_km, frame.value, f"%{{x:,.0f}} km<br>{HOVER[column]}")
    if column == "rtt_ms":
        light = {"name": "light in fibre", "line": primitives.REFERENCE}
        figure.add_scatter(x=ends, y=light_rtt_ms(ends), mode="lines", hoverinfo="skip", **light)
    band = band_of(np.linspace(ends[0], ends[1], BAND_POINTS))
    primitives.band(figure, band.distance_km, band.low, band.high, color=BAND_COLOUR)
    style = {"color": theme.FIT, "width": 2.5, "dash": "solid"}
    figure.add_scatter(x=band.distance_km, y=band[column], mode="lines", name=name, line=style, hoverinfo="skip")
    return figure.update_xaxes(title=DISTANCE_AXIS, range=ends, tickformat=",d")


def distance_ends(frame: pd.DataFrame) -> np.ndarray:
    """Return the range of the distance axis in km: from 0 to slightly beyond the longest distance."""
    return np.array([0.0, frame.distance_km.max() * 1.02])


def pair_labels(frame: pd.DataFrame) -> list[str]:
    """Return the label of each pair, "region – region", escaped for Plotly."""
    return [theme.plain(" – ".join(pair)) for pair in frame[["region_a", "region_b"]].to_numpy()]


def basis(sample: Sample) -> str:
    """Return the size of a sample as text, such as "66 pairs of 12 regions"."""
    return f"{count(sample.n_pairs, 'pair')} of {count(sample.n_regions, 'region')}"
