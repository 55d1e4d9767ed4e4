"""From columns to the declared tables, validated, with flags."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from wanbench import tables
from wanbench.errors import ParameterError

from .sheet import Sheet

# The tables of every import; empty where the source has nothing for them.
ALWAYS = ("tests", "pings", "echoes", "transfers", "sources", "unread")
NULLS = {"number": np.nan, "count": pd.NA, "flag": pd.NA, "text": None, "time": pd.NaT}


def measured(sheet: Sheet, test: Mapping, outcome: Mapping, kinds: Mapping[str, tuple[Mapping, object]]) -> dict:
    """
    Tables tests, sources, unread, and those of measurements, of a sheet that has a test in each good row.

    `test` holds columns that identify a test; run_id and test_id are by default the file's name, and its name and line.
    `outcome` holds further columns of table tests, where `done` (a mask) and `reason` give outcome and reason. `kinds`
    holds for each table of measurements its columns, and a mask of the rows that have any.
    """
    name = Path(sheet.path).name
    lines = name + ":" + pd.Series(sheet.lines).astype("str")
    test = {"run_id": name, "test_id": lines, "attempt": 1} | test
    done, reason = outcome["done"], pd.Series(outcome["reason"], index=lines.index, dtype="str")
    outcome = {"started_at_utc": None} | outcome
    outcome |= {"outcome": pd.Series(np.where(done, "done", "failed"), dtype="str"), "reason": reason.where(~done)}
    file = {"source_file": sheet.path, "started_at_utc": outcome["started_at_utc"]}
    made = {
        "sources": tables.from_rows("sources", [sheet.source]),
        "unread": tables.from_rows("unread", sheet.unread()),
        "tests": table_of("tests", test | outcome, sheet.good),
    }
    return made | {
        kind: table_of(kind, test | file | columns, rows & sheet.good) for kind, (columns, rows) in kinds.items()
    }


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


def finished(given: Mapping[str, pd.DataFrame], regions: pd.DataFrame | None = None) -> dict[str, pd.DataFrame]:
    """
    The tables of an import: each validated, missing ones of `ALWAYS` empty, and flags raised.

    The plausibility rules judge distances by table regions, given or among the tables, where there is one.
    """
    from wanbench.read.plausibility import check

    whole = {name: tables.validate(name, given[name]) for name in given if name != "flags"}
    whole |= {name: tables.from_rows(name, []) for name in ALWAYS if name not in whole}
    return whole | {"flags": check(whole, regions=regions)}


def join(imports: Iterable[Mapping[str, pd.DataFrame]]) -> dict[str, pd.DataFrame]:
    """
    The tables of several imports or runs in one: the latency of one source with the throughput of another.

    Rows are kept as they are; flags are raised again, over all rows together. ParameterError if nothing is given, or
    if two tables regions give one region different coordinates.
    """
    imports = [dict(one) for one in imports]
    if not imports:
        raise ParameterError("imports is empty; allowed: one or more mappings of tables.")
    joined = {}
    for name in dict.fromkeys(name for one in imports for name in one if name != "flags"):
        parts = [tables.validate(name, one[name]) for one in imports if name in one]
        parts = [part for part in parts if len(part)] or parts[:1]
        joined[name] = pd.concat(parts, ignore_index=True) if len(parts) > 1 else parts[0]
    if "regions" in joined:
        places = joined["regions"].drop_duplicates(["name", "latitude_deg", "longitude_deg"])
        twice = places.name[places.name.duplicated()]
        if len(twice):
            raise ParameterError(f"{twice.iloc[0]} has different coordinates in these imports; choose one.")
        joined["regions"] = places.reset_index(drop=True)
    return finished(joined)
