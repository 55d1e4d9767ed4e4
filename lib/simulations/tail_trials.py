"""Simulation: p99 and p99.9 from 3 to 8 trials of 20 or 30 s, with bursts, changing load and unequal trials."""

from __future__ import annotations

import numpy as np

from wanbench.methods.tails import quantile_intervals as order
from wanbench.pages.tail_latency.trials import merged

from .latency_trials import trial_tail, truth
from .simulation import MAIN, Outcome
from .tails import INDEPENDENT, QUANTILES, TWO_ENDS

DATASETS = 300
TRIAL_SD = 0.1
"""Standard deviation of the logarithm of a trial's factor, by which all its latencies are multiplied."""
SHAPES = ((3, 20, 1_000), (5, 20, 2_000), (8, 30, 4_000))
"""Number of trials, seconds per trial, records/s."""
SETTINGS = [
    {"kind": kind, "n_trials": trials, "seconds": seconds, "rate": rate}
    for kind in ("AR(1) 0.9", "bursts", "load regimes")
    for trials, seconds, rate in SHAPES
]


def trial(seed: int, kind: str, n_trials: int, seconds: int, rate: int) -> list[Outcome]:
    """Simulate trials of one system at one load; intervals with two ends are also counted separately, as in `tails`."""
    rng = np.random.default_rng(seed)
    tail = merged([trial_tail(kind, seconds, rate, TRIAL_SD * rng.normal(), rng) for _ in range(n_trials)], "it")
    rows = []
    for q in QUANTILES:
        low, high = tail.interval(q)
        closed = (low, high) if np.isfinite([low, high]).all() else (np.nan, np.nan)
        methods = {MAIN: (low, high), TWO_ENDS: closed, INDEPENDENT: tail.independent_interval(q)}
        right = truth(kind, TRIAL_SD, q)
        rows += [Outcome(order.name(q), name, *ends, right) for name, ends in methods.items()]
    return rows
