"""
Simulated trials as a study of tails has them: some seconds each, with bursts, autocorrelation and trials that differ.

Latencies are kept as histograms per second, as a load generator keeps them: the values to three digits.
"""

from __future__ import annotations

import numpy as np

from ..stats.tails.distribution import Tail
from ..stats.tails.exceedances import Parts

DIGITS = 3
"""Significant digits of a value in a histogram."""


def histogram_tail(values_ms: np.ndarray, per_second: int, name: str = "the system") -> Tail:
    """The tail of one trial, whose latencies in order of time are kept as a histogram per second."""
    digit = 10.0 ** (np.floor(np.log10(values_ms)) - DIGITS + 1)
    values, place = np.unique(np.ceil(values_ms / digit) * digit, return_inverse=True)
    second = np.arange(len(values_ms)) // per_second
    n = int(second[-1]) + 1
    cells = np.bincount(second * len(values) + place, minlength=n * len(values)).reshape(n, -1).astype(float)
    at_most = np.concatenate([np.zeros((n, 1)), cells.cumsum(axis=1)], axis=1)
    parts = Parts(
        np.zeros(n, dtype=int), cells.sum(axis=1), lambda x: at_most[:, np.searchsorted(values, x, "right")]
    )
    return Tail(name, values, cells.sum(axis=0), parts=parts)
