"""
Reads what `wanbench.experiments.kafka_load` counted in the brokers' logs, <stem>.batches.json: table batches; and when
the load did what, <stem>.times.json: table loads. Imports nothing that measures.

A cluster whose logs cannot be reached leaves no rows.
"""

from __future__ import annotations

import json
from math import isfinite
from pathlib import Path

import pandas as pd

from ..errors import ParameterError, RawDataError
from ..tables import CONTEXT, table

LARGEST_BYTES = 256 << 20
LATEST_S = 1e11
COUNTED = ("broker", "topic", "partition", "at_s", "batches", "records", "bytes")
"""What a row of `rows` holds, in order."""
TIMES = (
    "started_at_s",
    "all_sending_at_s",
    "counts_from_s",
    "counts_until_s",
    "asked_to_stop_at_s",
    "ended_at_s",
)
"""
Times of a load; the first and the last are never null. The second to the fourth are of the producers' hosts' clocks,
unless the producers were stopped, which is by the clock of who asked, as are the others.
"""


def read(path) -> dict[str, pd.DataFrame]:
    """
    Table batches, without its context.

    Raises
    ------
    RawDataError
        If the file is no JSON object with `rows`, each with the counts of one second of one partition on one broker,
        none twice; or with `left_out`, the reason why there are none.
    """
    path, content = _object(path, "counts of batches: an object in JSON")
    rows = content.get("rows", [])
    if "rows" not in content and not isinstance(content.get("left_out"), str):
        raise RawDataError(path, None, ", ".join(map(str, content)), "rows, or left_out and why")
    if not isinstance(rows, list):
        raise RawDataError(path, None, rows, f"a list of rows of {', '.join(COUNTED)}")
    for number, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != len(COUNTED):
            raise RawDataError(path, None, f"row {number}: {row}", ", ".join(COUNTED))
    batches = _frame(path, "batches", [dict(zip(COUNTED, row, strict=True)) for row in rows])
    keys = list(COUNTED[:4])
    if (again := batches.duplicated(keys)).any():
        raise RawDataError(
            path, None, batches.loc[again, keys].iloc[0].tolist(), "one row per second of a partition"
        )
    empty = batches[
        (batches.batches < 1) | (batches.records < batches.batches) | (batches.bytes < batches.records)
    ]
    if len(empty):
        raise RawDataError(
            path, None, empty.iloc[0].tolist(), "at least a record in every batch, and a byte in every record"
        )
    return {"batches": batches}


def read_times(path) -> dict[str, pd.DataFrame]:
    """
    Table loads, without its context: one row.

    Raises
    ------
    RawDataError
        If the file is no JSON object with the times of a load.
    """
    path, content = _object(path, "the times of a load: an object in JSON")
    times = [content.get(name) for name in TIMES]
    if None in (times[0], times[-1]) or not all(map(_is_time, times)):
        raise RawDataError(path, None, times, f"Unix times in seconds: {', '.join(TIMES)}")
    spans = ((times[0], times[-1]), (content["counts_from_s"], content["counts_until_s"]))
    if any((first is None) != (last is None) or (first or 0) > (last or 0) for first, last in spans):
        raise RawDataError(path, None, times, "a load, and the time that counts, that begin before they end")
    missing = content.get("missing")
    if not isinstance(missing, list) or not all(isinstance(each, str) for each in missing):
        raise RawDataError(path, None, missing, "missing: a list of texts")
    unfinished = content.get("unfinished")
    if unfinished is not None and not isinstance(unfinished, str):
        raise RawDataError(path, None, unfinished, "unfinished: a text or null")
    row = {name: content[name] for name in TIMES} | {"unfinished": unfinished}
    return {"loads": _frame(path, "loads", [row | {"missing": "; ".join(missing) or None}])}


def _object(path, expected):
    path = Path(path)
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise RawDataError(path, None, "a larger file", f"at most {LARGEST_BYTES:,} bytes")
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, RawDataError):
            raise
        raise RawDataError(path, None, error, expected) from error
    if not isinstance(content, dict):
        raise RawDataError(path, None, content, expected)
    return path, content


def _is_time(value):
    if value is None:
        return True
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) < LATEST_S
        and isfinite(value)
    )


def _frame(path, name, rows):
    columns = [column for column in table(name).columns if column not in CONTEXT]
    try:
        return pd.DataFrame(
            {
                column.name: column.check(
                    pd.Series([row.get(column.name) for row in rows], dtype=object), name
                )
                for column in columns
            }
        )
    except (ParameterError, OverflowError) as error:
        raise RawDataError(path, None, error, f"values of table {name}") from None


READS = {".batches.json": read, ".times.json": read_times}
"""Which raw files of the experiment `kafka_load` this reads, by the end of their names."""
