"""
Intervals of Pearson's r and Spearman's rho over pairs that share regions, on the scale of Fisher's z.

A correlation varies for two reasons: the slope does, and the scatter about the line and the spread of x do. The
jackknife over regions overstates both where much of the scatter is a pair's own, by factors that the working
model of `leaveout` gives for the slope and for the height of the line. So r is taken apart into slope, scatter and
spread of x; what leaving out a region does to the slope is scaled as the slope's, what it does to the scatter as
the height's, and the spread of x is left as it is. Rho cannot be taken apart; its variance is scaled by the root of
the slope's factor. The degrees of freedom are the harmonic mean of the slope's and of those of its two parameters
(regions - 2). These choices were made by simulation (`make validity`), not derived.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from ..result import Interval
from .dyadic import jackknife
from .leave_one_out import LeaveOut

SCALED_Z = "jackknife over places on Fisher's z, scaled by variance components"
PERFECT = 1 - 1e-12
"""A correlation that is perfect without some region has no variance on the scale of Fisher's z, so no interval."""
HEIGHT, SLOPE = (1.0, 0.0), (0.0, 1.0)


def fisher_z(r):
    """
    Fisher's z, short of infinity.

    >>> float(round(fisher_z(0.5), 3))
    0.549
    """
    return np.arctanh(np.clip(r, -1 + 1e-15, 1 - 1e-15))


def pearson(total: np.ndarray, without: np.ndarray, left: LeaveOut, level: float) -> Interval:
    """
    The interval of r from sums over pairs of 1, x, y, xx, xy, yy (6,), and those without each region (regions, 6),
    of standardised x and y.
    """
    slope, spread, scatter = _parts(total)
    slopes, spreads, scatters = _parts(without)
    r = slope * np.sqrt(spread / (slope**2 * spread + scatter)) if spread > 0 else np.nan
    if not np.isfinite(slopes).all() or (scatters < (1 - PERFECT) * spreads).any():
        return Interval(SCALED_Z)
    by_height, by_slope = np.sqrt(left.scale([HEIGHT, SLOPE]))
    moved = slope + by_slope * (slopes - slopes.mean())
    log = np.log(scatters)
    scattered = scatter * np.exp(by_height * (log - log.mean()))
    z = fisher_z(moved * np.sqrt(spreads / (moved**2 * spreads + scattered)))
    return _interval(r, jackknife(z), left, level)


def spearman(rho: float, without: np.ndarray, left: LeaveOut, level: float) -> Interval:
    """The interval of rho from its values without each region."""
    if not np.isfinite(without).all() or np.abs(without).max() > PERFECT:
        return Interval(SCALED_Z)
    return _interval(rho, np.sqrt(left.scale(SLOPE)) * jackknife(fisher_z(without)), left, level)


def _interval(r: float, variance: float, left: LeaveOut, level: float) -> Interval:
    of_slope, of_line = float(left.spread(SLOPE)[1]), len(left.without_region) - 2
    freedom = 2 / (1 / of_slope + 1 / of_line)
    half = stats.t.ppf((1 + level) / 2, freedom) * np.sqrt(variance)
    return Interval(SCALED_Z, np.tanh(fisher_z(r) - half), np.tanh(fisher_z(r) + half))


def _parts(sums: np.ndarray):
    """Slope of y on x, variance of x, variance of y about the line."""
    n, sx, sy, sxx, sxy, syy = np.moveaxis(sums, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        xx, xy, yy = sxx - sx * sx / n, sxy - sx * sy / n, syy - sy * sy / n
        slope = np.where(xx > 1e-9, xy / xx, np.nan)
        return slope, xx / n, np.maximum(yy - slope * xy, 0) / n
