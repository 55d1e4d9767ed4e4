"""From columns to the declared tables, validated and gated. Imports `tables`; the gate when it is called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from .. import tables
from ..errors import ParameterError

ALWAYS = ("tests", "pings", "echoes", "transfers", "sources", "unread")
NULLS = {"number": np.nan, "count": pd.NA, "flag": pd.NA, "text": None, "time": pd.NaT}


def table_of(name: str, columns: Mapping[str, object], rows) -> pd.DataFrame:
    """
    A valid table of these columns where `rows` (a mask) is true; nullable columns not among them are null.

    A single value stands for all rows.
    """
    index = np.flatnonzero(np.asarray(rows, dtype=bool))
    frame = {}
    for column in tables.table(name).columns:
        value = columns.get(column.name)
        if isinstance(value, pd.Series):
            frame[column.name] = value.iloc[index].reset_index(drop=True)
            continue
        value = NULLS[column.type] if value is None else value
        dtype = column.dtype if value is NULLS[column.type] else None
        frame[column.name] = pd.Series(value, index=range(len(index)), dtype=dtype)
    return tables.validate(name, pd.DataFrame(frame))


def finished(
    found: Mapping[str, pd.DataFrame], regions: pd.DataFrame | None = None
) -> dict[str, pd.DataFrame]:
    """
    The tables of an import: each validated, those that every import has but this one lacks empty, and flags.

    The gate judges distances by table regions if there is one, given or among the tables.
    """
    from ..plausibility import check

    whole = {name: tables.validate(name, found[name]) for name in found if name != "flags"}
    whole |= {name: tables.from_rows(name, []) for name in ALWAYS if name not in whole}
    return whole | {"flags": check(whole, regions=regions)}


def join(imports: Iterable[Mapping[str, pd.DataFrame]]) -> dict[str, pd.DataFrame]:
    """
    The tables of several imports or runs in one: the latency of one source beside the throughput of another.

    Rows are kept as they are; flags are found anew, over all of them together. ParameterError if two tables
    regions give one region different coordinates, or if nothing is given.
    """
    imports = [dict(each) for each in imports]
    if not imports:
        raise ParameterError("nothing to join: give several imports, each a mapping of tables")
    names = dict.fromkeys(name for each in imports for name in each if name != "flags")
    joined = {}
    for name in names:
        parts = [tables.validate(name, each[name]) for each in imports if name in each]
        parts = [part for part in parts if len(part)] or parts[:1]
        joined[name] = pd.concat(parts, ignore_index=True) if len(parts) > 1 else parts[0]
    if "regions" in joined:
        known = joined["regions"].drop_duplicates(["name", "latitude_deg", "longitude_deg"])
        twice = known.name[known.name.duplicated()]
        if len(twice):
            raise ParameterError(
                f"{twice.iloc[0]} has different coordinates in the imports to join; choose one"
            )
        joined["regions"] = known.reset_index(drop=True)
    return finished(joined)
