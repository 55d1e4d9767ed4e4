"""
Simulate trials of some seconds as histograms of latencies, with bursts, autocorrelation and differences between trials.

There is one long series of latencies per kind. A trial is a random part of this series, multiplied by a random factor,
with a histogram per second. Bins are 0.1 % wide, as in an HdrHistogram with three digits.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy import stats

from wanbench.methods.tails.distribution import Parts, Tail

from . import tails

BIN = 1e-3
"""Width of a bin, in natural logarithms."""
POOL_RECORDS = 4_000_000
"""Length of a series, enough for more than a hundred trials."""
POOL_SEED = 30_000_000
"""Larger than the seed of any data set."""


@cache
def pool(kind: str) -> np.ndarray:
    """Return the bin of each record in the long series of a kind."""
    values = tails.latencies(kind, POOL_RECORDS, np.random.default_rng(POOL_SEED))
    return np.ceil(np.log(values) / BIN).astype(np.int32)


@cache
def truth(kind: str, trial_sd: float, q: float) -> float:
    """Return the quantile q (ms) over all records of all possible trials."""
    bins = pool(kind)
    counts = np.bincount(bins - bins.min()).astype(float)
    reach = int(5 * trial_sd / BIN)
    factors = stats.norm.pdf(np.arange(-reach, reach + 1) * BIN, scale=trial_sd) if reach else np.ones(1)
    mixed = np.convolve(counts, factors / factors.sum()).cumsum()
    return float(np.exp(BIN * (np.searchsorted(mixed, q * mixed[-1]) - reach + bins.min())))


def trial_tail(
    kind: str, seconds: int, rate: int, log_factor: float, rng: np.random.Generator, name: str = "the system"
) -> Tail:
    """Simulate one trial at a rate in records/s; its latencies are multiplied by exp(`log_factor`)."""
    bins, n = pool(kind), seconds * rate
    places = (int(rng.integers(len(bins))) + np.arange(n)) % len(bins)
    own = bins[places]
    first = int(own.min())
    wide = int(own.max()) - first + 1
    cells = np.bincount(np.arange(n) // rate * wide + own - first, minlength=seconds * wide)
    cells = cells.reshape(seconds, wide).astype(float)
    counts = cells.sum(axis=0)
    filled = np.flatnonzero(counts)
    values = np.exp(BIN * (filled + first + round(log_factor / BIN)))
    at_most = np.concatenate([np.zeros((seconds, 1)), cells[:, filled].cumsum(axis=1)], axis=1)
    parts = Parts(
        np.zeros(seconds, dtype=int),
        np.full(seconds, float(rate)),
        lambda x: at_most[:, np.searchsorted(values, x * (1 + 1e-9), "right")],
    )
    return Tail(name, values, counts[filled], parts=parts)
