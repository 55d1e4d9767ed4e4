"""Detect a throughput ceiling: many values of several senders just below a sharp edge."""

from __future__ import annotations

from math import nan

import numpy as np

from wanbench.formatting import count

MIN_CROWD = 5
"""Fewer values than this may lie close together by chance."""
MIN_REGIONS = 3
"""A ceiling of a cloud appears in several of its regions; repeats of one region agree for other reasons."""
CROWD_TO_BAND = 2.0
"""
Without a ceiling, values become sparse towards the largest one, so there are fewer of them than in the band below.
"""
CROWD_TO_ABOVE = 3.0
"""Bursts above a ceiling are rare compared with the values at it."""
MAX_SHARE_ABOVE = 0.02
"""Share of the values that may lie above a ceiling (at least one value may): bursts, and hosts of another kind."""


def find_ceiling(throughput_bps, sources, within: float = 0.05) -> tuple[float, str]:
    """
    The ceiling in bit/s, NaN if none is found; and the rule as text.

    Values cluster within a share `within` below it. At most 2 % of the values, and at least one, may lie above, so that
    a single outlier does not hide a ceiling; the cluster must then have at least 3 times as many values as lie above.

    >>> crowd = [970e6, 968e6, 971e6, 969e6, 973e6, 972e6, 400e6, 200e6]
    >>> find_ceiling(crowd, list("abcabcab"))[0]
    973000000.0
    >>> find_ceiling([100e6, 90e6, 81e6, 70e6, 60e6, 50e6], list("abcabc"))[0]
    nan
    """
    values, sources = np.asarray(throughput_bps, dtype=float), np.asarray(sources)
    first_rule = ""
    for n_above, top in enumerate(np.sort(values)[::-1][: max(1, int(MAX_SHARE_ABOVE * len(values))) + 1]):
        crowd = (values >= top * (1 - within)) & (values <= top)
        n, n_regions = int(crowd.sum()), len(set(sources[crowd]))
        n_band = int(((values >= top * (1 - within) ** 2) & (values < top * (1 - within))).sum())
        rule = (
            f"{n:,} values from {count(n_regions, 'region')} within {100 * within:g} % of the largest"
            f"{f' but {n_above:,}' if n_above else ''}, {n_band:,} in the band of that width below"
        )
        first_rule = first_rule or rule
        enough = n >= max(MIN_CROWD, CROWD_TO_ABOVE * n_above) and n_regions >= MIN_REGIONS
        if enough and n >= CROWD_TO_BAND * max(n_band, 1):
            return float(top), rule
    return nan, first_rule
