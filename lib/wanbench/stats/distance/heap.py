"""The ceiling that a heap of throughputs betrays: many values of several senders just below a sharp edge."""

from __future__ import annotations

from math import nan

import numpy as np

from ...formatting import count

FEWEST_IN_HEAP, FEWEST_REGIONS_IN_HEAP = 5, 3
HEAP_TO_BAND = 2.0
"""Smooth throughput thins out towards its greatest value, so that it holds fewer values than the band below it."""
HEAP_TO_ABOVE = 3.0
ABOVE = 0.02
"""Share of the values that may lie above a heap, and at least one: bursts, and hosts of another kind."""


def find_ceiling(throughput_bps, sources, within: float = 0.05) -> tuple[float, str]:
    """
    The ceiling that a heap of values betrays, in bit/s, and the rule in words; NaN if none.

    The heap lies just below the greatest value, but for at most 2 % of the values, and at least one, that may exceed
    it: a single outlier does not hide a heap. Then the heap holds at least 3 times as many values as exceed it.

    >>> heap = [970e6, 968e6, 971e6, 969e6, 973e6, 972e6, 400e6, 200e6]
    >>> find_ceiling(heap, list("abcabcab"))[0]
    973000000.0
    >>> find_ceiling([100e6, 90e6, 81e6, 70e6, 60e6, 50e6], list("abcabc"))[0]
    nan
    """
    values, sources = np.asarray(throughput_bps, dtype=float), np.asarray(sources)
    first = ""
    for above, top in enumerate(np.sort(values)[::-1][: max(1, int(ABOVE * len(values))) + 1]):
        heap = (values >= top * (1 - within)) & (values <= top)
        band = (values >= top * (1 - within) ** 2) & (values < top * (1 - within))
        n, below = int(heap.sum()), int(band.sum())
        regions = len(set(sources[heap]))
        greatest = f"the greatest but {above:,}" if above else "the greatest"
        heaped = f"{n:,} values from {count(regions, 'region')} within {100 * within:g} % of {greatest}"
        said = f"{heaped}, {below:,} in the band of that width below"
        first = first or said
        found = n >= max(FEWEST_IN_HEAP, HEAP_TO_ABOVE * above) and regions >= FEWEST_REGIONS_IN_HEAP
        if found and n >= HEAP_TO_BAND * max(below, 1):
            return float(top), said
    return nan, first
