"""
Which regions an interval takes as one unit: those of one place, unless it is asked for something else.

Clouds build their regions in the same cities, where they share cables, exchanges and detours. In the survey of 2022
the effects of two clouds' regions in one city correlate at 0.95, so they are hardly two observations. The unit is
therefore the place, not the region (cluster-robust inference: Cameron & Miller 2015). Whether places near each other
still go together is asked by Moran's I (1950) of what the places differ by.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from ...errors import ParameterError
from ...formatting import count
from ...regions import catalogue, distance_km
from . import dyadic
from .unordered_pairs import FEWEST_FOR_INTERVAL, unordered_numbers

PLACE, REGION = "place", "region"
PLACE_KM = 100.0
"""Regions no farther apart are of one place: light in fibre takes 1 ms there and back, and no cloud has two sites of
one name farther apart."""
NEIGHBOURS_KM = 1500.0
"""The unit that the caution of spatial correlation suggests: simulated with effects that neighbours share over 1,500
km, intervals by it cover (`validity.rtt`)."""
REACH_KM = 1000.0
"""Length over which the weight of two places in Moran's I falls by a factor e; 750 to 1,500 km detect about as much."""
FEWEST_FOR_MORAN = 10
MORAN_PERMUTATIONS, MORAN_P = 999, 0.1
"""At p = 0.1 the test is wrong in 2 to 5 of 100 simulated surveys without a pattern: residuals repel each other."""


@dataclass(frozen=True)
class Units:
    """
    The units that an interval takes as independent, of regions or clusters of them.

    `names` are the units, each after its first region; `of_region` is the index of each region's unit; `first` and
    `second` index each pair's, which are the same where a pair lies within a unit.
    """

    names: tuple[str, ...]
    of_region: np.ndarray
    first: np.ndarray
    second: np.ndarray

    @property
    def n(self) -> int:
        return len(self.names)

    @property
    def both(self) -> np.ndarray:
        """Number of the unordered pair of units, per pair."""
        return unordered_numbers(self.first, self.second, self.n)

    @property
    def clustered(self) -> bool:
        """Whether some unit holds several regions."""
        return self.n < len(self.of_region)

    def warnings(self) -> tuple[str, ...]:
        """What a reader must know: too few units for an interval."""
        if not self.clustered or self.n >= FEWEST_FOR_INTERVAL:
            return ()
        return (f"no interval from {count(self.n, 'place')}; it takes {FEWEST_FOR_INTERVAL}",)


def units(sample, cluster: str | float | Mapping[str, str] = PLACE) -> Units:
    """
    The units of a sample (of `sample.unordered` or `directed.directed`).

    Parameters
    ----------
    cluster : str, float or mapping
        "place": regions at most 100 km apart, of whichever cloud, are one unit. A number: the same with so many km.
        "region": every region is a unit. A mapping of regions to names: regions of one name are one unit, and those
        not in it units by themselves. Distances are those of the pairs, and for pairs that lack one, those of the
        catalogue.
    """
    regions = sample.regions
    if isinstance(cluster, Mapping):
        unknown = sorted(set(cluster) - set(regions))
        if unknown and len(unknown) == len(cluster):
            raise ParameterError(
                f"cluster: none of its regions is in the pairs, such as {unknown[0]!r}; they have {regions[0]!r}"
            )
        label = np.array([str(cluster.get(name, name)) for name in regions])
    elif cluster == REGION:
        label = np.arange(len(regions))
    elif cluster == PLACE or (
        isinstance(cluster, (int, float)) and not isinstance(cluster, bool) and 0 <= cluster < np.inf
    ):
        label = _near(_distances(sample, regions), PLACE_KM if cluster == PLACE else float(cluster))
    else:
        raise ParameterError(
            f"cluster={cluster!r}: allowed are {PLACE!r}, {REGION!r}, a number of km, and a mapping of regions"
        )
    first_of = {}
    for k, each in enumerate(label):
        first_of.setdefault(each, k)
    number = {each: k for k, each in enumerate(first_of)}
    of_region = np.array([number[each] for each in label])
    names = tuple(regions[k] for k in first_of.values())
    return Units(names, of_region, of_region[sample.first], of_region[sample.second])


def mapping(sample, cluster: str | float | Mapping[str, str] = PLACE) -> dict[str, str]:
    """The unit of each region of a sample by name, for `units` of a part of it that lacks its near pairs."""
    grouped = units(sample, cluster)
    return dict(zip(sample.regions, (grouped.names[k] for k in grouped.of_region), strict=True))


def _distances(sample, regions: list[str]) -> np.ndarray:
    """Distance of every two regions in km: as the pairs have it, else by the catalogue, else infinite."""
    far = np.full((len(regions),) * 2, np.inf)
    far[sample.first, sample.second] = far[sample.second, sample.first] = sample.frame.distance_km
    np.fill_diagonal(far, 0.0)
    unknown = np.triu(np.isinf(far))
    if unknown.any():
        listed = np.isin(regions, catalogue().name)
        unknown &= listed & listed[:, None]
    for i, j in zip(*np.nonzero(unknown), strict=True):
        far[i, j] = far[j, i] = distance_km(regions[i], regions[j])
    return far


def _near(far: np.ndarray, km: float) -> np.ndarray:
    """Labels of groups whose members are all within so many km of each other (complete linkage)."""
    if len(far) < 2:
        return np.arange(len(far))
    beyond = 1e6  # more km than there are on Earth: unknown distances join nothing
    apart = squareform(np.minimum(far, beyond), checks=False)
    return fcluster(linkage(apart, "complete"), km, "distance")


@dataclass(frozen=True)
class Moran:
    """Moran's I of the effects of units, its expectation without any pattern, and its one-sided p by permutation."""

    i: float
    expected: float
    p: float
    n: int

    @property
    def found(self) -> bool:
        return self.p <= MORAN_P

    def warnings(self, simulated: str = "") -> tuple[str, ...]:
        """What a reader must know where places near each other deviate alike; `simulated` says what then covers."""
        if not self.found:
            return ()
        return (
            f"places near each other deviate alike (Moran's I {self.i:.2f}, {self.expected:.2f} expected without a "
            f"pattern, p = {self.p:.2g}), so the interval may be too narrow{simulated}; a wider cluster, such as "
            f"cluster={NEIGHBOURS_KM:g} (km), takes neighbours as one unit",
        )


def moran(residual: np.ndarray, distance_km: np.ndarray, grouped: Units, seed: int = 0) -> Moran | None:
    """
    Do units near each other deviate alike from the line? None with fewer than 10 units, or without residuals.

    Parameters
    ----------
    residual, distance_km : array (pairs,)
        What each pair differs by from the fit, and its length.

    The effect of a unit is the mean residual of its pairs to other units; the weight of two units is exp(-distance /
    1,000 km). p is the share of 999 rearrangements of the effects over the units with an I at least as great.
    """
    n, apart = grouped.n, grouped.first != grouped.second
    if n < FEWEST_FOR_MORAN:
        return None
    a, b = grouped.first[apart], grouped.second[apart]
    counted = np.column_stack([residual[apart], np.ones(apart.sum())])
    total = dyadic.region_sums(counted, a, b, n)
    near = np.zeros((n, n))
    near[a, b] = near[b, a] = np.exp(-distance_km[apart] / REACH_KM)
    if not total[:, 1].all():
        return None
    effect = total[:, 0] / total[:, 1]
    effect = effect - effect.mean()
    if not effect.std() > 1e-9 * max(np.abs(residual).max(), 1e-300):
        return None
    rng = np.random.default_rng(seed)
    orders = np.vstack([np.arange(n), rng.permuted(np.tile(np.arange(n), (MORAN_PERMUTATIONS, 1)), axis=1)])
    drawn = effect[orders]
    found = ((drawn @ near) * drawn).sum(axis=1) / near.sum() / (effect @ effect) * n
    p = float((found >= found[0] - 1e-12).mean())
    return Moran(float(found[0]), -1 / (n - 1), p, n)
