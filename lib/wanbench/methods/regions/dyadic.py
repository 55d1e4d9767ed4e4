"""
Compute variances of statistics of pairs that share regions: dyadic-robust sandwich, jackknives, region bootstrap.

Two pairs with a common region are dependent, so the 2,070 ordered pairs of 46 regions contain far less information than
2,070 independent observations. The variance from `sandwich` is too small for few regions. `variance` suits any smooth
statistic; module `jackknife` has a better variance for least squares. `region_weights` and `weighted_median` resample
regions, for statistics that are not smooth.

In all functions `first` and `second` are the indices of each pair's two units: regions, or clusters of regions
(`places`). A pair within a unit has `first` equal to `second`, and counts once in sums over units.
"""

import numpy as np

from wanbench.checks import check_resamples
from wanbench.methods.result import t_quantile

from .pairs import unordered_numbers

Array = np.ndarray
CHUNK_CELLS = 4_000_000  # Number of weights held at a time: 32 MB


def touches(first: Array, second: Array, n_regions: int) -> Array:
    """Return a mask (regions, pairs) that is true where the region is an end of the pair."""
    region = np.arange(n_regions)[:, None]
    return (first == region) | (second == region)


def region_sums(values: Array, first: Array, second: Array, n_regions: int) -> Array:
    """Sum `values` (pairs, ...) over the pairs of each region; returns (regions, ...)."""
    total = np.zeros((n_regions, *values.shape[1:]))
    np.add.at(total, first, values)
    apart = first != second
    np.add.at(total, second[apart], values[apart])
    return total


def sums(values: Array, group: Array, n_groups: int) -> Array:
    """Sum `values` (rows, ...) over the rows of each group; returns (groups, ...)."""
    total = np.zeros((n_groups, *values.shape[1:]))
    np.add.at(total, group, values)
    return total


def sandwich(design: Array, residual: Array, first: Array, second: Array, n_regions: int) -> Array:
    """
    Compute the dyadic-cluster-robust covariance of OLS coefficients: (coefficients, coefficients).

    The formula is by Aronow, Samii & Assenova (2015), with the correction G/(G-1) (n-1)/(n-k) of Cameron & Miller
    (2014). Two pairs of the same two regions are counted under both regions, so the product of their terms is
    subtracted once. The diagonal can be negative in small samples.

    design, residual: Arrays (pairs, coefficients) and (pairs,).
    """
    n_pairs, n_coefficients = design.shape
    scores = design * residual[:, None]
    per_region = region_sums(scores, first, second, n_regions)
    joined = unordered_numbers(first, second, n_regions)
    per_both = sums(np.where((first == second)[:, None], 0.0, scores), joined, int(joined.max()) + 1)
    meat = per_region.T @ per_region - per_both.T @ per_both
    bread = np.linalg.inv(design.T @ design)
    correction = n_regions / (n_regions - 1) * (n_pairs - 1) / (n_pairs - n_coefficients)
    return correction * bread @ meat @ bread


def variance(without_region: Array, without_pair: Array):
    """
    Compute the variance of a statistic: the jackknife over regions less the jackknife over pairs.

    The result is at least the jackknife over pairs, which is the variance for independent pairs. It is NaN where a
    value is not finite.

    without_region, without_pair: The statistic without each region (regions, ...), and without each pair (pairs, ...).
    """
    by_region = jackknife(without_region)
    by_pair = jackknife(without_pair)
    return np.maximum(by_region - by_pair, by_pair)


def jackknife(values: Array):
    """Compute the jackknife variance from a statistic without each unit (units, ...); NaN if a value is not finite."""
    values = np.asarray(values, dtype=float)
    n = len(values)
    finite = np.isfinite(values).all(axis=0)
    values = np.where(finite, values, 0.0)
    return np.where(finite, (n - 1) / n * ((values - values.mean(axis=0)) ** 2).sum(axis=0), np.nan)


def region_weights(n_regions: int, resamples: int, seed: int, strata: Array | None = None) -> Array:
    """
    Draw regions with replacement; return how often each region is drawn in each resample: (resamples, regions).

    A pair's weight is the product of its regions' weights (`pair_weights`); two copies of one region form no pair.

    strata: A label per region; each stratum keeps its number of regions.
    """
    check_resamples(resamples, seed)
    rng = np.random.default_rng(seed)
    strata = np.zeros(n_regions) if strata is None else np.asarray(strata)
    weights = np.zeros((resamples, n_regions))
    for label in np.unique(strata):
        members = np.flatnonzero(strata == label)
        weights[:, members] = rng.multinomial(len(members), np.full(len(members), 1 / len(members)), resamples)
    return weights


def pair_weights(weights: Array, first: Array, second: Array) -> Array:
    """Return how often each pair is drawn (rows, pairs), from how often each region is drawn (rows, regions)."""
    return weights[:, first] * np.where(first == second, 1.0, weights[:, second])


def weighted_sums(weights: Array, values: Array, first: Array, second: Array) -> Array:
    """
    Sum `values` (pairs, k), weighted by the product of regions' weights (resamples, regions): (resamples, k).

    Quadratic forms in the weights avoid an array of resamples x pairs.
    """
    n_regions = weights.shape[1]
    total = np.empty((len(weights), values.shape[1]))
    for column in range(values.shape[1]):
        square = np.zeros((n_regions, n_regions))
        np.add.at(square, (first, second), values[:, column])
        within = np.diagonal(square).copy()
        np.fill_diagonal(square, 0.0)
        total[:, column] = ((weights @ square) * weights).sum(axis=1) + weights @ within
    return total


def weighted_median(values: Array, weights: Array, first: Array, second: Array) -> Array:
    """
    Compute the median over pairs for each row of region weights (resamples, regions); NaN if a resample has no pair.

    A pair's weight is the product of its regions' weights. With two middle values, the median is their mean.
    """
    step = max(1, CHUNK_CELLS // len(values))
    chunks = (weights[start : start + step] for start in range(0, len(weights), step))
    return np.concatenate([medians(values, pair_weights(part, first, second)) for part in chunks])


def medians(values: Array, weights: Array) -> Array:
    """Compute the median of `values` (n,) for each row of weights (rows, n); NaN for a row without weight."""
    order = np.argsort(values, kind="stable")
    values, below = values[order], np.cumsum(weights[:, order], axis=1)
    half = below[:, -1:] / 2
    lower, upper = (below < half).sum(axis=1), (below <= half).sum(axis=1)
    some = half[:, 0] > 0
    median = np.full(len(weights), np.nan)
    median[some] = (values[lower[some]] + values[upper[some]]) / 2
    return median


def means_without(values: Array, first: Array, second: Array, n_regions: int) -> tuple[Array, Array]:
    """
    Compute the means of `values` (rows, k) without each region: (regions, k), and without each pair: (pairs, k).

    Both directions of a pair are left out together.
    """
    total, n = values.sum(axis=0), len(values)
    pair = unordered_numbers(first, second, n_regions)
    of_region = region_sums(np.ones(n), first, second, n_regions)
    without_region = (total - region_sums(values, first, second, n_regions)) / (n - of_region)[:, None]
    return without_region, (total - sums(values, pair, int(pair.max()) + 1)) / (n - np.bincount(pair))[:, None]


def ratio(over: Array, under: Array, first: Array, second: Array, n_regions: int, level: float) -> tuple[float, float]:
    """
    Compute the sum of `over` divided by the sum of `under`, and half the width of the interval.

    The interval uses `variance` and a t quantile with (regions - 1) degrees of freedom.

    over, under: Arrays (pairs,). If `under` is 1 for each pair, the result is the mean of `over`.
    """
    both = np.column_stack([over, under])
    total = both.sum(axis=0)
    left = (total - region_sums(both, first, second, n_regions), total - both)
    with np.errstate(invalid="ignore", divide="ignore"):
        without_region, without_pair = (sums[:, 0] / sums[:, 1] for sums in left)
    half = t_quantile(level, n_regions - 1) * np.sqrt(variance(without_region, without_pair))
    return float(total[0] / total[1]), float(half)
