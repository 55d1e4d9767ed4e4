"""Latencies whose dependence and bursts are known."""

from collections import Counter

import numpy as np
from scipy.signal import lfilter

from wanbench.read.ingest.kafka_open_loop import encoded_counts


def encoded(values_us):
    """The histogram of values in microseconds, as the open-loop reader encodes it."""
    return encoded_counts(Counter(np.rint(values_us).astype(int).tolist()))


def between(covered, tries, low, high, errors=5):
    """Whether a count of successes fits a probability in this range, so many standard errors allowed."""
    least, most = (end + sign * errors * (end * (1 - end) / tries) ** 0.5 for end, sign in ((low, -1), (high, 1)))
    return least <= covered / tries <= most


def autocorrelated(rng, n, r):
    """Latencies, log-normal, whose ranks follow each other at r; their quantile q is that of a log-normal."""
    noise = rng.normal(size=n + 200)
    return np.exp(lfilter([(1 - r**2) ** 0.5], [1, -r], noise)[200:])


def with_bursts(n, bursts, size, seed=0):
    """Independent latencies, and so many bursts of equal size at random times, far above all others."""
    rng = np.random.default_rng(seed)
    values = rng.lognormal(3, 0.3, n)
    for start in rng.choice(100, bursts, replace=False) * (n // 100) + 7:
        values[start : start + size] += 300
    return values
