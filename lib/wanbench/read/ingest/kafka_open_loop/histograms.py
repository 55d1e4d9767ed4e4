"""HdrHistograms of latencies."""

from __future__ import annotations

from collections.abc import Mapping

from hdrh.histogram import HdrHistogram

LOWEST_US = 1
"""A microsecond, the unit of the values."""
HIGHEST_US = 3_600_000_000
"""An hour."""
DIGITS = 3
"""Significant digits of a value: an error of 0.1 % at most."""


def encoded_counts(counts: Mapping[int, int]) -> str:
    """
    An HdrHistogram of the number of records by value in microseconds: V2 encoding, compressed, base64.

    A value below 0 counts as 0, one above an hour as an hour.
    """
    histogram = HdrHistogram(LOWEST_US, HIGHEST_US, DIGITS)
    for value, count in counts.items():
        histogram.record_value(min(max(value, 0), HIGHEST_US), count)
    return histogram.encode().decode()
