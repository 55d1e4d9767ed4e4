"""A map for a region whose RTTs contradict its coordinates: its stated place, and the area that the RTTs allow."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from wanbench.checks import refusal
from wanbench.figures import theme
from wanbench.figures.primitives import world
from wanbench.formatting import count, number
from wanbench.read.plausibility.places import Area, circle, great_circle_km, position
from wanbench.read.plausibility.rules import geolocate

TAKEN_AS_EXACT_KM = 1.0  # Coordinates are taken as exact: their stated precision would hide an error
MAX_DISCS = 8  # Number of circles drawn: more would cover the map, and larger circles hardly limit the area
MARGIN_DEG = 6.0
MIN_SPAN_DEG = 30.0  # A smaller part of the world may show no coast
STYLES = ((theme.OUTSIDE, 13, "x"), (theme.COLOURS["gcp"], 12, "diamond"))
COORDINATES = ["latitude_deg", "longitude_deg"]


@theme.styled
def misplaced(tables: Mapping[str, pd.DataFrame], region: str, catalogue: pd.DataFrame) -> go.Figure:
    """
    Draw the stated place of an imported region, the area that its RTTs allow, and its place in the catalogue.

    Parameters
    ----------
    tables : mapping of DataFrame
        Tables of an importer; `regions` has the stated places. Other flagged regions are not used as landmarks.
    region : str
        The region to locate.
    catalogue : DataFrame
        Table `regions` with the catalogue's coordinates.
    """
    stated, listed = (rows.set_index("name") for rows in (tables["regions"], catalogue))
    if region not in stated.index:
        raise refusal("region", region, "a region of table regions")
    flags = tables["flags"]
    others = set(flags.region[flags.scope == "region"]) - {region}
    exact = tables["regions"].assign(precision_km=TAKEN_AS_EXACT_KM)
    area = geolocate(tables, region, regions=exact, without=others)
    places = {"stated place": stated} | ({"the catalogue's place": listed} if region in listed.index else {})
    return geolocation(area, {name: tuple(rows.loc[region, COORDINATES]) for name, rows in places.items()})


def geolocation(area: Area, places: Mapping[str, tuple[float, float]]) -> go.Figure:
    """
    Draw the discs that a region's RTTs allow around its nearest landmarks, their common area, and candidate places.

    area: The result of `plausibility.geolocate`.
    places: Latitude and longitude of each candidate by name, the stated place first; at most two.
    """
    figure = world()
    discs = area.discs.sort_values("radius_km").head(MAX_DISCS)
    for disc in discs.itertuples(index=False):
        latitude, longitude = circle(disc.latitude_deg, disc.longitude_deg, disc.radius_km)
        figure.add_scattergeo(
            lat=latitude.round(3),
            lon=longitude.round(3),
            mode="lines",
            line={"color": theme.LIGHT, "width": 1.5},
            text=f"{theme.plain(disc.region)}: {disc.rtt_ms:.1f} ms",
            hovertemplate="%{text}<extra></extra>",
            showlegend=False,
        )
    filled = area.points.latitude_deg, area.points.longitude_deg
    _points(figure, *filled, "allowed by all discs", theme.WITHIN, 3, "circle", opacity=0.3)
    _points(figure, discs.latitude_deg, discs.longitude_deg, "nearest landmarks", theme.MUTED, 6, "circle")
    for (name, place), style in zip(places.items(), STYLES, strict=False):
        _points(figure, [place[0]], [place[1]], theme.plain(name), *style)
    stated = next(iter(places.values()))
    shown = [*discs[COORDINATES].head(3).to_numpy(), *places.values(), *area.points[COORDINATES].to_numpy()]
    _frame(figure, np.array(shown))
    discs_in_all = count(len(area.discs), "disc")
    summary, where = f"No place on earth lies in all {discs_in_all}.", f"No place fits the RTTs of {area.region}"
    if not area.empty:
        away_km = float(great_circle_km(*stated, area.latitude_deg, area.longitude_deg))
        summary = (
            f"All {discs_in_all} overlap in an area of {number(area.area_km2, -3)} km2 around "
            f"{position(area.latitude_deg, area.longitude_deg)}. The stated place, {position(*stated)}, is "
            f"{away_km:,.0f} km away."
        )
        where = f"RTTs put {area.region} {away_km:,.0f} km from its stated place"
    drawn = [("middle of the allowed area", area.latitude_deg, area.longitude_deg, area.radius_km)]
    drawn += [(name, *place, 0.0) for name, place in places.items()]
    columns = ["place", *COORDINATES, "radius_km"]
    numbers = area.discs.rename(columns={"region": "place"})[[*columns, "rtt_ms"]]
    return theme.finish(
        figure,
        name="geolocation",
        title=theme.headline(where, f"Where {area.region} may be"),
        subtitle="Circles: the distance that light in fibre covers in half the RTT to a landmark (the "
        f"{len(discs)} smallest are drawn). {summary}",
        alt=f"Map of the place of {area.region}. {summary}",
        caption=f"Constraint-based geolocation (Gueye et al. 2006) of {area.region}. {summary} "
        "Coastline: Natural Earth.",
        table=pd.concat([pd.DataFrame(drawn, columns=columns), numbers]),
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
    """Zoom the map to the points; leave the whole world if they span more than 180 degrees."""
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
