"""Rows repeated under another date: a copied day or round."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from wanbench.formatting import count

from .duplicates import CHANCE, PAIR, VALUES
from .observations import row_names
from .rate_units import rounding
from .rule import SUSPECT, Rule
from .summaries import decimals

RULE = Rule(
    "copied day",
    "No two days give the same values.",
    "fewer than 10 rows, or than 90 % of the rows of their time, repeat the values of their pairs at one earlier "
    "time distance; not applied to values with fewer than 1,000 steps, nor where half of the pairs have equal values "
    "in both directions",
    CHANCE,
)
MIN_ROWS = 10
"""Fewer rows may repeat by chance."""
COPIED_SHARE = 0.9
"""The rest of a copied day may have been corrected or added."""
MIN_STEPS = 1000
"""Values with fewer different steps repeat by chance."""
MAX_EQUAL_DIRECTIONS = 0.5
"""Where more pairs have equal values in both directions, values repeat without a copy."""


def check(tables: Mapping[str, pd.DataFrame]) -> list[dict]:
    """Flags of the rows of pings and transfers that repeat another time, and one of the table per such copy."""
    flags = []
    for table in VALUES:
        if table in tables and len(tables[table]) >= 2 * MIN_ROWS:
            flags += _shifted(table, tables[table])
    return flags


def _shifted(table: str, frame: pd.DataFrame) -> list[dict]:
    values = [name for name in VALUES[table] if name in frame and frame[name].notna().any()]
    frame = frame.assign(row=row_names(table, frame)).dropna(subset=[*PAIR, "started_at_utc"])
    timed = frame.dropna(subset=values, how="all").reset_index(drop=True)
    if timed.empty or not any(_has_fine_steps(timed[name]) for name in values) or _often_equal(timed, values):
        return []
    ends = [*PAIR, *(["direction"] if "direction" in timed else [])]
    first = timed.groupby([*ends, *values], dropna=False, sort=False).started_at_utc.transform("min")
    shift = timed.started_at_utc - first
    again = shift > pd.Timedelta(0)
    flags = []
    for distance, n in shift[again].value_counts().items():
        copies = timed[again & (shift == distance)]
        block = timed.started_at_utc.between(copies.started_at_utc.min(), copies.started_at_utc.max())
        if n < MIN_ROWS or n < COPIED_SHARE * block.sum():
            continue
        start = copies.started_at_utc.min()
        rows = count(int(block.sum()), "row")
        found = f"{n:,} of {rows} from {start:%Y-%m-%d} on have the values of the same pair {distance} earlier"
        cause = (
            f"what was measured on {start - distance:%Y-%m-%d} was copied under the date {start:%Y-%m-%d}: it is one "
            "measurement, not two"
        )
        flags.append(RULE.flag(table, "table", SUSPECT, found, cause, value=n, bound=0))
        for k, name in enumerate(copies.row):
            found = f"{name}: the values of the same pair {distance} earlier"
            flags.append(RULE.flag_row(table, copies, copies.row, k, SUSPECT, found, cause))
    return flags


def _has_fine_steps(values: pd.Series) -> bool:
    """Whether a column's median is 1,000 or more of its steps."""
    positive = values.dropna().astype("float64")
    positive = positive[positive > 0]
    step = rounding(positive) or 10.0 ** -decimals(positive)
    return bool(len(positive)) and float(positive.median()) >= MIN_STEPS * step


def _often_equal(frame: pd.DataFrame, values: list[str]) -> bool:
    """Whether the two directions of a pair, which are independent, often have equal values."""
    there = frame.drop_duplicates(PAIR).set_index(PAIR)[values]
    back = there.rename_axis(["to_region", "from_region"]).swaplevel().reindex(there.index)
    both = back.notna().any(axis=1)
    equal = (there.fillna(-1) == back.fillna(-1)).all(axis=1)
    return bool(both.any()) and float(equal[both].mean()) >= MAX_EQUAL_DIRECTIONS
