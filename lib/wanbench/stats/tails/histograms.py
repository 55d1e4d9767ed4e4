"""HdrHistograms merged: counts of equal values add up, which percentiles do not."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from hdrh.histogram import HdrHistogram

from ...errors import ParameterError


def decoded(text: str) -> tuple[np.ndarray, np.ndarray]:
    """
    The values of a histogram, ascending, and how many there are of each.

    A value stands for all that its histogram cannot tell from it, and is the greatest of them.

    >>> made = HdrHistogram(1, 3_600_000_000, 3)
    >>> _ = [made.record_value(value) for value in (5, 5, 100_000)]
    >>> [each.tolist() for each in decoded(made.encode().decode())]
    [[5, 100031], [2.0, 1.0]]
    """
    try:
        histogram = HdrHistogram.decode(text)
    except Exception as error:
        raise ParameterError(f"{text[:40]!r} is no HdrHistogram in V2 encoding: {error}") from None
    counts = np.frombuffer(histogram.counts, dtype=f"u{histogram.word_size}")
    there = np.flatnonzero(counts)
    values = [
        histogram.get_highest_equivalent_value(histogram.get_value_from_index(int(index))) for index in there
    ]
    return np.array(values, dtype=np.int64), counts[there].astype(float)


def summed(units: Iterable[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """
    Several (values, counts) as one.

    >>> [each.tolist() for each in summed([(np.array([1, 2]), np.array([3.0, 4.0])), (np.array([2]), np.array([1.0]))])]
    [[1, 2], [3.0, 5.0]]
    """
    units = list(units)
    every = np.concatenate([values for values, _ in units])
    values, place = np.unique(every, return_inverse=True)
    return values, np.bincount(
        place, weights=np.concatenate([counts for _, counts in units]), minlength=len(values)
    )


def merged(texts: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
    """The values and counts of several encoded histograms as one."""
    return summed(decoded(text) for text in texts)
