"""
Coverage of the interval of the window that the window-limited model finds.

With skewed effects the robust fit finds the W about which most pairs lie, not the mean; what is to be covered is
then what the fit gives in the population.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ..stats.regions import simulated_surveys
from ..stats.tcp import knee, window_fit
from . import effects as kinds
from .study import MAIN, NAIVE, Outcome, outcomes

TITLE = "The window-limited model"
SETTINGS = [
    *kinds.settings(*(name for name, kind in kinds.KINDS.items() if "tilt" in kind or "reach_km" in kind)),
    *({"n_regions": n, "effects": kinds.FEW_BEYOND} for n in kinds.REGIONS),
]
DATASETS = kinds.datasets
WINDOW_BYTES, CAPACITY_BPS = 3e6, 300e6
FEW_WINDOW_BYTES = 10e6
"""Puts the knee where 5 to 10 of 100 pairs lie beyond it."""
RESAMPLES = {8: 200, 16: 50, 46: 5}
"""Of the bootstrap that gives C, the knee, and W where a region cannot be left out, which takes few regions."""
PAIRS = 300_000


def trial(seed: int, n_regions: int, effects: str) -> list[Outcome]:
    """One survey, its fit, and the W that it should have found."""
    model = _model(effects)
    pairs = kinds.survey(seed, n_regions, effects, model)
    fit = window_fit.window_of(pairs, resamples=RESAMPLES[n_regions], seed=seed, cluster=kinds.unit(effects))
    found = outcomes("window W", fit.window, population_window(effects))
    return [one for one in found if one.method in (MAIN, NAIVE)]


def _model(effects: str) -> dict:
    few = effects == kinds.FEW_BEYOND
    model = kinds.on_throughput("effects of regions" if few else effects)
    return model | {
        "window_bytes": FEW_WINDOW_BYTES if few else WINDOW_BYTES,
        "capacity_bps": CAPACITY_BPS,
    }


@lru_cache(maxsize=16)
def population_window(effects: str) -> float:
    """W in bytes: the model's own, or with skewed effects that of a fit to very many pairs."""
    model = _model(effects)
    if model["law"] not in ("exponential", "rare"):
        return model["window_bytes"]
    pairs = simulated_surveys.independent_pairs(PAIRS, **model).sort_values("rtt_ms")
    fit = knee.fit(np.log(pairs.rtt_ms.to_numpy()), np.log(pairs.throughput_bps.to_numpy()))
    return float(np.exp(fit.falling) / 8000)
