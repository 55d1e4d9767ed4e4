"""Simulation: p99 and p99.9 of latencies that are independent or autocorrelated, have bursts, or a changing load."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.signal import lfilter

from wanbench.methods.tails import quantile_intervals as order

from .latency_samples import of_values
from .simulation import MAIN, Outcome

DATASETS = 300
QUANTILES = (0.99, 0.999)
TWO_ENDS = "those with two ends"
"""Method name of the intervals with two finite ends."""
INDEPENDENT = "records as independent"
"""Method name of the intervals that assume independent records."""
TRUTH_RECORDS = 8_000_000
"""Length of the series for the true quantiles, whose error is then much smaller than any interval."""
TRUTH_SEED = 20_000_000
"""Larger than the seed of any data set."""
MEDIAN_MS = 20.0
LOG_SD = 0.3
"""Standard deviation of the logarithm of a latency."""
BURSTS = {"bursts": (2_000, 30, 200.0), "rare bursts": (8_000, 100, 400.0)}
"""Mean number of records between bursts, of records in a burst, and mean height in ms."""
REGIMES = {"load regimes": 1_000, "slow load regimes": 3_000}
"""Mean number of records between changes of the load."""
SLOW_FACTOR = 3.0
"""Factor of latency under high load."""
SLOW_SHARE = 0.2
"""Share of the time under high load."""
KINDS = ("independent", "AR(1) 0.9", *BURSTS, *REGIMES)
SETTINGS = [
    *({"kind": kind, "n": n} for kind in KINDS for n in (6_000, 30_000)),
    *({"kind": kind, "n": 6_000, "runs": 5} for kind in BURSTS),
]


def trial(seed: int, kind: str, n: int, runs: int = 1) -> list[Outcome]:
    """
    Simulate runs of n latencies each.

    An interval with an open end covers everything beyond the other end. Intervals with two finite ends are therefore
    also counted separately, as the method `TWO_ENDS`.
    """
    rng = np.random.default_rng(seed)
    tail = of_values([latencies(kind, n, rng) for _ in range(runs)])
    rows = []
    for q in QUANTILES:
        low, high = tail.interval(q)
        closed = (low, high) if np.isfinite([low, high]).all() else (np.nan, np.nan)
        methods = {MAIN: (low, high), TWO_ENDS: closed, INDEPENDENT: tail.independent_interval(q)}
        rows += [Outcome(order.name(q), name, *ends, truth(kind)[q]) for name, ends in methods.items()]
    return rows


@cache
def truth(kind: str) -> dict[float, float]:
    """Return the true quantiles of a kind, from one long series."""
    values = latencies(kind, TRUTH_RECORDS, np.random.default_rng(TRUTH_SEED))
    return dict(zip(QUANTILES, map(float, np.quantile(values, QUANTILES)), strict=True))


def latencies(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return a series of log-normal latencies in ms, with the autocorrelation, bursts or load of a kind."""
    if kind.startswith("AR(1)"):
        phi = float(kind.split()[1])
        return MEDIAN_MS * np.exp(0.5 * lfilter([(1 - phi**2) ** 0.5], [1, -phi], rng.normal(size=n + 500))[500:])
    values = MEDIAN_MS * np.exp(LOG_SD * rng.normal(size=n))
    if kind in BURSTS:
        return values + _bursts(n, *BURSTS[kind], rng)
    return values * _load(n, REGIMES[kind], rng) if kind in REGIMES else values


def _bursts(n: int, distance: float, size: float, height_ms: float, rng: np.random.Generator) -> np.ndarray:
    """Return the latency that bursts add; each starts at a random height and falls to 0, like a queue that empties."""
    added = np.zeros(n)
    for start in np.flatnonzero(rng.random(n) < 1 / distance):
        length = int(rng.geometric(1 / size))
        falling = rng.exponential(height_ms) * np.linspace(1, 0, length, endpoint=False)
        added[start : start + length] += falling[: n - start]
    return added


def _load(n: int, mean: float, rng: np.random.Generator) -> np.ndarray:
    """Return factors of latency for a load that is low or high, each for exponentially distributed times."""
    factors, start, slow = np.ones(n), 0, rng.random() < SLOW_SHARE
    while start < n:
        length = 1 + int(rng.exponential(2 * mean * (SLOW_SHARE if slow else 1 - SLOW_SHARE)))
        factors[start : start + length] = SLOW_FACTOR if slow else 1.0
        start, slow = start + length, not slow
    return factors
