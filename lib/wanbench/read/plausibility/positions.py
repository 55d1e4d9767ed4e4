"""Coordinates of the regions of a table, and the distances between them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from wanbench import regions as catalogue_of_regions
from wanbench.regions import geodesic_km

from .off_earth import on_earth

EARTH_RADIUS_KM = 6371.0088
DEFAULT_PRECISION_KM = 50.0
"""A metropolitan area: what a cloud means by a city."""
MAX_PRECISION_KM = 600.0
"""The coarsest precision in the catalogue: coarser coordinates would hide every error."""
SPHERE_SLACK = 1.006
"""A great circle on the mean sphere and the WGS-84 geodesic differ by at most 0.56 %."""


def known_places(*overrides: pd.DataFrame | None) -> pd.DataFrame:
    """
    Coordinates by region name: those of the catalogue, replaced by those of each table `regions` given.

    A missing precision is the catalogue's for that name, else 50 km; a precision above 600 km counts as 600 km.
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
    Per row: distance_km, and tolerance_km, the sum of both precisions, by which the hosts may be nearer. NaN where a
    region is not among the places.
    """
    points = {
        name: (float(latitude), float(longitude))
        for name, latitude, longitude in zip(places.index, places.latitude_deg, places.longitude_deg, strict=True)
    }
    distance_km = {}
    for a, b in set(zip(first, second, strict=True)):
        if a in points and b in points:
            distance_km[a, b] = geodesic_km(points[a], points[b])
    distance = [distance_km.get(pair, np.nan) for pair in zip(first, second, strict=True)]
    tolerance = first.map(places.precision_km) + second.map(places.precision_km)
    return pd.DataFrame({"distance_km": distance, "tolerance_km": tolerance}, index=first.index, dtype=float)


def great_circle_km(latitude, longitude, other_latitude, other_longitude) -> np.ndarray:
    """
    Great-circle distances on the mean sphere, by broadcasting.

    >>> great_circle_km(0.0, 0.0, 0.0, 90.0).round()
    np.float64(10008.0)
    """
    phi, psi = np.radians(latitude), np.radians(other_latitude)
    half = np.radians(np.subtract(other_longitude, longitude)) / 2
    a = np.sin((psi - phi) / 2) ** 2 + np.cos(phi) * np.cos(psi) * np.sin(half) ** 2
    return 2 * EARTH_RADIUS_KM * np.arcsin(np.sqrt(np.clip(a, 0, 1)))


def destination(latitude, longitude, angle, bearing) -> tuple[np.ndarray, np.ndarray]:
    """Latitude and longitude, in degrees, of the points at an angle and a bearing from others (all in radians)."""
    sine = np.sin(latitude) * np.cos(angle) + np.cos(latitude) * np.sin(angle) * np.cos(bearing)
    east = np.sin(bearing) * np.sin(angle) * np.cos(latitude)
    turned = longitude + np.arctan2(east, np.cos(angle) - np.sin(latitude) * sine)
    return np.degrees(np.arcsin(np.clip(sine, -1, 1))), (np.degrees(turned) + 180) % 360 - 180
