"""
Fit a straight line through unordered pairs, with two correlations; intervals allow for shared regions.

Intervals of r and rho are computed on the scale of Fisher's z. The jackknife over places overstates variances; module
`jackknife` computes a correcting factor for the slope's and one for that of the line's height at the mean of x. So
Pearson's r is computed, without each place, from the slope, the scatter about the line and the variance of x, where
deviations of the slope are multiplied by the root of the slope's factor, and those of the log scatter by the root of
the height's. Spearman's rho cannot be split; its variance is multiplied by the root of the slope's factor. The degrees
of freedom are the harmonic mean of the slope's and (places - 2). Simulation (`make validity`), not theory, led to these
choices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np
import pandas as pd
import scipy

from wanbench.checks import check_level
from wanbench.errors import ParameterError
from wanbench.formatting import number, quantity
from wanbench.methods.result import PAIRS_INDEPENDENT, Estimate, Interval, t_quantile, tails

from . import dyadic, places
from .dyadic import jackknife
from .jackknife import LOST, LeaveOut, Sums, leave_out, reml
from .pairs import FEWEST_FOR_INTERVAL, Sample, require_regions

SCALED_Z = "jackknife over places on Fisher's z, scaled by variance components"
# From this |r| on, a correlation counts as perfect: Fisher's z is then infinite, so there is no interval
PERFECT = 1 - 1e-12
VARIES = 1e-9  # Sum of squares of standardised x below which x is constant up to rounding
HEIGHT = (1.0, 0.0)
SLOPE = (0.0, 1.0)
PARAMETERS = 2
NAMES = ("intercept", "slope", "pearson", "spearman")
SCALED = "jackknife over places, scaled by variance components"
DYADIC = "dyadic-robust variance, leave-one-region-out form"
SANDWICH = "dyadic-robust sandwich"
BOOTSTRAP = "region bootstrap"
REFERENCES = (
    "Fafchamps & Gubert 2007; Cameron & Miller 2014; Aronow, Samii & Assenova 2015; MacKinnon, Nielsen & Webb 2023"
)
SCALED_REFERENCES = "Quenouille 1956; Bell & McCaffrey 2002; Imbens & Kolesár 2016"
ASSUMPTION = (
    "Pairs without a common place are independent, and the places represent those of interest. "
    "Places that share a cable would violate this assumption"
)


def fisher_z(r: float | np.ndarray) -> Any:
    """
    Compute Fisher's z of a correlation; it is finite even for a perfect correlation.

    >>> float(round(fisher_z(0.5), 3))
    0.549
    """
    return np.arctanh(np.clip(r, -1 + 1e-15, 1 - 1e-15))


def slope_and_squares(sums: np.ndarray) -> tuple[Any, ...]:
    """
    Compute the slope of y on x (NaN where undetermined) and the centred sums of squares xx, xy, yy.

    sums: Sums of 1, x, y, xx, xy, yy along the last axis.
    """
    n, sx, sy, sxx, sxy, syy = np.moveaxis(sums, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        xx, xy, yy = sxx - sx * sx / n, sxy - sx * sy / n, syy - sy * sy / n
        return np.where(xx > VARIES, xy / xx, np.nan), xx, xy, yy


def pearson_interval(total: np.ndarray, without: np.ndarray, left: LeaveOut, level: float) -> Interval:
    """
    Compute the interval of Pearson's r.

    total, without: Sums of 1, x, y, xx, xy, yy of standardised x and y over all pairs (6,), and without each region
        (regions, 6).
    left: The standardised line fitted without each region.
    """
    slope, spread, scatter = _parts(total)
    slopes, spreads, scatters = _parts(without)
    r = (
        slope * np.sqrt(spread / (slope**2 * spread + scatter))
        if spread > 0 and slope**2 * spread + scatter > 0
        else np.nan
    )
    if not np.isfinite(slopes).all() or (scatters < (1 - PERFECT) * spreads).any():
        return Interval(SCALED_Z)
    height_factor, slope_factor = np.sqrt(left.scale([HEIGHT, SLOPE]))
    moved = slope + slope_factor * (slopes - slopes.mean())
    log = np.log(scatters)
    scattered = scatter * np.exp(height_factor * (log - log.mean()))
    z = fisher_z(moved * np.sqrt(spreads / (moved**2 * spreads + scattered)))
    return _interval(float(r), float(jackknife(z)), left, level)


def spearman_interval(rho: float, without: np.ndarray, left: LeaveOut, level: float) -> Interval:
    """Compute the interval of Spearman's rho; `without` has the rho without each region in turn."""
    if not np.isfinite(without).all() or np.abs(without).max() > PERFECT:
        return Interval(SCALED_Z)
    return _interval(rho, np.sqrt(left.scale(SLOPE)) * jackknife(fisher_z(without)), left, level)


def spearman(x: np.ndarray, y: np.ndarray) -> float:
    """Compute Spearman's rho; NaN (without scipy's warning) if x or y is constant or empty."""
    a, b = (scipy.stats.rankdata(values) - (len(values) + 1) / 2 for values in (x, y))
    with np.errstate(invalid="ignore"):
        return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def spearman_without(x: np.ndarray, y: np.ndarray, first: np.ndarray, second: np.ndarray, n_regions: int) -> np.ndarray:
    """Compute Spearman's rho without each region: (regions,)."""
    region = np.arange(n_regions)[:, None]
    return np.array([spearman(x[kept], y[kept]) for kept in (first != region) & (second != region)])


def _interval(r: float, variance: float, left: LeaveOut, level: float) -> Interval:
    of_slope, of_line = float(left.spread(SLOPE)[1]), len(left.without_region) - 2
    freedom = 2 / (1 / of_slope + 1 / of_line)
    half = t_quantile(level, freedom) * np.sqrt(variance)
    return Interval(SCALED_Z, np.tanh(fisher_z(r) - half), np.tanh(fisher_z(r) + half))


def _parts(sums: np.ndarray):
    """Compute the slope of y on x, the variance of x, and the variance of y about the line, from `sums` (..., 6)."""
    slope, xx, xy, yy = slope_and_squares(sums)
    n = sums[..., 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        return slope, xx / n, np.maximum(yy - slope * xy, 0) / n


@dataclass(frozen=True)
class Part:
    """A fitted parameter with intervals: `naive` treats pairs as independent, and `others` use other methods."""

    value: float
    interval: Interval
    naive: Interval
    others: tuple[Interval, ...] = ()
    standard_error: float = nan

    def estimate(self, change: Callable[[float], float] = float, **fields: Any) -> Estimate:
        """
        Return the parameter as an Estimate.

        change: An increasing function, such as a unit conversion, applied to the value and to all ends.
        **fields: Further fields of `Estimate`.
        """
        low, high = change(self.interval.low), change(self.interval.high)
        naive = Interval(PAIRS_INDEPENDENT, change(self.naive.low), change(self.naive.high))
        return Estimate(estimate=change(self.value), low=low, high=high, naive=naive, **fields)


@dataclass(frozen=True)
class Line:
    """
    The line y = intercept + slope x, fitted by ordinary least squares over unordered pairs, and two correlations.

    warnings: Cautions about the sample and the computation.
    scale: The means and standard deviations by which x and y were standardised for the fit.
    left: The standardised line fitted without each unit; None if there are too few units for intervals.
    grouped: The units that intervals treat as independent, by default places.
    moran: The test whether effects of nearby units are correlated.
    skew: The test whether effects of units are skewed.
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
    scale: Standardisation
    left: LeaveOut | None = None
    grouped: places.Units | None = None
    moran: places.Moran | None = None
    skew: places.Skew | None = None

    @property
    def n_places(self) -> int:
        """The number of units that intervals treat as independent."""
        return self.grouped.n if self.grouped else 0

    def band(self, x: np.typing.ArrayLike) -> pd.DataFrame:
        """Return the line at `x` with its interval: columns x, y, low, high."""
        x = np.asarray(x, dtype=float)
        y = self.intercept.value + self.slope.value * x
        half = np.full_like(y, nan)
        if self.left is not None:
            half = self.left.half(self.scale.height(x), self.level)
        return pd.DataFrame({"x": x, "y": y, "low": y - half, "high": y + half})


@dataclass(frozen=True)
class Standardisation:
    """Means and standard deviations of x and y, which are centred and scaled before the fit."""

    mean_x: float
    mean_y: float
    sd_x: float
    sd_y: float

    @classmethod
    def of(cls, x: np.ndarray, y: np.ndarray) -> Standardisation:
        return cls(x.mean(), y.mean(), x.std(), y.std() or 1.0)

    def standard(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return x and y centred and scaled."""
        return (x - self.mean_x) / self.sd_x, (y - self.mean_y) / self.sd_y

    def back(self, solved: np.ndarray) -> np.ndarray:
        """Convert (intercept, slope, r), on the last axis, of the standardised x and y to those of the original."""
        slope = solved[..., 1] * self.sd_y / self.sd_x
        intercept = self.mean_y + self.sd_y * solved[..., 0] - slope * self.mean_x
        return np.stack([intercept, slope, solved[..., 2]], axis=-1)

    def height(self, x: np.typing.ArrayLike) -> np.ndarray:
        """
        Return weights (..., 2): their product with (intercept, slope) of the standardised line is the height of the
        original line at x (...), less the mean of y.
        """
        x = np.asarray(x, dtype=float)
        return self.sd_y * np.stack([np.ones_like(x), (x - self.mean_x) / self.sd_x], axis=-1)

    @property
    def slope(self) -> np.ndarray:
        """Weights (2,): their product with (intercept, slope) of the standardised line is the original line's slope."""
        return np.array([0.0, self.sd_y / self.sd_x])


def straight_line(
    sample: Sample,
    x: np.typing.ArrayLike,
    y: np.typing.ArrayLike,
    *,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    cluster: places.Cluster = places.PLACE,
) -> Line:
    """
    Fit the line, with intervals that treat places, or other clusters of regions, as the independent units.

    All main intervals come from the lines fitted without each place in turn (module `jackknife`). For comparison,
    `others` of each parameter has up to three more intervals: by the jackknife over places less the jackknife over
    pairs, by the sandwich, and from percentiles of a bootstrap over places.

    x, y: Values of each pair of the sample.
    resamples, seed: Number of resamples of the bootstrap, and the seed of their draw.
    cluster: As in `places.units`.

    Raises ParameterError: there are fewer than 3 regions or pairs, or x is the same for every pair.
    """
    level = check_level(level)
    require_regions(sample, 3, "a line")
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if len(x) < 3:
        raise ParameterError(f"a line needs at least 3 pairs; there are {len(x)}")
    if np.ptp(x) <= 1e-9 * max(abs(x).max(), 1.0):
        same = quantity(sample.frame.distance_km.iloc[0], "km")
        raise ParameterError(f"every pair has the same distance ({same}): no line can be fitted to it")
    grouped = places.units(sample, cluster)
    scale = Standardisation.of(x, y)
    zx, zy = scale.standard(x, y)
    moments = np.column_stack([np.ones_like(zx), zx, zy, zx * zx, zx * zy, zy * zy])
    values = (*scale.back(solve(moments.sum(axis=0))), spearman(x, y))
    notes, left = [*grouped.warnings()], None
    main, errors, others = {}, {}, {}
    if grouped.n >= FEWEST_FOR_INTERVAL:
        sums = Sums.of(np.column_stack([np.ones_like(zx), zx]), zy, grouped.first, grouped.second, grouped.n)
        left = leave_out(sums, reml(sums))
        lost = np.flatnonzero((np.abs(left.lost) > LOST).any(axis=(1, 2)))
        if len(lost):
            notes.append(f"no interval: the pairs without {grouped.names[lost[0]]} do not determine a line")
        fitted = _Fitted(x, y, values, moments, scale, grouped, level)
        (main, errors), others = fitted.main(left), fitted.others(resamples, seed)
    parts = {
        name: Part(value, main.get(name, Interval(SCALED)), naive, others.get(name, ()), errors.get(name, nan))
        for name, value, naive in zip(NAMES, values, _naive(x, y, values, level), strict=True)
    }
    residual = y - values[0] - values[1] * x
    return Line(
        sample.n_pairs,
        sample.n_regions,
        **parts,
        level=level,
        method=_method(scale, left),
        warnings=(*sample.warnings(), *notes),
        scale=scale,
        left=left,
        grouped=grouped,
        moran=places.moran(residual, sample.frame.distance_km.to_numpy(), grouped),
        skew=places.skew_of_effects(residual, x, grouped),
    )


def solve(sums: np.ndarray) -> np.ndarray:
    """Compute (intercept, slope, r) from `sums` (..., 6) of 1, x, y, xx, xy, yy; NaN where undetermined."""
    slope, xx, xy, yy = slope_and_squares(sums)
    n, sx, sy = sums[..., 0], sums[..., 1], sums[..., 2]
    with np.errstate(divide="ignore", invalid="ignore"):
        varies = (xx > VARIES) & (yy > 1e-12)
        r = np.where(varies, np.clip(xy / np.sqrt(xx * yy), -1, 1), nan)
        return np.stack([(sy - slope * sx) / n, slope, r], axis=-1)


def _method(scale: Standardisation, left: LeaveOut | None) -> str:
    method = f"least squares over unordered pairs; interval from the {SCALED} ({SCALED_REFERENCES})"
    freedom = float(left.spread(scale.slope)[1]) if left is not None else nan
    return method + (f", t with {number(freedom, 1)} degrees of freedom for the slope" if freedom > 0 else "")


@dataclass(frozen=True)
class _Fitted:
    """A line through all pairs, with the sums over pairs and the units that its intervals need."""

    x: np.ndarray
    y: np.ndarray
    values: Sequence[float]
    moments: np.ndarray
    scale: Standardisation
    grouped: places.Units
    level: float

    def main(self, left: LeaveOut) -> tuple[dict[str, Interval], dict[str, float]]:
        """Return the main intervals by parameter, and the standard errors of intercept and slope."""
        values, grouped, total = self.values, self.grouped, self.moments.sum(axis=0)
        without = total - dyadic.region_sums(self.moments, grouped.first, grouped.second, grouped.n)
        rho_without = spearman_without(self.x, self.y, grouped.first, grouped.second, grouped.n)
        intervals = {
            "pearson": pearson_interval(total, without, left, self.level),
            "spearman": spearman_interval(values[3], rho_without, left, self.level),
        }
        errors = {}
        for name, value, weights in zip(NAMES, values[:2], (self.scale.height(0.0), self.scale.slope), strict=False):
            half = left.half(weights, self.level)
            intervals[name] = Interval(SCALED, value - half, value + half)
            errors[name] = float(np.sqrt(left.spread(weights)[0]))
        return intervals, errors

    def others(self, resamples: int, seed: int) -> dict[str, tuple[Interval, ...]]:
        """Return the intervals of intercept, slope and r shown for comparison; the sandwich gives none for r."""
        x, values, moments, grouped, back = self.x, self.values, self.moments, self.grouped, self.scale.back
        first, second, n, joined = grouped.first, grouped.second, grouped.n, grouped.both
        t, centre, total = t_quantile(self.level, n - PARAMETERS), np.array(values[:3]), moments.sum(axis=0)
        pairs = dyadic.sums(moments, joined, int(joined.max()) + 1)
        left = [back(solve(total - taken)) for taken in (dyadic.region_sums(moments, first, second, n), pairs)]
        # The jackknife of r is computed on Fisher's z, which is nearly symmetric.
        for fits in (centre, *left):
            fits[..., 2] = fisher_z(fits[..., 2])
        half = t * np.sqrt(dyadic.variance(*left))
        jackknifed = np.stack([centre - half, centre + half])
        jackknifed[:, 2] = np.tanh(jackknifed[:, 2])

        residual = self.y - values[0] - values[1] * x
        spread = np.diag(dyadic.sandwich(np.column_stack([np.ones_like(x), x]), residual, first, second, n))
        robust = t * np.sqrt(np.where(spread >= 0, spread, nan))

        weights = dyadic.region_weights(n, resamples, seed)
        resampled = back(solve(dyadic.weighted_sums(weights, moments, first, second)))
        finite = resampled[np.isfinite(resampled).all(axis=1)]
        drawn = np.quantile(finite, tails(self.level), axis=0) if len(finite) else np.full((2, 3), nan)

        others = {}
        for k, name in enumerate(NAMES[:3]):
            sandwich = [Interval(SANDWICH, values[k] - robust[k], values[k] + robust[k])] if k < len(robust) else []
            others[name] = (Interval(DYADIC, *jackknifed[:, k]), *sandwich, Interval(BOOTSTRAP, *drawn[:, k]))
        return others


def _naive(x: np.ndarray, y: np.ndarray, values: Sequence[float], level: float) -> list[Interval]:
    """Compute the intervals that treat pairs as independent: OLS with t; Fisher's z (for rho: Bonett & Wright 2000)."""
    n, (intercept, slope, r, rho) = len(x), values
    off = x - x.mean()
    residual = y - intercept - slope * x
    sigma2 = residual @ residual / (n - PARAMETERS)
    of_slope = sigma2 / (off @ off)
    t = t_quantile(level, n - PARAMETERS)
    intervals = []
    for value, variance in ((intercept, sigma2 / n + of_slope * x.mean() ** 2), (slope, of_slope)):
        half = t * np.sqrt(variance)
        intervals.append(Interval(PAIRS_INDEPENDENT, value - half, value + half))
    normal = scipy.special.ndtri((1 + level) / 2)
    for value, factor in ((r, 1.0), (rho, 1 + rho**2 / 2)):
        half = normal * np.sqrt(factor / (n - 3)) if n > 3 else nan
        z = fisher_z(value)
        intervals.append(Interval(PAIRS_INDEPENDENT, np.tanh(z - half), np.tanh(z + half)))
    return intervals
