"""Surveys with a known answer and effects of regions in them, to judge estimates by."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd

from ...errors import ParameterError
from ...regions import LIGHT_RTT_MS_PER_KM
from .unordered_pairs import Sample

EARTH_RADIUS_KM = 6371.0


PLACES = np.array(
    [  # latitude, longitude, share of the regions
        (40, -78, 0.20),
        (40, -115, 0.15),
        (50, 6, 0.28),
        (35, 132, 0.15),
        (8, 102, 0.09),
        (20, 77, 0.05),
        (-23, -47, 0.04),
        (-34, 148, 0.04),
    ]
)
AROUND = 0.12
RARE = 0.1
CITIES = 0.6
"""Share of cities to regions where clouds share them: 46 regions of the survey of 2022 lie in 28 places."""
ALIKE = 0.95
"""Correlation of the effects of two clouds' regions in one city, in the survey of 2022."""
LAWS = {
    "normal": lambda rng, n: rng.normal(0, 1, n),
    "t3": lambda rng, n: rng.standard_t(3, n) / np.sqrt(3),
    "t5": lambda rng, n: rng.standard_t(5, n) / np.sqrt(5 / 3),
    "exponential": lambda rng, n: rng.exponential(1, n) - 1,
    "rare": lambda rng, n: ((rng.random(n) < RARE) - RARE) / np.sqrt(RARE * (1 - RARE)),
}
"""Laws of mean 0 and variance 1: Student's t with 3 and 5 degrees of freedom, an exponential one, and 1 in 10."""


@dataclass(frozen=True)
class Model:
    """
    What a survey's values are made of. Standard deviations of 0 mean no such effect.

    RTT = intercept + slope x distance + effects; throughput = min(capacity, 8 window / RTT) x effects, or, with
    `half_distance_km`, capacity x 0.5 ** (distance / half_distance_km) x effects. An effect of a region is one
    draw that all its pairs share; both directions of a pair have one RTT, and throughputs that differ by a draw of
    their own.

    Parameters
    ----------
    region_ms, pair_ms : float
        Standard deviations of the effects of a region, and of a pair, on RTT in ms.
    region_slope : float
        Standard deviation of the effect of a region on the slope, in ms per 1,000 km.
    region_log_sd, pair_log_sd : float
        Standard deviations of the effects of a region, and of an ordered pair, on the natural logarithm of
        throughput.
    region_log_slope : float
        Standard deviation of the effect of a region on the natural logarithm of throughput, per 1,000 km.
    law, pair_law : str
        Law of the effects of regions, and of pairs: a name in `LAWS`.
    alike : float
        Correlation of the effects of two regions in one city.
    reach_km : float
        Length over which it falls by a factor e between cities; 0: regions of two cities have nothing in common.
        Takes normal effects.
    """

    intercept_ms: float = 40.0
    slope_ms_per_1000_km: float = 14.0
    region_ms: float = 0.0
    region_slope: float = 0.0
    pair_ms: float = 1.0
    window_bytes: float = 3e6
    capacity_bps: float = 300e6
    half_distance_km: float | None = None
    region_log_sd: float = 0.0
    region_log_slope: float = 0.0
    pair_log_sd: float = 0.1
    law: str = "normal"
    pair_law: str = "normal"
    alike: float = 0.0
    reach_km: float = 0.0

    def __post_init__(self):
        for law in (self.law, self.pair_law):
            if law not in LAWS:
                raise ParameterError(f"law {law!r}: allowed are {', '.join(LAWS)}")
        if not 0 <= self.alike <= 1 or self.reach_km < 0 or (self.reach_km and self.law != "normal"):
            raise ParameterError(
                f"alike={self.alike!r}, reach_km={self.reach_km!r}: from 0 to 1, and from 0 with normal effects"
            )

    def _effects(self, points):
        """The law of the effects of regions at these places, as a function of a generator and their number."""
        law = LAWS[self.law]
        if not self.alike:
            return law
        if self.reach_km:
            apart = _distance_km(points[:, None], points[None])
            together = self.alike * np.exp(-apart / self.reach_km) + (1 - self.alike) * np.eye(len(points))
            root = np.linalg.cholesky(together + 1e-9 * np.eye(len(points)))
            return lambda rng, n: root @ rng.normal(0, 1, n)
        city = np.unique(points.round(6), axis=0, return_inverse=True)[1].reshape(-1)

        def shared(rng, n):
            return np.sqrt(self.alike) * law(rng, city.max() + 1)[city] + np.sqrt(1 - self.alike) * law(
                rng, n
            )

        return shared

    def values(self, distance_km, first, second, points, rng) -> tuple[np.ndarray, np.ndarray]:
        """RTT in ms and the logarithm of throughput in bit/s per pair, before what its directions differ by."""
        law, own, n_regions = self._effects(points), LAWS[self.pair_law], len(points)
        on_rtt = self.region_ms * law(rng, n_regions)
        on_slope = self.region_slope * law(rng, n_regions)
        on_log = self.region_log_sd * law(rng, n_regions)
        slope = self.slope_ms_per_1000_km + on_slope[first] + on_slope[second]
        rtt_ms = self.intercept_ms + slope * distance_km / 1000 + on_rtt[first] + on_rtt[second]
        rtt_ms = rtt_ms + self.pair_ms * own(rng, len(first))
        if rtt_ms.min() <= 0:
            raise ParameterError("these effects make an RTT of 0 or less; give a greater intercept_ms")
        log = np.log(np.minimum(self.capacity_bps, 8 * self.window_bytes / (rtt_ms / 1000)))
        if self.half_distance_km is not None:
            log = np.log(self.capacity_bps) - np.log(2) * distance_km / self.half_distance_km
        log = log + on_log[first] + on_log[second]
        if self.region_log_slope:
            tilt = self.region_log_slope * law(rng, n_regions)
            log = log + (tilt[first] + tilt[second]) * distance_km / 1000
        return rtt_ms, log

    def of_direction(self, n: int, rng) -> np.ndarray:
        """What the logarithm of throughput of one direction differs by."""
        return self.pair_log_sd * LAWS[self.pair_law](rng, n)


def survey(
    n_regions: int,
    *,
    seed: int,
    clouds: tuple[str, ...] = ("aws", "azure", "gcp"),
    places: str = "clusters",
    missing: float = 0.0,
    **effects,
) -> pd.DataFrame:
    """
    A table `pairs` of all ordered pairs of invented regions on a sphere.

    Parameters
    ----------
    places : str
        "clusters": around a few centres that are drawn anew for each survey. "continents": each region
        independently around one of eight fixed places, so that surveys are samples of one population. "cities": the
        same for cities, of which there are 0.6 for each region, so that clouds share them.
    missing : float
        Share of the unordered pairs that are left out at random.
    **effects
        Fields of `Model`.
    """
    drawn = _draw(n_regions, seed, places, missing, effects)
    names = _names(n_regions, clouds)
    first, second = names[drawn.first], names[drawn.second]
    ends = ((first, second), (second, first))
    directions = [
        _rows(*both, drawn.distance_km, drawn.rtt_ms, np.exp(log))
        for both, log in zip(ends, drawn.log_throughput, strict=True)
    ]
    return pd.concat(directions).sort_values(["from_region", "to_region"], ignore_index=True)


def sample(
    n_regions: int,
    *,
    seed: int,
    clouds: tuple[str, ...] = ("aws", "azure", "gcp"),
    places: str = "clusters",
    missing: float = 0.0,
    **effects,
) -> Sample:
    """
    The unordered pairs of the same survey, for studies that need many: `rtt_ms`, and `throughput_bps` as the
    geometric mean of both directions; `value` is the former.
    """
    drawn = _draw(n_regions, seed, places, missing, effects)
    names = _names(n_regions, clouds)
    order = np.argsort(names)
    rank = np.argsort(order)
    ends = [rank[drawn.first], rank[drawn.second]]
    a, b = np.minimum(*ends), np.maximum(*ends)
    rows = np.lexsort((b, a))
    a, b, names = order[a[rows]], order[b[rows]], pd.Series(names, dtype="str")
    cloud = np.arange(n_regions) % len(clouds)
    label = np.array([["-".join(sorted((one, two))) for two in clouds] for one in clouds])
    log = (drawn.log_throughput[0] + drawn.log_throughput[1])[rows] / 2
    frame = {
        "region_a": names.array[a],
        "region_b": names.array[b],
        "cloud_pair": pd.array(label[cloud[a], cloud[b]], dtype="str"),
        "distance_km": drawn.distance_km[rows],
        "rtt_ms": drawn.rtt_ms[rows],
        "throughput_bps": np.exp(log),
        "n_directions": 2,
        "value": drawn.rtt_ms[rows],
    }
    frame = pd.DataFrame(frame)
    return Sample("rtt_ms", frame, frame.head(0))


@dataclass(frozen=True)
class _Drawn:
    first: np.ndarray
    second: np.ndarray
    distance_km: np.ndarray
    rtt_ms: np.ndarray
    log_throughput: list[np.ndarray]


def _names(n_regions: int, clouds: tuple[str, ...]) -> np.ndarray:
    return np.array([f"{clouds[k % len(clouds)]}:region-{k:03d}" for k in range(n_regions)], dtype=object)


def _draw(n_regions: int, seed: int, places: str, missing: float, effects: dict) -> _Drawn:
    """Places, effects and values of the unordered pairs of a survey."""
    if n_regions < 2:
        raise ParameterError(f"n_regions={n_regions!r}: a survey has at least 2")
    if places not in PLACED:
        raise ParameterError(f"places={places!r}: allowed are {', '.join(PLACED)}")
    model, rng = Model(**effects), np.random.default_rng(seed)
    points = PLACED[places](n_regions, rng)
    first, second = np.triu_indices(n_regions, 1)
    distance_km = _distance_km(points[first], points[second])
    rtt_ms, log = model.values(distance_km, first, second, points, rng)
    logs = [log + model.of_direction(len(first), rng) for _ in range(2)]
    kept = rng.random(len(first)) >= missing if missing else np.ones(len(first), dtype=bool)
    return _Drawn(first[kept], second[kept], distance_km[kept], rtt_ms[kept], [one[kept] for one in logs])


def independent_pairs(n_pairs: int, seed: int = 0, **effects) -> pd.DataFrame:
    """
    Pairs no two of which share a region, of the population that surveys with `places="continents"` sample.

    Returns
    -------
    DataFrame
        distance_km, rtt_ms and throughput_bps (geometric mean of both directions), one row per pair.
    """
    model, rng = Model(**effects), np.random.default_rng(seed)
    first, second = np.arange(n_pairs), np.arange(n_pairs, 2 * n_pairs)
    points = _continents(2 * n_pairs, rng)
    distance_km = _distance_km(points[first], points[second])
    rtt_ms, log = model.values(distance_km, first, second, points, rng)
    log = log + (model.of_direction(n_pairs, rng) + model.of_direction(n_pairs, rng)) / 2
    return pd.DataFrame({"distance_km": distance_km, "rtt_ms": rtt_ms, "throughput_bps": np.exp(log)})


@lru_cache(maxsize=64)
def population(n_pairs: int = 1_000_000, seed: int = 0, **effects) -> dict[str, float]:
    """
    What a line through a survey with `places="continents"` estimates, from one large simulation.

    Returns
    -------
    dict
        For "rtt" and "log10_throughput": the slope on distance per 1,000 km (`rtt_slope`) and Pearson's r with
        distance (`rtt_r`).
    """
    pairs, found = independent_pairs(n_pairs, seed, **effects), {}
    for name, values in (("rtt", pairs.rtt_ms), ("log10_throughput", np.log10(pairs.throughput_bps))):
        covariance = np.cov(pairs.distance_km / 1000, values)
        found[f"{name}_slope"] = float(covariance[0, 1] / covariance[0, 0])
        found[f"{name}_r"] = float(covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]))
    return found


def _distance_km(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return EARTH_RADIUS_KM * np.arccos(np.clip((a * b).sum(axis=-1), -1, 1))


def _continents(n: int, rng: np.random.Generator) -> np.ndarray:
    """Unit vectors, each around a place of its own choice."""
    latitude, longitude = np.radians(PLACES[:, :2]).T
    flat = np.cos(latitude)
    centres = np.column_stack([flat * np.cos(longitude), flat * np.sin(longitude), np.sin(latitude)])
    share = PLACES[:, 2] / PLACES[:, 2].sum()
    points = centres[rng.choice(len(PLACES), size=n, p=share)] + rng.normal(0, AROUND, size=(n, 3))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def _clusters(n: int, rng: np.random.Generator) -> np.ndarray:
    """Unit vectors around a quarter as many centres."""
    centres = rng.normal(size=(max(3, n // 4), 3))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    points = centres[rng.integers(len(centres), size=n)] + rng.normal(0, 0.25, size=(n, 3))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def _cities(n: int, rng: np.random.Generator) -> np.ndarray:
    """Unit vectors of regions of which several lie in one city, no city with more than two."""
    cities = _continents(round(CITIES * n), rng)
    return np.concatenate([cities, cities[rng.permutation(len(cities))[: n - len(cities)]]])


PLACED = {"clusters": _clusters, "continents": _continents, "cities": _cities}


def _rows(start, end, distance_km, rtt_ms, throughput_bps) -> pd.DataFrame:
    columns = {
        "from_region": start,
        "to_region": end,
        "from_cloud": [name.partition(":")[0] for name in start],
        "to_cloud": [name.partition(":")[0] for name in end],
        "distance_km": distance_km,
        "light_rtt_ms": distance_km * LIGHT_RTT_MS_PER_KM,
        "n_tests": 1,
        "n_echoes": 20,
        "n_lost": 0,
        "rtt_ms": rtt_ms,
        "throughput_bps": throughput_bps,
        "n_transfers": 1,
        "retransmits": 0,
    }
    return pd.DataFrame(columns)
