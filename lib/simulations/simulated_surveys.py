"""Simulate surveys with effects of regions and known parameters, to test estimates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import pandas as pd

from wanbench.checks import check_choice, check_number
from wanbench.errors import ParameterError
from wanbench.methods.regions.pairs import Sample, cloud_pair
from wanbench.regions import LIGHT_RTT_MS_PER_KM

EARTH_RADIUS_KM = 6371.0
CLOUDS = ("aws", "azure", "gcp")
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
"""Rough locations of clouds: North America (east, west), Europe, Asia (east, south-east, south), Brazil, Australia."""
SD_ABOUT_PLACE = 0.12
"""Standard deviation of a region's position around its place, in Earth radii: 760 km."""
SD_ABOUT_CLUSTER = 0.25
"""Standard deviation of a region's position around the centre of its cluster, in Earth radii: 1,600 km."""
RARE_SHARE = 0.1
"""Share of the regions that the law "rare" affects."""
CITIES_PER_REGION = 0.6
"""Cities per region if clouds share cities: the 46 regions of the survey of 2022 are in 28 places."""
CORRELATION_IN_CITY = 0.95
"""Correlation of the effects of two clouds' regions in one city, in the survey of 2022."""
LAWS = ("normal", "t3", "t5", "exponential", "rare")


def draw(law: str, rng: np.random.Generator, n: int) -> np.ndarray:
    """Draw n effects of mean 0 and variance 1; "t3" and "t5" are Student's t with 3 and 5 degrees of freedom."""
    match law:
        case "normal":
            return rng.normal(0, 1, n)
        case "t3":
            return rng.standard_t(3, n) / np.sqrt(3)
        case "t5":
            return rng.standard_t(5, n) / np.sqrt(5 / 3)
        case "exponential":
            return rng.exponential(1, n) - 1
        case _:
            return ((rng.random(n) < RARE_SHARE) - RARE_SHARE) / np.sqrt(RARE_SHARE * (1 - RARE_SHARE))


@dataclass(frozen=True)
class Model:
    """
    The model of a survey's values. An effect with a standard deviation of 0 does not exist.

    RTT = intercept + slope x distance + effects. Throughput = min(capacity, 8 window / RTT) x effects or, with
    `half_distance_km`, capacity x 0.5 ** (distance / half_distance_km) x effects. The effect of a region is the same
    for all its pairs. Both directions of a pair have the same RTT; their throughputs are drawn separately.

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
        Law of the effects of regions, and of pairs: one of `LAWS`.
    alike : float
        Correlation of the effects of two regions in one city.
    reach_km : float
        Distance between cities over which this correlation falls by a factor e, for normal effects only. With 0,
        regions of different cities are independent.
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
        check_choice("pair_law", self.pair_law, LAWS)
        check_choice("law", self.law, ["normal"] if self.reach_km else LAWS)
        check_number("alike", self.alike, 0, 1)
        check_number("reach_km", self.reach_km, 0)

    def _effects(self, points):
        """Return a function (generator, n) that draws the effects of the n regions at `points`."""
        law = partial(draw, self.law)
        if not self.alike:
            return law
        if self.reach_km:
            apart = _distance_km(points[:, None], points[None])
            together = self.alike * np.exp(-apart / self.reach_km) + (1 - self.alike) * np.eye(len(points))
            root = np.linalg.cholesky(together + 1e-9 * np.eye(len(points)))
            return lambda rng, n: root @ rng.normal(0, 1, n)
        city = np.unique(points.round(6), axis=0, return_inverse=True)[1].reshape(-1)

        def shared(rng, n):
            common = law(rng, city.max() + 1)[city]
            return np.sqrt(self.alike) * common + np.sqrt(1 - self.alike) * law(rng, n)

        return shared

    def values(self, distance_km, first, second, points, rng) -> tuple[np.ndarray, np.ndarray]:
        """Return RTT (ms) and log throughput (bit/s) of each pair, without the effects of directions."""
        law, n_regions = self._effects(points), len(points)
        on_rtt = self.region_ms * law(rng, n_regions)
        on_slope = self.region_slope * law(rng, n_regions)
        on_log = self.region_log_sd * law(rng, n_regions)
        slope = self.slope_ms_per_1000_km + on_slope[first] + on_slope[second]
        rtt_ms = self.intercept_ms + slope * distance_km / 1000 + on_rtt[first] + on_rtt[second]
        rtt_ms = rtt_ms + self.pair_ms * draw(self.pair_law, rng, len(first))
        if rtt_ms.min() <= 0:
            raise ParameterError(
                f"intercept_ms is {self.intercept_ms:g}; allowed: more, as these effects make RTTs of 0 or less."
            )
        log = np.log(np.minimum(self.capacity_bps, 8 * self.window_bytes / (rtt_ms / 1000)))
        if self.half_distance_km is not None:
            log = np.log(self.capacity_bps) - np.log(2) * distance_km / self.half_distance_km
        log = log + on_log[first] + on_log[second]
        if self.region_log_slope:
            tilt = self.region_log_slope * law(rng, n_regions)
            log = log + (tilt[first] + tilt[second]) * distance_km / 1000
        return rtt_ms, log

    def of_direction(self, n: int, rng) -> np.ndarray:
        """Draw the effects of n directions on log throughput."""
        return self.pair_log_sd * draw(self.pair_law, rng, n)


def survey(
    n_regions: int,
    *,
    seed: int,
    clouds: tuple[str, ...] = CLOUDS,
    places: str = "clusters",
    missing: float = 0.0,
    **effects,
) -> pd.DataFrame:
    """
    Return a table `pairs` of all ordered pairs of simulated regions on a sphere.

    Parameters
    ----------
    places : str
        Positions of regions. "clusters": around a few centres, which are drawn for each survey. "continents": each
        region independently around one of eight fixed places, so that surveys are samples from one population.
        "cities": as "continents", but with 0.6 cities per region, which clouds therefore share.
    missing : float
        Share of the unordered pairs that are removed at random.
    **effects
        Fields of `Model`.
    """
    drawn = _draw_pairs(n_regions, seed, places, missing, effects)
    first, second = _names(n_regions, clouds, drawn)
    ends = ((first, second), (second, first))
    directions = [
        _rows(*both, drawn.distance_km, drawn.rtt_ms, np.exp(log))
        for both, log in zip(ends, drawn.log_throughput, strict=True)
    ]
    return pd.concat(directions).sort_values(["from_region", "to_region"], ignore_index=True)


def sample(n_regions: int, *, seed: int, places: str = "clusters", missing: float = 0.0, **effects) -> Sample:
    """
    Return the unordered pairs of the survey that `survey` makes, more quickly than from table `pairs`.

    Columns are `rtt_ms`, also as `value`, and `throughput_bps`, the geometric mean of both directions.
    """
    drawn = _draw_pairs(n_regions, seed, places, missing, effects)
    first, second = _names(n_regions, CLOUDS, drawn)
    frame = pd.DataFrame(
        {
            "region_a": pd.array(np.minimum(first, second), dtype="str"),
            "region_b": pd.array(np.maximum(first, second), dtype="str"),
            "distance_km": drawn.distance_km,
            "rtt_ms": drawn.rtt_ms,
            "throughput_bps": np.exp(sum(drawn.log_throughput) / 2),
            "n_directions": 2,
            "value": drawn.rtt_ms,
        }
    ).sort_values(["region_a", "region_b"], ignore_index=True)
    frame.insert(2, "cloud_pair", cloud_pair(frame.region_a, frame.region_b))
    return Sample("rtt_ms", frame, frame.head(0))


@dataclass(frozen=True)
class _Drawn:
    first: np.ndarray
    second: np.ndarray
    distance_km: np.ndarray
    rtt_ms: np.ndarray
    log_throughput: list[np.ndarray]


def _names(n_regions: int, clouds: tuple[str, ...], drawn: _Drawn) -> tuple[np.ndarray, np.ndarray]:
    """Return the names of the first and the second region of each pair."""
    names = [f"{clouds[k % len(clouds)]}:region-{k:03d}" for k in range(n_regions)]
    names = np.array(names, dtype=object)
    return names[drawn.first], names[drawn.second]


def _draw_pairs(n_regions: int, seed: int, places: str, missing: float, effects: dict) -> _Drawn:
    """Draw the regions and values of the unordered pairs of a survey."""
    check_number("n_regions", n_regions, 2, whole=True)
    check_choice("places", places, PLACED)
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
    Return pairs without common regions, from the population of surveys with `places="continents"`.

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
    Return the true values that a line through a survey with `places="continents"` estimates, from many pairs.

    Returns
    -------
    dict
        For "rtt" and "log10_throughput": the slope on distance per 1,000 km (`rtt_slope`) and Pearson's r with
        distance (`rtt_r`).
    """
    pairs, truth = independent_pairs(n_pairs, seed, **effects), {}
    for name, values in (("rtt", pairs.rtt_ms), ("log10_throughput", np.log10(pairs.throughput_bps))):
        covariance = np.cov(pairs.distance_km / 1000, values)
        truth[f"{name}_slope"] = float(covariance[0, 1] / covariance[0, 0])
        truth[f"{name}_r"] = float(covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]))
    return truth


def _distance_km(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return EARTH_RADIUS_KM * np.arccos(np.clip((a * b).sum(axis=-1), -1, 1))


def _continents(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return n unit vectors, each around one of `PLACES`."""
    latitude, longitude = np.radians(PLACES[:, :2]).T
    flat = np.cos(latitude)
    centres = np.column_stack([flat * np.cos(longitude), flat * np.sin(longitude), np.sin(latitude)])
    share = PLACES[:, 2] / PLACES[:, 2].sum()
    points = centres[rng.choice(len(PLACES), size=n, p=share)] + rng.normal(0, SD_ABOUT_PLACE, size=(n, 3))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def _clusters(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return n unit vectors around n / 4 random centres."""
    centres = rng.normal(size=(max(3, n // 4), 3))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    points = centres[rng.integers(len(centres), size=n)] + rng.normal(0, SD_ABOUT_CLUSTER, size=(n, 3))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def _cities(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return unit vectors of n regions, one or two in each city."""
    cities = _continents(round(CITIES_PER_REGION * n), rng)
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
