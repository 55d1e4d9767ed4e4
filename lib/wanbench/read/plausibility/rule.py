"""What a rule is, how it raises a flag, and what rules read: round trips, names of rows, the tail of values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

IMPOSSIBLE = "impossible"
SUSPECT = "suspect"


@dataclass(frozen=True)
class Rule:
    """
    A plausibility rule.

    Parameters
    ----------
    name : str
        As in `flags.rule`.
    meaning : str
        What the rule says, in one sentence.
    bound : str
        What the rule allows, with its tolerance.
    reference : str
        The source of the bound.
    """

    name: str
    meaning: str
    bound: str
    reference: str

    def flag(self, table: str, scope: str, verdict: str, found: str, cause: str, **where) -> dict:
        """A row of table `flags`; `where` holds row, from_region, to_region, region, column_name, value, bound."""
        flag = {"table": table, "scope": scope, "verdict": verdict, "rule": self.name}
        return flag | {"found": found, "cause": cause} | where

    def flag_row(
        self, table: str, frame: pd.DataFrame, names: pd.Series, k: int, verdict: str, found: str, cause: str, **where
    ) -> dict:
        """A flag of row k of a table; `names` as from `row_names`, `where` as for `flag`."""
        ends = {"from_region": frame.from_region.iloc[k], "to_region": frame.to_region.iloc[k]}
        return self.flag(table, "row", verdict, found, cause, row=names.iloc[k], **ends, **where)

    def flag_round_trip(self, round_trip, verdict: str, found: str, cause: str, bound: float) -> dict:
        """A flag of one row of `round_trips`."""
        columns = ("row", "from_region", "to_region", "column_name")
        where = {name: getattr(round_trip, name) for name in columns}
        value = round_trip.rtt_ms
        return self.flag(round_trip.table, "row", verdict, found, cause, **where, value=value, bound=bound)


TEST = ["run_id", "test_id", "attempt", "source_file", "from_region", "to_region"]
# The columns of RTT of each table, in the order in which they are preferred.
SMALLEST_FIRST = {
    "pings": ("min_rtt_ms", "median_rtt_ms", "mean_rtt_ms", "p90_rtt_ms", "max_rtt_ms"),
    "transfers": ("min_rtt_ms", "mean_rtt_ms"),
    "pairs": ("rtt_ms",),
}
COLUMNS = [
    "table", "column_name", "row", "position", "from_region", "to_region", "rtt_ms", "max_ms", "time",
]  # fmt: skip


def row_names(table: str, frame: pd.DataFrame) -> pd.Series:
    """
    The name by which each row is flagged: its test, else its source file, with the row's number (from 1) where several
    rows share the name. All echoes of a test share one name; a row of `pairs` is named by its regions.
    """
    if table == "pairs":
        return (frame.from_region + " to " + frame.to_region).astype("str")
    name = frame.test_id.fillna(frame.source_file)
    attempt = frame.attempt.fillna(1).astype("int64")
    if (attempt != 1).any():
        name = name.where(attempt == 1, name + ", attempt " + attempt.astype("str"))
    if frame.run_id.nunique() > 1:
        name = frame.run_id.fillna("").str.cat(name, sep="/").str.removeprefix("/")
    if table != "echoes":
        number = pd.Series(np.arange(1, len(frame) + 1), index=frame.index).astype("str")
        name = name.where(~name.duplicated(keep=False), name + ", row " + number)
    return name.astype("str")


def round_trips(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """
    One row per ping command, test of echoes, or transfer with an RTT between two regions.

    Columns: table, column_name (the table's column that `rtt_ms` comes from: the smallest statistic of the row), row,
    position (of the row, or its first echo, in the table), from_region, to_region, rtt_ms, max_ms (the largest
    statistic of the row), time. Omits rows of a link that was cut or changed.
    """
    parts = [_echoes(tables["echoes"])] if "echoes" in tables else []
    parts += [_summaries(name, tables[name]) for name in SMALLEST_FIRST if name in tables]
    parts = [part for part in parts if len(part)]
    if not parts:
        return pd.DataFrame({name: pd.Series(dtype="object") for name in COLUMNS}).astype(
            {"rtt_ms": float, "max_ms": float, "position": int}
        )
    rtts = pd.concat(parts, ignore_index=True)
    complete = rtts[["from_region", "to_region", "rtt_ms"]].notna().all(axis=1)
    return rtts[complete & (rtts.from_region != rtts.to_region)].reset_index(drop=True)[COLUMNS]


def _echoes(echoes: pd.DataFrame) -> pd.DataFrame:
    frame = echoes.assign(position=np.arange(len(echoes)))
    disturbed = frame.source_file.str.startswith(("cut/", "shorten/"))
    frame = frame[frame.rtt_ms.notna() & ~frame.duplicate & ~disturbed]
    groups = frame.groupby(TEST, sort=False, dropna=False)
    tests = groups.agg(
        rtt_ms=("rtt_ms", "min"), max_ms=("rtt_ms", "max"), position=("position", "min"), time=("received_at_s", "min")
    ).reset_index()
    tests["row"] = row_names("echoes", tests)
    return tests.assign(table="echoes", column_name="rtt_ms")


def _summaries(table: str, frame: pd.DataFrame) -> pd.DataFrame:
    columns = [name for name in SMALLEST_FIRST[table] if name in frame]
    values = frame[columns].astype("float64")
    smallest = values.bfill(axis=1).iloc[:, 0]
    first = values.notna().to_numpy().argmax(axis=1)
    largest = frame["max_rtt_ms"].astype("float64").fillna(smallest) if "max_rtt_ms" in frame else smallest
    return pd.DataFrame(
        {
            "table": table,
            "column_name": np.array(columns)[first] if len(frame) else [],
            "row": row_names(table, frame),
            "position": np.arange(len(frame)),
            "from_region": frame.from_region,
            "to_region": frame.to_region,
            "rtt_ms": smallest,
            "max_ms": largest,
            "time": frame.get("started_at_utc"),
        }
    )


TAIL_SHARE = 0.2  # The part of the values that counts as tail.
MIN_VALUES = 20  # Four values in the tail: fewer do not give its index.


def reach(values: np.ndarray, expected: float = 0.001) -> float:
    """
    The value that `expected` values of a table of this size exceed, if their tail follows Pareto's law.

    The law is fitted to the largest fifth of the positive values. Its index comes from the median of their logarithms
    above the threshold (Hill 1975 with the median instead of the mean, so that a few wrong values do not move it).
    Infinite with fewer than 20 positive values.

    >>> bool(reach(np.random.default_rng(0).pareto(2.0, 10_000)) > 100)
    True
    """
    logs = np.sort(np.log(values[np.isfinite(values) & (values > 0)]))
    if len(logs) < MIN_VALUES:
        return np.inf
    threshold = np.quantile(logs, 1 - TAIL_SHARE)
    scale = np.median(logs[logs > threshold] - threshold) / np.log(2)
    return float(np.exp(threshold + scale * np.log(TAIL_SHARE * len(logs) / expected)))
