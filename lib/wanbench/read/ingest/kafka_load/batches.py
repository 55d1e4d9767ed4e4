"""
Read <stem>.batches.json of `wanbench.measure.experiments.kafka_load`, batches counted in the brokers' logs and replica
placement: tables batches and placements.

A cluster whose logs are out of reach has no rows; older files lack replicas.
"""

from __future__ import annotations

import pandas as pd

from wanbench.errors import RawDataError
from wanbench.read.ingest.json_values import read_json
from wanbench.read.ingest.rows import fitting

COUNTED = ("broker", "topic", "partition", "at_s", "batches", "records", "bytes")
"""Columns of `rows`."""
PLACED = ("topic", "partition", "leader", "replicas", "in_sync")
"""Columns of `replicas`."""


def read_batches(path) -> dict[str, pd.DataFrame]:
    """
    Tables batches and placements, without their context.

    Raises
    ------
    RawDataError
        If the file is not a JSON object with `rows`, each with the counts of one second of one partition on one broker,
        none twice; or with `left_out`, the reason why there are none; or if its `replicas` are not rows of PLACED on
        brokers of `regions`.
    """
    content = read_json(path, dict, "counts of batches: an object in JSON")
    rows = content.get("rows", [])
    if "rows" not in content and not isinstance(content.get("left_out"), str):
        raise RawDataError(path, None, ", ".join(map(str, content)), "rows, or left_out and why")
    if not isinstance(rows, list):
        raise RawDataError(path, None, rows, f"a list of rows of {', '.join(COUNTED)}")
    for number, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != len(COUNTED):
            raise RawDataError(path, None, f"row {number}: {row}", ", ".join(COUNTED))
    batches = fitting(path, "batches", [dict(zip(COUNTED, row, strict=True)) for row in rows])
    keys = list(COUNTED[:4])
    if (again := batches.duplicated(keys)).any():
        repeated = batches.loc[again, keys].iloc[0].tolist()
        raise RawDataError(path, None, repeated, "one row per second of a partition")
    empty = batches[(batches.batches < 1) | (batches.records < batches.batches) | (batches.bytes < batches.records)]
    if len(empty):
        expected = "at least a record in every batch, and a byte in every record"
        raise RawDataError(path, None, empty.iloc[0].tolist(), expected)
    return {"batches": batches, "placements": _placements(path, content)}


def _placements(path, content) -> pd.DataFrame:
    """One row per replica of each partition."""
    rows = []
    try:
        regions = dict(content.get("regions", []))
        for placed in content.get("replicas", []):
            of = dict(zip(PLACED, placed, strict=True))
            rows += [
                {"topic": of["topic"], "partition": of["partition"], "replica": number, "broker": broker}
                | {"region": regions[broker], "leads": broker == of["leader"], "in_sync": broker in of["in_sync"]}
                for number, broker in enumerate(of["replicas"])
            ]
    except (TypeError, ValueError, KeyError) as error:
        expected = f"replicas as rows of {', '.join(PLACED)}, on brokers of regions"
        raise RawDataError(path, None, error, expected) from error
    return fitting(path, "placements", rows)
