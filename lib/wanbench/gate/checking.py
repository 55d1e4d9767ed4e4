"""All rules over one set of tables."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from .. import tables as declared
from ..errors import ParameterError
from . import light, observed
from .places import known_places


def check(
    tables: Mapping[str, pd.DataFrame],
    *,
    regions: pd.DataFrame | None = None,
    links: pd.DataFrame | None = None,
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

    Raises
    ------
    ParameterError
        If what was given is no mapping of tables.
    """
    if not isinstance(tables, Mapping):
        raise ParameterError(f"the gate checks a mapping of tables, not {type(tables).__name__}")
    links = tables.get("links") if links is None else links
    places = known_places(tables.get("regions"), regions)
    rtts = light.against_light(observed.round_trips(tables), places)
    if links is not None and len(links):
        joined = set(zip(links.from_region, links.to_region, strict=True))
        linked = [pair in joined for pair in zip(rtts.from_region, rtts.to_region, strict=True)]
        rtts = rtts[~np.array(linked, dtype=bool)]
    rows = light.flags(rtts[rtts.rtt_ms < rtts.fibre_ms])
    return declared.from_rows("flags", rows)
