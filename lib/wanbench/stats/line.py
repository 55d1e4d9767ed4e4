"""A straight line through unordered pairs, and two correlations, with intervals that know the regions."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np
import pandas as pd
from scipy import stats

from ..errors import ParameterError
from . import dyadic
from .estimate import Interval, check_level
from .sample import FEWEST_FOR_INTERVAL, Sample, require_regions

PARAMETERS = 2
CHUNK_CELLS = 4_000_000

DYADIC = "dyadic-robust variance, leave-one-region-out form"
SANDWICH = "dyadic-robust sandwich"
BOOTSTRAP = "region bootstrap"
REFERENCES = (
    "Fafchamps & Gubert 2007; Cameron & Miller 2014; Aronow, Samii & Assenova 2015; "
    "MacKinnon, Nielsen & Webb 2023"
)
ASSUMPTION = (
    "Pairs without a common region are independent, and the regions stand for those one wants to speak of. "
    "Regions that share a cable or a building would break it"
)


@dataclass(frozen=True)
class Part:
    """One number of the line: its value, its interval, the naive one, and others."""

    value: float
    interval: Interval
    naive: Interval
    others: tuple[Interval, ...] = ()


@dataclass(frozen=True)
class Line:
    """
    y = intercept + slope x by ordinary least squares over unordered pairs, with `pearson` and `spearman`.

    `warnings` are those of the sample and of the computation. `band` gives the interval of the line itself.
    """

    n_pairs: int
    n_regions: int
    intercept: Part
    slope: Part
    pearson: Part
    spearman: Part
    level: float
    method: str
    warnings: tuple[str, ...]
    without_region: np.ndarray
    without_pair: np.ndarray

    def band(self, x) -> pd.DataFrame:
        """The line at `x` with the interval of its height: columns x, y, low, high."""
        x = np.asarray(x, dtype=float)
        y = self.intercept.value + self.slope.value * x
        low = high = np.full_like(y, nan)
        if len(self.without_region):
            left = (part[:, :1] + part[:, 1:2] * x for part in (self.without_region, self.without_pair))
            half = _quantile(self.level, self.n_regions) * np.sqrt(dyadic.variance(*left))
            low, high = y - half, y + half
        return pd.DataFrame({"x": x, "y": y, "low": low, "high": high})


def straight_line(
    sample: Sample,
    x: np.ndarray,
    y: np.ndarray,
    *,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Line:
    """
    Fit the line, with intervals at the level of regions.

    Intervals of slope and intercept are symmetric, with a t quantile of (regions - 2) degrees of freedom;
    those of the correlations are symmetric in Fisher's z. In simulated surveys of 8 to 46 regions with errors
    by pair, by region, or both, the interval of the slope covers in 90 to 100 of 100 surveys at the level
    95 %, where the naive one falls to 41; where effects of regions on the slope are heavily skewed, in 86
    to 89.
    The bootstrap resamples regions and takes percentiles.

    Raises
    ------
    ParameterError
        With fewer than 3 regions or pairs, or where x is the same for every pair.
    """
    level = check_level(level)
    require_regions(sample, 3, "a line")
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if len(x) < 3:
        raise ParameterError(f"a line needs at least 3 pairs; there are {len(x)}")
    if np.ptp(x) <= 1e-9 * max(abs(x).max(), 1.0):
        raise ParameterError(f"every pair has the same distance ({x[0]:g}): no line can be fitted to it")
    first, second, n_regions = sample.first, sample.second, sample.n_regions
    zx, zy, back = _standardise(x, y)
    moments = np.column_stack([np.ones_like(zx), zx, zy, zx * zx, zx * zy, zy * zy])
    total = moments.sum(axis=0)
    centre = back(_solve(total))
    ranked = _spearman(x, y, np.ones((1, len(x))))[0]
    naive = _naive(x, y, centre, ranked, level)
    notes, without_region, without_pair = [], np.empty((0, 3)), np.empty((0, 3))
    regional, others = [Interval(DYADIC)] * 4, [()] * 4
    if n_regions >= FEWEST_FOR_INTERVAL:
        without_region = back(_solve(total - dyadic.region_sums(moments, first, second, n_regions)))
        without_pair = back(_solve(total - moments))
        apart = np.flatnonzero(~np.isfinite(without_region).all(axis=1))
        if len(apart):
            named = sample.regions[apart[0]]
            notes.append(f"no interval: without {named} too little is left to fit a line")
        ranks = _spearman_without(x, y, first, second, n_regions)
        regional = _regional(centre, ranked, without_region, without_pair, ranks, level, n_regions)
        weights = dyadic.region_weights(n_regions, resamples, seed)
        resampled = back(_solve(dyadic.weighted_sums(weights, moments, first, second)))
        others = _others(x, y, centre, sample, resampled, level)
    values = (*centre, ranked)
    parts = [Part(*each) for each in zip(values, regional, naive, others, strict=True)]
    freedom = n_regions - PARAMETERS
    return Line(
        sample.n_pairs,
        n_regions,
        *parts,
        level=level,
        method=f"least squares over unordered pairs; interval from the {DYADIC} ({REFERENCES}), "
        f"t with {freedom} degrees of freedom",
        warnings=(*sample.warnings(), *notes),
        without_region=without_region,
        without_pair=without_pair,
    )


def _standardise(x, y):
    """x and y centred and scaled, and the way back from (intercept, slope, r) of those."""
    mean_x, mean_y, sd_x, sd_y = x.mean(), y.mean(), x.std(), y.std() or 1.0

    def back(solved):
        slope = solved[..., 1] * sd_y / sd_x
        intercept = mean_y + sd_y * solved[..., 0] - slope * mean_x
        return np.stack([intercept, slope, solved[..., 2]], axis=-1)

    return (x - mean_x) / sd_x, (y - mean_y) / sd_y, back


def _solve(sums: np.ndarray) -> np.ndarray:
    """(intercept, slope, r) from sums of 1, x, y, xx, xy, yy along the last axis; NaN where undetermined."""
    n, sx, sy, sxx, sxy, syy = np.moveaxis(sums, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        xx, xy, yy = sxx - sx * sx / n, sxy - sx * sy / n, syy - sy * sy / n
        slope = np.where(xx > 1e-9, xy / xx, nan)
        r = np.where((xx > 1e-9) & (yy > 1e-12), np.clip(xy / np.sqrt(xx * yy), -1, 1), nan)
        return np.stack([(sy - slope * sx) / n, slope, r], axis=-1)


def _spearman(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Spearman's rho for each row of weights (0 or 1 per pair)."""
    rho = np.empty(len(weights))
    step = max(1, CHUNK_CELLS // len(x))
    for start in range(0, len(weights), step):
        part = weights[start : start + step]
        ranks = [_weighted_ranks(values, part) for values in (x, y)]
        n = part.sum(axis=1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            a, b = (part * (rank - (part * rank).sum(axis=1, keepdims=True) / n) for rank in ranks)
            rho[start : start + step] = (a * b).sum(axis=1) / np.sqrt(
                (a * a).sum(axis=1) * (b * b).sum(axis=1)
            )
    return rho


def _weighted_ranks(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Mid-ranks of `values` among themselves under each row of weights; ties share their mean rank."""
    _, group = np.unique(values, return_inverse=True)
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    weight = np.add.reduceat(weights[:, order], starts, axis=1)
    return (np.cumsum(weight, axis=1) - (weight - 1) / 2)[:, group]


def _spearman_without(x, y, first, second, n_regions) -> tuple[np.ndarray, np.ndarray]:
    region = np.arange(n_regions)[:, None]
    without_region = _spearman(x, y, ((first != region) & (second != region)).astype(float))
    n_pairs, step = len(x), max(1, CHUNK_CELLS // len(x))
    without_pair = np.empty(n_pairs)
    for start in range(0, n_pairs, step):
        rows = np.arange(start, min(start + step, n_pairs))
        weights = np.ones((len(rows), n_pairs))
        weights[np.arange(len(rows)), rows] = 0.0
        without_pair[rows] = _spearman(x, y, weights)
    return without_region, without_pair


PERFECT = 1 - 1e-12
"""A correlation that is perfect without some region has no variance on the scale of Fisher's z, so no interval."""


def _quantile(level: float, n_regions: int) -> float:
    return stats.t.ppf((1 + level) / 2, n_regions - PARAMETERS)


def _z(r):
    """Fisher's z, short of infinity."""
    return np.arctanh(np.clip(r, -1 + 1e-15, 1 - 1e-15))


def _regional(centre, ranked, without_region, without_pair, ranks, level, n_regions) -> list[Interval]:
    t = _quantile(level, n_regions)
    half = t * np.sqrt(dyadic.variance(without_region[:, :2], without_pair[:, :2]))
    found = [Interval(DYADIC, centre[k] - half[k], centre[k] + half[k]) for k in range(2)]
    for r, left in ((centre[2], (without_region[:, 2], without_pair[:, 2])), (ranked, ranks)):
        if max(np.nanmax(np.abs(values)) for values in left) > PERFECT:
            found.append(Interval(DYADIC))
            continue
        wide = t * np.sqrt(dyadic.variance(*map(_z, left)))
        found.append(Interval(DYADIC, np.tanh(_z(r) - wide), np.tanh(_z(r) + wide)))
    return found


def _others(x, y, centre, sample: Sample, resampled, level) -> list[tuple[Interval, ...]]:
    """The sandwich (intercept, slope) and the region bootstrap (both and r); none for rho."""
    design = np.column_stack([np.ones_like(x), x])
    residual = y - design @ centre[:2]
    spread = np.diag(dyadic.sandwich(design, residual, sample.first, sample.second, sample.n_regions))
    half = _quantile(level, sample.n_regions) * np.sqrt(np.where(spread >= 0, spread, nan))
    tails = [(1 - level) / 2, (1 + level) / 2]
    finite = resampled[np.isfinite(resampled).all(axis=1)]
    ends = np.quantile(finite, tails, axis=0) if len(finite) else np.full((2, 3), nan)
    drawn = [Interval(BOOTSTRAP, *ends[:, k]) for k in range(3)]
    robust = [Interval(SANDWICH, centre[k] - half[k], centre[k] + half[k]) for k in range(2)]
    return [(robust[0], drawn[0]), (robust[1], drawn[1]), (drawn[2],), ()]


def _naive(x, y, centre, ranked, level) -> list[Interval]:
    """Intervals that take pairs as independent: OLS with t; Fisher's z (rho: Bonett & Wright 2000)."""
    n, name = len(x), "pairs taken as independent"
    design = np.column_stack([np.ones(n), x - x.mean()])
    residual = y - centre[0] - centre[1] * x
    sigma2 = residual @ residual / (n - PARAMETERS)
    slope = sigma2 / (design[:, 1] @ design[:, 1])
    half = stats.t.ppf((1 + level) / 2, n - PARAMETERS) * np.sqrt([sigma2 / n + slope * x.mean() ** 2, slope])
    found = [Interval(name, centre[k] - half[k], centre[k] + half[k]) for k in range(2)]
    z = stats.norm.ppf((1 + level) / 2)
    for r, factor in ((centre[2], 1.0), (ranked, 1 + ranked**2 / 2)):
        wide = z * np.sqrt(factor / (n - 3)) if n > 3 else nan
        found.append(Interval(name, np.tanh(_z(r) - wide), np.tanh(_z(r) + wide)))
    return found
