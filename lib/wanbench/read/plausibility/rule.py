"""
Define rules and how they make flags, and compute what several rules need: round trips, row names, the bound of a tail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
import pandas as pd

from wanbench.extensions import extensions

IMPOSSIBLE = "impossible"
SUSPECT = "suspect"
Flag = dict[str, object]  # a row of table `flags`, by column
Flagged = tuple[list[Flag], np.ndarray]  # flags, and a mask of the rows that they explain
RoundTrip = Any  # a row of `round_trips`, as itertuples yields it


@dataclass(frozen=True)
class Rule:
    """
    A plausibility rule.

    `name` is the value in column `rule` of table `flags`, `meaning` what must hold, `bound` what the rule tolerates,
    and `reference` the source. Rules of other packages (entry points of the group `wanbench.rules`) also have `check`,
    which takes tables by name and returns flags made by `flag`.
    """

    name: str
    meaning: str
    bound: str
    reference: str
    check: Callable[[Mapping[str, pd.DataFrame]], list[Flag]] | None = None

    def flag(self, table: str, scope: str, verdict: str, found: str, cause: str, **where: object) -> Flag:
        """
        Return a row of table `flags`. `where` has any of the columns row, from_region, to_region, region, column_name,
        value and bound.
        """
        flag = {"table": table, "scope": scope, "verdict": verdict, "rule": self.name}
        return flag | {"found": found, "cause": cause} | where

    def flag_round_trip(self, trip: RoundTrip, verdict: str, found: str, cause: str, bound: float) -> Flag:
        """Return a flag for one row of `round_trips`; the names of its regions are put before `found`."""
        where = {name: getattr(trip, name) for name in ("row", "from_region", "to_region", "column_name")}
        found = f"{trip.from_region} to {trip.to_region}: {found}"
        return self.flag(trip.table, "row", verdict, found, cause, **where, value=trip.rtt_ms, bound=bound)


def _declared() -> dict[str, Rule]:
    rows = pd.read_csv(Path(__file__).with_name("rules.csv")).to_dict("records")
    return {row["name"]: Rule(**row) for row in rows}


RULES: Mapping[str, Rule] = extensions("wanbench.rules", _declared())  # by name, including those of other packages


@dataclass(frozen=True)
class Column:
    """
    One numeric column of a table, as rules check it.

    `table` and `name` are the names of the table and of the column, and `values` the column's numbers. `frame` has all
    columns of the table; `names` is what flags call each row.
    """

    table: str
    frame: pd.DataFrame
    names: pd.Series
    name: str
    values: pd.Series

    def row(
        self, rule: Rule, k: SupportsIndex, found: str, cause: str, bound: float, verdict: str = IMPOSSIBLE
    ) -> Flag:
        """Return a flag for row k."""
        row, start, end, value = (values[k] for values in self._of_rows)
        where: Flag = {"row": row, "from_region": start, "to_region": end, "column_name": self.name, "value": value}
        return rule.flag(self.table, "row", verdict, found, cause, **where, bound=float(bound))

    @cached_property
    def _of_rows(self) -> tuple[list[Any], ...]:
        columns = (self.names, self.frame.from_region, self.frame.to_region, self.values)
        return tuple(column.tolist() for column in columns)

    def whole(self, rule: Rule, found: str, cause: str, value: float, bound: float, verdict: str = IMPOSSIBLE) -> Flag:
        """Return a flag for the whole column."""
        where: Flag = {"column_name": self.name, "value": value, "bound": bound}
        return rule.flag(self.table, "column", verdict, found, cause, **where)

    @property
    def sender(self) -> pd.Series:
        return self.frame.from_region.where(~self.reverse, self.frame.to_region)

    @property
    def receiver(self) -> pd.Series:
        return self.frame.to_region.where(~self.reverse, self.frame.from_region)

    @property
    def reverse(self) -> pd.Series:
        """Return a mask of the rows whose data flow from `to_region` to `from_region`."""
        if "direction" not in self.frame:
            return pd.Series(False, index=self.frame.index)
        return (self.frame.direction == "reverse").fillna(False).astype(bool)

    def exchanged(self) -> Column:
        """Return the column with from_region and to_region exchanged in every row."""
        ends = {"from_region": self.frame.to_region, "to_region": self.frame.from_region}
        return replace(self, frame=self.frame.assign(**ends))


TEST = ["run_id", "test_id", "attempt", "source_file", "from_region", "to_region"]
# RTT columns by table, smallest statistic first.
SMALLEST_FIRST = {
    "pings": ("min_rtt_ms", "median_rtt_ms", "mean_rtt_ms", "p90_rtt_ms", "max_rtt_ms"),
    "transfers": ("min_rtt_ms", "mean_rtt_ms"),
    "pairs": ("rtt_ms",),
}
COLUMNS = ["table", "column_name", "row", "from_region", "to_region", "rtt_ms", "max_ms"]


def row_names(table: str, frame: pd.DataFrame) -> pd.Series:
    """
    Return the name of each row in flags: its test or, without one, its source file.

    If several rows share a name, their row numbers (from 1) are added; but all echoes of a test share one name. Rows of
    `pairs` are named by their regions.
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
    Return one row per test with echoes, and per row of pings, transfers and pairs that has an RTT between two regions.

    `rtt_ms` is the smallest RTT statistic of the row, `column_name` the name of this statistic's column, and `max_ms`
    the largest statistic. Echoes over a link that was cut or changed are omitted.
    """
    parts = [_echoes(tables["echoes"])] if "echoes" in tables else []
    parts += [_summaries(name, tables[name]) for name in SMALLEST_FIRST if name in tables]
    parts = [part for part in parts if len(part)]
    if not parts:
        return pd.DataFrame(columns=COLUMNS, dtype=object).astype({"rtt_ms": float, "max_ms": float})
    rtts = pd.concat(parts, ignore_index=True)
    rtts = rtts[rtts[["from_region", "to_region", "rtt_ms"]].notna().all(axis=1)]
    return rtts[rtts.from_region != rtts.to_region].reset_index(drop=True)[COLUMNS]


def _echoes(echoes: pd.DataFrame) -> pd.DataFrame:
    disturbed = echoes.source_file.str.startswith(("cut/", "shorten/"))
    echoes = echoes[echoes.rtt_ms.notna() & ~echoes.duplicate & ~disturbed]
    groups = echoes.groupby(TEST, sort=False, dropna=False)
    tests = groups.agg(rtt_ms=("rtt_ms", "min"), max_ms=("rtt_ms", "max")).reset_index()
    return tests.assign(table="echoes", column_name="rtt_ms", row=row_names("echoes", tests))


def _summaries(table: str, frame: pd.DataFrame) -> pd.DataFrame:
    columns = [name for name in SMALLEST_FIRST[table] if name in frame]
    values = frame[columns].astype("float64")
    smallest = values.bfill(axis=1).iloc[:, 0]
    first = values.notna().to_numpy().argmax(axis=1)
    largest = frame["max_rtt_ms"].astype("float64").fillna(smallest) if "max_rtt_ms" in frame else smallest
    named = frame[["from_region", "to_region"]].assign(table=table, row=row_names(table, frame))
    return named.assign(column_name=np.array(columns)[first], rtt_ms=smallest, max_ms=largest)


TAIL_SHARE = 0.2  # The largest values, of this share, are the tail.
MIN_VALUES = 20  # Fewer than four values in the tail do not suffice to fit its index.


def tail_bound(values: np.ndarray, expected: float = 0.001) -> float:
    """
    Return the value that a Pareto tail exceeds only `expected` times in a table of this size.

    The tail is fitted to the largest fifth of the positive values. The tail index is Hill's estimate (1975), with the
    median instead of the mean of log(value / threshold), so that a few wrong values have no effect. Return infinity for
    fewer than 20 positive values.

    >>> bool(tail_bound(np.random.default_rng(0).pareto(2.0, 10_000)) > 100)
    True
    """
    logs = np.sort(np.log(values[np.isfinite(values) & (values > 0)]))
    if len(logs) < MIN_VALUES:
        return np.inf
    threshold = np.quantile(logs, 1 - TAIL_SHARE)
    scale = np.median(logs[logs > threshold] - threshold) / np.log(2)
    return float(np.exp(threshold + scale * np.log(TAIL_SHARE * len(logs) / expected)))
