"""Maps of regions and links that ask no server: our own coastline, no base map."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from ..errors import ParameterError
from ..stats.sample import unordered
from ..wording import count, decimals, quantity, scale, span
from . import coastline, theme

VALUES = {
    # column: (title, unit, how both directions combine)
    "throughput_bps": ("throughput", "bit/s", "geometric mean"),
    "rtt_ms": ("round-trip time", "ms", "median"),
}
CLASSES = 6
RAMP = ("#2B1B5A", "#4A3C9A", "#2F7EBC", "#3FB5A3", "#A8C545", "#F2B134")
LOWEST_LATITUDE, HIGHEST_LATITUDE = -58, 90
FEW_LINKS = 60
SMALLEST_POINT, RING_STEP = 6, 4


def region_map(regions: pd.DataFrame, *, note: str = "") -> go.Figure:
    """
    The regions of table `regions` on a world map, one colour per cloud.
    """
    figure = _world()
    _regions(figure, regions, RING_STEP)
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


def link_map(
    pairs: pd.DataFrame, regions: pd.DataFrame, *, value: str = "throughput_bps", note: str = ""
) -> go.Figure:
    """
    The measured pairs as great circles on a world map, coloured by throughput or RTT.

    Parameters
    ----------
    pairs, regions : DataFrame
        Tables of these names.
    value : str
        "throughput_bps" or "rtt_ms". Colours are classes with equal numbers of pairs; darker is worse.
    """
    if value not in VALUES:
        raise ParameterError(f"value={value!r}: allowed are {', '.join(VALUES)}")
    what, unit, combine = VALUES[value]
    sample = unordered(pairs, value, combine=combine)
    known = regions.set_index("name")
    missing = sorted(set(sample.regions) - set(known.index))
    if missing:
        raise ParameterError(f"table regions lacks {', '.join(missing[:3])} of {len(missing)} in the pairs")
    frame = sample.frame.rename(columns={"value": value})
    figure = _world()
    _links(figure, frame, known, value, unit)
    _regions(figure, known.loc[sample.regions].reset_index(), RING_STEP // 2)
    middle = quantity(float(frame[value].median()), unit) if len(frame) else "unknown"
    low, high = (quantity(float(end), unit) for end in (frame[value].min(), frame[value].max()))
    return theme.finish(
        figure,
        name=f"link-map-{what.replace(' ', '-').replace('round-trip-time', 'rtt')}",
        title=f"{what[0].upper()}{what[1:]} between regions",
        subtitle=f"One great circle per pair of regions ({combine} of both directions); darker is worse.",
        alt=f"World map of {count(len(frame), 'pair')} between {count(sample.n_regions, 'region')}; {what} from "
        f"{low} to {high}, median {middle}.",
        caption=f"{what[0].upper()}{what[1:]} of {count(len(frame), 'pair')}, from {low} to {high}, median "
        f"{middle}. Coastline: Natural Earth.",
        table=frame[["region_a", "region_b", "cloud_pair", "distance_km", value]],
        note=note,
    )


def _world() -> go.Figure:
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


def _regions(figure: go.Figure, regions: pd.DataFrame, step: int) -> None:
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


def _links(figure: go.Figure, frame: pd.DataFrame, known: pd.DataFrame, value: str, unit: str) -> None:
    """One trace per class of value, and a point halfway along each link for its label."""
    if frame.empty:
        return
    classes = min(CLASSES, frame[value].nunique())
    edges = np.quantile(frame[value], np.linspace(0, 1, classes + 1))
    number = np.clip(np.searchsorted(edges, frame[value], side="right") - 1, 0, classes - 1)
    order = reversed(range(classes)) if value == "rtt_ms" else range(classes)
    few = len(frame) < FEW_LINKS
    factor, scaled = scale(unit, float(frame[value].median()))
    for each in order:
        part = frame[number == each]
        if part.empty:
            continue
        rank = each if value != "rtt_ms" else classes - 1 - each
        tone = RAMP[round(rank * (len(RAMP) - 1) / max(classes - 1, 1))]
        ends = [edge / factor for edge in edges[each : each + 2]]
        name = f"{span(*ends, max(decimals(ends[1]), 0))} {scaled}"
        longitude, latitude = [], []
        for row in part.itertuples():
            for end in (row.region_a, row.region_b):
                longitude.append(known.longitude_deg[end])
                latitude.append(known.latitude_deg[end])
            longitude.append(None)
            latitude.append(None)
        figure.add_scattergeo(
            lon=longitude,
            lat=latitude,
            mode="lines",
            name=name,
            line={"color": tone, "width": 2.5 if few else 1},
            opacity=0.85 if few else 0.35,
            hoverinfo="skip",
        )
    _halfway(figure, frame, known, value, unit)


def _halfway(figure: go.Figure, frame: pd.DataFrame, known: pd.DataFrame, value: str, unit: str) -> None:
    ends = [_unit_vectors(known.loc[frame[name]]) for name in ("region_a", "region_b")]
    middle = ends[0] + ends[1]
    text = [
        f"{theme.plain(row.region_a)} – {theme.plain(row.region_b)}<br>{quantity(getattr(row, value), unit)}"
        for row in frame.itertuples()
    ]
    figure.add_scattergeo(
        lon=np.degrees(np.arctan2(middle[:, 1], middle[:, 0])).round(2),
        lat=np.degrees(np.arctan2(middle[:, 2], np.hypot(middle[:, 0], middle[:, 1]))).round(2),
        mode="markers",
        marker={"size": 6, "opacity": 0},
        text=text,
        hovertemplate="%{text}<extra></extra>",
        showlegend=False,
    )


def _unit_vectors(places: pd.DataFrame) -> np.ndarray:
    latitude, longitude = (np.radians(places[name].to_numpy()) for name in ("latitude_deg", "longitude_deg"))
    return np.column_stack(
        [np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude), np.sin(latitude)]
    )
