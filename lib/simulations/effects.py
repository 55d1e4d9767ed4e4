"""Define kinds of effects of regions and pairs in simulated surveys."""

from __future__ import annotations

from wanbench.checks import check_choice
from wanbench.methods.regions import places as clusters
from wanbench.methods.regions.pairs import Sample

from . import simulated_surveys, simulation

REGIONS = (8, 16, 46)
"""Regions of a survey: few, some, and many."""
KINDS = {
    "effects of pairs alone": {},
    "effects of regions": {"region": 1.0},
    "effects of regions on the slope": {"tilt": 1.0},
    "heavy tails of pairs": {"region": 1.0, "pair_law": "t3"},
    "heavy tails of regions": {"region": 1.0, "law": "t5", "pair_law": "t5"},
    "skewed effects of regions": {"region": 1.0, "law": "exponential"},
    "skewed effects on the slope": {"tilt": 1.0, "law": "exponential"},
    "missing pairs": {"region": 1.0},
    "effects shared by city": {"region": 1.0, "alike": simulated_surveys.CORRELATION_IN_CITY},
    "effects on the slope shared by city": {"tilt": 1.0, "alike": simulated_surveys.CORRELATION_IN_CITY},
    "slow regions, 1 in 10": {"region": 1.0, "law": "rare"},
    "detouring regions, 1 in 10": {"tilt": 1.0, "law": "rare"},
    "very slow regions, 1 in 10": {"region": 2.0, "law": "rare"},
    "long detours, 1 in 10": {"tilt": 2.0, "law": "rare"},
} | {
    f"{kind} shared over {km:,} km": {
        effect: 1.0,
        "alike": simulated_surveys.CORRELATION_IN_CITY,
        "reach_km": float(km),
    }
    for km in (1500, 5000)
    for kind, effect in (("effects", "region"), ("effects on the slope", "tilt"))
}
"""
Settings by kind of effects, which are normally distributed unless a law is given. `region` and `tilt` scale the effects
of regions on intercept and slope. `alike` is the correlation of two clouds' regions in one city, and `reach_km` the
distance over which cities share effects.
"""
MISSING = 0.4
"""Share of pairs that are missing in a survey with missing pairs."""
BREAKING_KINDS = (
    "heavy tails of regions",
    "skewed effects of regions",
    "skewed effects on the slope",
    "slow regions, 1 in 10",
    "detouring regions, 1 in 10",
    "very slow regions, 1 in 10",
    "long detours, 1 in 10",
)
"""Kinds for which the intervals are not designed; they show when coverage fails."""
BY_CITY = tuple(name for name, kind in KINDS.items() if "alike" in kind and "reach_km" not in kind)
NEIGHBOURS = tuple(name for name, kind in KINDS.items() if "reach_km" in kind)
"""Effects shared beyond the city: the interval given has too low a coverage, which a test with Moran's I should report.
The interval by groups of neighbours has the right coverage if effects are shared over 1,500 km."""
FEW_BEYOND_KNEE = {
    "effects of regions; few pairs beyond the knee": 10e6,
    "effects of regions; no pair beyond the knee": 16e6,
}
"""Window W in bytes, such that 5 to 10 % of the pairs, or none, are beyond the knee."""
COUNTED_ON_FEWER = (*BY_CITY, *NEIGHBOURS, *BREAKING_KINDS[-4:], *FEW_BEYOND_KNEE)


def settings(*left_out: str) -> list[dict]:
    """Return settings for all kinds of effects, except `left_out`, and all numbers of regions."""
    return [{"n_regions": n, "effects": kind} for n in REGIONS for kind in KINDS if kind not in left_out]


FEWER_DATASETS = 300
"""Data sets per setting of `COUNTED_ON_FEWER`: enough to distinguish a coverage of 95 % from 70 %."""


def datasets(setting: dict) -> int:
    """Return the number of data sets of a setting: 1,000, or fewer for `COUNTED_ON_FEWER`."""
    return FEWER_DATASETS if setting["effects"] in COUNTED_ON_FEWER else simulation.DATASETS


def unit(effects: str) -> str:
    """
    Return the unit that the interval takes as independent: the place if cities share effects, otherwise the region.

    Without shared effects, regions are independent even if two are near each other by chance.
    """
    return clusters.PLACE if effects in BY_CITY + NEIGHBOURS else clusters.REGION


def _kind(effects: str) -> dict:
    return KINDS[check_choice("effects", effects, KINDS)]


def on_rtt(effects: str) -> dict:
    """Return parameters of `simulated_surveys.Model` for effects on RTT; r of RTT and distance is 0.94 to 0.97."""
    kind = _kind(effects)
    return {
        "intercept_ms": 20_000.0,  # so large that even heavy-tailed effects make no RTT negative
        "slope_ms_per_1000_km": 14.0,
        "region_ms": 12.0 * kind.get("region", 0.0),
        "region_slope": 1.5 * kind.get("tilt", 0.0),
        "pair_ms": 8.0 if "tilt" in kind else 15.0,
        **_laws(kind),
    }


def on_throughput(effects: str) -> dict:
    """Return parameters of `simulated_surveys.Model` for effects on log throughput, with almost none on RTT."""
    kind = _kind(effects)
    return {
        "pair_ms": 0.1,
        "region_log_sd": 0.3 * kind.get("region", 0.0),
        "region_log_slope": 0.05 * kind.get("tilt", 0.0),
        "pair_log_sd": 0.5,
        **_laws(kind),
    }


def _laws(kind: dict) -> dict:
    return {
        "law": kind.get("law", "normal"),
        "pair_law": kind.get("pair_law", "normal"),
        "alike": kind.get("alike", 0.0),
        "reach_km": kind.get("reach_km", 0.0),
    }


def survey(seed: int, n_regions: int, effects: str, model: dict) -> Sample:
    """Return a simulated survey; surveys of a kind are samples from one population."""
    missing = MISSING if effects == "missing pairs" else 0.0
    places = "cities" if effects in BY_CITY + NEIGHBOURS else "continents"
    return simulated_surveys.sample(n_regions, seed=seed, places=places, missing=missing, **model)
