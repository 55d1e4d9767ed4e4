"""Rows that stand again under another date: a day, or a round, that was copied."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from ..formatting import count
from .duplicates import VALUES
from .observations import row_names
from .rate_units import rounding
from .rule import SUSPECT, Rule
from .summaries import decimals

RULE = Rule(
    "copied day",
    "No two days give the same values.",
    "fewer than 10 rows, or than 90 % of the rows of their time, have the pair and the values of rows that are as much "
    "earlier; not asked of values with fewer than 1,000 steps, nor where half of the pairs have equal values in both "
    "directions",
    "the chance that independent measurements agree in so many digits",
)
FEWEST_ROWS, SHARE = 10, 0.9
FEWEST_STEPS, MOST_ALIKE = 1000, 0.5


def check(tables: Mapping[str, pd.DataFrame]) -> list[dict]:
    """Flags of the rows of pings and transfers that are those of another time, and one of the table that says so."""
    flags = []
    for table in VALUES:
        if table in tables and len(tables[table]) >= 2 * FEWEST_ROWS:
            flags += _shifted(table, tables[table])
    return flags


def _shifted(table: str, frame: pd.DataFrame) -> list[dict]:
    values = [name for name in VALUES[table] if name in frame and frame[name].notna().any()]
    frame = frame.assign(row=row_names(table, frame))
    timed = frame[frame.started_at_utc.notna() & frame[values].notna().any(axis=1)] if values else frame[:0]
    timed = timed.reset_index(drop=True)
    if timed.empty or not any(_fine(timed[name]) for name in values) or _often_alike(timed, values):
        return []
    ends = ["from_region", "to_region"] + (["direction"] if "direction" in timed else [])
    first = timed.groupby([*ends, *values], dropna=False, sort=False).started_at_utc.transform("min")
    shift = timed.started_at_utc - first
    again = shift > pd.Timedelta(0)
    flags = []
    for by, n in shift[again].value_counts().items():
        copies = timed[again & (shift == by)]
        block = timed.started_at_utc.between(copies.started_at_utc.min(), copies.started_at_utc.max())
        if n < FEWEST_ROWS or n < SHARE * block.sum():
            continue
        dates = [
            f"{time:%Y-%m-%d}" for time in (copies.started_at_utc.min() - by, copies.started_at_utc.min())
        ]
        rows = count(int(block.sum()), "row")
        found = f"{n:,} of {rows} from {dates[1]} on have the values of the same pair {by} earlier"
        cause = f"what was measured on {dates[0]} was copied under the date {dates[1]}: it is one measurement, not two"
        flags.append(RULE.flag(table, "table", SUSPECT, found, cause, value=n, bound=0))
        flags += [_row(table, row, by, cause) for row in copies.itertuples()]
    return flags


def _row(table: str, row, by: pd.Timedelta, cause: str) -> dict:
    found = f"{row.row}: the values of the same pair {by} earlier"
    ends = {"from_region": row.from_region, "to_region": row.to_region}
    return RULE.flag(table, "row", SUSPECT, found, cause, row=row.row, **ends)


def _fine(values: pd.Series) -> bool:
    """Whether a column's usual value is 1,000 or more of its steps."""
    known = values.dropna().astype("float64")
    known = known[known > 0]
    step = rounding(known) or 10.0 ** -decimals(known)
    return bool(len(known)) and float(known.median()) >= FEWEST_STEPS * step


def _often_alike(frame: pd.DataFrame, values: list[str]) -> bool:
    """Whether independent values are often equal: those of the two directions of a pair."""
    each = frame.drop_duplicates(["from_region", "to_region"]).set_index(["from_region", "to_region"])[values]
    back = each.rename_axis(["to_region", "from_region"]).swaplevel().reindex(each.index)
    both = back.notna().any(axis=1)
    return (
        bool(both.any())
        and float((each.fillna(-1) == back.fillna(-1)).all(axis=1)[both].mean()) >= MOST_ALIKE
    )
