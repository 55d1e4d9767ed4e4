"""Latencies whose dependence and bursts are known."""

import numpy as np
import pandas as pd
from scipy.signal import lfilter

from wanbench.ingest.kafka_probe.histograms import encoded


def between(covered, tries, low, high, errors=5):
    """Whether a count of successes fits a probability in this range, so many standard errors allowed."""
    least, most = (
        end + sign * errors * (end * (1 - end) / tries) ** 0.5 for end, sign in ((low, -1), (high, 1))
    )
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


def histogram_table(runs, window_of=500):
    rows = []
    for k, run in enumerate(runs):
        for window, at in enumerate(range(0, len(run), window_of)):
            text = encoded(run[at : at + window_of] * 1_000)
            rows.append({"run_id": str(k), "group": 0, "window": window, "histogram": text})
    return pd.DataFrame(rows)
