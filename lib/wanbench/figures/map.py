"""A world map that asks no server, with our own coastline, and the regions on it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from ..formatting import count
from . import coastline, theme

LOWEST_LATITUDE, HIGHEST_LATITUDE = -58, 90
SMALLEST_POINT, RING_STEP = 6, 4


def region_map(regions: pd.DataFrame, *, note: str = "") -> go.Figure:
    """
    The regions of table `regions` on a world map, one colour per cloud.
    """
    figure = world()
    draw_regions(figure, regions, RING_STEP)
    clouds = regions.cloud.value_counts().sort_index()
    said = ", ".join(f"{theme.cloud_name(name)} {n}" for name, n in clouds.items())
    columns = ["name", "cloud", "city", "country", "latitude_deg", "longitude_deg"]
    return theme.finish(
        figure,
        name="region-map",
        title="Regions",
        subtitle=f"{count(len(regions), 'region')}: {said}. Rings: several clouds in one place.",
        alt=f"World map of {count(len(regions), 'region')}: {said}.",
        caption=f"Where the regions are ({said}). Coastline: Natural Earth.",
        table=regions[[name for name in columns if name in regions]],
        note=note,
    )


def world() -> go.Figure:
    """An empty world: coastline only. `visible=False` keeps plotly.js from fetching a base map."""
    figure = go.Figure()
    longitude, latitude = coastline.load()
    line = {"color": theme.LAND, "width": 1}
    figure.add_scattergeo(
        lon=longitude, lat=latitude, mode="lines", line=line, hoverinfo="skip", showlegend=False
    )
    figure.update_geos(
        visible=False,
        fitbounds=False,
        projection={"type": "natural earth"},
        lataxis={"range": [LOWEST_LATITUDE, HIGHEST_LATITUDE]},
        lonaxis={"range": [-180, 180]},
        bgcolor="white",
        domain={"x": [0, 1], "y": [0, 1]},
    )
    legend = {"orientation": "h", "x": 0, "y": 0, "yanchor": "top", "xanchor": "left"}
    figure.update_layout(legend=legend, margin={"l": 10, "r": 10, "b": 50})
    return figure


def draw_regions(figure: go.Figure, regions: pd.DataFrame, step: int) -> None:
    """Points of a size per cloud, the greatest first: where clouds share a city, they show as rings."""
    clouds = sorted(regions.cloud.unique())
    for number, cloud in enumerate(clouds):
        part = regions[regions.cloud == cloud]
        size = SMALLEST_POINT + step * (len(clouds) - 1 - number)
        marker = {"color": theme.colour(cloud), "size": size, "line": {"color": "white", "width": 1}}
        figure.add_scattergeo(
            lon=part.longitude_deg,
            lat=part.latitude_deg,
            mode="markers",
            name=theme.cloud_name(cloud),
            marker=marker,
            text=[
                f"{theme.plain(row.name_)}<br>{theme.plain(row.city)}" for row in _named(part).itertuples()
            ],
            hovertemplate="%{text}<extra></extra>",
        )


def _named(part: pd.DataFrame) -> pd.DataFrame:
    """`itertuples` keeps no column called name apart from the tuple's own."""
    return part.rename(columns={"name": "name_"})


def unit_vectors(places: pd.DataFrame) -> np.ndarray:
    latitude, longitude = (np.radians(places[name].to_numpy()) for name in ("latitude_deg", "longitude_deg"))
    return np.column_stack(
        [np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude), np.sin(latitude)]
    )
