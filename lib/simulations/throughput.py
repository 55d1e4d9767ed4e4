"""
Simulation: throughput against distance: the distance that halves it, and Pearson's r.

Throughput limited by the window is min(C, 8 W / RTT), which is not a straight line in distance; the truth is then a
line fitted to the population.
"""

from __future__ import annotations

from dataclasses import replace
from math import log10

from wanbench.methods.distance import straight_lines

from . import effects as kinds
from . import simulated_surveys
from .simulation import Outcome, outcomes

HALF_DISTANCE_KM = 4_000.0
"""The truth if throughput decreases exponentially with distance."""
BY_WINDOW = "effects of regions; falls by the window"
SETTINGS = [*kinds.settings(*kinds.BREAKING_KINDS), *({"n_regions": n, "effects": BY_WINDOW} for n in kinds.REGIONS)]
RESAMPLES, DATASETS = 400, kinds.datasets


def trial(seed: int, n_regions: int, effects: str) -> list[Outcome]:
    """Simulate one survey and fit its line; the truth is the line of the population."""
    by_window = effects == BY_WINDOW
    model = kinds.on_throughput("effects of regions" if by_window else effects)
    if not by_window:
        model["half_distance_km"] = HALF_DISTANCE_KM
    pairs = kinds.survey(seed, n_regions, effects, model)
    pairs = replace(pairs, column="throughput_bps", frame=pairs.frame.assign(value=pairs.frame.throughput_bps))
    fit = straight_lines.throughput_line(pairs, resamples=RESAMPLES, seed=seed, cluster=kinds.unit(effects))
    if effects in kinds.BY_CITY + kinds.NEIGHBOURS:
        return outcomes("half-distance", fit.half_distance, HALF_DISTANCE_KM)
    population = simulated_surveys.population(**model)
    half = -1000 * log10(2) / population["log10_throughput_slope"] if by_window else HALF_DISTANCE_KM
    results = outcomes("half-distance", fit.half_distance, half)
    return results + outcomes("Pearson r", fit.pearson, population["log10_throughput_r"])
