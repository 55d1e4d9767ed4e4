"""A region whose round trips contradict its coordinates: stated place, allowed area, the catalogue's place."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import plotly.graph_objects as go

from wanbench.checks import refusal
from wanbench.read.plausibility.rules import geolocate

from .geolocation_figure import geolocation

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
