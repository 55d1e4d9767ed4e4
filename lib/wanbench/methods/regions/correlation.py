"""
Intervals of Pearson's r and Spearman's rho over pairs that share regions, on the scale of Fisher's z.

A correlation varies for two reasons: the slope varies, and so do the scatter about the line and the spread of x. If
much of the scatter belongs to single pairs, the jackknife over regions overstates both, by factors that the working
model of `leave_one_out` gives for the slope and for the height of the line. Pearson's r is therefore split into slope,
scatter and spread of x: the slope's jackknife deviations are scaled by the slope's factor, the scatter's by the
height's, and the spread of x is unchanged. Spearman's rho cannot be split; its variance is scaled by the root of the
slope's factor. The degrees of freedom are the harmonic mean of the slope's and of (regions - 2), the line's two
parameters deducted. Simulation (`make validity`), not theory, led to these choices.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from wanbench.methods.result import Interval, t_quantile

from .dyadic import jackknife
from .leave_one_out import LeaveOut

SCALED_Z = "jackknife over places on Fisher's z, scaled by variance components"
PERFECT = 1 - 1e-12
"""From this |r| on, a correlation counts as perfect: Fisher's z is then infinite, so there is no interval."""
VARIES = 1e-9
"""Sum of squares of standardised x below which x is constant up to rounding."""
HEIGHT = (1.0, 0.0)
SLOPE = (0.0, 1.0)


def fisher_z(r):
    """
    Fisher's z, kept finite for a perfect correlation.

    >>> float(round(fisher_z(0.5), 3))
    0.549
    """
    return np.arctanh(np.clip(r, -1 + 1e-15, 1 - 1e-15))


def slope_and_squares(sums: np.ndarray) -> tuple[np.ndarray, ...]:
    """
    Slope of y on x (NaN where undetermined) and centred sums of squares xx, xy, yy, from sums of 1, x, y, xx, xy, yy
    along the last axis.
    """
    n, sx, sy, sxx, sxy, syy = np.moveaxis(sums, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        xx, xy, yy = sxx - sx * sx / n, sxy - sx * sy / n, syy - sy * sy / n
        return np.where(xx > VARIES, xy / xx, np.nan), xx, xy, yy


def pearson_interval(total: np.ndarray, without: np.ndarray, left: LeaveOut, level: float) -> Interval:
    """
    The interval of r from sums over pairs of 1, x, y, xx, xy, yy (6,), and those without each region (regions, 6),
    of standardised x and y.
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
    return _interval(r, jackknife(z), left, level)


def spearman_interval(rho: float, without: np.ndarray, left: LeaveOut, level: float) -> Interval:
    """The interval of rho from its values without each region."""
    if not np.isfinite(without).all() or np.abs(without).max() > PERFECT:
        return Interval(SCALED_Z)
    return _interval(rho, np.sqrt(left.scale(SLOPE)) * jackknife(fisher_z(without)), left, level)


def spearman(x: np.ndarray, y: np.ndarray) -> float:
    """Spearman's rho; NaN, without a warning as scipy gives, if either is constant or empty."""
    a, b = (stats.rankdata(values) - (len(values) + 1) / 2 for values in (x, y))
    with np.errstate(invalid="ignore"):
        return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def spearman_without(x: np.ndarray, y: np.ndarray, first, second, n_regions: int) -> np.ndarray:
    """Spearman's rho without each region."""
    region = np.arange(n_regions)[:, None]
    return np.array([spearman(x[kept], y[kept]) for kept in (first != region) & (second != region)])


def _interval(r: float, variance: float, left: LeaveOut, level: float) -> Interval:
    of_slope, of_line = float(left.spread(SLOPE)[1]), len(left.without_region) - 2
    freedom = 2 / (1 / of_slope + 1 / of_line)
    half = t_quantile(level, freedom) * np.sqrt(variance)
    return Interval(SCALED_Z, np.tanh(fisher_z(r) - half), np.tanh(fisher_z(r) + half))


def _parts(sums: np.ndarray):
    """Slope of y on x, variance of x, variance of y about the line."""
    slope, xx, xy, yy = slope_and_squares(sums)
    n = sums[..., 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        return slope, xx / n, np.maximum(yy - slope * xy, 0) / n
