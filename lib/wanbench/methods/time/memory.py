"""
Detect long memory of a series: fluctuations that do not average out, however long it is.

A low-order autoregression misses slow regimes, drift and long memory, so its interval of the mean is too narrow. The
spectrum shows them: it rises towards frequency 0 as frequency to the power of -2 d. The memory d is estimated from the
lowest frequencies alone (local Whittle: Künsch 1987; Robinson 1995).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import optimize

LOWEST = 0.5
"""Exponent of n for the number of lowest frequencies used: so few that ordinary short memory has little effect."""
MORE = 0.65
"""Exponent of n for the larger number of frequencies, used for comparison."""
LONG = 0.25
"""
From this d on memory counts as long: two to three times its standard error in two series of 100 to 300 values. The
rates of false and missed detections are in data/validity/slow.csv.
"""
KEPT = 0.8
"""
The d of the lowest frequencies must be at least this share of the d of more frequencies: the spectrum of an ordinary
autoregression flattens towards frequency 0.
"""
ONE_ALONE = 0.2
"""A single series whose d exceeds both limits by this much counts as long even if the other does not."""
BOUNDS = (-0.5, 1.2)
"""Range of d searched: from over-differenced to beyond a random walk (1)."""


def memory(values: np.ndarray, power: float = LOWEST) -> float:
    """
    Estimate the memory d from the n ** `power` lowest frequencies: 0 for none, 1 for a random walk.

    >>> steps = np.random.default_rng(0).normal(size=2_000)
    >>> abs(memory(steps)) < 0.15, abs(memory(np.cumsum(steps)) - 1) < 0.15
    (True, True)
    """
    m = int(len(values) ** power)
    spectrum = np.abs(np.fft.rfft(values - values.mean()))[1 : m + 1] ** 2
    if not spectrum.sum() > 1e-20 * max(float(values @ values), 1e-300):
        return 0.0
    frequency = np.arange(1, m + 1) / len(values)
    slope = 2 * float(np.log(frequency).mean())

    def contrast(d: float) -> float:
        return float(np.log((frequency ** (2 * d) * spectrum).mean()) - d * slope)

    return float(optimize.minimize_scalar(contrast, bounds=BOUNDS, method="bounded").x)


def is_long(arms: Sequence[np.ndarray]) -> bool:
    """Whether the series of a comparison have long memory: their average, or one of them clearly."""
    excess = [memory(values) - max(LONG, KEPT * memory(values, MORE)) for values in arms]
    return float(np.mean(excess)) > 0 or max(excess) > ONE_ALONE
