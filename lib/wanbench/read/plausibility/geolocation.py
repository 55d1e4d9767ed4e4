"""Constraint-based geolocation (Gueye et al. 2006): where a region may be, by its round trips."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from wanbench.regions import LIGHT_RTT_MS_PER_KM

from .positions import EARTH_RADIUS_KM, SPHERE_SLACK, destination, great_circle_km

N_POINTS = 6_000
"""Points that fill a disc: 1 % of its area is 60 of them."""
GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))


@dataclass(frozen=True)
class Area:
    """
    The part of the earth that the round trips of a region allow.

    Attributes
    ----------
    region : str
        Name of the region.
    latitude_deg, longitude_deg : float
        Its middle; NaN if no place on earth is allowed.
    radius_km, area_km2 : float
        The distance from the middle to the farthest point, and the area; 0 if no place is allowed.
    discs : DataFrame
        One row per landmark: region, latitude_deg, longitude_deg, rtt_ms, radius_km.
    points : DataFrame
        Points that fill the area evenly: latitude_deg, longitude_deg.
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

    def allows(self, latitude, longitude, slack_km: float = 0.0) -> np.ndarray:
        """Whether a place lies within every disc, enlarged by `slack_km`."""
        away = great_circle_km(
            np.atleast_1d(latitude)[:, None],
            np.atleast_1d(longitude)[:, None],
            self.discs.latitude_deg.to_numpy(),
            self.discs.longitude_deg.to_numpy(),
        )
        return (away <= (self.discs.radius_km.to_numpy() + slack_km) * SPHERE_SLACK).all(axis=1)


def position(latitude: float, longitude: float) -> str:
    """
    The description of a place.

    >>> position(-23.55, -46.63)
    '23.55 S 46.63 W'
    """
    return f"{abs(latitude):.2f} {'S' if latitude < 0 else 'N'} {abs(longitude):.2f} {'W' if longitude < 0 else 'E'}"


def locate(region: str, landmarks: pd.DataFrame) -> Area:
    """
    Where a region may be: the intersection of the discs around its landmarks.

    The radius of a disc is the distance that light in fibre covers in half the RTT, c RTT / (2 n), plus the precision
    of the landmark's coordinates.

    Parameters
    ----------
    landmarks : DataFrame
        One row per landmark: region, latitude_deg, longitude_deg, precision_km, rtt_ms (the minimum).
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
    """Points that fill a disc on the sphere evenly, like the seeds of a sunflower, from its centre on."""
    k = np.arange(N_POINTS)
    cosine = 1 - (1 - np.cos(radius_km / EARTH_RADIUS_KM)) * k / (N_POINTS - 1)
    angle, bearing = np.arccos(np.clip(cosine, -1, 1)), k * GOLDEN_ANGLE
    return destination(np.radians(latitude), np.radians(longitude), angle, bearing)


def circle(latitude: float, longitude: float, radius_km: float) -> tuple[np.ndarray, np.ndarray]:
    """Points on the edge of a disc, enough to look round."""
    angle = min(radius_km / EARTH_RADIUS_KM, np.pi)
    return destination(np.radians(latitude), np.radians(longitude), angle, np.linspace(0, 2 * np.pi, 120))


def _middle(points: pd.DataFrame) -> tuple[float, float]:
    latitude, longitude = np.radians(points.latitude_deg), np.radians(points.longitude_deg)
    x = (np.cos(latitude) * np.cos(longitude)).mean()
    y = (np.cos(latitude) * np.sin(longitude)).mean()
    z = np.sin(latitude).mean()
    return float(np.degrees(np.arctan2(z, np.hypot(x, y)))), float(np.degrees(np.arctan2(y, x)))
