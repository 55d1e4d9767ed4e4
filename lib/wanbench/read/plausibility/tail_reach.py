"""The largest value to expect from the tail of a table's own values."""

from __future__ import annotations

import numpy as np

TAIL_SHARE = 0.2
"""The part of the values that counts as tail."""
MIN_VALUES = 20
"""Four values in the tail: fewer do not give its index."""


def reach(values: np.ndarray, expected: float = 0.001) -> float:
    """
    The value that `expected` values of a table of this size exceed, if their tail follows Pareto's law.

    The law is fitted to the largest fifth of the positive values. Its index comes from the median of their logarithms
    above the threshold (Hill 1975 with the median instead of the mean, so that a few wrong values do not move it).
    Infinite with fewer than 20 positive values.

    >>> bool(reach(np.random.default_rng(0).pareto(2.0, 10_000)) > 100)
    True
    """
    logs = np.sort(np.log(values[np.isfinite(values) & (values > 0)]))
    if len(logs) < MIN_VALUES:
        return np.inf
    threshold = np.quantile(logs, 1 - TAIL_SHARE)
    scale = np.median(logs[logs > threshold] - threshold) / np.log(2)
    return float(np.exp(threshold + scale * np.log(TAIL_SHARE * len(logs) / expected)))
