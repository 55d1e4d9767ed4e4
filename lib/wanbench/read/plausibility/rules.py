"""All rules over one set of tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from wanbench import tables as declared
from wanbench.checks import refusal

from . import (
    asymmetry,
    coordinates,
    duplicates,
    early_echoes,
    halved_rtts,
    light,
    mixed_rate_units,
    near_answers,
    observations,
    off_earth,
    rate_ceilings,
    rate_plateau,
    rate_units,
    rates,
    rtt_units,
    shifted_copies,
    summaries,
    triangle,
)
from .geolocation import Area
from .positions import known_places

RULES = (
    off_earth.RULE, light.RULE, rtt_units.RULE, halved_rtts.RULE, coordinates.RULE, asymmetry.RULE, triangle.RULE,
    summaries.RULE, duplicates.COPIES, duplicates.MIRROR, shifted_copies.RULE, rates.BYTES, rates.WINDOW,
    rate_units.BLOCK, mixed_rate_units.RULE, rate_plateau.RULE, rate_ceilings.LINK, rate_ceilings.INSTANCE,
)  # fmt: skip
"""Every plausibility rule."""


def check(
    tables: Mapping[str, pd.DataFrame],
    *,
    regions: pd.DataFrame | None = None,
    links: pd.DataFrame | None = None,
    instances: Mapping | None = None,
) -> pd.DataFrame:
    """
    Table `flags`: every row, column, table or region that breaks a rule, with the finding and the likely cause.

    Parameters
    ----------
    tables : mapping of DataFrame
        As from `ingest.read_run` or an importer. Checks pings, echoes, transfers and pairs, where they exist, and uses
        tables `regions` and `links` like the arguments of these names.
    regions : DataFrame, optional
        Table `regions`: coordinates that replace the catalogue's.
    links : DataFrame, optional
        Table `links`. Pairs with an emulated link are compared with the link, not with light.
    instances : mapping, optional
        The hosts of a cloud or a region: an instance type (see `instances.csv`) or the rate that it may send in bit/s,
        as in `{"aws": "t3.nano", "gcp:us-east4": 1e9}`.

    Raises
    ------
    ParameterError
        If `tables` is not a mapping, or an instance type is not known.
    """
    if not isinstance(tables, Mapping):
        raise refusal("tables", tables, "a mapping of names to tables")
    tables = {name: frame for name, frame in tables.items() if len(frame)}
    links = tables.get("links") if links is None else links
    places = known_places(tables.get("regions"), regions)
    rtts = light.against_light(observations.round_trips(tables), places)
    zero = light.zero_rtts(_without_links(rtts, links))[0]
    rtts = light.zero_rtts(rtts)[1]
    flags = (
        _of_round_trips(_without_links(rtts, links), places)
        + off_earth.check(tables.get("regions"), regions)
        + zero
        + summaries.check(tables)
        + duplicates.check(tables)
        + shifted_copies.check(tables)
        + rates.check(tables, rtts, links, instances)
    )
    return declared.from_rows("flags", flags)


def geolocate(
    tables: Mapping[str, pd.DataFrame], region: str, *, regions: pd.DataFrame | None = None, without: Iterable[str] = ()
) -> Area:
    """
    The area that a region's round trips allow, leaving out RTTs that are wrong wherever the region lies.

    Parameters
    ----------
    tables, regions
        As for `check`.
    without : iterable of str
        Regions not used as landmarks, because their own place is flagged.

    Raises
    ------
    ParameterError
        If the region has no round trips with a known place.
    """
    places = known_places(tables.get("regions"), regions)
    _, rtts = light.zero_rtts(light.against_light(observations.round_trips(tables), places))
    mine = (rtts.from_region == region) | (rtts.to_region == region)
    _, explained = _of_wrong_rtts(rtts)
    area = coordinates.area_of(region, rtts[mine & ~explained], places, without)
    if area is None:
        raise refusal("region", region, "a region with round trips to regions whose place is known")
    return area


def _without_links(rtts: pd.DataFrame, links: pd.DataFrame | None) -> pd.DataFrame:
    """Round trips of pairs without an emulated link."""
    if links is None or not len(links):
        return rtts
    joined = set(zip(links.from_region, links.to_region, strict=True))
    linked = [pair in joined for pair in zip(rtts.from_region, rtts.to_region, strict=True)]
    return rtts[~np.array(linked, dtype=bool)].reset_index(drop=True)


def _of_wrong_rtts(rtts: pd.DataFrame) -> tuple[list[dict], np.ndarray]:
    """Flags of RTTs that are wrong wherever the regions lie, and a mask of the rows they explain."""
    flags, explained = [], np.zeros(len(rtts), bool)
    for rule in (near_answers, rtt_units, early_echoes, halved_rtts):
        new, rows = rule.check(rtts, ~explained)
        flags, explained = flags + new, explained | rows
    return flags, explained


def _of_round_trips(rtts: pd.DataFrame, places: pd.DataFrame) -> list[dict]:
    """The rules of RTT in order: each looks only at the rows that no earlier rule explains."""
    if not len(rtts):
        return []
    flags, explained = _of_wrong_rtts(rtts)
    new, rows = coordinates.check(rtts, ~explained, places)
    flags, explained = flags + new, explained | rows
    new, rows = early_echoes.answered_near(rtts, ~explained)
    flags, explained = flags + new, explained | rows
    below = ~explained & (rtts.rtt_ms < rtts.fibre_ms).to_numpy()
    possible = rtt_units.opposite_ms(rtts)[below] >= rtts.fibre_ms.to_numpy()[below]
    causes = np.where(possible, light.ONE_WAY, light.ISOLATED)
    causes = np.where(rtt_units.sub_millisecond(rtts)[below], rtt_units.NEAR, causes)
    flags, explained = flags + light.flags(rtts[below], causes), explained | below
    measured = ~explained & (rtts.table != "transfers").to_numpy()
    new, rows = asymmetry.check(rtts, measured)
    return flags + new + triangle.check(rtts, measured & ~rows)
