"""
Least squares without each region in turn, and from that the variance of its coefficients.

The jackknife over regions (Quenouille 1956; for clusters the CV3 of MacKinnon, Nielsen & Webb 2023) is never
negative and needs no model, but with pairs that belong to two regions it is too large by a factor that depends on
how much of the scatter is a pair's own, and with few regions its own scatter matters more than the number of
regions says. Both are worked out under a working model, as Bell & McCaffrey (2002) do for clusters and Imbens &
Kolesár (2016) with estimated components: its expectation scales the jackknife, its variance gives the degrees of
freedom. A wrong working model leaves the jackknife in place and only the scale and the degrees of freedom are off.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from .variance_components import Components, Sums

FEWEST_DEGREES = 1.5
SINGULAR, LOST = 1e-9, 1e-6


@dataclass(frozen=True)
class LeaveOut:
    """
    Coefficients of least squares (k,), those without each region (regions, k), and what the working model says:
    the covariance of the former, and of the latter about their mean (regions, k, regions, k). `lost` (regions, k, k)
    projects onto what cannot be told without a region.
    """

    coefficients: np.ndarray
    without_region: np.ndarray
    model: np.ndarray
    model_without: np.ndarray
    lost: np.ndarray

    def told(self, combination) -> np.ndarray:
        """Whether combinations (..., k) can be told without any one region."""
        moved = np.einsum("gab,...b->...ga", self.lost, np.asarray(combination, dtype=float))
        return np.abs(moved).max(axis=(-2, -1)) < LOST

    def jackknife(self, combination) -> np.ndarray:
        """Jackknife variance over regions of combinations (..., k) of the coefficients."""
        n = len(self.without_region)
        apart = self.without_region - self.without_region.mean(axis=0)
        return (n - 1) / n * ((np.asarray(combination, dtype=float) @ apart.T) ** 2).sum(axis=-1)

    def _expected(self, combination) -> np.ndarray:
        """Covariance (..., regions, regions) of a combination without each region, under the working model."""
        combination = np.asarray(combination, dtype=float)
        return np.einsum("...a,gahb,...b->...gh", combination, self.model_without, combination)

    def scale(self, combination) -> np.ndarray:
        """What the jackknife variance is multiplied by: variance over expected jackknife, by the working model."""
        combination, n = np.asarray(combination, dtype=float), len(self.without_region)
        model = np.einsum("...a,ab,...b->...", combination, self.model, combination)
        with np.errstate(divide="ignore", invalid="ignore"):
            return model / ((n - 1) / n * np.einsum("...gg->...", self._expected(combination)))

    def spread(self, combination) -> tuple[np.ndarray, np.ndarray]:
        """
        Variance and degrees of freedom of combinations (..., k) of the coefficients; NaN where they cannot be told
        without some region.
        """
        expected = self._expected(combination)
        with np.errstate(divide="ignore", invalid="ignore"):
            freedom = np.einsum("...gg->...", expected) ** 2 / (expected**2).sum(axis=(-2, -1))
        variance = self.scale(combination) * self.jackknife(combination)
        return np.where(self.told(combination), variance, np.nan), np.maximum(freedom, FEWEST_DEGREES)

    def half(self, combination, level: float) -> np.ndarray:
        """Half the width of the interval of combinations (..., k)."""
        variance, freedom = self.spread(combination)
        with np.errstate(invalid="ignore"):
            return stats.t.ppf((1 + level) / 2, freedom) * np.sqrt(variance)


def leave_out(sums: Sums, components: Components) -> LeaveOut:
    """Leave every region out; where too little is left to determine coefficients, they are those of least norm."""
    G, k = sums.n_regions, sums.k
    inverse = np.linalg.inv(sums.total_outer)
    left, lost = _inverses(sums.total_outer - sums.own_outer, sums.total_outer)
    without = np.einsum("gab,gb->ga", left, sums.total_cross - sums.own_cross)
    # x x' over the pairs that have neither g nor h, and over those of h that do not have g
    neither = sums.total_outer - sums.own_outer[:, None] - sums.own_outer[None, :] + sums.outer
    own = np.arange(G)
    neither[own, own] = sums.total_outer - sums.own_outer
    others = sums.outer_of_region[None, :] - sums.outer
    others[own, own] = 0.0
    reach = np.einsum("gab,ghbc->gahc", left, others)
    middle = np.einsum("gahb,bc->gahc", reach, components.region).reshape(G * k, G * k)
    omega = (middle @ reach.reshape(G * k, G * k).T).reshape(G, k, G, k)
    omega = omega + components.pair * np.einsum("gab,ghbc,hcd->gahd", left, neither, left)
    omega = omega - omega.mean(axis=0, keepdims=True)
    omega = omega - omega.mean(axis=2, keepdims=True)
    through = np.einsum("ab,gbc->gac", inverse, sums.outer_of_region)
    model = components.pair * inverse + np.einsum("gab,bc,gdc->ad", through, components.region, through)
    return LeaveOut(inverse @ sums.total_cross, without, model, omega, lost)


def _inverses(matrices: np.ndarray, whole: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pseudo-inverse of each part (parts, k, k) of a whole (k, k), and the projection onto what it leaves open."""
    size, axes = np.linalg.eigh(matrices)
    known = size > SINGULAR * np.abs(whole).max()
    inverse = np.where(known, 1 / np.where(known, size, 1.0), 0.0)
    return (
        np.einsum("gij,gj,gkj->gik", axes, inverse, axes),
        np.einsum("gij,gj,gkj->gik", axes, (~known).astype(float), axes),
    )
