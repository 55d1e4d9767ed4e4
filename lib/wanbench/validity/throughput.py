"""
Coverage of the intervals of throughput against distance: the distance that halves it, and Pearson's r.

Where throughput falls by the window it is min(C, 8 W / RTT), which is no straight line in distance: what is to be
covered is then the line's value in the population, the projection.
"""

from __future__ import annotations

from dataclasses import replace
from math import log10

from ..stats.distance import fits
from ..stats.regions import simulated_surveys
from . import effects as kinds
from .study import Outcome, outcomes

TITLE = "Throughput against distance"
HALF_DISTANCE_KM = 4_000.0
BY_WINDOW = "effects of regions; falls by the window"
SETTINGS = [
    *kinds.settings(*kinds.HARDER, *kinds.NEIGHBOURS),
    *({"n_regions": n, "effects": BY_WINDOW} for n in kinds.REGIONS),
]
RESAMPLES, DATASETS = 400, kinds.datasets


def trial(seed: int, n_regions: int, effects: str) -> list[Outcome]:
    """One survey, its line, and what the line should have been."""
    by_window = effects == BY_WINDOW
    model = kinds.on_throughput("effects of regions" if by_window else effects)
    if not by_window:
        model["half_distance_km"] = HALF_DISTANCE_KM
    pairs = kinds.survey(seed, n_regions, effects, model)
    pairs = replace(
        pairs, column="throughput_bps", frame=pairs.frame.assign(value=pairs.frame.throughput_bps)
    )
    fit = fits.throughput_line(pairs, resamples=RESAMPLES, seed=seed, cluster=kinds.unit(effects))
    whole = simulated_surveys.population(**model)
    half = -1000 * log10(2) / whole["log10_throughput_slope"] if by_window else HALF_DISTANCE_KM
    found = outcomes("half-distance", fit.half_distance, half)
    if effects in kinds.BY_CITY:
        return found
    return found + outcomes("Pearson r", fit.pearson, whole["log10_throughput_r"])
