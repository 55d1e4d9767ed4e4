"""
One autocorrelated series: its effective number of independent values, and stationary-bootstrap resamples.

The plain stationary bootstrap (Politis & Romano 1994) breaks the series at the seams of its blocks. Under strong
autocorrelation its intervals are too narrow: of 95 % intervals for 100 values with a first autocorrelation of 0.9,
71.6 of 100 cover (`make validity`, data/validity/compare.csv). So the series is whitened by an autoregression
(`autoregression`), the residuals are resampled in blocks of automatic length (Politis & White 2004; Patton, Politis &
White 2009), and each resample is filtered back ("post-blackened", Davison & Hinkley 1997, section 8.2).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, isfinite, nan, sqrt

import numpy as np
from arch.bootstrap import StationaryBootstrap, optimal_block_length
from scipy import stats

from . import autoregression

MIN_BLOCKS = 3
"""Blocks are at most a third of the series long on average: resamples of fewer blocks hardly differ."""
MIN_VALUES = autoregression.MIN_VALUES
CHUNK_CELLS = 2_000_000
"""Resampled values held at once (16 MB)."""


@dataclass(frozen=True)
class Series:
    """
    A series and its dependence.

    Attributes
    ----------
    coefficients : array
        The autoregression that whitens it, corrected for bias.
    effective_n : float
        Number of independent values with the same information on the mean: n times the variance of a value over the
        long-run variance; from 2 to n.
    block_length : float
        Mean length of the blocks in which the residuals are resampled.
    """

    values: np.ndarray = field(repr=False)
    coefficients: np.ndarray
    effective_n: float
    block_length: float

    @property
    def at_limit(self) -> bool:
        """
        Whether the fluctuations are as slow as the autoregression allows, or slower: `effective_n` is then too large.
        """
        slow = autoregression.largest_root(self.coefficients) > autoregression.LARGEST_ROOT - 1e-9
        return slow and self.effective_n < len(self.values)  # a series that alternates has a root near -1


def fit_series(values) -> Series:
    """The dependence of a series of values in order of time, equally far apart."""
    values = np.asarray(values, dtype=float)
    coefficients = autoregression.fit(values, np.random.default_rng(0))
    residuals = autoregression.whitened(values - values.mean(), coefficients)
    return Series(values, coefficients, effective_n(len(values), coefficients), block_length(residuals))


def effective_n(n: int, coefficients: np.ndarray) -> float:
    """
    Number of independent values with the same information on the mean as n values of this autoregression.

    >>> effective_n(300, np.array([0.5])), effective_n(300, np.array([-0.5]))
    (100.0, 300.0)
    """
    single, long_run = autoregression.variances(coefficients)
    return min(float(n), max(n * single / long_run, 2.0))


def block_length(values: np.ndarray) -> float:
    """Automatic mean block length of the stationary bootstrap: from 1 to a third of the series."""
    if len(values) < MIN_VALUES or np.ptp(values) <= 1e-12 * max(np.abs(values).max(), 1e-300):
        return 1.0
    length = float(optimal_block_length(values).stationary.iloc[0])
    return min(max(length, 1.0), len(values) / MIN_BLOCKS) if isfinite(length) else 1.0


@dataclass(frozen=True)
class Resamples:
    """
    Means and medians of resamples, one value per resample.

    `means` are post-blackened. `medians` come from the plain bootstrap, which keeps the shape of the distribution,
    widened because its means (`plain_means`) vary too little.
    """

    means: np.ndarray
    medians: np.ndarray
    plain_means: np.ndarray


def resampled(one: Series, resamples: int, rng: np.random.Generator) -> Resamples:
    """Resample a series both ways."""
    n, order, mean = len(one.values), len(one.coefficients), one.values.mean()
    centred = one.values - mean
    residuals = autoregression.whitened(centred, one.coefficients)
    # residuals of a fit are too small by the freedom that the coefficients took
    residuals = (residuals - residuals.mean()) * sqrt(len(residuals) / max(len(residuals) - order - 1, 1))
    spread, due = centred.std(), residuals.std() * sqrt(autoregression.variances(one.coefficients)[0])
    # a resample starts with a stretch of the series, scaled to the variance that the autoregression implies
    start = centred * (due / spread) if spread > 0 else centred
    length, middle = block_length(one.values), np.median(one.values)
    means, medians, plain = (np.empty(resamples) for _ in range(3))
    step = max(1, CHUNK_CELLS // n)
    for at in range(0, resamples, step):
        size = min(step, resamples - at)
        part = slice(at, at + size)
        drawn = residuals[bootstrap_indices(n - order, n - order, one.block_length, size, rng)]
        first = start[rng.integers(n - order + 1, size=size)[:, None] + np.arange(order)]
        means[part] = mean + autoregression.filtered_back(drawn, first, one.coefficients).mean(axis=1)
        rows = one.values[bootstrap_indices(n, n, length, size, rng)]
        plain[part], medians[part] = rows.mean(axis=1), np.median(rows, axis=1)
    wider = max(float(means.std() / plain.std()), 1.0) if plain.std() > 0 else 1.0
    return Resamples(means, middle + wider * (medians - middle), plain)


def expanded_percentiles(drawn: np.ndarray, level: float, freedom: float, units) -> tuple[float, float]:
    """
    Percentiles of resamples beyond the nominal ones (Hesterberg 2015, "expanded percentile interval").

    Resamples vary too little, so percentiles move outward by the ratio of t with `freedom` to the normal, times the
    root of n / (n - 1) for the `units` n of each arm.
    """
    shrunk = float(np.mean([n / max(n - 1.0, 0.5) for n in units]))
    tail = stats.norm.cdf(-stats.t.ppf((1 + level) / 2, max(freedom, 1.0)) * sqrt(shrunk))
    known = drawn[~np.isnan(drawn)]
    if not len(known):
        return nan, nan
    # a median of 0 makes a ratio 0 or infinite, between which nothing can be interpolated
    method = "linear" if np.isfinite(known).all() else "inverted_cdf"
    low, high = np.quantile(known, [tail, 1 - tail], method=method)
    return float(low), float(high)


def welch_freedom(variances, units) -> float:
    """
    Degrees of freedom of a difference (Welch 1947; Satterthwaite 1946) from the variance of either estimate and
    the number of units behind it.

    >>> welch_freedom([1.0, 1.0], [11, 11])
    20.0
    """
    total = sum(variances)
    if total <= 0:
        return float(sum(units) - len(units))
    return total**2 / sum(v * v / max(n - 1, 1.0) for v, n in zip(variances, units, strict=True))


def bootstrap_indices(n: int, length: int, block: float, rows: int, rng: np.random.Generator) -> np.ndarray:
    """Stationary-bootstrap indices (rows, length) into n values, by arch's sampler."""
    sampler = StationaryBootstrap(block, np.empty(n), seed=rng)
    # the sampler gives n indices at a time, however many are asked for
    times = ceil(length / n)
    drawn = [sampler.update_indices() for _ in range(rows * times)]
    return np.array(drawn, dtype=np.intp).reshape(rows, times * n)[:, :length]
