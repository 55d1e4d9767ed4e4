"""Are the effects of places skewed? If so, intervals of r, of the height at no distance and of W are too narrow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from wanbench.formatting import number, p_value

from . import dyadic

FEWEST_FOR_SKEW = 8
"""The test's normal approximation starts here (D'Agostino 1970)."""
SIGNIFICANT_P = 0.025
"""Level of each of two tests, so that about 5 of 100 surveys without skew are called skewed."""
HARMFUL_SKEWNESS = 1.0
"""A smaller one does no harm; exponential effects have a skewness of 2, effects of 1 place in 10 have 2.7."""


@dataclass(frozen=True)
class Skew:
    """Skewness of the effects of units on the height or the slope (`of`) of a line, and its p-value."""

    of: str
    skewness: float
    p: float

    @property
    def significant(self) -> bool:
        return self.p <= SIGNIFICANT_P and abs(self.skewness) >= HARMFUL_SKEWNESS

    def __str__(self) -> str:
        size = f"skewness {number(self.skewness, 1)}, {p_value(self.p)}"
        return f"the effects of places on the {self.of} are skewed ({size})"


def skew_of_effects(residual: np.ndarray, x: np.ndarray, grouped) -> Skew | None:
    """
    D'Agostino's test (1970) of the effects of units (`places.Units`); None for fewer than 8 or no residuals.

    The effect of a unit on the height is the mean residual of its pairs, that on the slope the slope of their residuals
    over x. The result is the one with the smaller p-value.
    """
    if grouped.n < FEWEST_FOR_SKEW or not residual.std() > 1e-9 * max(np.abs(residual).max(), 1e-300):
        return None
    x = x - x.mean()
    rows = np.column_stack([np.ones_like(x), residual, x * x, x * residual])
    total = dyadic.region_sums(rows, grouped.first, grouped.second, grouped.n)
    tested = []
    for of, size, sums in (("height", total[:, 0], total[:, 1]), ("slope", total[:, 2], total[:, 3])):
        effects = sums[size > 0] / size[size > 0]
        if len(effects) >= FEWEST_FOR_SKEW and np.ptp(effects) > 1e-9 * np.abs(effects).max():
            tested.append(Skew(of, float(stats.skew(effects)), float(stats.skewtest(effects).pvalue)))
    return min(tested, key=lambda skew: skew.p, default=None)
