"""Simulation: ratios of settings to a baseline from few trials each, individually and simultaneously."""

from __future__ import annotations

import numpy as np
import pandas as pd

from wanbench.pages.geo_kafka.against_baseline import PAIRS, SINGLE, against_baseline

from .simulation import Outcome

DUNNETT = "Dunnett's, pooled"
SETTINGS = [
    {"settings": 8, "replicates": 2, "spread": 0.05, "blocks": 0.1},
    {"settings": 8, "replicates": 3, "spread": 0.05, "blocks": 0.1},
    {"settings": 20, "replicates": 3, "spread": 0.05, "blocks": 0.1},
    {"settings": 8, "replicates": 3, "spread": 0.05, "blocks": 0.1, "noisy": 5.0},
]


def trial(seed: int, settings: int, replicates: int, spread: float, blocks: float, noisy: float = 1.0) -> list[Outcome]:
    """
    Simulate trials of several settings with log-normal scatter; the first setting is the baseline.

    Each of the `replicates` blocks has a trial of every setting. `spread` is the standard deviation of the logarithm of
    a trial, and `blocks` that of a block. The scatter of the last setting is multiplied by `noisy`. The test of equal
    scatter is also an outcome, which counts as covered if its p-value is at least 0.05.
    """
    rng = np.random.default_rng(seed)
    truth = np.exp(np.linspace(0, 1, settings))
    own = spread * np.where(np.arange(settings) == settings - 1, noisy, 1.0)
    log = np.log(truth) + rng.normal(0, blocks, (replicates, 1)) + rng.normal(0, own, (replicates, settings))
    frame = pd.DataFrame(
        {
            "setting": np.tile(np.arange(settings), replicates),
            "block": np.repeat(np.arange(replicates), settings),
            "rate": 100 * np.exp(log).ravel(),
        }
    )
    found = against_baseline(frame, "rate", 0, block="block")
    ratios = list(found.ratios.values())
    low = max(one.low / ratio for one, ratio in zip(ratios, truth[1:], strict=True))
    high = min(one.high / ratio for one, ratio in zip(ratios, truth[1:], strict=True))
    return [
        Outcome("all ratios together", DUNNETT, low, high, 1.0),
        *_ends("one ratio", ratios[0], truth[1]),
        *_ends("ratio of the last setting", ratios[-1], truth[-1]),
        Outcome("no caution of unequal scatter", "Bartlett's, simulated", 0.05, 1.0, found.equal_spread_p),
    ]


def _ends(quantity: str, one, truth: float) -> list[Outcome]:
    by = {other.method: other for other in one.others}
    named = (("t, pooled", by[SINGLE]), ("its own pairs", by[PAIRS]))
    return [Outcome(quantity, name, other.low, other.high, truth) for name, other in named]
