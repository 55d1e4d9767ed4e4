"""Rates that betray their unit: known factors between units, and columns that are counts of blocks."""

from __future__ import annotations

from functools import reduce
from math import gcd

import numpy as np
import pandas as pd

from .rule import Rule

BLOCK = Rule(
    "block",
    "A rate is not a multiple of a block of bytes.",
    "all of at least 8 different values are multiples of one number that 1,024 divides and that is no round number",
    "iperf(1): -l, 128 KiB by default for TCP",
)
BYTES_FOR_BITS = "bytes for bits: the values are bytes per second, 8 times too small"
TWICE = "8 times too great: bits for bytes, multiplied by 8 once too often"
UNITS = {
    8.0: TWICE,
    1 / 8: BYTES_FOR_BITS,
    1.048576: "factor 1.048576: MiB for MB (2^20 for 10^6)",
    1 / 1.048576: "factor 1.048576: MB for MiB (10^6 for 2^20)",
    1.024: "factor 1.024: KiB for kB (1,024 for 1,000)",
    1 / 1.024: "factor 1.024: kB for KiB (1,000 for 1,024)",
    1.073741824: "factor 1.0737: GiB for GB (2^30 for 10^9)",
    1 / 1.073741824: "factor 1.0737: GB for GiB (10^9 for 2^30)",
    8 * 1.048576: "8 times too great, and factor 1.048576: MiB for MB",
    1.048576 / 8: "bytes for bits, and factor 1.048576: MiB for MB",
    1e3: "factor 1,000: kbit/s for bit/s, or milliseconds for seconds",
    1e-3: "factor 1,000: kbit/s for bit/s, or milliseconds for seconds",
    1e6: "factor 1,000,000: Mbit/s for bit/s",
    1e-6: "factor 1,000,000: Mbit/s for bit/s",
    1e-6 / 8: "bytes for bits: the values are MB per second",
    1e-9: "factor 1,000,000,000: Gbit/s for bit/s",
}
"""What a throughput that is so many times 8 x bytes / duration has been taken for."""
FEWEST_DIFFERENT, GREATEST = 8, 2**60
IPERF_BLOCK = 131_072


def common_block(values: pd.Series) -> int | None:
    """
    The greatest number of which all values are whole multiples, if 1,024 divides it and it is no round number.

    >>> common_block(pd.Series([131072.0 * k for k in (3, 4, 5, 8, 11, 12, 19, 40)]))
    131072
    >>> common_block(pd.Series([1e6 * k for k in (3, 4, 5, 8, 11, 12, 19, 40)])) is None
    True
    """
    known = np.unique(values[values > 0].dropna())
    block = rounding(values) if len(known) >= FEWEST_DIFFERENT else 0
    if not block:
        return None
    twos, fives = _power(block, 2), _power(block, 5)
    return block if twos >= 10 and twos - fives >= 8 else None


def rounding(values: pd.Series) -> int:
    """
    The greatest whole number of which all positive values are multiples; 0 if they are no whole numbers.

    >>> rounding(pd.Series([2e6, 5e6])), rounding(pd.Series([0.5, 2.0]))
    (1000000, 0)
    """
    known = np.unique(values[values > 0].dropna())
    if not len(known) or (known != np.rint(known)).any() or known.max() > GREATEST:
        return 0
    return reduce(gcd, (int(value) for value in known))


def _power(value: int, base: int) -> int:
    power = 0
    while value and value % base == 0:
        value, power = value // base, power + 1
    return power


def block_cause(block: int) -> str:
    """What a column of multiples of a block is."""
    if block % (8 * IPERF_BLOCK) == 0:
        also = "; or a rate in steps of 2^20 for 10^6" if block == 8 * IPERF_BLOCK else ""
        return f"bytes transferred, not a rate: whole blocks of iperf's 128 KiB, times 8{also}"
    if block % IPERF_BLOCK == 0:
        return "bytes transferred, not a rate: whole blocks of iperf's 128 KiB"
    return f"bytes transferred, not a rate: whole blocks of {block:,} bytes"
