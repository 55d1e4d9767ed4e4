"""HdrHistograms decoded and merged: counts of equal values add up; percentiles cannot be averaged."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from hdrh.histogram import HdrHistogram

from wanbench.checks import refusal


def decoded(text: str) -> tuple[np.ndarray, np.ndarray]:
    """
    The values of a histogram, ascending, and the count of each.

    A value stands for all that share its bucket, and is the largest of them.

    >>> made = HdrHistogram(1, 3_600_000_000, 3)
    >>> _ = [made.record_value(value) for value in (5, 5, 100_000)]
    >>> [column.tolist() for column in decoded(made.encode().decode())]
    [[5, 100031], [2.0, 1.0]]
    """
    try:
        histogram = HdrHistogram.decode(text)
    except Exception as error:
        raise refusal("histogram", text, f"an HdrHistogram in V2 encoding ({error})") from None
    counts = np.frombuffer(histogram.counts, dtype=f"u{histogram.word_size}")
    filled = np.flatnonzero(counts)
    values = [histogram.get_highest_equivalent_value(histogram.get_value_from_index(int(index))) for index in filled]
    return np.array(values, dtype=np.int64), counts[filled].astype(float)


def summed(units: Iterable[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """
    Several (values, counts) merged into one.

    >>> units = [(np.array([1, 2]), np.array([3.0, 4.0])), (np.array([2]), np.array([1.0]))]
    >>> [column.tolist() for column in summed(units)]
    [[1, 2], [3.0, 5.0]]
    """
    units = list(units)
    values, place = np.unique(np.concatenate([values for values, _ in units]), return_inverse=True)
    return values, np.bincount(place, weights=np.concatenate([counts for _, counts in units]), minlength=len(values))
