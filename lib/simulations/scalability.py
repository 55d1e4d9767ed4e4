"""Simulation: the Universal Scalability Law, with its peak within the trials, beyond them, or without a peak."""

from __future__ import annotations

import numpy as np
import pandas as pd

from wanbench.pages.geo_kafka.scalability import fit_scalability
from wanbench.pages.geo_kafka.scalability_fit import usl

from .simulation import Outcome

DATASETS = 300
"""Enough to know a coverage near 95 % to within 2.5 percentage points."""
PRODUCERS = (1, 2, 4, 8, 16, 32)
GAMMA = 10.0
PROFILE = "profile likelihood"
SETTINGS = [
    {"alpha": 0.05, "beta": 0.002, "replicates": 3, "spread": 0.05},
    {"alpha": 0.05, "beta": 0.002, "replicates": 1, "spread": 0.05},
    {"alpha": 0.02, "beta": 0.0002, "replicates": 3, "spread": 0.05},
    {"alpha": 0.1, "beta": 0.0, "replicates": 3, "spread": 0.05},
    {"alpha": 0.0, "beta": 0.0, "replicates": 3, "spread": 0.05},
    {"alpha": 0.05, "beta": 0.002, "replicates": 3, "spread": 0.05, "between_blocks": 0.1},
    {"alpha": 0.05, "beta": 0.002, "replicates": 6, "spread": 0.05, "between_blocks": 0.1},
]


def trial(
    seed: int, alpha: float, beta: float, replicates: int, spread: float, between_blocks: float = 0.0
) -> list[Outcome]:
    """
    Simulate trials with 1 to 32 producers and log-normal scatter around the law.

    With scatter between blocks, each replicate is a block, and the fit accounts for blocks.
    """
    rng = np.random.default_rng(seed)
    n = np.tile(PRODUCERS, replicates)
    rate = usl(n, GAMMA, alpha, beta) * np.exp(rng.normal(0, spread, len(n)))
    own = np.repeat(np.arange(replicates), len(PRODUCERS))
    rate = rate * np.exp(rng.normal(0, between_blocks, replicates))[own]
    frame = pd.DataFrame({"producers": n, "rate": rate, "block": own})
    found = fit_scalability(frame, "rate", block="block" if between_blocks else None)
    most = PRODUCERS[-1]
    at = np.sqrt((1 - alpha) / beta) if beta else np.inf
    level = usl(at, GAMMA, alpha, beta) if beta else GAMMA / alpha if alpha else np.inf
    truths = {"efficiency": usl(most, 1, alpha, beta) / most, "peak_producers": at, "peak": level}
    truths |= {"gamma": GAMMA, "alpha": alpha, "beta": beta}
    names = {
        "efficiency": "share of linear growth",
        "peak_producers": "producers at the peak",
        "peak": "largest throughput",
    }
    estimates = {name: getattr(found, name) for name in truths}
    return [Outcome(names.get(name, name), PROFILE, one.low, one.high, truths[name]) for name, one in estimates.items()]
