"""Latencies that come independently, autocorrelated, in bursts and under a load that changes: do intervals of p99 and
p99.9 cover?"""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.signal import lfilter

from ..stats.tails import latencies as tails
from ..stats.tails import order_statistics as order
from .study import MAIN, Outcome

TITLE = "intervals of p99 and p99.9 of latencies that cluster in time"
DATASETS = 300
QUANTILES = (0.99, 0.999)
CLOSED, INDEPENDENT = "those with two ends", "records as independent"
TRUTH_RECORDS, TRUTH_SEED = 8_000_000, 20_000_000
MEDIAN_MS, SPREAD = 20.0, 0.3
BURSTS = {"bursts": (2_000, 30, 200.0), "rare bursts": (8_000, 100, 400.0)}
"""Records from one burst to the next, records in one, and the height of one in ms: means, exponential or geometric."""
REGIMES = {"load regimes": 1_000, "slow load regimes": 3_000}
"""Mean records from one change of the load to the next; a fifth of the time latencies are three times as long."""
SLOW, SLOW_SHARE = 3.0, 0.2
KINDS = ("independent", "AR(1) 0.9", *BURSTS, *REGIMES)
SETTINGS = [
    *({"kind": kind, "n": n} for kind in KINDS for n in (6_000, 30_000)),
    *({"kind": kind, "n": 6_000, "runs": 5} for kind in BURSTS),
]


def trial(seed: int, kind: str, n: int, runs: int = 1) -> list[Outcome]:
    """
    Runs of n latencies each. An open end covers what lies beyond it; how often there are two shows in how many data
    sets the method of these has no interval.
    """
    rng = np.random.default_rng(seed)
    tail = tails.of_values([latencies(kind, n, rng) for _ in range(runs)])
    rows = []
    for q in QUANTILES:
        low, high = tail.interval(q)
        closed = (low, high) if np.isfinite([low, high]).all() else (np.nan, np.nan)
        methods = {MAIN: (low, high), CLOSED: closed, INDEPENDENT: tail.independent_interval(q)}
        rows += [Outcome(order.name(q), name, *ends, truth(kind)[q]) for name, ends in methods.items()]
    return rows


@cache
def truth(kind: str) -> dict[float, float]:
    """The quantiles of a kind, from one long series."""
    values = latencies(kind, TRUTH_RECORDS, np.random.default_rng(TRUTH_SEED))
    return dict(zip(QUANTILES, map(float, np.quantile(values, QUANTILES)), strict=True))


def latencies(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """A series of latencies in ms, log-normal but for what the kind adds."""
    if kind.startswith("AR(1)"):
        phi = float(kind.split()[1])
        return MEDIAN_MS * np.exp(
            0.5 * lfilter([(1 - phi**2) ** 0.5], [1, -phi], rng.normal(size=n + 500))[500:]
        )
    values = MEDIAN_MS * np.exp(SPREAD * rng.normal(size=n))
    if kind in BURSTS:
        return values + _bursts(n, *BURSTS[kind], rng)
    return values * _load(n, REGIMES[kind], rng) if kind in REGIMES else values


def _bursts(n: int, apart: float, size: float, height_ms: float, rng: np.random.Generator) -> np.ndarray:
    """What bursts add: each starts at its own height and falls to nothing, as a queue that empties."""
    added = np.zeros(n)
    for start in np.flatnonzero(rng.random(n) < 1 / apart):
        length = int(rng.geometric(1 / size))
        falling = rng.exponential(height_ms) * np.linspace(1, 0, length, endpoint=False)
        added[start : start + length] += falling[: n - start]
    return added


def _load(n: int, mean: float, rng: np.random.Generator) -> np.ndarray:
    """Factors of latency of a load that is low or high for exponential times."""
    factors, at, slow = np.ones(n), 0, rng.random() < SLOW_SHARE
    while at < n:
        length = 1 + int(rng.exponential(2 * mean * (SLOW_SHARE if slow else 1 - SLOW_SHARE)))
        factors[at : at + length] = SLOW if slow else 1.0
        at, slow = at + length, not slow
    return factors
