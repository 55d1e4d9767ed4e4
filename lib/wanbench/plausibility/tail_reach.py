"""How far the tail of a table's own values reaches. Imports nothing of the gate."""

from __future__ import annotations

import numpy as np

SHARE = 0.2
FEWEST = 20


def reach(values: np.ndarray, expected: float = 0.001) -> float:
    """
    The value that fewer than `expected` of a table of this size would exceed, if its tail is Pareto's.

    The tail is that of the greatest fifth of the positive values; its index comes from the median of their
    logarithms above the threshold (Hill 1975, with the median in place of the mean, so that a few wrong values
    do not carry it away). Infinite with fewer than 20 positive values.

    >>> bool(reach(np.random.default_rng(0).pareto(2.0, 10_000)) > 100)
    True
    """
    logs = np.sort(np.log(values[np.isfinite(values) & (values > 0)]))
    if len(logs) < FEWEST:
        return np.inf
    threshold = np.quantile(logs, 1 - SHARE)
    scale = np.median(logs[logs > threshold] - threshold) / np.log(2)
    return float(np.exp(threshold + scale * np.log(SHARE * len(logs) / expected)))
