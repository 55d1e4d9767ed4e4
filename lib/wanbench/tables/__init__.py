"""
Every table, declared once. Imports `columns` and `errors`; anything may import it.

Parquet files, the data dictionary, validation and the tests derive from `TABLES`, which `kafka`, `metrics`, `network`
and `summaries` fill. `python -m wanbench.tables` prints the text of `data/README.md`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import ParameterError, RawDataError
from . import kafka, metrics, network, summaries  # noqa: F401
from .context import CONTEXT
from .declare import TABLES, Table

__all__ = ["CONTEXT", "TABLES", "Table", "from_rows", "read", "table", "validate", "write"]


def table(name: str) -> Table:
    """The declaration of a table; ParameterError names the tables there are."""
    try:
        return TABLES[name]
    except (KeyError, TypeError):
        raise ParameterError(f"no table {name!r}; there are {', '.join(TABLES)}") from None


def from_rows(name: str, rows: Iterable[Mapping]) -> pd.DataFrame:
    """
    A valid table of mappings from column to value; nullable columns may be left out of a row.

    >>> row = {"path": "ping/a.txt", "found": "", "expected": "output of ping"}
    >>> from_rows("unread", [row]).line_number[0]
    <NA>
    """
    rows = list(rows)
    declared = table(name)
    extra = sorted(map(str, set().union(*rows) - set(declared.names)))
    if extra:
        raise ParameterError(
            f"table {name}: no column {', '.join(extra)}; allowed: {', '.join(declared.names)}"
        )
    columns = {
        column: pd.Series([row.get(column) for row in rows], dtype=object) for column in declared.names
    }
    return validate(name, pd.DataFrame(columns))


def validate(name: str, frame: pd.DataFrame) -> pd.DataFrame:
    """
    The frame with the table's columns, in order, each of its exact dtype.

    Only conversions that lose nothing are made: whole floats to integers, ISO 8601 text with a zone to times.
    ParameterError names table, column, the first bad row (0 is the first) and what is allowed.
    """
    declared = table(name)
    missing = [column for column in declared.names if column not in frame.columns]
    extra = [str(column) for column in frame.columns if column not in declared.names]
    if missing or extra or not frame.columns.is_unique:
        faults = [f"lacks {', '.join(missing)}"] * bool(missing) + [f"has extra {', '.join(extra)}"] * bool(
            extra
        )
        faults = " and ".join(faults) or "repeats a column"
        raise ParameterError(f"table {name} {faults}; its columns are {', '.join(declared.names)}")
    typed = {column.name: column.check(frame[column.name], name) for column in declared.columns}
    return pd.DataFrame(typed, columns=declared.names).reset_index(drop=True)


def write(name: str, frame: pd.DataFrame, folder) -> Path:
    """Validate, and write `<folder>/<name>.parquet` in one step: the file is whole or was not touched."""
    arrow = pa.Table.from_pandas(
        validate(name, frame), schema=table(name).arrow_schema(), preserve_index=False
    )
    path = Path(folder) / f"{name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{name}-", suffix=".tmp")
    os.close(handle)
    try:
        pq.write_table(
            arrow.replace_schema_metadata(table(name).arrow_schema().metadata), temporary, compression="zstd"
        )
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    return path


def read(name: str, folder) -> pd.DataFrame:
    """Read what `write` wrote; RawDataError names a file that is missing, no Parquet, or not this table."""
    path = Path(folder) / f"{table(name).name}.parquet"
    try:
        arrow = pq.read_table(path, partitioning=None)
        return validate(name, arrow.to_pandas(ignore_metadata=True))
    except FileNotFoundError:
        raise RawDataError(path, None, "no file", f"table {name}") from None
    except (pa.ArrowException, OSError, ParameterError) as error:
        raise RawDataError(path, None, error, f"table {name} in Parquet") from error
