"""A region whose coordinates its own round trips contradict: stated place, allowed area, the catalogue's place."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import plotly.graph_objects as go

from ..errors import ParameterError
from .geolocation_figure import geolocation
from .rules import geolocate

AT_THEIR_WORD_KM = 1.0
"""How exact the coordinates are taken to be: as exact as they are written, for their spread would hide a fault."""


def misplaced(
    tables: Mapping[str, pd.DataFrame], region: str, catalogue: pd.DataFrame | None = None, *, note: str = ""
) -> go.Figure:
    """
    Where a region of imported tables is said to be, and where its round trips let it be.

    Parameters
    ----------
    tables : mapping of DataFrame
        As an importer gives them; `regions` has the stated places, and regions whose place is flagged are no landmarks.
    region : str
        Whose place is doubted.
    catalogue : DataFrame, optional
        Table `regions` with another opinion, drawn as the candidate.
    """
    stated = _place(tables.get("regions"), region)
    if stated is None:
        raise ParameterError(f"the tables have no place of {region}")
    flags = tables["flags"]
    others = set(flags.region[flags.scope == "region"]) - {region}
    area = geolocate(
        tables, region, regions=tables["regions"].assign(precision_km=AT_THEIR_WORD_KM), without=others
    )
    candidate = _place(catalogue, region)
    named = ("the catalogue's place", *candidate) if candidate else None
    return geolocation(area, stated=stated, candidate=named, note=note)


def _place(regions: pd.DataFrame | None, region: str) -> tuple[float, float] | None:
    found = None if regions is None else regions[regions.name == region]
    if found is None or found.empty:
        return None
    return float(found.latitude_deg.iloc[0]), float(found.longitude_deg.iloc[0])
