"""A column of rates in two units: some of its rows in kbit/s or Mbit/s, the others in bit/s."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..formatting import count, number, quantity
from .rate_ceilings import Column
from .rule import SUSPECT, Rule

RULE = Rule(
    "two units",
    "The rates of a column are in one unit.",
    "no 5 rows or more lie apart from all others, by a factor of 15 at least, 1,000 or 1,000,000 times (within a "
    "factor 1.6 in the median) below what the rows of like RTT let expect (the upper quartile of 31), unless "
    "no other row has their senders or their receivers",
    "the factors between units",
)
CAUSES = {
    1e3: "factor 1,000: kbit/s for bit/s in these rows",
    1e6: "factor 1,000,000: Mbit/s for bit/s in these rows",
}
FEWEST_ROWS, FEWEST_LOW = 20, 5
LIKE, QUARTILE = 31, 0.75
GAP, WITHIN = np.log10(15), np.log10(1.6)
"""Rates of one survey scatter over a factor of 50 about what RTT lets expect: that leaves a gap of 20 of 1,000."""
SHARED = 0.5


def check(column: Column, rtts: pd.DataFrame) -> list[dict]:
    """Flags of the rows that are 1,000 times slower than those of like RTT, with nothing between, and of the column."""
    rate = column.rate.where(column.rate > 0)
    known = rate.notna().to_numpy()
    if known.sum() < FEWEST_ROWS:
        return []
    below = _below_usual(np.log10(rate[known].to_numpy()), rtt_ms(column.frame[known], rtts))
    ordered = np.sort(below)
    gaps = np.diff(ordered)
    for k in np.flatnonzero(gaps > GAP):
        low = below > ordered[k]
        factor = 10 ** round(float(np.median(below[low]) - np.median(below[~low])))
        off = abs(np.median(below[low]) - np.median(below[~low]) - np.log10(factor))
        if factor not in CAUSES or off > WITHIN or min(low.sum(), (~low).sum()) < FEWEST_LOW:
            continue
        rows = np.flatnonzero(known)[low]
        if not _shared(column, rows, np.flatnonzero(known)[~low]):
            continue
        middle = float(column.rate.iloc[rows].median()), float(rate.drop(rate.index[rows]).median())
        times = 10 ** np.median(below[low])
        found = (
            f"{column.name}: {len(rows):,} of {count(int(known.sum()), 'row')} are {number(times)} times slower than "
            f"rows of like RTT, {quantity(middle[0], 'bit/s')} in the median; none lies within a factor "
            f"{number(10 ** gaps[k])} of them"
        )
        flags = [column.whole(RULE, found, CAUSES[factor], *middle, SUSPECT)]
        for row in rows:
            what = f"{quantity(column.rate.iloc[row], 'bit/s')} where rows of like RTT have {factor:,.0f} times that"
            flags.append(column.row(RULE, row, what, CAUSES[factor], middle[1], SUSPECT))
        return flags
    return []


def rtt_ms(frame: pd.DataFrame, rtts: pd.DataFrame) -> np.ndarray:
    """The least RTT of each row's pair, in either direction; NaN where there is none."""
    ends = [np.minimum(rtts.from_region, rtts.to_region), np.maximum(rtts.from_region, rtts.to_region)]
    least = rtts.rtt_ms.groupby(ends).min().to_dict()
    ways = zip(frame.from_region.astype(str), frame.to_region.astype(str), strict=True)
    return np.array([least.get(tuple(sorted(way)), np.nan) for way in ways], dtype=float)


def _below_usual(logs: np.ndarray, times_ms: np.ndarray) -> np.ndarray:
    """How far each log10 rate lies below the upper quartile of the rows of like RTT; rows without one follow last."""
    order = np.argsort(times_ms, kind="stable")
    usual = pd.Series(logs[order]).rolling(LIKE, center=True, min_periods=(LIKE + 1) // 2).quantile(QUARTILE)
    below = np.empty(len(logs))
    below[order] = usual.ffill().bfill().to_numpy() - logs[order]
    return below


def _shared(column: Column, low: np.ndarray, high: np.ndarray) -> bool:
    """Whether half of the slow rows have a sender, and half a receiver, that other rows show to be fast."""
    return all(
        ends.iloc[low].isin(set(ends.iloc[high])).mean() >= SHARED
        for ends in (column.sender, column.receiver)
    )
