"""Coordinates outside the globe."""

from __future__ import annotations

import pandas as pd

from .rule import IMPOSSIBLE, Rule

RULE = Rule(
    "earth", "A latitude lies between -90 and 90 degrees, a longitude between -180 and 180.", "no tolerance", "WGS-84"
)


def on_earth(regions: pd.DataFrame) -> pd.Series:
    """Whether each row of a table `regions` has coordinates on the globe."""
    return regions.latitude_deg.between(-90, 90) & regions.longitude_deg.between(-180, 180)


def check(*tables: pd.DataFrame | None) -> list[dict]:
    """A flag per region with coordinates outside the globe; the other rules use the catalogue's place for it."""
    flags = []
    for regions in tables:
        for row in () if regions is None else regions[~on_earth(regions)].itertuples(index=False):
            exchanged = abs(row.longitude_deg) <= 90 and abs(row.latitude_deg) <= 180
            found = f"{row.name} is stated at latitude {row.latitude_deg:g}, longitude {row.longitude_deg:g}"
            cause = "latitude and longitude are exchanged" if exchanged else "not degrees, or a digit too many"
            where = {"region": row.name, "value": float(row.latitude_deg), "bound": 90.0}
            flags.append(RULE.flag("regions", "region", IMPOSSIBLE, found, cause, **where))
    return flags
