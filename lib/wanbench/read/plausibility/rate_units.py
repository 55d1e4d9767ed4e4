"""Known conversion factors between rate units, and columns that are counts of blocks of bytes."""

from __future__ import annotations

from math import gcd

import numpy as np
import pandas as pd

from .rule import Rule

BLOCK = Rule(
    "block",
    "A rate is not a multiple of a block of bytes.",
    "at least 8 different values are not all multiples of one number that 1,024 divides and that is not round",
    "iperf(1): -l, 128 KiB by default for TCP",
)
BYTES_FOR_BITS = "bytes for bits: the values are bytes per second, 8 times too small"
TIMES_EIGHT = "8 times too large: bits for bytes, multiplied by 8 once too often"
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
"""The likely mistake, by the ratio of throughput to 8 x bytes / duration."""
MIN_DIFFERENT = 8
"""Fewer values have a common divisor by chance."""
MAX_WHOLE = 2**60
"""Far above every rate and count; integers below it are exact in the greatest common divisor."""
IPERF_BLOCK = 131_072


def common_block(values: pd.Series) -> int | None:
    """
    The largest common divisor of all values, if a multiple of 1,024 and not round; else None.

    >>> common_block(pd.Series([131072.0 * k for k in (3, 4, 5, 8, 11, 12, 19, 40)]))
    131072
    >>> common_block(pd.Series([1e6 * k for k in (3, 4, 5, 8, 11, 12, 19, 40)])) is None
    True
    """
    different = np.unique(values[values > 0].dropna())
    block = rounding(values) if len(different) >= MIN_DIFFERENT else 0
    if not block:
        return None
    # A round number has as many twos as fives; a block of 2^10 bytes or more has many more twos.
    twos, fives = _power(block, 2), _power(block, 5)
    return block if twos >= 10 and twos - fives >= 8 else None


def rounding(values: pd.Series) -> int:
    """
    The largest whole number that divides all positive values; 0 if they are not whole numbers.

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
    """The likely cause of a column of multiples of a block."""
    if block % (8 * IPERF_BLOCK) == 0:
        also = "; or a rate in steps of 2^20 for 10^6" if block == 8 * IPERF_BLOCK else ""
        return f"bytes transferred, not a rate: whole blocks of iperf's 128 KiB, times 8{also}"
    if block % IPERF_BLOCK == 0:
        return "bytes transferred, not a rate: whole blocks of iperf's 128 KiB"
    return f"bytes transferred, not a rate: whole blocks of {block:,} bytes"
