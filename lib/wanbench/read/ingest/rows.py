"""
Check the rows that readers return, and join the rows of several files into tables.

A reader returns a table without its context (run, test, regions, file) as a DataFrame, an Arrow table or a list of
rows. For thousands of small files, the latter two are faster, because columns are checked only once.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from wanbench import tables
from wanbench.errors import ParameterError, RawDataError
from wanbench.tables.columns import Column

from .content import File

Row = dict[str, Any]  # a row of a table, by column
Rows = pd.DataFrame | pa.Table | list[Row]
NULLABLE = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}


@cache
def core(name: str) -> tuple[Column, ...]:
    """Return the columns of a table that a reader returns: all except its context (run, test, regions, file)."""
    return tuple(column for column in tables.table(name).columns if column not in tables.CONTEXT)


def fitting(path: File, name: str, data: list[Row] | Mapping[str, Any] | pd.DataFrame) -> pd.DataFrame:
    """
    Return table `name` without its context (run, test, regions, file), with checked values and the declared dtypes.

    `data` is a list of rows, a mapping of columns or a DataFrame. Values missing in a row, and missing columns, are
    null; a single value for a column applies to all rows. Raise RawDataError, for the file `path`, if a value is not
    allowed.
    """
    try:
        data = _of_rows(name, data) if isinstance(data, list) else dict(data)
        n = max((len(values) for values in data.values() if not _is_single(values)), default=0)
        if not n:
            return _empty(name).copy()
        typed = {}
        for column in core(name):  # `pop` frees the memory of what is converted
            typed[column.name] = column.check(_series(data.pop(column.name, None), n, column.dtype), name)
        return pd.DataFrame(typed)
    except (ParameterError, OverflowError, UnicodeEncodeError) as error:
        raise RawDataError(path, None, error, f"values that table {name} allows") from error


@cache
def _empty(name: str) -> pd.DataFrame:
    return pd.DataFrame({column.name: pd.Series([], dtype=column.dtype) for column in core(name)})


def joined(name: str, files: Sequence[tuple[Rows, Mapping[str, object]]]) -> pd.DataFrame:
    """
    Join the rows of several files into table `name`, and add the context columns from each file's context.

    If a reader returns regions, its regions replace those of the context.
    """
    if not files:
        return tables.from_rows(name, [])
    frame = _concatenated(name, [rows for rows, _ in files])
    file = pa.array(np.repeat(np.arange(len(files)), [len(rows) for rows, _ in files]))
    for column in tables.CONTEXT:
        if column in tables.table(name).columns and column.name not in frame:
            values = pa.array([context[column.name] for _, context in files], column.arrow_field().type)
            frame[column.name] = values.take(file).to_pandas()
    return tables.validate(name, frame)


def _concatenated(name: str, files: list[Any]) -> pd.DataFrame:
    if isinstance(files[0], list):
        return pd.DataFrame(_of_rows(name, list(chain.from_iterable(files))))
    if isinstance(files[0], pa.Table):
        return pa.concat_tables(table.replace_schema_metadata() for table in files).to_pandas()
    return pd.concat(files, ignore_index=True)


def _of_rows(name: str, rows: list[Row]) -> dict[str, pd.Series]:
    names, n = [column.name for column in core(name)], len(rows)
    try:  # where each row has every column, this is faster
        cells = np.fromiter(map(itemgetter(*names), rows), np.dtype((object, len(names))), n).T
    except KeyError:
        cells = ([row.get(name) for row in rows] for name in names)
    return {column.name: _of_values(column, list(values)) for column, values in zip(core(name), cells, strict=True)}


def _of_values(column: Column, values: list[Any]) -> pd.Series:
    """Convert values by Arrow, which is fast, if all have the column's type; return them as objects otherwise."""
    wanted = column.arrow_field().type
    with suppress(pa.ArrowException, OverflowError, UnicodeEncodeError):
        array = pa.array(values)  # of the type of the values, because a conversion could round
        if array.type in (wanted, pa.null()) or (array.type, wanted) == (pa.int64(), pa.float64()):
            return array.cast(wanted).to_pandas(types_mapper=NULLABLE.get)
    return pd.Series(values, dtype=object)


def _is_single(values: Any) -> bool:
    return not isinstance(values, list) and np.ndim(values) == 0


def _series(values: Any, n: int, dtype: str) -> pd.Series:
    if _is_single(values):  # taken from an array of one: no Python object per row
        return pd.Series(pd.array([values], dtype=dtype)).take(np.zeros(n, int)).reset_index(drop=True)
    return pd.Series(values, dtype=object if isinstance(values, list) else None)
