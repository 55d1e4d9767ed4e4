"""What regions and pairs do to the simulated surveys of the studies: kinds of effects, by name."""

from __future__ import annotations

from ..errors import ParameterError
from ..stats.regions import clusters, simulated_surveys
from ..stats.regions.unordered_pairs import Sample
from . import study

REGIONS = (8, 16, 46)
KINDS = {
    "effects of pairs alone": {},
    "effects of regions": {"region": 1.0},
    "effects of regions on the slope": {"tilt": 1.0},
    "heavy tails of pairs": {"region": 1.0, "pair_law": "t3"},
    "heavy tails of regions": {"region": 1.0, "law": "t5", "pair_law": "t5"},
    "skewed effects of regions": {"region": 1.0, "law": "exponential"},
    "skewed effects on the slope": {"tilt": 1.0, "law": "exponential"},
    "missing pairs": {"region": 1.0},
    "effects shared by city": {"region": 1.0, "alike": simulated_surveys.ALIKE},
    "effects on the slope shared by city": {"tilt": 1.0, "alike": simulated_surveys.ALIKE},
    "slow regions, 1 in 10": {"region": 1.0, "law": "rare"},
    "detouring regions, 1 in 10": {"tilt": 1.0, "law": "rare"},
    "effects shared over 1,500 km": {"region": 1.0, "alike": simulated_surveys.ALIKE, "reach_km": 1500.0},
    "effects on the slope shared over 1,500 km": {
        "tilt": 1.0,
        "alike": simulated_surveys.ALIKE,
        "reach_km": 1500.0,
    },
}
"""
Normal draws unless a law is named; `region` and `tilt` say which effects of regions there are, `alike` how the two
clouds' regions of one city correlate, `reach_km` how far cities have something in common.
"""
MISSING = 0.4
HARDER = (
    "heavy tails of regions",
    "skewed effects of regions",
    "skewed effects on the slope",
    "slow regions, 1 in 10",
    "detouring regions, 1 in 10",
)
"""Beyond what is asked of an interval: shown, so that a reader knows what would break it."""
BY_CITY = tuple(name for name, kind in KINDS.items() if "alike" in kind and "reach_km" not in kind)
NEIGHBOURS = tuple(name for name, kind in KINDS.items() if "reach_km" in kind)
"""Beyond the city: the interval given does not hold, as Moran's I should say; that by groups of neighbours should."""


FEW_BEYOND = "effects of regions; few pairs beyond the knee"
LATER = (*BY_CITY, *NEIGHBOURS, "slow regions, 1 in 10", "detouring regions, 1 in 10", FEW_BEYOND)


def settings(*left_out: str) -> list[dict]:
    """Every kind of effects, but for those left out, at every number of regions."""
    return [{"n_regions": n, "effects": kind} for n in REGIONS for kind in KINDS if kind not in left_out]


FEWER_DATASETS = 300
"""Of the harder settings, where the question is whether coverage is 95 or 70 %."""


def datasets(setting: dict) -> int:
    """How many data sets of a setting: 1,000, and fewer of those that only show what breaks an interval."""
    return FEWER_DATASETS if setting["effects"] in LATER else study.DATASETS


def unit(effects: str) -> str:
    """
    The unit of the interval given: the place where two clouds' regions share cities, else the region. Regions that
    are placed independently have nothing in common where two happen to lie near each other.
    """
    return clusters.PLACE if effects in BY_CITY + NEIGHBOURS else clusters.REGION


def _kind(effects: str) -> dict:
    if effects not in KINDS:
        raise ParameterError(f"effects {effects!r}: allowed are {', '.join(KINDS)}")
    return KINDS[effects]


def on_rtt(effects: str) -> dict:
    """Parameters of `simulate.Model` with such effects on RTT; r is then about 0.94 to 0.97."""
    kind = _kind(effects)
    return {
        "intercept_ms": 20_000.0,  # so that no effect, however heavy its tail, makes an RTT negative
        "slope_ms_per_1000_km": 14.0,
        "region_ms": 12.0 * kind.get("region", 0.0),
        "region_slope": 1.5 * kind.get("tilt", 0.0),
        "pair_ms": 8.0 if "tilt" in kind else 15.0,
        **_laws(kind),
    }


def on_throughput(effects: str) -> dict:
    """Parameters of `simulate.Model` with such effects on the logarithm of throughput; RTT has hardly any."""
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
    """One simulated survey; surveys of a kind are samples of one population."""
    missing = MISSING if effects == "missing pairs" else 0.0
    places = "cities" if effects in BY_CITY + NEIGHBOURS else "continents"
    return simulated_surveys.sample(n_regions, seed=seed, places=places, missing=missing, **model)
