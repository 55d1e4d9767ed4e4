"""
Simulation: the window W of the model of window-limited throughput.

With skewed effects, the robust fit estimates the W of most pairs, and not the mean; the truth is then a fit to the
population.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from wanbench.methods.tcp import knee, window_fit

from . import effects as kinds
from . import simulated_surveys
from .simulation import MAIN, NAIVE, Outcome, outcomes

SETTINGS = [
    *kinds.settings(*(name for name, kind in kinds.KINDS.items() if "tilt" in kind)),
    *({"n_regions": n, "effects": few} for few in kinds.FEW_BEYOND_KNEE for n in kinds.REGIONS),
]
DATASETS = kinds.datasets
WINDOW_BYTES = 3e6
CAPACITY_BPS = 300e6
RESAMPLES = {8: 200, 16: 50, 46: 40}
"""
Bootstrap resamples by number of regions. The intervals of C and the knee use them; that of W only if there are too few
regions to leave one out.
"""
PAIRS = 300_000
"""Pairs of the population fit, whose error is then much smaller than any interval."""


def trial(seed: int, n_regions: int, effects: str) -> list[Outcome]:
    """Simulate and fit one survey; the truth is the W of the population."""
    model = _model(effects)
    pairs = kinds.survey(seed, n_regions, effects, model)
    fit = window_fit.window_of(pairs, resamples=RESAMPLES[n_regions], seed=seed, cluster=kinds.unit(effects))
    results = outcomes("window W", fit.window, population_window(effects))
    return [one for one in results if one.method in (MAIN, NAIVE)]


def _model(effects: str) -> dict:
    few = kinds.FEW_BEYOND_KNEE.get(effects)
    model = kinds.on_throughput("effects of regions" if few else effects)
    return model | {"window_bytes": few or WINDOW_BYTES, "capacity_bps": CAPACITY_BPS}


@lru_cache(maxsize=16)
def population_window(effects: str) -> float:
    """Return W in bytes: that of the model or, with skewed effects, of a fit to very many pairs."""
    model = _model(effects)
    if model["law"] not in ("exponential", "rare"):
        return model["window_bytes"]
    pairs = simulated_surveys.independent_pairs(PAIRS, **model).sort_values("rtt_ms")
    fit = knee.fit(np.log(pairs.rtt_ms.to_numpy()), np.log(pairs.throughput_bps.to_numpy()))
    return float(np.exp(fit.falling) / 8000)
