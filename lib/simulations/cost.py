"""Simulation: the price of messages at known unit prices, from trials that measure rate and bytes between regions."""

from __future__ import annotations

import numpy as np
import pandas as pd

from wanbench.methods.cost.deployment import TOTAL, Deployment, cluster_cost
from wanbench.pages.geo_kafka.region_bytes import mean_of_trials

from .simulation import Outcome

RATE, BYTES = 1e5, 2_700.0
"""Medians of messages per second and of bytes between regions per message."""
FIXED_USD = 3.8
"""Fixed cost per hour: 28 % of the price of a message at this rate."""
REGION_USD_PER_GB = 0.01
SETTINGS = [
    *({"n_trials": n, "spread": spread, "correlation": 0.0} for n in (3, 6, 12) for spread in (0.05, 0.2)),
    *({"n_trials": 6, "spread": 0.2, "correlation": one} for one in (-0.7, 0.7)),
]
PRICE, SHARE = "price of a million messages", "variable over fixed cost"
METHOD, WORST = "distances added as squares", "all inputs at the ends of their ranges"


def trial(seed: int, n_trials: int, spread: float, correlation: float) -> list[Outcome]:
    """
    Draw rate and bytes of each trial from log-normal distributions with the standard deviation `spread`.

    The intervals assume that rate and bytes are independent, which a `correlation` violates.
    """
    rng = np.random.default_rng(seed)
    covariance = spread**2 * np.array([[1, correlation], [correlation, 1]])
    logs = rng.multivariate_normal([np.log(RATE), np.log(BYTES)], covariance, n_trials).T
    rate, counted = (_mean(np.exp(values)) for values in logs)
    base = Deployment(1, FIXED_USD, rate, 1000, counted, REGION_USD_PER_GB)
    cost = cluster_cost(base)
    true = Deployment(1, FIXED_USD, RATE, 1000, BYTES, REGION_USD_PER_GB)
    price = Deployment.usd(true.values(), TOTAL, "million messages")
    share = cluster_cost(true).variable_over_fixed.estimate
    rows = []
    for quantity, found, truth in (
        (PRICE, cost.by[TOTAL, "million messages"], price),
        (SHARE, cost.variable_over_fixed, share),
    ):
        rows.append(Outcome(quantity, METHOD, found.low, found.high, truth))
        rows.append(Outcome(quantity, WORST, found.others[0].low, found.others[0].high, truth))
    return rows


def _mean(values: np.ndarray):
    return mean_of_trials(pd.Series(values), "input", "It is {}", "", ())
