"""A column of rates in two units: some of its rows in kbit/s or Mbit/s, the others in bit/s."""

from __future__ import annotations

import numpy as np
import pandas as pd

from wanbench.formatting import count, number, quantity

from .rate_ceilings import Column
from .rule import SUSPECT, Rule

RULE = Rule(
    "two units",
    "The rates of a column are in one unit.",
    "no 5 rows or more are apart from all others by a factor of at least 15, and 1,000 or 1,000,000 times (within a "
    "factor 1.6 in the median) below the rows of similar RTT (the upper quartile of 31); slow rows may have other "
    "senders or receivers",
    "the factors between units",
)
CAUSES = {1e3: "factor 1,000: kbit/s for bit/s in these rows", 1e6: "factor 1,000,000: Mbit/s for bit/s in these rows"}
MIN_ROWS = 20
"""Fewer rows do not show what is usual."""
MIN_LOW = 5
"""Fewer slow rows may be slow paths."""
SIMILAR_ROWS = 31
"""Rows of similar RTT that a row is compared with: fifteen on either side."""
QUARTILE = 0.75
"""Above the median, so that up to two thirds of the rows may be in the smaller unit."""
GAP = np.log10(15)
"""Rates of one survey scatter over a factor of 50 at one RTT: a unit of 1,000 leaves a gap of 20."""
TOLERANCE = np.log10(1.6)
"""Tolerance of the median ratio around a power of 1,000."""
SHARED_ENDS = 0.5
"""If fewer slow rows share their hosts with fast rows, the hosts may be slow."""


def check(column: Column, rtts: pd.DataFrame) -> list[dict]:
    """Flags of rows 1,000 times slower than rows of similar RTT, with a gap in between, and of their column."""
    rate = column.rate.where(column.rate > 0)
    positive = rate.notna().to_numpy()
    if positive.sum() < MIN_ROWS:
        return []
    below = _below_usual(np.log10(rate[positive].to_numpy()), rtt_ms(column.frame[positive], rtts))
    ordered = np.sort(below)
    gaps = np.diff(ordered)
    for k in np.flatnonzero(gaps > GAP):
        low = below > ordered[k]
        factor = 10 ** round(float(np.median(below[low]) - np.median(below[~low])))
        off = abs(np.median(below[low]) - np.median(below[~low]) - np.log10(factor))
        if factor not in CAUSES or off > TOLERANCE or min(low.sum(), (~low).sum()) < MIN_LOW:
            continue
        rows = np.flatnonzero(positive)[low]
        if not _shared(column, rows, np.flatnonzero(positive)[~low]):
            continue
        middle = float(column.rate.iloc[rows].median()), float(rate.drop(rate.index[rows]).median())
        times = 10 ** np.median(below[low])
        found = (
            f"{column.name}: {len(rows):,} of {count(int(positive.sum()), 'row')} are {number(times)} times slower "
            f"than rows of similar RTT, {quantity(middle[0], 'bit/s')} in the median; none lies within a factor "
            f"{number(10 ** gaps[k])} of them"
        )
        flags = [column.whole(RULE, found, CAUSES[factor], *middle, SUSPECT)]
        for row in rows:
            rate = quantity(column.rate.iloc[row], "bit/s")
            found = f"{rate} where rows of similar RTT have {factor:,.0f} times that"
            flags.append(column.row(RULE, row, found, CAUSES[factor], middle[1], SUSPECT))
        return flags
    return []


def rtt_ms(frame: pd.DataFrame, rtts: pd.DataFrame) -> np.ndarray:
    """The minimum RTT of each row's pair, in either direction; NaN where there is none."""
    ends = [np.minimum(rtts.from_region, rtts.to_region), np.maximum(rtts.from_region, rtts.to_region)]
    minimum = rtts.rtt_ms.groupby(ends).min().to_dict()
    ways = zip(frame.from_region.fillna(""), frame.to_region.fillna(""), strict=True)
    return np.array([minimum.get(tuple(sorted(way)), np.nan) for way in ways], dtype=float)


def _below_usual(logs: np.ndarray, times_ms: np.ndarray) -> np.ndarray:
    """How far each log10 rate lies below the upper quartile of rows of similar RTT; rows without RTT come last."""
    order = np.argsort(times_ms, kind="stable")
    usual = (
        pd.Series(logs[order])
        .rolling(SIMILAR_ROWS, center=True, min_periods=(SIMILAR_ROWS + 1) // 2)
        .quantile(QUARTILE)
    )
    below = np.empty(len(logs))
    below[order] = usual.ffill().bfill().to_numpy() - logs[order]
    return below


def _shared(column: Column, low: np.ndarray, high: np.ndarray) -> bool:
    """Whether half of the slow rows have a sender, and half a receiver, that fast rows also have."""
    return all(
        ends.iloc[low].isin(set(ends.iloc[high].dropna())).mean() >= SHARED_ENDS
        for ends in (column.sender, column.receiver)
    )
