"""Coverage of the intervals of RTT against distance: slope, height at no distance, Pearson's r."""

from __future__ import annotations

from ..stats import distance, simulate
from . import effects as kinds
from .study import Outcome, outcomes

TITLE = "RTT against distance"
SETTINGS = kinds.settings()
RESAMPLES = 400


def trial(seed: int, n_regions: int, effects: str) -> list[Outcome]:
    """One survey, its line, and what the line should have been."""
    model = kinds.on_rtt(effects)
    fit = distance.rtt_line(kinds.survey(seed, n_regions, effects, model), resamples=RESAMPLES, seed=seed)
    found = outcomes("slope", fit.slope, model["slope_ms_per_1000_km"])
    found += outcomes("RTT at no distance", fit.intercept, model["intercept_ms"])
    return found + outcomes("Pearson r", fit.pearson, simulate.population(**model)["rtt_r"])
