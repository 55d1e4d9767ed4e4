"""
Simulation: RTT against distance (slope, intercept and Pearson's r), and the share of surveys with cautions.

The cautions warn of spatial correlation between neighbours, and of skewed effects.
"""

from __future__ import annotations

from wanbench.checks import FEWEST_RESAMPLES
from wanbench.methods.distance import straight_lines
from wanbench.methods.regions import places

from . import effects as kinds
from . import simulated_surveys
from .simulation import Outcome, outcomes

SETTINGS, DATASETS = kinds.settings(), kinds.datasets
RESAMPLES = 400
"""Number of bootstrap resamples: enough for 95 % intervals, and few enough for a thousand data sets."""


def trial(seed: int, n_regions: int, effects: str) -> list[Outcome]:
    """Simulate one survey and fit its line; the truth is the line of the model."""
    model = kinds.on_rtt(effects)
    pairs = kinds.survey(seed, n_regions, effects, model)
    fit = straight_lines.rtt_line(pairs, resamples=RESAMPLES, seed=seed, cluster=kinds.unit(effects))
    truths = {"slope": model["slope_ms_per_1000_km"], "RTT intercept": model["intercept_ms"]}
    results = outcomes("slope", fit.slope, truths["slope"])
    results += outcomes("RTT intercept", fit.intercept, truths["RTT intercept"])
    if effects not in kinds.BY_CITY + kinds.NEIGHBOURS:
        results += outcomes("Pearson r", fit.pearson, simulated_surveys.population(**model)["rtt_r"])
    else:
        results += _by_other_units(pairs, effects, truths)
    if effects in kinds.COUNTED_ON_FEWER:
        for caution, test in (
            ("cautions of neighbours that deviate alike", fit.line.moran),
            ("cautions of skewed effects", fit.line.skew),
        ):
            raised = float(bool(test and test.significant))
            results.append(Outcome(caution, "share of surveys", raised, raised, 1.0))
    return results


def _by_other_units(pairs, effects: str, truths: dict[str, float]) -> list[Outcome]:
    """Fit the line with regions as units, which ignores shared cities, or with groups of neighbours as units."""
    if effects in kinds.BY_CITY:
        method, cluster = "regions as units", places.REGION
    else:
        method, cluster = "places within 1,500 km as units", places.NEIGHBOURS_KM
    fit = straight_lines.rtt_line(pairs, resamples=FEWEST_RESAMPLES, cluster=cluster)
    estimates = {"slope": fit.slope, "RTT intercept": fit.intercept}
    return [Outcome(name, method, one.low, one.high, truths[name]) for name, one in estimates.items()]
