"""Detect wrong units of rates: known factors, numbers of transferred bytes, and two units in one column."""

from math import gcd

import numpy as np
import pandas as pd

from wanbench.formatting import count, number, quantity

from .rule import RULES, SUSPECT, Column, Flag

BLOCK = RULES["block"]
BYTES_FOR_BITS = "bytes for bits: the values are bytes per second, 8 times too small"
TIMES_EIGHT = "8 times too large: bits for bytes, multiplied by 8 once too often"
# The likely mistake, by the ratio of throughput to 8 x bytes / duration.
UNITS = {
    8.0: TIMES_EIGHT,
    1 / 8: BYTES_FOR_BITS,
    1.048576: "factor 1.048576: MiB for MB (2^20 for 10^6)",
    1 / 1.048576: "factor 1.048576: MB for MiB (10^6 for 2^20)",
    1.024: "factor 1.024: KiB for kB (1,024 for 1,000)",
    1 / 1.024: "factor 1.024: kB for KiB (1,000 for 1,024)",
    1.073741824: "factor 1.0737: GiB for GB (2^30 for 10^9)",
    1 / 1.073741824: "factor 1.0737: GB for GiB (10^9 for 2^30)",
    8 * 1.048576: "8 times too large, and factor 1.048576: MiB for MB",
    1.048576 / 8: "bytes for bits, and factor 1.048576: MiB for MB",
    1e3: "factor 1,000: kbit/s for bit/s, or milliseconds for seconds",
    1e-3: "factor 1,000: kbit/s for bit/s, or milliseconds for seconds",
    1e6: "factor 1,000,000: Mbit/s for bit/s",
    1e-6: "factor 1,000,000: Mbit/s for bit/s",
    1e-6 / 8: "bytes for bits: the values are MB per second",
    1e-9: "factor 1,000,000,000: Gbit/s for bit/s",
}
MIN_DIFFERENT = 8  # Fewer values can have a common divisor by chance.
MAX_WHOLE = 2**60  # Above every rate and count; larger values are not used for greatest common divisors.
IPERF_BLOCK = 131_072


def common_block(values: pd.Series) -> int | None:
    """
    Return the greatest common divisor of all values if it is a block size in bytes, or else None.

    A block size is a multiple of 1,024 that is not a round decimal number.

    >>> common_block(pd.Series([131072.0 * k for k in (3, 4, 5, 8, 11, 12, 19, 40)]))
    131072
    >>> common_block(pd.Series([1e6 * k for k in (3, 4, 5, 8, 11, 12, 19, 40)])) is None
    True
    """
    different = np.unique(values[values > 0].dropna())
    block = rounding(values) if len(different) >= MIN_DIFFERENT else 0
    if not block:
        return None
    # A round number has about as many prime factors 2 as 5; a block of 2^10 bytes or more has many more factors 2.
    twos, fives = _power(block, 2), _power(block, 5)
    return block if twos >= 10 and twos - fives >= 8 else None


def rounding(values: pd.Series) -> int:
    """
    Return the greatest common divisor of all positive values; 0 if they are not integers.

    >>> rounding(pd.Series([2e6, 5e6])), rounding(pd.Series([0.5, 2.0]))
    (1000000, 0)
    """
    different = np.unique(values[values > 0].dropna())
    if not len(different) or (different != np.rint(different)).any() or different.max() > MAX_WHOLE:
        return 0
    return gcd(*(int(value) for value in different))


def _power(value: int, base: int) -> int:
    power = 0
    while value and value % base == 0:
        value, power = value // base, power + 1
    return power


def block_cause(block: int) -> str:
    """Return a text with the likely cause of a column whose values are all multiples of `block` bytes."""
    if block % (8 * IPERF_BLOCK) == 0:
        also = "; or a rate counted in units of 2^20 and given as 10^6" if block == 8 * IPERF_BLOCK else ""
        return f"bytes transferred, not a rate: whole blocks of iperf's 128 KiB, times 8{also}"
    if block % IPERF_BLOCK == 0:
        return "bytes transferred, not a rate: whole blocks of iperf's 128 KiB"
    return f"bytes transferred, not a rate: whole blocks of {block:,} bytes"


TWO_UNITS = RULES["two units"]
CAUSES = {1e3: "factor 1,000: kbit/s for bit/s in these rows", 1e6: "factor 1,000,000: Mbit/s for bit/s in these rows"}
MIN_ROWS = 20  # Fewer rows do not show the usual rate.
MIN_LOW = 5  # Fewer slow rows may just be slow paths.
SIMILAR_ROWS = 31  # Each row is compared with so many rows of similar RTT, itself in the middle.
QUARTILE = 0.75  # Not the median, so that up to two thirds of the rows can be in the smaller unit.
GAP = np.log10(15)  # At one RTT, rates of a survey scatter by a factor of 50, so a factor of 1,000 leaves a gap of 20.
TOLERANCE = np.log10(1.6)  # The median ratio may differ from a power of 1,000 by this factor.
SHARED_ENDS = 0.5  # If fewer slow rows share hosts with fast rows, the hosts may be slow.


def check_two_units(column: Column, rtts: pd.DataFrame) -> list[Flag]:
    """
    Flag a column in two units, and its slow rows: rates 1,000 or 1,000,000 times below those of rows of similar RTT,
    with no rates in between.
    """
    rate = column.values.where(column.values > 0)
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
        middle = float(column.values.iloc[rows].median()), float(rate.drop(rate.index[rows]).median())
        times = 10 ** np.median(below[low])
        found = (
            f"{column.name}: {len(rows):,} of {count(int(positive.sum()), 'row')} are {number(times)} times slower "
            f"than rows of similar RTT, with a median of {quantity(middle[0], 'bit/s')}; no other row is within a "
            f"factor of {number(10 ** gaps[k])} of them"
        )
        flags = [column.whole(TWO_UNITS, found, CAUSES[factor], *middle, SUSPECT)]
        for row in rows:
            rate = quantity(column.values.iloc[row], "bit/s")
            found = f"{rate}; rows of similar RTT have {factor:,.0f} times that"
            flags.append(column.row(TWO_UNITS, row, found, CAUSES[factor], middle[1], SUSPECT))
        return flags
    return []


def rtt_ms(frame: pd.DataFrame, rtts: pd.DataFrame) -> np.ndarray:
    """Return the minimum RTT of each row's pair, in either direction; NaN if there is none."""
    ends = [np.minimum(rtts.from_region, rtts.to_region), np.maximum(rtts.from_region, rtts.to_region)]
    minimum = rtts.rtt_ms.groupby(ends).min().to_dict()
    ways = zip(frame.from_region.fillna(""), frame.to_region.fillna(""), strict=True)
    return np.array([minimum.get(tuple(sorted(way)), np.nan) for way in ways], dtype=float)


def _below_usual(logs: np.ndarray, times_ms: np.ndarray) -> np.ndarray:
    """
    Return how far each log10 rate is below the upper quartile of rows of similar RTT; rows without an RTT count as
    having the longest.
    """
    order = np.argsort(times_ms, kind="stable")
    near = pd.Series(logs[order]).rolling(SIMILAR_ROWS, center=True, min_periods=(SIMILAR_ROWS + 1) // 2)
    usual = near.quantile(QUARTILE)
    below = np.empty(len(logs))
    below[order] = usual.ffill().bfill().to_numpy() - logs[order]
    return below


def _shared(column: Column, low: np.ndarray, high: np.ndarray) -> bool:
    """Return whether at least half of the slow rows share their sender with fast rows, and half their receiver."""
    return all(
        ends.iloc[low].isin(set(ends.iloc[high].dropna())).mean() >= SHARED_ENDS
        for ends in (column.sender, column.receiver)
    )
