"""
Declare all tables, in two CSV files, and validate, write and read them.

`tables.csv` says what one row of each table is; `columns.csv` says the type, unit and meaning of each column. A table
whose `context` is "yes" begins with the columns that `columns.csv` lists under "context", such as the run and the test.
Columns whose type ends in "?" may hold nulls. The minimum of a number is 0 unless column `minimum` says otherwise.
`scripts/data_readme.py` prints the text of `data/README.md`, the data dictionary.
"""

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from wanbench.checks import check_choice
from wanbench.errors import ParameterError, RawDataError
from wanbench.files import replaced_file

from .columns import Column, Table

__all__ = ["CONTEXT", "TABLES", "Table", "from_rows", "read", "table", "validate", "write"]


def _rows(name: str) -> list[dict[str, str]]:
    with open(Path(__file__).with_name(name), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _declared() -> tuple[tuple[Column, ...], dict[str, Table]]:
    """Return the context's columns, and all tables by name."""
    columns: dict[str, list[Column]] = {}
    for row in _rows("columns.csv"):
        columns.setdefault(row["table"], []).append(Column.of(row))
    context, made = tuple(columns["context"]), {}
    for row in _rows("tables.csv"):
        name, first = row["table"], context if row["context"] == "yes" else ()
        made[name] = Table(name, row["row"], (*first, *columns[name]))
    return context, made


CONTEXT, TABLES = _declared()
"""The columns with which most tables begin, and all tables by name."""


def table(name: str) -> Table:
    """Return the declaration of a table; the ParameterError for an unknown name lists all tables."""
    return TABLES[check_choice("table", name, TABLES)]


def from_rows(name: str, rows: Iterable[Mapping[str, object]]) -> pd.DataFrame:
    """
    Make table `name` from rows, which map columns to values, and validate it; a row may lack nullable columns.

    >>> row = {"path": "ping/a.txt", "found": "", "expected": "output of ping"}
    >>> from_rows("unread", [row]).line_number[0]
    <NA>
    """
    rows = list(rows)
    declared = table(name)
    extra = sorted(map(str, set().union(*rows) - set(declared.names)))
    if extra:
        raise ParameterError(f"table {name} has extra {', '.join(extra)}; allowed: {', '.join(declared.names)}.")
    return pd.DataFrame(
        {
            column.name: column.check(pd.Series([row.get(column.name) for row in rows], dtype=object), name)
            for column in declared.columns
        }
    )


def validate(name: str, frame: pd.DataFrame) -> pd.DataFrame:
    """
    Check a frame against the declaration of table `name`; return its columns in the declared order and dtypes.

    Only lossless conversions are made: whole floats to integers, ISO 8601 text with a time zone to times. A
    ParameterError names table, column, first invalid row and the allowed values.
    """
    declared = table(name)
    missing = [column for column in declared.names if column not in frame.columns]
    extra = [str(column) for column in frame.columns if column not in declared.names]
    if missing or extra or not frame.columns.is_unique:
        faults = [f"lacks {', '.join(missing)}"] if missing else []
        faults += [f"has extra {', '.join(extra)}"] if extra else []
        fault = " and ".join(faults) or "has a repeated column"
        raise ParameterError(f"table {name} {fault}; allowed: {', '.join(declared.names)}.")
    return pd.DataFrame({column.name: column.check(frame[column.name], name) for column in declared.columns})


def write(name: str, frame: pd.DataFrame, folder: str | Path) -> Path:
    """Validate a table and write it atomically to `<folder>/<name>.parquet`."""
    schema = table(name).arrow_schema()
    arrow = pa.Table.from_pandas(validate(name, frame), schema=schema, preserve_index=False)
    path = Path(folder) / f"{name}.parquet"
    with replaced_file(path) as temporary:
        # without pandas' own metadata, which would repeat the schema
        pq.write_table(arrow.replace_schema_metadata(schema.metadata), temporary, compression="zstd")
    return path


def read(name: str, *folders: str | Path) -> pd.DataFrame:
    """
    Read a table that `write` wrote into a folder, or concatenate the tables of several folders in order.

    A nullable column that a file lacks, because it was declared later, is null. Raise RawDataError if a file is
    missing, not Parquet, or another table.
    """
    parts, nullable = [], [column.name for column in table(name).columns if column.nullable]
    for path in (Path(folder) / f"{table(name).name}.parquet" for folder in folders):
        try:
            frame = pq.read_table(path, partitioning=None).to_pandas(ignore_metadata=True)
            newer = [column for column in nullable if column not in frame]
            parts.append(validate(name, frame.assign(**dict.fromkeys(newer))))
        except FileNotFoundError:
            raise RawDataError(path, None, "no file", f"table {name}") from None
        except (pa.ArrowException, OSError, ParameterError) as error:
            raise RawDataError(path, None, error, f"table {name} in Parquet") from error
    return parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)
