"""Map where in the factor space halving the delay gains more than doubling the rate, with simultaneous intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import inf

import numpy as np
import pandas as pd

from wanbench.methods.factorial.inference import DRAWS, critical
from wanbench.methods.factorial.terms import Factor, coded, slopes
from wanbench.methods.result import LEVEL

DOUBLING = 2.0
GRID_STEPS = 7  # Grid points along delay and along rate: 49 per panel
VERDICTS = ("holds", "fails", "undecided")
METHOD = (
    "simultaneous intervals from the larger of robust and pooled standard errors; critical value: the largest |t| over "
    f"a grid of the whole space in {DRAWS:,} draws (Hothorn, Bretz & Westfall 2008), at most Scheffé's (1953)"
)


@dataclass
class GainMap:
    """
    The gain from halving the delay over the gain from doubling the rate, at any points of the factor space.

    Each point uses the larger of two standard errors, robust and pooled (`covariances`). With few runs the robust error
    alone is too small at some point, so the intervals would not hold simultaneously; the pooled error alone is wrong if
    scatter varies between runs (simulated: data/validity/trials.csv).
    """

    factors: Sequence[Factor]
    terms: Sequence[tuple[str, ...]]
    delay: str
    rate: str
    params: np.ndarray
    covariances: tuple[np.ndarray, ...]
    freedom: int
    critical_value: float = inf

    def grid(self, runs: pd.DataFrame) -> pd.DataFrame:
        """Return log-spaced points over delay and rate, for each combination of levels of the other factors."""
        axes = {}
        for factor in self.factors:
            values = runs[factor.name]
            if factor.name in (self.delay, self.rate):
                axes[factor.name] = np.geomspace(values.min(), values.max(), GRID_STEPS)
            else:
                axes[factor.name] = factor.levels or np.sort(values.unique())
        return pd.DataFrame(list(product(*axes.values())), columns=list(axes))

    def make_simultaneous(self, points: pd.DataFrame) -> None:
        """Make the intervals at all `points` hold simultaneously, by setting their critical value."""
        weights = self._weights(points)
        self.critical_value = max(critical(weights, covariance, self.freedom, LEVEL) for covariance in self.covariances)

    def gains(self, points: pd.DataFrame) -> pd.DataFrame:
        """Return `points` with the gain, its interval, and the verdict."""
        weights = self._weights(points)
        value = weights @ self.params
        variance = np.max(
            [np.einsum("ij,jk,ik->i", weights, covariance, weights) for covariance in self.covariances], axis=0
        )
        half = self.critical_value * np.sqrt(np.maximum(variance, 0.0))
        low, high = value - half, value + half
        gains = {"gain": DOUBLING**value, "low": DOUBLING**low, "high": DOUBLING**high}
        verdict = np.select([low > 0, high < 0], ["holds", "fails"], "undecided")
        return points.reset_index(drop=True).assign(**gains, verdict=verdict)

    def _weights(self, points: pd.DataFrame) -> np.ndarray:
        """Return, per point, the weights with which coefficients sum to log2 of the gain."""
        codes = coded(self.factors, points)
        delay, rate = (slopes(name, codes, self.terms, len(self.params)) for name in (self.delay, self.rate))
        return -delay - rate
