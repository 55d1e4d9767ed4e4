"""Assemble an importer's columns into validated tables, and flag implausible values in table flags."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from wanbench import tables

from .sheet import Mask, Sheet

# Tables that every import has; those without data are empty.
ALWAYS = ("tests", "pings", "echoes", "transfers", "sources", "unread")
NULLS = {"number": np.nan, "count": pd.NA, "flag": pd.NA, "text": None, "time": pd.NaT}


def measured(
    sheet: Sheet, test: dict[str, Any], outcome: dict[str, Any], kinds: Mapping[str, tuple[dict[str, Any], Mask]]
) -> dict[str, pd.DataFrame]:
    """
    Return the tables tests, sources and unread, and tables of measurements, from a sheet with one test per row.

    `test` maps names of the columns that identify a test to values. By default, run_id is the name of the file, and
    test_id is the file's name and the line. `outcome` maps further columns of table tests; its key `done` is a mask of
    the finished tests, and its key `reason` says why the other tests failed. `kinds` maps each table of measurements,
    such as "pings", to its columns and a mask of the rows that have this measurement.
    """
    name = Path(sheet.path).name
    lines = name + ":" + pd.Series(sheet.lines).astype("str")
    test = {"run_id": name, "test_id": lines, "attempt": 1} | test
    done, reason = outcome["done"], pd.Series(outcome["reason"], index=lines.index, dtype="str")
    outcome = {"started_at_utc": None} | outcome
    outcome |= {"outcome": pd.Series(np.where(done, "done", "failed"), dtype="str"), "reason": reason.where(~done)}
    file = {"source_file": sheet.path, "started_at_utc": outcome["started_at_utc"]}
    made = origins(sheet) | {"tests": table_of("tests", test | outcome, sheet.good)}
    return made | {
        kind: table_of(kind, test | file | columns, rows & sheet.good) for kind, (columns, rows) in kinds.items()
    }


def origins(sheet: Sheet) -> dict[str, pd.DataFrame]:
    """Return tables sources and unread of a sheet; raise RawDataError if no row of its file can be read."""
    rows = {"sources": [sheet.source], "unread": sheet.unread()}
    return {name: tables.from_rows(name, values) for name, values in rows.items()}


def table_of(name: str, columns: Mapping[str, Any], rows: Mask) -> pd.DataFrame:
    """
    Return table `name`, validated, with values from `columns` and only the rows where the mask `rows` is true.

    A single value in `columns` applies to all rows. Nullable columns that are not in `columns` are null.
    """
    index = np.flatnonzero(np.asarray(rows, dtype=bool))
    frame = {}
    for column in tables.table(name).columns:
        value = columns.get(column.name)
        if isinstance(value, pd.Series):
            frame[column.name] = columns[column.name].iloc[index].reset_index(drop=True)
            continue
        value = NULLS[column.type] if value is None else value
        dtype = column.dtype if value is NULLS[column.type] else None
        frame[column.name] = pd.Series(value, index=range(len(index)), dtype=dtype)
    return tables.validate(name, pd.DataFrame(frame))


def finished(given: Mapping[str, pd.DataFrame], regions: pd.DataFrame | None = None) -> dict[str, pd.DataFrame]:
    """
    Validate the tables of an import, add the missing tables of `ALWAYS` as empty ones, and add table flags.

    The plausibility rules use the coordinates in table `regions`, given here or among the tables.
    """
    from wanbench.read.plausibility import check

    whole = {name: tables.validate(name, given[name]) for name in given if name != "flags"}
    whole |= {name: tables.from_rows(name, []) for name in ALWAYS if name not in whole}
    return whole | {"flags": check(whole, regions=regions)}
