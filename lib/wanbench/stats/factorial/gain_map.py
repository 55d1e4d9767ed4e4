"""
Where in the space of the factors halving the delay gains more than doubling the rate, with intervals that hold for
all places together.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import inf, sqrt

import numpy as np
import pandas as pd
from scipy import stats

from ...formatting import quantity
from .terms import Factor, coded, slopes

DOUBLING = 2.0
STEPS = 7
DRAWS, CHUNK = 10_000, 1_000
VERDICTS = ("holds", "fails", "undecided")
METHOD = (
    "the greater of robust and pooled standard errors; "
    f"greatest |t| over a grid of the whole space, by {DRAWS:,} draws (Hothorn, Bretz & Westfall 2008), no more than "
    "Scheffé's (1953)"
)


class Places:
    """
    The gain at any places, with one critical value for all of them.

    Its standard errors are the greater of those by `covers`: a robust covariance alone, estimated from few runs, is
    too small somewhere in the space, and the intervals then do not hold together; a pooled one alone is wrong where
    runs do not scatter alike (`make validity` counts, data/validity/trials.csv).
    """

    def __init__(self, factors: Sequence[Factor], terms, delay, rate, params, covers, freedom, level, seed=0):
        self.factors, self.terms, self.delay, self.rate = list(factors), terms, delay, rate
        self.params, self.covers, self.freedom, self.level, self.seed = params, covers, freedom, level, seed
        self.reach = inf

    def grid(self, runs: pd.DataFrame, steps: int = STEPS) -> pd.DataFrame:
        """Steps, equal in logarithms, along delay and rate, at each combination of the other factors' levels."""
        axes = {}
        for factor in self.factors:
            values = runs[factor.name]
            if factor.name in (self.delay, self.rate):
                low, high = values.min() + factor.offset, values.max() + factor.offset
                axes[factor.name] = np.geomspace(low, high, steps) - factor.offset
            else:
                axes[factor.name] = factor.levels or np.sort(values.unique())
        return pd.DataFrame(list(product(*axes.values())), columns=list(axes))

    def settle(self, spots: pd.DataFrame) -> None:
        """Choose the critical value that holds for all these places together."""
        both = self._both(spots)[2]
        self.reach = max(critical(both, cover, self.freedom, self.level, self.seed) for cover in self.covers)

    def gains(self, spots: pd.DataFrame) -> pd.DataFrame:
        """The places with elasticities, gain, its interval, and the verdict."""
        along_delay, along_rate, both = self._both(spots)
        value = both @ self.params
        variance = np.max([np.einsum("ij,jk,ik->i", both, cover, both) for cover in self.covers], axis=0)
        half = self.reach * np.sqrt(np.maximum(variance, 0.0))
        low, high = value - half, value + half
        return spots.reset_index(drop=True).assign(
            elasticity_delay=along_delay @ self.params,
            elasticity_rate=along_rate @ self.params,
            gain=DOUBLING**value,
            low=DOUBLING**low,
            high=DOUBLING**high,
            verdict=np.select([low > 0, high < 0], ["holds", "fails"], "undecided"),
        )

    def _both(self, spots: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        codes = coded(self.factors, spots)
        along = [slopes(name, codes, self.terms, len(self.params)) for name in (self.delay, self.rate)]
        return (*along, -along[0] - along[1])


def critical(contrasts: np.ndarray, cover: np.ndarray, freedom: int, level: float, seed: int = 0) -> float:
    """
    How many standard errors to either side hold for all contrasts together.

    Parameters
    ----------
    contrasts : array (places, coefficients)
    cover : array (coefficients, coefficients)
        Their covariance.

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
    values, vectors = np.linalg.eigh(cover)
    roots = contrasts @ (vectors * np.sqrt(np.maximum(values, 0.0)))
    length = np.sqrt((roots**2).sum(axis=1))
    roots = np.unique(np.round(roots[length > 0] / length[length > 0, None], 9), axis=0)
    if not len(roots):
        return scheffe
    rng = np.random.default_rng(seed)
    greatest = [
        np.abs(rng.normal(size=(CHUNK, roots.shape[1])) @ roots.T).max(axis=1)
        / np.sqrt(rng.chisquare(freedom, CHUNK) / freedom)
        for _ in range(DRAWS // CHUNK)
    ]
    return min(scheffe, float(np.quantile(np.concatenate(greatest), level)))


def regions(
    space: pd.DataFrame, by: Sequence[str], delay: str, rate: str, units: dict[str, str]
) -> pd.DataFrame:
    """
    Per combination of the factors in `by`: the share of the space where the thesis holds, fails, is undecided, the
    least and greatest gain, and `fails_where`, the span of delay and rate within which it fails.
    """
    rows = []
    groups = space.groupby(list(by), sort=True) if by else [((), space)]
    for key, part in groups:
        shares = part.verdict.value_counts(normalize=True)
        failing = part[part.verdict == "fails"]
        row = dict(zip(by, key, strict=True))
        row |= {name: float(shares.get(name, 0.0)) for name in VERDICTS}
        row |= {"least_gain": part.gain.min(), "greatest_gain": part.gain.max()}
        spans = (
            [_span(failing[name], name, units.get(name, "")) for name in (delay, rate)]
            if len(failing)
            else []
        )
        rows.append(row | {"fails_where": ", ".join(spans)})
    return pd.DataFrame(rows)


def _span(values: pd.Series, name: str, unit: str) -> str:
    low, high = (quantity(each, unit) for each in (values.min(), values.max()))
    return f"{name} {low}" if low == high else f"{name} {low} to {high}"
