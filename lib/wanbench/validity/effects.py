"""What regions and pairs do to the simulated surveys of the studies: kinds of effects, by name."""

from __future__ import annotations

from ..errors import ParameterError
from ..stats import simulate
from ..stats.sample import Sample

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
}
"""Normal draws unless a law is named; `region` and `tilt` say which effects of regions there are."""
MISSING = 0.4
HARDER = ("heavy tails of regions", "skewed effects of regions", "skewed effects on the slope")
"""Beyond what is asked of an interval: shown, so that a reader knows what would break it."""


def settings(*left_out: str) -> list[dict]:
    """Every kind of effects, but for those left out, at every number of regions."""
    return [{"n_regions": n, "effects": kind} for n in REGIONS for kind in KINDS if kind not in left_out]


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
        "law": kind.get("law", "normal"),
        "pair_law": kind.get("pair_law", "normal"),
    }


def on_throughput(effects: str) -> dict:
    """Parameters of `simulate.Model` with such effects on the logarithm of throughput; RTT has hardly any."""
    kind = _kind(effects)
    return {
        "pair_ms": 0.1,
        "region_log_sd": 0.3 * kind.get("region", 0.0),
        "region_log_slope": 0.05 * kind.get("tilt", 0.0),
        "pair_log_sd": 0.5,
        "law": kind.get("law", "normal"),
        "pair_law": kind.get("pair_law", "normal"),
    }


def survey(seed: int, n_regions: int, effects: str, model: dict) -> Sample:
    """One simulated survey; surveys of a kind are samples of one population."""
    missing = MISSING if effects == "missing pairs" else 0.0
    return simulate.sample(n_regions, seed=seed, places="continents", missing=missing, **model)
