"""All rules over one set of tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from .. import tables as declared
from ..errors import ParameterError
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
"""Every rule of the gate."""


def check(
    tables: Mapping[str, pd.DataFrame],
    *,
    regions: pd.DataFrame | None = None,
    links: pd.DataFrame | None = None,
    instances: Mapping | None = None,
) -> pd.DataFrame:
    """
    Table `flags`: every value, row, column or region that breaks a rule, with the figure and the likely cause.

    Parameters
    ----------
    tables : mapping of DataFrame
        As `ingest.read_run` or an importer gives them; those of pings, echoes, transfers and pairs that exist
        are checked. A table `regions` or `links` among them is used as the arguments of that name are.
    regions : DataFrame, optional
        Table `regions`: coordinates that replace the catalogue's.
    links : DataFrame, optional
        Table `links`. Pairs joined by emulated links are judged by the link, not by geography.

    instances : mapping, optional
        What the hosts of a cloud or a region are: an instance type (see `instances.csv`) or what it may send in
        bit/s, as in `{"aws": "t3.nano", "gcp:us-east4": 1e9}`.

    Raises
    ------
    ParameterError
        If what was given is no mapping of tables, or an instance type is not known.
    """
    if not isinstance(tables, Mapping):
        raise ParameterError(f"the gate checks a mapping of tables, not {type(tables).__name__}")
    links = tables.get("links") if links is None else links
    places = known_places(tables.get("regions"), regions)
    rtts = light.against_light(observations.round_trips(tables), places)
    none = light.nought(_over_ground(rtts, links))[0]
    rtts = light.nought(rtts)[1]
    rows = off_earth.check(tables.get("regions"), regions) + (
        none
        + summaries.check(tables)
        + duplicates.check(tables)
        + shifted_copies.check(tables)
        + rates.check(tables, rtts, links, instances)
    )
    return declared.from_rows("flags", _of_round_trips(_over_ground(rtts, links), places) + rows)


def geolocate(
    tables: Mapping[str, pd.DataFrame],
    region: str,
    *,
    regions: pd.DataFrame | None = None,
    without: Iterable[str] = (),
) -> Area:
    """
    Where the round trips of a region let it be, by those of its pairs that no rule but its place explains.

    Parameters
    ----------
    tables, regions
        As for `check`.
    without : iterable of str
        Regions that are no landmarks, for their own place is doubted.

    Raises
    ------
    ParameterError
        If the region has no round trips with places that are known.
    """
    places = known_places(tables.get("regions"), regions)
    _, rtts = light.nought(light.against_light(observations.round_trips(tables), places))
    mine = (rtts.from_region == region) | (rtts.to_region == region)
    explained = near_answers.check(rtts, np.ones(len(rtts), bool))[1]
    explained |= rtt_units.check(rtts, ~explained)[1]
    explained |= early_echoes.check(rtts, ~explained)[1]
    explained |= halved_rtts.check(rtts, ~explained)[1]
    area = coordinates.area_of(region, rtts[mine & ~explained], places, without)
    if area is None:
        raise ParameterError(f"{region} has no round trips with regions whose place is known")
    return area


def _over_ground(rtts: pd.DataFrame, links: pd.DataFrame | None) -> pd.DataFrame:
    """The round trips of pairs that no emulated link joins."""
    if links is None or not len(links):
        return rtts
    joined = set(zip(links.from_region, links.to_region, strict=True))
    linked = [pair in joined for pair in zip(rtts.from_region, rtts.to_region, strict=True)]
    return rtts[~np.array(linked, dtype=bool)].reset_index(drop=True)


def _of_round_trips(rtts: pd.DataFrame, places: pd.DataFrame) -> list[dict]:
    """The rules of RTT in turn: what one explains, the next does not look at."""
    flags, explained = near_answers.check(rtts, np.ones(len(rtts), bool))
    new, rows = rtt_units.check(rtts, ~explained)
    flags, explained = flags + new, explained | rows
    new, rows = early_echoes.check(rtts, ~explained)
    flags, explained = flags + new, explained | rows
    new, rows = halved_rtts.check(rtts, ~explained)
    flags, explained = flags + new, explained | rows
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
