"""
Prediction intervals from the errors of predictions for left-out values (jackknife+, CV+).

Each left-out value gives a score: its distance from the prediction made without it, in units of a scale that may grow
with x, with separate scales for positive and negative deviations. The interval for a new value spans the predictions of
all these fits, each moved by its score (Barber, Candès, Ramdas & Tibshirani 2021). Values left out together (those of
a region) are one unit and share one weight; one more unit, that of the new value, lies at infinity ("pooling" in
Dunn, Wasserman & Ramdas 2023).

The guarantee of Barber et al., a coverage of at least 1 - 2 alpha and in practice about 1 - alpha, requires
exchangeable values. Pairs that share a region are dependent; leaving out whole regions restores the guarantee for
regions drawn from one population.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

SMALLEST_SCALE = 0.3
"""Share of the typical deviation below which a scale counts as too small to divide by."""


@dataclass(frozen=True)
class Spread:
    """The scale of deviations at x, such as distance in 1,000 km: (constant + slope x) times `up` or `down`."""

    constant: float
    slope: float
    smallest: float
    up: float
    down: float

    def of(self, x) -> np.ndarray:
        """The common scale at x."""
        return np.maximum(self.constant + self.slope * np.asarray(x, dtype=float), self.smallest)

    def scores(self, deviation: np.ndarray, x) -> np.ndarray:
        """Deviations (measured less predicted) without sign, in units of the scale for their sign."""
        scaled = deviation / self.of(x)
        return np.where(scaled >= 0, scaled / self.up, -scaled / self.down)


def spread(deviation: np.ndarray, x: np.ndarray) -> Spread:
    """The scale of these deviations: a line through their sizes over x, times the median for either sign."""
    size = np.abs(deviation)
    typical = max(float(np.mean(size)), 1e-9)
    design = np.column_stack([np.ones_like(x), x])
    # Capped, so that a few outliers do not tilt the line.
    capped = np.minimum(size, 5 * max(float(np.median(size)), 1e-9))
    middle = max(float(capped.mean()), 1e-9)
    constant, slope = np.linalg.lstsq(design, capped, rcond=None)[0]
    if slope < 0:
        constant, slope = float(capped.mean()), 0.0
    flat = Spread(float(constant), float(slope), SMALLEST_SCALE * min(typical, middle), 1.0, 1.0)
    scaled = deviation / flat.of(x)
    sides = [scaled[scaled >= 0], -scaled[scaled < 0]]
    both = max(float(np.median(np.abs(scaled))), 1e-9)
    up, down = (max(float(np.median(side)), SMALLEST_SCALE * both) if len(side) else both for side in sides)
    return Spread(flat.constant, flat.slope, flat.smallest, up, down)


def unit_weights(units: np.ndarray) -> np.ndarray:
    """A weight per score: the scores of each unit share 1 / (units + 1)."""
    _, index, size = np.unique(units, return_inverse=True, return_counts=True)
    return 1.0 / size[index] / (len(size) + 1)


def upper(values: np.ndarray, weights: np.ndarray, share: float) -> np.ndarray:
    """
    The smallest value per row with `share` of the weight at or below it; infinite if the weights do not reach it.

    NaN among `values` (rows, scores) has no weight; the other values of the row keep the total weight.

    >>> upper(np.array([[3.0, 1.0, 2.0]]), np.full(3, 0.25), 0.5)
    array([2.])
    >>> upper(np.array([[3.0, 1.0, 2.0]]), np.full(3, 0.25), 0.9)
    array([inf])
    """
    valid = ~np.isnan(values)
    weight = np.where(valid, weights, 0.0)
    kept = weight.sum(axis=1, keepdims=True)
    weight = weight * np.divide(weights.sum(), kept, out=np.zeros_like(kept), where=kept > 0)
    order = np.argsort(np.where(valid, values, inf), axis=1)
    below = np.cumsum(np.take_along_axis(weight, order, axis=1), axis=1)
    at = (below < share - 1e-9).sum(axis=1)
    ends = np.full(len(values), inf)
    inside = at < values.shape[1]
    sorted_values = np.take_along_axis(values, order, axis=1)
    ends[inside] = sorted_values[inside, at[inside]]
    return np.where(np.isnan(ends), inf, ends)


def lower(values: np.ndarray, weights: np.ndarray, share: float) -> np.ndarray:
    """The largest value per row with `share` of the weight at or above it; see `upper`."""
    return -upper(-values, weights, share)
