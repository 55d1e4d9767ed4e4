"""HdrHistograms of a probe's latencies, one per window of its schedule."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from hdrh.histogram import HdrHistogram

WINDOW_S = 10.0
"""Window length, as in the OpenMessaging Benchmark, for comparison."""

LOWEST_US = 1
"""A microsecond, the unit of the values."""

HIGHEST_US = 3_600_000_000
"""An hour."""

DIGITS = 3
"""Significant digits of a value: an error of 0.1 % at most."""

EXACT_BITS = 11
"""Leading bits of a value that an HdrHistogram of three digits keeps."""


def histograms(records: pd.DataFrame) -> list[dict]:
    """
    A row per group and window of `WINDOW_S` by intended send time; the windows of a group add up to the whole.

    First receipts count, in whole microseconds. A latency below zero by the clocks counts as 0, one above an hour as an
    hour.
    """
    first = records[records.latency_ms.notna() & ~records.duplicate]
    if first.empty:
        return []
    start_s = records.intended_at_s.min()
    window = ((first.intended_at_s - start_s) / WINDOW_S + 1e-9).astype(int)
    rows = []
    for (group, number), part in first.groupby([first.group.astype(int), window], sort=True):
        rows.append(
            {
                "group": group,
                "window": number,
                "start_s": start_s + number * WINDOW_S,
                "length_s": WINDOW_S,
                "n": len(part),
                "n_negative": int((part.latency_ms < 0).sum()),
                "unit": "us",
                "histogram": encoded(part.latency_ms.to_numpy() * 1_000),
            }
        )
    return rows


def encoded(values_us: np.ndarray) -> str:
    """An HdrHistogram of values in microseconds: V2 encoding, compressed, base64."""
    whole = np.rint(values_us).astype(np.int64)
    # values that share a bucket count as one, the lowest in it: buckets double in width from 2,048 on
    width = np.maximum(np.frexp(whole.clip(1, HIGHEST_US).astype(float))[1] - EXACT_BITS, 0)
    whole, counts = np.unique(whole >> width << width, return_counts=True)
    return encoded_counts(dict(zip(whole.tolist(), counts.tolist(), strict=True)))


def encoded_counts(counts: Mapping[int, int]) -> str:
    """As `encoded`, of counted values: the number of records by value."""
    histogram = HdrHistogram(LOWEST_US, HIGHEST_US, DIGITS)
    for value, count in counts.items():
        histogram.record_value(min(max(value, 0), HIGHEST_US), count)
    return histogram.encode().decode()
