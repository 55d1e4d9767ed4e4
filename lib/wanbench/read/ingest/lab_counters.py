"""Read a lab's final counters of its links (link_counters) and devices (device_counters)."""

from __future__ import annotations

import pandas as pd

from wanbench import tables
from wanbench.errors import RawDataError

from .json_values import read_json
from .rows import fitting

LINK = ["run_id", "from_region", "to_region"]


def read_links(path) -> dict[str, pd.DataFrame]:
    """Table link_counters of one session of a lab, without run; RawDataError for anything else."""
    rows = _objects(path, "a JSON list of objects, one per link")
    return {"link_counters": fitting(path, "link_counters", [row | {"run_id": None} for row in rows])}


def read_devices(path) -> dict[str, pd.DataFrame]:
    """Table device_counters of one session of a lab, without context; RawDataError for anything else."""
    rows = _objects(path, "a JSON list of objects, one per region and device")
    return {"device_counters": fitting(path, "device_counters", rows)}


def of_all_sessions(counters: pd.DataFrame, run_id: str) -> pd.DataFrame:
    """
    Table link_counters of a run, summed over the sessions of a run that was resumed.

    A sum is null if it is unknown in one session; the mean lateness of several sessions is unknown.
    """
    counters = counters.assign(run_id=run_id)
    if counters.duplicated(LINK).any():
        rules = {name: lambda values: values.sum(skipna=False) for name in counters if name not in LINK}
        rules["worst_late_ms"] = "max"
        rules["mean_late_ms"] = lambda values: values.iloc[0] if len(values) == 1 else None
        counters = counters.groupby(LINK, sort=False).agg(rules).reset_index()
    return tables.validate("link_counters", counters)


def _objects(path, expected: str) -> list[dict]:
    rows = read_json(path, list, expected)
    if not all(isinstance(row, dict) for row in rows):
        raise RawDataError(path, None, str(rows)[:200], expected)
    return rows
