"""Look up coordinates of regions, compute distances, and locate a region from RTTs (Gueye et al. 2006)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from wanbench import regions as catalogue_of_regions
from wanbench.regions import LIGHT_RTT_MS_PER_KM, geodesic_km

from .rule import IMPOSSIBLE, RULES, Flag

EARTH_RADIUS_KM = 6371.0088
Angle = float | np.ndarray | pd.Series  # one or several, in degrees unless stated otherwise
DEFAULT_PRECISION_KM = 50.0  # A metropolitan area: clouds give no more than a city.
MAX_PRECISION_KM = 600.0  # The coarsest precision in the catalogue; coarser coordinates would hide every error.
SPHERE_SLACK = 1.006  # A great circle on the mean sphere and the WGS-84 geodesic differ by at most 0.56 %.


def known_places(*overrides: pd.DataFrame | None) -> pd.DataFrame:
    """
    Return coordinates by region name, from the catalogue and from `overrides`: tables `regions`, which take precedence.

    If an override states no precision, the catalogue's precision for this region is used, or else 50 km. A precision
    above 600 km is reduced to 600 km.
    """
    columns = ["name", "latitude_deg", "longitude_deg", "precision_km"]
    stated = [regions[on_earth(regions)] for regions in overrides if regions is not None]
    parts = [catalogue_of_regions.catalogue(), *stated]
    places = pd.concat([part[columns] for part in parts], ignore_index=True)
    precise = places.dropna(subset="precision_km").drop_duplicates("name").set_index("name").precision_km
    places = places.drop_duplicates("name", keep="last").set_index("name")
    default = places.index.to_series().map(precise).fillna(DEFAULT_PRECISION_KM)
    return places.assign(precision_km=places.precision_km.fillna(default).clip(upper=MAX_PRECISION_KM))


def distances(places: pd.DataFrame, first: pd.Series, second: pd.Series) -> pd.DataFrame:
    """
    Return distance_km and tolerance_km for each pair of regions, given by the series `first` and `second`.

    tolerance_km is the sum of the precisions of both places, by which the hosts may be closer. Both columns are NaN if
    a region is not in `places`.
    """
    coordinates = places[["latitude_deg", "longitude_deg"]].astype(float).itertuples(index=False, name=None)
    points = dict(zip(places.index, coordinates, strict=True))
    pairs = {pair for pair in zip(first, second, strict=True) if points.keys() >= set(pair)}
    distance_km = {(a, b): geodesic_km(points[a], points[b]) for a, b in pairs}
    distance = [distance_km.get(pair, np.nan) for pair in zip(first, second, strict=True)]
    tolerance = first.map(places.precision_km) + second.map(places.precision_km)
    return pd.DataFrame({"distance_km": distance, "tolerance_km": tolerance}, index=first.index, dtype=float)


def great_circle_km(latitude: Angle, longitude: Angle, other_latitude: Angle, other_longitude: Angle) -> Any:
    """
    Return great-circle distances in km on the mean sphere between points in degrees: a number for numbers, else
    an array or a Series.

    >>> great_circle_km(0.0, 0.0, 0.0, 90.0).round()
    np.float64(10008.0)
    """
    phi, psi = np.radians(latitude), np.radians(other_latitude)
    half = np.radians(np.subtract(other_longitude, longitude)) / 2
    a = np.sin((psi - phi) / 2) ** 2 + np.cos(phi) * np.cos(psi) * np.sin(half) ** 2
    return 2 * EARTH_RADIUS_KM * np.arcsin(np.sqrt(np.clip(a, 0, 1)))


def kilometres_to(places: pd.DataFrame, latitude: Angle, longitude: Angle) -> np.ndarray:
    """Return great-circle distances in km of points (rows) to places (columns)."""
    points = np.atleast_1d(latitude)[:, None], np.atleast_1d(longitude)[:, None]
    return great_circle_km(*points, places.latitude_deg.to_numpy(), places.longitude_deg.to_numpy())


def destination(latitude: Angle, longitude: Angle, angle: Angle, bearing: Angle) -> tuple[Any, Any]:
    """
    Return latitude and longitude (degrees) of the points at a distance and a bearing from given points.

    The distance is an angle at the earth's centre, the bearing clockwise from north; all arguments are in radians.
    """
    sine = np.sin(latitude) * np.cos(angle) + np.cos(latitude) * np.sin(angle) * np.cos(bearing)
    east = np.sin(bearing) * np.sin(angle) * np.cos(latitude)
    turned = longitude + np.arctan2(east, np.cos(angle) - np.sin(latitude) * sine)
    return np.degrees(np.arcsin(np.clip(sine, -1, 1))), (np.degrees(turned) + 180) % 360 - 180


EARTH = RULES["earth"]


def on_earth(regions: pd.DataFrame) -> pd.Series:
    """Return a mask of the regions with valid latitude and longitude."""
    return regions.latitude_deg.between(-90, 90) & regions.longitude_deg.between(-180, 180)


def check_earth(*tables: pd.DataFrame | None) -> list[Flag]:
    """Flag each region with an invalid latitude or longitude; other rules use the catalogue's place for it."""
    flags = []
    for regions in tables:
        for row in () if regions is None else regions[~on_earth(regions)].itertuples(index=False):
            exchanged = abs(row.longitude_deg) <= 90 and abs(row.latitude_deg) <= 180
            found = f"{row.name} is stated at latitude {row.latitude_deg:g}, longitude {row.longitude_deg:g}"
            cause = "latitude and longitude are exchanged" if exchanged else "not degrees, or one digit too many"
            where = {"region": row.name, "value": float(row.latitude_deg), "bound": 90.0}
            flags.append(EARTH.flag("regions", "region", IMPOSSIBLE, found, cause, **where))
    return flags


N_POINTS = 6_000  # Points that fill a disc: 60 for each per cent of its area.
GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))


@dataclass(frozen=True)
class Area:
    """
    The part of the earth where a region can be, according to its RTTs.

    `latitude_deg` and `longitude_deg` are the area's centre (NaN if no place on earth is allowed), and `radius_km` is
    the distance from the centre to the area's farthest point. `discs` has a row per landmark, a region to which RTTs
    were measured: region, latitude_deg, longitude_deg, rtt_ms, radius_km. `points` (latitude_deg, longitude_deg) fill
    the area evenly.
    """

    region: str
    latitude_deg: float
    longitude_deg: float
    radius_km: float
    area_km2: float
    discs: pd.DataFrame
    points: pd.DataFrame

    @property
    def empty(self) -> bool:
        return not len(self.points)

    def allows(self, latitude: Angle, longitude: Angle, slack_km: float = 0.0) -> np.ndarray:
        """Return, for each place, whether it lies within all discs after their radii are enlarged by `slack_km`."""
        away = kilometres_to(self.discs, latitude, longitude)
        return (away <= (self.discs.radius_km.to_numpy() + slack_km) * SPHERE_SLACK).all(axis=1)


def position(latitude: float, longitude: float) -> str:
    """
    Format coordinates for a sentence.

    >>> position(-23.55, -46.63)
    '23.55 S 46.63 W'
    """
    return f"{abs(latitude):.2f} {'S' if latitude < 0 else 'N'} {abs(longitude):.2f} {'W' if longitude < 0 else 'E'}"


def locate(region: str, landmarks: pd.DataFrame) -> Area:
    """
    Return where a region can be: the intersection of discs around its landmarks.

    The radius of a disc is the distance that light in fibre covers in half the RTT, c RTT / (2 n), plus the precision
    of the landmark's coordinates. `landmarks` has the columns region, latitude_deg, longitude_deg, precision_km and
    rtt_ms (the minimum).
    """
    radius = landmarks.rtt_ms / LIGHT_RTT_MS_PER_KM + landmarks.precision_km
    discs = landmarks[["region", "latitude_deg", "longitude_deg", "rtt_ms"]].assign(radius_km=radius)
    smallest = discs.loc[discs.radius_km.idxmin()]
    reach = min(smallest.radius_km * SPHERE_SLACK, np.pi * EARTH_RADIUS_KM)
    latitude, longitude = cap(smallest.latitude_deg, smallest.longitude_deg, reach)
    bare = Area(region, np.nan, np.nan, 0.0, 0.0, discs, pd.DataFrame())
    inside = bare.allows(latitude, longitude)
    points = pd.DataFrame({"latitude_deg": latitude[inside], "longitude_deg": longitude[inside]})
    if points.empty:
        return Area(region, np.nan, np.nan, 0.0, 0.0, discs, points)
    middle = _middle(points)
    away = great_circle_km(*middle, points.latitude_deg.to_numpy(), points.longitude_deg.to_numpy())
    size = 2 * np.pi * EARTH_RADIUS_KM**2 * (1 - np.cos(reach / EARTH_RADIUS_KM)) * inside.mean()
    return Area(region, *middle, float(away.max()), float(size), discs, points)


def cap(latitude: float, longitude: float, radius_km: float) -> tuple[np.ndarray, np.ndarray]:
    """Return latitudes and longitudes (degrees) that fill a disc evenly, in a sunflower pattern from its centre."""
    k = np.arange(N_POINTS)
    cosine = 1 - (1 - np.cos(radius_km / EARTH_RADIUS_KM)) * k / (N_POINTS - 1)
    angle, bearing = np.arccos(np.clip(cosine, -1, 1)), k * GOLDEN_ANGLE
    return destination(np.radians(latitude), np.radians(longitude), angle, bearing)


def _middle(points: pd.DataFrame) -> tuple[float, float]:
    latitude, longitude = np.radians(points.latitude_deg), np.radians(points.longitude_deg)
    x = (np.cos(latitude) * np.cos(longitude)).mean()
    y = (np.cos(latitude) * np.sin(longitude)).mean()
    z = np.sin(latitude).mean()
    return float(np.degrees(np.arctan2(z, np.hypot(x, y)))), float(np.degrees(np.arctan2(y, x)))
