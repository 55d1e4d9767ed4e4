"""Selections of a survey's rows that its charts may be based on."""

from __future__ import annotations

import pandas as pd

CONTINENTS = {"Europe": (35.0, 72.0, -12.0, 42.0), "Asia": (-11.0, 55.0, 60.0, 150.0)}
"""Boxes of latitude (from, to) and longitude (from, to), in degrees."""
OWN = "all rows, own coordinates"
CATALOGUE = "all rows, catalogue coordinates"
UNFLAGGED = "flagged regions left out"
UNFLAGGED_CATALOGUE = "flagged regions left out, catalogue coordinates"
NO_EUROPE_ASIA = "Europe-Asia left out"
NO_EUROPE_ASIA_CATALOGUE = "Europe-Asia left out, catalogue coordinates"
MIN_ROWS = 100
"""A smaller selection cannot be the published chart, which has some 500 to 2,000 points."""
CHART_KM = 17_000.0
"""End of the distance axis of the published charts."""
CHART_MS = 300.0
"""End of the RTT axis of the published charts."""


def row_selections(
    tests: pd.DataFrame, catalogue: pd.DataFrame, flagged: tuple[str, ...] = ()
) -> dict[str, pd.DataFrame]:
    """
    Each selection with at least 100 rows: its rows, by its label.

    Parameters
    ----------
    tests : DataFrame
        One row per test: run_id, from_region, to_region, rtt_ms, throughput_bps, distance_km (by the survey's own
        coordinates), distance_catalogue_km (by the catalogue's).
    catalogue : DataFrame
        Table `regions`, for the continents.
    flagged : tuple of str
        Regions whose coordinates are flagged.
    """
    by_catalogue = tests.assign(distance_km=tests.distance_catalogue_km)
    is_flagged = tests.from_region.isin(flagged) | tests.to_region.isin(flagged)
    continent = _continents(catalogue)
    ends = tests.from_region.map(continent), tests.to_region.map(continent)
    apart = ((ends[0] == "Europe") & (ends[1] == "Asia")) | ((ends[0] == "Asia") & (ends[1] == "Europe"))
    inside = (tests.distance_km <= CHART_KM) & (tests.rtt_ms <= CHART_MS)
    selections = {
        OWN: tests,
        CATALOGUE: by_catalogue,
        UNFLAGGED: tests[~is_flagged],
        UNFLAGGED_CATALOGUE: by_catalogue[~is_flagged],
        f"inside the charts' axes ({CHART_KM:,.0f} km, {CHART_MS:.0f} ms)": tests[inside],
        NO_EUROPE_ASIA: tests[~apart],
        NO_EUROPE_ASIA_CATALOGUE: by_catalogue[~apart],
    }
    clouds = tests.from_region.str.partition(":")[0] + "->" + tests.to_region.str.partition(":")[0]
    selections |= {f"only {name}": tests[clouds == name] for name in sorted(clouds.unique())}
    for name in tests.run_id.value_counts().index:
        part = tests[tests.run_id == name]
        range_km = f"{part.distance_km.min():,.0f} to {part.distance_km.max():,.0f} km"
        selections[f"only its run {name} ({range_km})"] = part
    if "started_at_utc" in tests:
        days = tests.started_at_utc.dt.strftime("%d %B %Y")
        selections |= {f"only {day}": tests[days == day] for day in sorted(days.dropna().unique())}
    return {label: rows for label, rows in selections.items() if len(rows) >= MIN_ROWS}


def _continents(catalogue: pd.DataFrame) -> dict[str, str]:
    """The continent of each region that lies in one of the boxes."""
    continents = {}
    for name, (south, north, west, east) in CONTINENTS.items():
        inside = catalogue.latitude_deg.between(south, north) & catalogue.longitude_deg.between(west, east)
        continents |= dict.fromkeys(catalogue.name[inside], name)
    return continents
