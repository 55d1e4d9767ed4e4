"""Are the effects of places skewed? Intervals of r, of the height at no distance and of W rest on that they are not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from . import dyadic

FEWEST_FOR_SKEW = 8
"""The test's normal approximation starts here (D'Agostino 1970)."""
SKEW_P = 0.025
"""Of two tests, so that surveys without skew are called skewed in about 5 of 100."""
LEAST_SKEW = 1.0
"""Less does no harm; effects of an exponential law have a skewness of 2, those that 1 place in 10 has, of 2.7."""


@dataclass(frozen=True)
class Skew:
    """Skewness of the effects of units on the height or the slope of a line, whichever is surer, and its p-value."""

    of: str
    skewness: float
    p: float

    @property
    def found(self) -> bool:
        return self.p <= SKEW_P and abs(self.skewness) >= LEAST_SKEW

    def __str__(self) -> str:
        return f"the effects of places on the {self.of} are skewed (skewness {self.skewness:.1f}, p = {self.p:.2g})"


def skew(residual: np.ndarray, x: np.ndarray, grouped) -> Skew | None:
    """
    D'Agostino's test (1970) of what units (`clusters.Units`) differ by; None with fewer than 8 or without residuals.

    The effect of a unit on the height is the mean residual of its pairs, that on the slope their slope over x.
    """
    if grouped.n < FEWEST_FOR_SKEW or not residual.std() > 1e-9 * max(np.abs(residual).max(), 1e-300):
        return None
    x = x - x.mean()
    rows = np.column_stack([np.ones_like(x), residual, x * x, x * residual])
    total = dyadic.region_sums(rows, grouped.first, grouped.second, grouped.n)
    found = []
    for of, size, sums in (("height", total[:, 0], total[:, 1]), ("slope", total[:, 2], total[:, 3])):
        effects = sums[size > 0] / size[size > 0]
        if len(effects) >= FEWEST_FOR_SKEW and np.ptp(effects) > 0:
            test = stats.skewtest(effects)
            found.append(Skew(of, float(stats.skew(effects)), float(test.pvalue)))
    return min(found, key=lambda each: each.p, default=None)
