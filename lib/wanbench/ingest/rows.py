"""Rows of a reader as a table. Imports `tables` and `errors`."""

from __future__ import annotations

import pandas as pd

from ..errors import ParameterError, RawDataError
from ..tables import CONTEXT, from_rows


def fitting(path, name: str, rows: list[dict]) -> pd.DataFrame:
    """The table of these rows without its context; RawDataError if a value does not fit its column."""
    try:
        frame = from_rows(name, [row | {"source_file": str(path)} for row in rows])
    except ParameterError as error:
        raise RawDataError(path, None, error, f"what fits table {name}") from error
    return frame.drop(columns=[column.name for column in CONTEXT])
