"""
Straight lines by quantile regression (Koenker & Bassett 1978), many weightings at once.

A line that minimises the sum of weight x check loss goes through two of the points. The best line through a point has
a weighted quantile of the slopes to the others, which gives the second point; repeated from there, the loss falls until
no line through either point is better. This is the simplex method with its two edges, so it stops at the minimum.
statsmodels fits one unweighted line at a time, too slowly for thousands of resamples.
"""

from __future__ import annotations

import numpy as np

CHUNK_CELLS = 1_000_000  # Weights held at a time, 8 MB
MAXIMUM_STEPS = 200  # Limit of the search, which ends when no line is better
SMALL = 1e-10  # Points whose standardised x differ by less have the same x up to rounding
ROUNDING = 1e-13  # A smaller relative improvement of the loss is rounding
# In standard deviations of y: moves points so that no three are collinear, too little to change a result
PERTURBATION = 1e-9
GOLDEN = 0.6180339887498949  # Multiples of the golden ratio, modulo 1, spread evenly without a pattern


def quantile_lines(x: np.ndarray, y: np.ndarray, weights: np.ndarray, tau: float) -> np.ndarray:
    """
    Find the line under which a share `tau` of the weight lies: intercept and slope (weightings, 2).

    `weights` is (weightings, points). A weighting whose points have fewer than two different x values gives NaN.
    """
    x, y, weights = (np.asarray(part, dtype=float) for part in (x, y, weights))
    step = max(1, CHUNK_CELLS // len(x))
    chunks = (weights[start : start + step] for start in range(0, len(weights), step))
    return np.concatenate([_lines(x, y, chunk, tau) for chunk in chunks])


def check_loss(x, y, weights, tau: float, line) -> np.ndarray:
    """Compute the sum of weight x check loss of lines (cases, 2): (cases,)."""
    residual = y - line[:, :1] - line[:, 1:] * x
    return (weights * residual * (tau - (residual < 0))).sum(axis=1)


def _lines(x, y, weights, tau: float) -> np.ndarray:
    mean_x, scale_x, mean_y, scale_y = x.mean(), x.std() or 1.0, y.mean(), y.std() or 1.0
    u = (x - mean_x) / scale_x
    v = (y - mean_y) / scale_y + PERTURBATION * ((np.arange(len(y)) * GOLDEN) % 1)
    usable = np.array([bool((row > 0).any()) and np.ptp(u[row > 0]) > SMALL for row in weights])
    loss, ends = np.full(len(weights), np.inf), np.zeros((2, len(weights)), dtype=int)
    pivot, active = np.argmax(weights > 0, axis=1), np.flatnonzero(usable)
    for _ in range(MAXIMUM_STEPS):
        if not len(active):
            break
        at = pivot[active]
        new, entering = _through(u, v, weights[active], tau, u[at], v[at])
        now = check_loss(u, v, weights[active], tau, new)
        better = now < loss[active] * (1 - ROUNDING)
        active = active[better]
        ends[:, active], loss[active], pivot[active] = ((at[better], entering[better]), now[better], entering[better])
    one, other = ends
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.where(usable, (y[other] - y[one]) / (x[other] - x[one]), np.nan)
    return np.column_stack([y[one] - slope * x[one], slope])


def _through(u, v, weights, tau: float, at_u, at_v) -> tuple[np.ndarray, np.ndarray]:
    """Return the best line of each weighting through its pivot, and the index of its second point."""
    run, rise = u - at_u[:, None], v - at_v[:, None]
    mass = weights * np.abs(run)
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = np.where(mass > 0, rise / run, np.inf)
    # A point to the left of the pivot lies above the line if the line is steeper than the slope to that point.
    target = (np.where(run > 0, tau, 1 - tau) * mass).sum(axis=1)
    order = np.argsort(slopes, axis=1)
    below = np.cumsum(np.take_along_axis(mass, order, axis=1), axis=1)
    position = np.minimum((below < target[:, None] - 1e-14).sum(axis=1), mass.shape[1] - 1)
    entering = np.take_along_axis(order, position[:, None], axis=1)[:, 0]
    slope = np.take_along_axis(slopes, entering[:, None], axis=1)[:, 0]
    slope = np.where(np.isfinite(slope), slope, 0.0)
    return np.column_stack([at_v - slope * at_u, slope]), entering
