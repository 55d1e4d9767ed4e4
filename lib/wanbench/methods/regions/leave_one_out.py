"""
Least squares without each region in turn, and the variance of the coefficients from that.

The jackknife over regions (Quenouille 1956; for clusters the CV3 of MacKinnon, Nielsen & Webb 2023) is never negative
and needs no model. But as each pair belongs to two regions, it is too large, by a factor that depends on the share of
the scatter that belongs to single pairs; and with few regions it varies more than their number suggests. A working
model corrects both, as Bell & McCaffrey (2002) do for clusters and Imbens & Kolesár (2016) with estimated components:
the expectation of the jackknife under the model scales it, its variance gives the degrees of freedom. A wrong working
model affects only the scale and the degrees of freedom.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wanbench.methods.result import t_quantile

from . import dyadic
from .variance_components import Components, Sums

FEWEST_DEGREES = 1.5
"""Lower bound of the degrees of freedom: the t quantile grows beyond use below it."""
SINGULAR = 1e-9
"""Eigenvalues below this share of the largest are zero up to rounding."""
LOST = 1e-6
"""Entries of a projection above this are more than rounding."""


@dataclass(frozen=True)
class LeaveOut:
    """
    Least-squares coefficients (k,), those without each region (regions, k), and their covariance under the working
    model: of the former (k, k), and of the latter about their mean (regions, k, regions, k). `lost` (regions, k, k)
    projects onto the combinations that the pairs without a region leave undetermined.
    """

    coefficients: np.ndarray
    without_region: np.ndarray
    model: np.ndarray
    model_without: np.ndarray
    lost: np.ndarray

    def determined(self, combination) -> np.ndarray:
        """Whether combinations (..., k) are determined without any one region."""
        moved = np.einsum("gab,...b->...ga", self.lost, np.asarray(combination, dtype=float))
        return np.abs(moved).max(axis=(-2, -1)) < LOST

    def _expected(self, combination) -> np.ndarray:
        """Covariance (..., regions, regions) of a combination without each region, under the working model."""
        combination = np.asarray(combination, dtype=float)
        return np.einsum("...a,gahb,...b->...gh", combination, self.model_without, combination)

    def scale(self, combination) -> np.ndarray:
        """Correction factor of the jackknife variance: true over expected variance under the working model."""
        combination, n = np.asarray(combination, dtype=float), len(self.without_region)
        model = np.einsum("...a,ab,...b->...", combination, self.model, combination)
        with np.errstate(divide="ignore", invalid="ignore"):
            return model / ((n - 1) / n * np.einsum("...gg->...", self._expected(combination)))

    def spread(self, combination) -> tuple[np.ndarray, np.ndarray]:
        """
        Variance and degrees of freedom of combinations (..., k) of the coefficients; a variance is NaN if the
        combination is undetermined without some region.
        """
        expected = self._expected(combination)
        with np.errstate(divide="ignore", invalid="ignore"):
            freedom = np.einsum("...gg->...", expected) ** 2 / (expected**2).sum(axis=(-2, -1))
        moved = self.without_region @ np.asarray(combination, dtype=float).T
        variance = self.scale(combination) * dyadic.jackknife(moved)
        return np.where(self.determined(combination), variance, np.nan), np.maximum(freedom, FEWEST_DEGREES)

    def half(self, combination, level: float) -> np.ndarray:
        """Half the width of the interval of combinations (..., k)."""
        variance, freedom = self.spread(combination)
        with np.errstate(invalid="ignore"):
            return t_quantile(level, freedom) * np.sqrt(variance)


def leave_out(sums: Sums, components: Components) -> LeaveOut:
    """Leave every region out; undetermined coefficients are those of the smallest norm."""
    G, k = sums.n_regions, sums.k
    inverse = np.linalg.inv(sums.total_outer)
    largest = np.abs(sums.total_outer).max()
    left, lost = pseudo_inverses(sums.total_outer - sums.own_outer, SINGULAR * largest)
    without = np.einsum("gab,gb->ga", left, sums.total_cross - sums.own_cross)
    # Sums of x x' over the pairs with neither region g nor h, and over the pairs of h without g: the coefficients
    # without g and without h share the errors of the former and the effects of other regions through the latter.
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


def pseudo_inverses(matrices: np.ndarray, zero) -> tuple[np.ndarray, np.ndarray]:
    """
    Pseudo-inverses of symmetric matrices (cases, k, k), and projections onto their null spaces; eigenvalues up to
    `zero` count as zero.
    """
    size, axes = np.linalg.eigh(matrices)
    used = size > zero
    inverse = np.where(used, 1 / np.where(used, size, 1.0), 0.0)
    return (
        np.einsum("gij,gj,gkj->gik", axes, inverse, axes),
        np.einsum("gij,gj,gkj->gik", axes, (~used).astype(float), axes),
    )
