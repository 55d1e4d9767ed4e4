"""Reads what a lab's devices had counted when it closed: table device_counters. Imports nothing that measures."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from .. import tables
from ..errors import ParameterError, RawDataError
from ..tables import CONTEXT

COLUMNS = tuple(column for column in tables.table("device_counters").columns if column not in CONTEXT)
EXPECTED = "a JSON list of objects, one per region and device"


def read(path) -> dict[str, pd.DataFrame]:
    """The counts of one session of a lab, without context; RawDataError if the file is anything else."""
    path = Path(path)
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise RawDataError(path, None, error, EXPECTED) from None
    if not isinstance(content, list) or not all(isinstance(row, dict) for row in content):
        raise RawDataError(path, None, str(content)[:200], EXPECTED)
    try:
        values = {c.name: pd.Series([row.get(c.name) for row in content], dtype=object) for c in COLUMNS}
        typed = {c.name: c.check(values[c.name], "device_counters") for c in COLUMNS}
    except ParameterError as error:
        raise RawDataError(path, None, error, EXPECTED) from None
    return {"device_counters": pd.DataFrame(typed)}


READS = {"counters*.json": read}
