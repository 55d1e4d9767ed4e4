"""
The part of the factor space in which halving the delay gains more than doubling the rate, with simultaneous intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import inf, sqrt

import numpy as np
import pandas as pd
from scipy import stats

from wanbench.formatting import quantity

from .terms import UNITS, Factor, coded, slopes, word

DOUBLING = 2.0
GRID_STEPS = 7
"""Steps along delay and along rate: a map of 49 points per panel shows where the verdict changes."""
DRAWS = 10_000
"""Enough to determine the critical value to about 1 %."""
CHUNK = 1_000
"""Draws at a time, to bound memory."""
VERDICTS = ("holds", "fails", "undecided")
METHOD = (
    "the greater of robust and pooled standard errors; "
    f"largest |t| over a grid of the whole space, by {DRAWS:,} draws (Hothorn, Bretz & Westfall 2008), no more than "
    "Scheffé's (1953)"
)


class GainMap:
    """
    The gain at any points, with one simultaneous critical value.

    At each point the larger of two standard errors counts: robust and pooled (`covers`). From few runs, the
    robust one alone is too small somewhere, so the intervals would not be simultaneous; the pooled one alone
    is wrong if scatter varies between runs (simulated: data/validity/trials.csv).
    """

    def __init__(self, factors: Sequence[Factor], terms, delay, rate, params, covers, freedom, level):
        self.factors, self.terms, self.delay, self.rate = list(factors), terms, delay, rate
        self.params, self.covers, self.freedom, self.level = params, covers, freedom, level
        self.critical_value = inf

    def grid(self, runs: pd.DataFrame) -> pd.DataFrame:
        """Log-spaced steps along delay and rate, at each combination of the other factors' levels."""
        axes = {}
        for factor in self.factors:
            values = runs[factor.name]
            if factor.name in (self.delay, self.rate):
                axes[factor.name] = np.geomspace(values.min(), values.max(), GRID_STEPS)
            else:
                axes[factor.name] = factor.levels or np.sort(values.unique())
        return pd.DataFrame(list(product(*axes.values())), columns=list(axes))

    def hold_together_at(self, points: pd.DataFrame) -> None:
        """Set the critical value that makes the intervals at all these points simultaneous."""
        weights = self._weights(points)[2]
        self.critical_value = max(critical(weights, cover, self.freedom, self.level) for cover in self.covers)

    def gains(self, points: pd.DataFrame) -> pd.DataFrame:
        """The points with elasticities, gain, its interval, and the verdict."""
        along_delay, along_rate, weights = self._weights(points)
        value = weights @ self.params
        variance = np.max([np.einsum("ij,jk,ik->i", weights, cover, weights) for cover in self.covers], axis=0)
        half = self.critical_value * np.sqrt(np.maximum(variance, 0.0))
        low, high = value - half, value + half
        return points.reset_index(drop=True).assign(
            elasticity_delay=along_delay @ self.params,
            elasticity_rate=along_rate @ self.params,
            gain=DOUBLING**value,
            low=DOUBLING**low,
            high=DOUBLING**high,
            verdict=np.select([low > 0, high < 0], ["holds", "fails"], "undecided"),
        )

    def _weights(self, points: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The coefficients' weights in both elasticities, and in the log2 gain (minus their sum)."""
        codes = coded(self.factors, points)
        along = [slopes(name, codes, self.terms, len(self.params)) for name in (self.delay, self.rate)]
        return (*along, -along[0] - along[1])


def critical(contrasts: np.ndarray, cover: np.ndarray, freedom: int, level: float) -> float:
    """
    Critical value, in standard errors, for simultaneous two-sided intervals of all contrasts.

    Parameters
    ----------
    contrasts : array (points, coefficients)
    cover : array (coefficients, coefficients)
        The covariance of the coefficients.

    Examples
    --------
    >>> alone = critical(np.eye(1), np.eye(1), 30, 0.95)
    >>> abs(alone - 2.04) < 0.05
    True
    """
    rank = int(np.linalg.matrix_rank(contrasts))
    if freedom < 1 or not rank:
        return inf
    scheffe = sqrt(rank * stats.f.ppf(level, rank, freedom))
    # The t of a contrast is its unit vector in whitened coefficients times a normal vector over a chi. So draw these,
    # and take the largest |t| of each draw. Contrasts of the same direction have the same t and count once.
    values, vectors = np.linalg.eigh(cover)
    roots = contrasts @ (vectors * np.sqrt(np.maximum(values, 0.0)))
    length = np.sqrt((roots**2).sum(axis=1))
    roots = np.unique(np.round(roots[length > 0] / length[length > 0, None], 9), axis=0)
    if not len(roots):
        return scheffe
    rng = np.random.default_rng(0)  # the same fit gives the same value
    largest = [
        np.abs(rng.normal(size=(CHUNK, roots.shape[1])) @ roots.T).max(axis=1)
        / np.sqrt(rng.chisquare(freedom, CHUNK) / freedom)
        for _ in range(DRAWS // CHUNK)
    ]
    return min(scheffe, float(np.quantile(np.concatenate(largest), level)))


def verdict_shares(grid: pd.DataFrame, by: Sequence[str], delay: str, rate: str) -> pd.DataFrame:
    """
    Per combination of the factors in `by`: the share of the grid with each verdict, the smallest and the largest gain,
    and `fails_where`, the span of delay and rate within which the thesis fails.
    """
    rows = []
    for key, part in grid.groupby(list(by)) if by else [((), grid)]:
        failing = part[part.verdict == "fails"]
        rows.append(
            dict(zip(by, key, strict=True))
            | {name: float((part.verdict == name).mean()) for name in VERDICTS}
            | {"smallest_gain": part.gain.min(), "largest_gain": part.gain.max()}
            | {"fails_where": ", ".join(_span(failing[name]) for name in (delay, rate) if len(failing))}
        )
    return pd.DataFrame(rows)


def _span(values: pd.Series) -> str:
    low, high = (quantity(end, UNITS.get(values.name, "")) for end in (values.min(), values.max()))
    return f"{word(values.name)} {low}" if low == high else f"{word(values.name)} {low} to {high}"
