"""A world map that needs no server, and the regions on it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from . import coastline, theme

LATITUDES = (-58, 90)
"""Latitudes shown: without Antarctica, which has no region."""
ENDS = ("region_a", "region_b")
SMALLEST_POINT = 6
RING_STEP = 2
"""Difference of point size between clouds: a ring one pixel wide."""


def world() -> go.Figure:
    """An empty world, with the coastline only; `visible=False` keeps plotly.js from fetching a base map."""
    figure = go.Figure()
    longitude, latitude = coastline.load()
    line = {"color": theme.LAND, "width": 1}
    figure.add_scattergeo(lon=longitude, lat=latitude, mode="lines", line=line, hoverinfo="skip", showlegend=False)
    figure.update_geos(
        visible=False,
        fitbounds=False,
        projection={"type": "natural earth"},
        lataxis={"range": LATITUDES},
        lonaxis={"range": [-180, 180]},
        bgcolor="white",
        domain={"x": [0, 1], "y": [0, 1]},
    )
    legend = {"orientation": "h", "x": 0, "y": 0, "yanchor": "top", "xanchor": "left"}
    figure.update_layout(legend=legend, margin={"l": 10, "r": 10, "b": 50})
    return figure


def draw_regions(figure: go.Figure, regions: pd.DataFrame) -> None:
    """Points with a size per cloud, the largest first, so that clouds in one city show as rings."""
    clouds = sorted(regions.cloud.unique())
    for number, cloud in enumerate(clouds):
        part = regions[regions.cloud == cloud]
        size = SMALLEST_POINT + RING_STEP * (len(clouds) - 1 - number)
        marker = {"color": theme.colour(cloud), "size": size, "line": {"color": "white", "width": 1}}
        figure.add_scattergeo(
            lon=part.longitude_deg,
            lat=part.latitude_deg,
            mode="markers",
            name=theme.cloud_name(cloud),
            marker=marker,
            text=[
                f"{theme.plain(name)}<br>{theme.plain(city)}"
                for name, city in zip(part["name"], part.city, strict=True)
            ],
            hovertemplate="%{text}<extra></extra>",
        )


def draw_pairs(figure: go.Figure, pairs: pd.DataFrame, places: pd.DataFrame, *, name: str, line: dict, opacity) -> None:
    """Draw pairs (region_a, region_b) of `places`, indexed by name, as great circles of one style, in one trace."""
    longitude, latitude = (
        np.column_stack([*(places[axis][pairs[end]] for end in ENDS), np.full(len(pairs), np.nan)]).ravel()
        for axis in ("longitude_deg", "latitude_deg")
    )
    style = {"mode": "lines", "name": name, "line": line, "opacity": opacity, "hoverinfo": "skip"}
    figure.add_scattergeo(lon=longitude, lat=latitude, **style)


def label_pairs(figure: go.Figure, pairs: pd.DataFrame, places: pd.DataFrame, texts) -> None:
    """Put a point that shows its text on hover halfway along each pair."""
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
    """Points on the unit sphere, (n, 3), from columns latitude_deg and longitude_deg."""
    latitude, longitude = (np.radians(places[name].to_numpy()) for name in ("latitude_deg", "longitude_deg"))
    return np.column_stack(
        [np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude), np.sin(latitude)]
    )
