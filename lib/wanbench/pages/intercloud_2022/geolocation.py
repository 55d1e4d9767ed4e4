"""A region whose round trips contradict its coordinates: stated place, allowed area, the catalogue's place."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from wanbench.checks import refusal
from wanbench.figures import theme
from wanbench.figures.map import world
from wanbench.formatting import count, number
from wanbench.read.plausibility.geolocation import Area, circle, position
from wanbench.read.plausibility.positions import great_circle_km
from wanbench.read.plausibility.rules import geolocate

TAKEN_AS_EXACT_KM = 1.0
"""Coordinates are taken as exact: their stated precision would hide an error."""


def misplaced(
    tables: Mapping[str, pd.DataFrame], region: str, catalogue: pd.DataFrame | None = None, *, note: str = ""
) -> go.Figure:
    """
    The stated place of a region in imported tables, and the area that its round trips allow.

    Parameters
    ----------
    tables : mapping of DataFrame
        As from an importer; `regions` has the stated places. Other flagged regions are not used as landmarks.
    region : str
        The region to locate.
    catalogue : DataFrame, optional
        Table `regions` with other coordinates, drawn as the candidate.
    """
    stated = _place(tables.get("regions"), region)
    if stated is None:
        raise refusal("region", region, "a region of table regions")
    flags = tables["flags"]
    others = set(flags.region[flags.scope == "region"]) - {region}
    area = geolocate(tables, region, regions=tables["regions"].assign(precision_km=TAKEN_AS_EXACT_KM), without=others)
    candidate = _place(catalogue, region)
    named = ("the catalogue's place", *candidate) if candidate else None
    return geolocation(area, stated=stated, candidate=named, note=note)


def _place(regions: pd.DataFrame | None, region: str) -> tuple[float, float] | None:
    rows = None if regions is None else regions[regions.name == region]
    if rows is None or rows.empty:
        return None
    return float(rows.latitude_deg.iloc[0]), float(rows.longitude_deg.iloc[0])


MAX_DISCS = 8
"""More circles would cover the map; larger ones hardly bound the area."""
MARGIN_DEG = 6.0
MIN_SPAN_DEG = 30.0
"""A smaller part of the world shows no coast by which one knows it."""


def geolocation(
    area: Area,
    *,
    stated: tuple[float, float] | None = None,
    candidate: tuple[str, float, float] | None = None,
    note: str = "",
) -> go.Figure:
    """
    The discs that a region's RTTs allow around its nearest landmarks, their common area, the stated place and another
    candidate.

    Parameters
    ----------
    area : Area
        As from `plausibility.geolocate`.
    stated : latitude and longitude, optional
        The stated place, in degrees.
    candidate : name, latitude and longitude, optional
        Another place it may be at.
    """
    figure = world()
    discs = area.discs.sort_values("radius_km").head(MAX_DISCS)
    for disc in discs.itertuples(index=False):
        latitude, longitude = circle(disc.latitude_deg, disc.longitude_deg, disc.radius_km)
        _line(figure, latitude, longitude, f"{theme.plain(disc.region)}: {disc.rtt_ms:.1f} ms")
    filled = area.points.latitude_deg, area.points.longitude_deg
    _points(figure, *filled, "allowed by all discs", theme.WITHIN, 3, "circle", opacity=0.3)
    _points(figure, discs.latitude_deg, discs.longitude_deg, "nearest landmarks", theme.MUTED, 6, "circle")
    shown = [(disc.latitude_deg, disc.longitude_deg) for disc in discs.itertuples(index=False)][:3]
    away = np.nan
    if stated is not None:
        _points(figure, [stated[0]], [stated[1]], "stated place", theme.OUTSIDE, 13, "x")
        shown.append(stated)
        away = float(great_circle_km(*stated, area.latitude_deg, area.longitude_deg))
    if candidate is not None:
        _points(figure, [candidate[1]], [candidate[2]], theme.plain(candidate[0]), theme.COLOURS["gcp"], 12, "diamond")
        shown.append(candidate[1:])
    if not area.empty:
        shown += list(area.points[["latitude_deg", "longitude_deg"]].itertuples(index=False, name=None))
    _frame(figure, np.array(shown))
    summary = _summary(area, stated, away)
    return theme.finish(
        figure,
        name="geolocation",
        title=f"Where {area.region} may be",
        subtitle="Circles: as far as light in fibre gets within half the RTT, around a landmark (the "
        f"{len(discs)} smallest are drawn). {summary}",
        alt=f"Map of the place of {area.region}. {summary}",
        caption=f"Constraint-based geolocation (Gueye et al. 2006) of {area.region}. {summary} "
        "Coastline: Natural Earth.",
        table=_numbers(area, stated, candidate),
        note=note,
    )


def _summary(area: Area, stated, away: float) -> str:
    if area.empty:
        return f"No place on earth lies in all of the {count(len(area.discs), 'disc')}."
    common = (
        f"The {count(len(area.discs), 'disc')} have {number(area.area_km2, -3)} km2 in common, around "
        f"{position(area.latitude_deg, area.longitude_deg)}."
    )
    if stated is None:
        return common
    return f"{common} The stated place, {position(*stated)}, is {away:,.0f} km from there."


def _line(figure, latitude, longitude, text) -> None:
    figure.add_scattergeo(
        lat=latitude.round(3),
        lon=longitude.round(3),
        mode="lines",
        line={"color": theme.LIGHT, "width": 1.5},
        text=text,
        hovertemplate="%{text}<extra></extra>",
        showlegend=False,
    )


def _points(figure, latitude, longitude, name, colour, size, symbol, opacity=1.0) -> None:
    figure.add_scattergeo(
        lat=np.round(np.asarray(latitude, dtype=float), 3),
        lon=np.round(np.asarray(longitude, dtype=float), 3),
        mode="markers",
        name=name,
        marker={"color": colour, "size": size, "symbol": symbol, "opacity": opacity},
        hovertemplate=f"{name}<br>%{{lat:.2f}}, %{{lon:.2f}}<extra></extra>",
    )


def _frame(figure, shown: np.ndarray) -> None:
    """The part of the world that holds the points; all of it where they lie on both sides of the date line."""
    low, high = shown.min(axis=0) - MARGIN_DEG, shown.max(axis=0) + MARGIN_DEG
    short = np.maximum(MIN_SPAN_DEG - (high - low), 0) / 2
    low, high = low - short, high + short
    if high[1] - low[1] > 180:
        return
    figure.update_geos(
        projection={"type": "equirectangular"},
        lataxis={"range": [max(low[0], -90), min(high[0], 90)]},
        lonaxis={"range": [low[1], high[1]]},
    )


def _numbers(area: Area, stated, candidate) -> pd.DataFrame:
    places = [("middle of the allowed area", area.latitude_deg, area.longitude_deg, area.radius_km)]
    places += [("stated place", *stated, 0.0)] if stated is not None else []
    places += [(*candidate, 0.0)] if candidate is not None else []
    frame = pd.DataFrame(places, columns=["place", "latitude_deg", "longitude_deg", "radius_km"])
    discs = area.discs.rename(columns={"region": "place"})
    return pd.concat([frame, discs[["place", "latitude_deg", "longitude_deg", "radius_km", "rtt_ms"]]])
