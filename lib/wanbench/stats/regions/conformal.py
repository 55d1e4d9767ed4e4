"""
Prediction intervals from how far predictions were off for what had been left out (jackknife+, CV+).

Each left-out value gives a score: how far it lay from the prediction made without it, in units of a scale that may
grow with distance, and apart for too high and too low. The interval for a new value spans the predictions of all
those fits, each moved by its score (Barber, Candès, Ramdas & Tibshirani 2021). What was left out together (a
region) counts as one unit, its scores sharing one weight, and one more unit, that of the new value, lies at
infinity: "pooling" in Dunn, Wasserman & Ramdas 2023.

The guarantee of Barber et al., at least 1 - 2 alpha and in practice about 1 - alpha, is for exchangeable values.
Pairs that share a region are dependent; leaving out what they share restores it for regions drawn alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

LEAST_SCALE = 0.3


@dataclass(frozen=True)
class Spread:
    """The scale of deviations: (constant + slope x) x (up or down), with x such as distance in 1,000 km."""

    constant: float
    slope: float
    least: float
    up: float
    down: float

    def of(self, x) -> np.ndarray:
        """The common scale at x."""
        return np.maximum(self.constant + self.slope * np.asarray(x, dtype=float), self.least)

    def scores(self, deviation: np.ndarray, x) -> np.ndarray:
        """Deviations (measured less predicted) in units of the scale of their side, without sign."""
        scaled = deviation / self.of(x)
        return np.where(scaled >= 0, scaled / self.up, -scaled / self.down)


def spread(deviation: np.ndarray, x: np.ndarray) -> Spread:
    """A scale that fits these deviations: a line through their sizes over x, then the median of either side."""
    size = np.abs(deviation)
    typical = max(float(np.mean(size)), 1e-9)
    design = np.column_stack([np.ones_like(x), x])
    capped = np.minimum(size, 5 * max(float(np.median(size)), 1e-9))
    middle = max(float(capped.mean()), 1e-9)
    constant, slope = np.linalg.lstsq(design, capped, rcond=None)[0]
    if slope < 0:
        constant, slope = float(capped.mean()), 0.0
    flat = Spread(float(constant), float(slope), LEAST_SCALE * min(typical, middle), 1.0, 1.0)
    scaled = deviation / flat.of(x)
    sides = [scaled[scaled >= 0], -scaled[scaled < 0]]
    both = max(float(np.median(np.abs(scaled))), 1e-9)
    up, down = (max(float(np.median(side)), LEAST_SCALE * both) if len(side) else both for side in sides)
    return Spread(flat.constant, flat.slope, flat.least, up, down)


def unit_weights(units: np.ndarray) -> np.ndarray:
    """A weight per score: each unit has 1 / (units + 1), shared by its scores."""
    _, index, size = np.unique(units, return_inverse=True, return_counts=True)
    return 1.0 / size[index] / (len(size) + 1)


def upper(values: np.ndarray, weights: np.ndarray, share: float) -> np.ndarray:
    """
    The least value per row that has `share` of the weight at or below it; infinite where the weights do not
    reach it.

    `values` (rows, scores) may hold NaN: those have no weight, and the others of a row keep their total.

    >>> upper(np.array([[3.0, 1.0, 2.0]]), np.full(3, 0.25), 0.5)
    array([2.])
    >>> upper(np.array([[3.0, 1.0, 2.0]]), np.full(3, 0.25), 0.9)
    array([inf])
    """
    known = ~np.isnan(values)
    weight = np.where(known, weights, 0.0)
    kept = weight.sum(axis=1, keepdims=True)
    weight = weight * np.divide(weights.sum(), kept, out=np.zeros_like(kept), where=kept > 0)
    order = np.argsort(np.where(known, values, inf), axis=1)
    below = np.cumsum(np.take_along_axis(weight, order, axis=1), axis=1)
    at = (below < share - 1e-9).sum(axis=1)
    ends = np.full(len(values), inf)
    inside = at < values.shape[1]
    sorted_values = np.take_along_axis(values, order, axis=1)
    ends[inside] = sorted_values[inside, at[inside]]
    return np.where(np.isnan(ends), inf, ends)


def lower(values: np.ndarray, weights: np.ndarray, share: float) -> np.ndarray:
    """As `upper`, from the other side: minus infinity where the weights do not reach it."""
    return -upper(-values, weights, share)
