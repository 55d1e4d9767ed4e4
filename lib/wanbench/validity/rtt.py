"""
Coverage of the intervals of RTT against distance: slope, height at no distance, Pearson's r; and how often a result
cautions of neighbours that deviate alike, and of skewed effects.
"""

from __future__ import annotations

from ..stats.distance import fits
from ..stats.regions import clusters, simulated_surveys
from . import effects as kinds
from .study import Outcome, outcomes

TITLE = "RTT against distance"
SETTINGS, DATASETS = kinds.settings(), kinds.datasets
RESAMPLES = 400


BY_REGION, BY_NEIGHBOURS = "regions as units", "places within 1,500 km as units"
NEIGHBOURS_SAID, SKEW_SAID = "cautions of neighbours that deviate alike", "cautions of skewed effects"


def trial(seed: int, n_regions: int, effects: str) -> list[Outcome]:
    """One survey, its line, and what the line should have been."""
    model, pairs = kinds.on_rtt(effects), kinds.survey(seed, n_regions, effects, kinds.on_rtt(effects))
    fit = fits.rtt_line(pairs, resamples=RESAMPLES, seed=seed, cluster=kinds.unit(effects))
    truths = {"slope": model["slope_ms_per_1000_km"], "RTT at no distance": model["intercept_ms"]}
    found = outcomes("slope", fit.slope, truths["slope"])
    found += outcomes("RTT at no distance", fit.intercept, truths["RTT at no distance"])
    if effects not in kinds.BY_CITY + kinds.NEIGHBOURS:
        found += outcomes("Pearson r", fit.pearson, simulated_surveys.population(**model)["rtt_r"])
    else:
        found += _by_other_units(pairs, effects, truths)
    if effects not in kinds.LATER:
        return found
    for said, sign in ((NEIGHBOURS_SAID, fit.line.moran), (SKEW_SAID, fit.line.skew)):
        raised = float(bool(sign and sign.significant))
        found.append(Outcome(said, "share of surveys", raised, raised, 1.0))
    return found


def _by_other_units(pairs, effects: str, truths: dict[str, float]) -> list[Outcome]:
    """The same line with the unit that ignores what regions share, or the one that knows of it."""
    name, cluster = (
        (BY_REGION, clusters.REGION) if effects in kinds.BY_CITY else (BY_NEIGHBOURS, clusters.NEIGHBOURS_KM)
    )
    other = fits.rtt_line(pairs, resamples=1, cluster=cluster)
    ends = {"slope": other.slope, "RTT at no distance": other.intercept}
    return [Outcome(what, name, ends[what].low, ends[what].high, truth) for what, truth in truths.items()]
