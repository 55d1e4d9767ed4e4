"""
Group regions into the units that intervals treat as independent (by default places), and test the units' effects.

Clouds build their regions in the same cities, where they share cables, exchanges and detours. In the survey of 2022
the effects of two clouds' regions in one city correlate at 0.95, hardly two separate observations. The unit is
therefore the place, not the region (cluster-robust inference: Cameron & Miller 2015). Moran's I (1950) tests whether
effects of nearby places are still correlated. D'Agostino's test (1970) tests whether effects are skewed, which makes
intervals of r, of the intercept and of W too narrow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy

from wanbench.checks import refusal
from wanbench.formatting import count, number, p_value
from wanbench.regions import catalogue, distance_km

from . import dyadic
from .pairs import FEWEST_FOR_INTERVAL, Sample, unordered_numbers

PLACE = "place"
REGION = "region"
Cluster = str | float | Mapping[str, str]  # as in `units`
# Regions at most this far apart are one place: the round trip of light in fibre is 1 ms, and no cloud has two sites of
# the same name farther apart
PLACE_KM = 100.0
# The caution about spatial correlation suggests this cluster: in simulation (`simulations.rtt`) intervals with it keep
# their coverage if effects are correlated over 1,500 km
NEIGHBOURS_KM = 1500.0
# Distance over which the weight of two places in Moran's I falls by a factor e; 750 to 1,500 km work about as well
REACH_KM = 1000.0
FEWEST_FOR_MORAN = 10  # Fewer units have too few neighbours for a useful test
MORAN_PERMUTATIONS = 999  # Enough for a p-value to the nearest 0.001, far finer than `MORAN_P` needs
# The test is conservative, because residuals of a fit are negatively correlated: at p = 0.1 it gives a false alarm in 2
# to 5 of 100 simulated surveys without correlation
MORAN_P = 0.1
UNKNOWN_KM = 1e6  # Stands for an unknown distance: longer than any on Earth, so that such regions are not joined
FEWEST_FOR_SKEW = 8  # The test's normal approximation holds from this number of units on (D'Agostino 1970)
SIGNIFICANT_P = 0.025  # Level of each of two tests, so that about 5 of 100 surveys without skew are called skewed
# A smaller skewness does no harm. Exponential effects have a skewness of 2, effects of 1 place in 10 of 2.7
HARMFUL_SKEWNESS = 1.0


@dataclass(frozen=True)
class Units:
    """
    The units that intervals treat as independent: regions, or clusters of regions.

    names: The first region of each unit.
    of_region: The index of each region's unit.
    first, second: The indices of each pair's two units; equal for a pair within one unit.
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
        """For each pair of regions, the number (from 0) of its unordered pair of units: an array (pairs,)."""
        return unordered_numbers(self.first, self.second, self.n)

    def warnings(self) -> tuple[str, ...]:
        """Warn if there are too few units for an interval."""
        if self.n == len(self.of_region) or self.n >= FEWEST_FOR_INTERVAL:
            return ()
        return (f"no interval from {count(self.n, 'place')}; it needs at least {FEWEST_FOR_INTERVAL}",)


def units(sample: Sample, cluster: Cluster = PLACE) -> Units:
    """
    Group the regions of a sample into units.

    Distances come from the pairs of the sample, or else from the region catalogue.

    cluster: "place": regions at most 100 km apart, of any cloud, are one unit. A number: the same, with this number of
        km. "region": every region is a unit. A mapping of regions to names: regions with the same name are one unit,
        and every region that is not in the mapping is a unit.

    Raises ParameterError: `cluster` is none of these, or a mapping without any region of the sample.
    """
    regions = sample.regions
    if isinstance(cluster, Mapping):
        unknown = sorted(set(cluster) - set(regions))
        if unknown and len(unknown) == len(cluster):
            raise refusal("cluster", cluster, f"a mapping of regions of the pairs, such as {regions[0]!r}")
        label = np.array([str(cluster.get(name, name)) for name in regions])
    elif cluster == REGION:
        label = np.arange(len(regions))
    elif cluster == PLACE or (
        isinstance(cluster, (int, float)) and not isinstance(cluster, bool) and 0 <= cluster < np.inf
    ):
        label = _nearby(_distances(sample, regions), PLACE_KM if cluster == PLACE else float(cluster))
    else:
        raise refusal("cluster", cluster, f"{PLACE!r}, {REGION!r}, a number of km, a mapping of regions to names")
    of_region, labels = pd.factorize(label)
    names = tuple(regions[int(np.argmax(of_region == unit))] for unit in range(len(labels)))
    return Units(names, of_region, of_region[sample.first], of_region[sample.second])


def unit_of_region(sample: Sample) -> dict[str, str]:
    """
    Return the unit of each region, by name of region, in the whole sample.

    A part of the sample may lack the short pairs that show which regions form a place.
    """
    grouped = units(sample)
    return dict(zip(sample.regions, (grouped.names[k] for k in grouped.of_region), strict=True))


def _distances(sample: Sample, regions: list[str]) -> np.ndarray:
    """Return the distances in km between all regions, from the pairs, or else from the catalogue, or else infinite."""
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


def _nearby(far: np.ndarray, km: float) -> np.ndarray:
    """Label groups of regions whose distances `far` (regions, regions) are all at most `km` (complete linkage)."""
    if len(far) < 2:
        return np.arange(len(far))
    apart = scipy.spatial.distance.squareform(np.minimum(far, UNKNOWN_KM), checks=False)
    hierarchy = scipy.cluster.hierarchy
    return hierarchy.fcluster(hierarchy.linkage(apart, "complete"), km, "distance")


@dataclass(frozen=True)
class Moran:
    """Moran's I of the effects of units, its expectation without correlation, and its one-sided permutation p-value."""

    i: float
    expected: float
    p: float

    @property
    def significant(self) -> bool:
        return self.p <= MORAN_P

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warn if effects of nearby places are correlated."""
        if not self.significant:
            return ()
        return (
            f"effects of nearby places are correlated (Moran's I {number(self.i, 2)}, where {number(self.expected, 2)} "
            f"is expected without correlation; {p_value(self.p)}), so intervals may be too narrow. "
            f"The option cluster={NEIGHBOURS_KM:g} counts places within {NEIGHBOURS_KM:,g} km as one",
        )


def moran(residual: np.ndarray, distance_km: np.ndarray, grouped: Units) -> Moran | None:
    """
    Test whether effects of nearby units are correlated, by Moran's I.

    The effect of a unit is the mean residual of its pairs with other units. The weight of two units is
    exp(-distance / 1,000 km). The p-value comes from 999 permutations of the effects.

    residual, distance_km: The residual of each pair, and its length.
    grouped: The pairs of each unit (a region or place).

    Returns None with fewer than 10 units, or if the residuals do not vary.
    """
    n, apart = grouped.n, grouped.first != grouped.second
    if n < FEWEST_FOR_MORAN:
        return None
    a, b = grouped.first[apart], grouped.second[apart]
    total = dyadic.region_sums(np.column_stack([residual[apart], np.ones(apart.sum())]), a, b, n)
    near = np.zeros((n, n))
    near[a, b] = near[b, a] = np.exp(-distance_km[apart] / REACH_KM)
    if not total[:, 1].all():
        return None
    effect = total[:, 0] / total[:, 1]
    effect = effect - effect.mean()
    if not effect.std() > 1e-9 * max(np.abs(residual).max(), 1e-300):
        return None
    rng = np.random.default_rng(0)  # so that the same data give the same p
    orders = np.vstack([np.arange(n), rng.permuted(np.tile(np.arange(n), (MORAN_PERMUTATIONS, 1)), axis=1)])
    drawn = effect[orders]
    i = ((drawn @ near) * drawn).sum(axis=1) / near.sum() / (effect @ effect) * n
    p = float((i >= i[0] - 1e-12).mean())  # the first row is the data; 1e-12 allows for rounding
    return Moran(float(i[0]), -1 / (n - 1), p)


@dataclass(frozen=True)
class Skew:
    """Skewness of the effects of units on the height or the slope of a line (`of`), and its p-value."""

    of: str
    skewness: float
    p: float

    @property
    def significant(self) -> bool:
        return self.p <= SIGNIFICANT_P and abs(self.skewness) >= HARMFUL_SKEWNESS

    def __str__(self) -> str:
        size = f"skewness {number(self.skewness, 1)}, {p_value(self.p)}"
        return f"the effects of places on the {self.of} are skewed ({size})"


def skew_of_effects(residual: np.ndarray, x: np.ndarray, grouped: Units) -> Skew | None:
    """
    Test whether effects of units on the height or on the slope of a line are skewed (D'Agostino 1970).

    The effect of a unit on the height is the mean residual of the unit's pairs; the effect on the slope is the slope of
    these residuals over x, through the mean of x. Of both tests, the one with the smaller p-value is returned.

    residual, x: The residual and the x of each pair.

    Returns None for fewer than 8 units, or if the residuals do not vary.
    """
    if grouped.n < FEWEST_FOR_SKEW or not residual.std() > 1e-9 * max(np.abs(residual).max(), 1e-300):
        return None
    x = x - x.mean()
    rows = np.column_stack([np.ones_like(x), residual, x * x, x * residual])
    total = dyadic.region_sums(rows, grouped.first, grouped.second, grouped.n)
    tested = []
    for of, size, sums in (("height", total[:, 0], total[:, 1]), ("slope", total[:, 2], total[:, 3])):
        effects = sums[size > 0] / size[size > 0]
        if len(effects) >= FEWEST_FOR_SKEW and np.ptp(effects) > 1e-9 * np.abs(effects).max():
            tested.append(Skew(of, float(scipy.stats.skew(effects)), float(scipy.stats.skewtest(effects).pvalue)))
    return min(tested, key=lambda skew: skew.p, default=None)
