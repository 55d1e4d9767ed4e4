"""
Heteroscedasticity-robust variances of least squares, with the degrees of freedom of each interval.

The variance is HC2 (MacKinnon & White 1985). It is unbiased under equal variances, and always in a balanced two-level
design. If one combination of levels scatters far more than the others, its few residuals dominate the variance. So the
degrees of freedom are Satterthwaite's (1946), with variances estimated from the residuals (Lipsitz, Ibrahim & Parzen
1999). Equal variances (Bell & McCaffrey 2002) would give the residuals' degrees of freedom in a balanced design of two
levels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

NAME = (
    "heteroscedasticity-consistent variance HC2 (MacKinnon & White 1985), t with Satterthwaite's degrees of freedom "
    "(Lipsitz, Ibrahim & Parzen 1999)"
)
ALONE = 1e-9
"""A run whose leverage is this close to 1 determines its own fit: its residual is always 0."""


@dataclass(frozen=True)
class RobustVariance:
    """
    The variance of least squares on `design` (runs, coefficients), given each run's variance.

    `run_variances` (runs,) are squared residuals over 1 - leverage, averaged over the runs of a combination.
    """

    design: np.ndarray
    inverse: np.ndarray
    leverage: np.ndarray
    run_variances: np.ndarray
    max_freedom: int

    @property
    def cover(self) -> np.ndarray:
        """Covariance of the coefficients."""
        weighted = self.design @ self.inverse
        return weighted.T @ (self.run_variances[:, None] * weighted)

    def freedom(self, combination: np.ndarray) -> float:
        """
        Degrees of freedom of the variance of a linear combination of coefficients, from 1 to the residuals' own.

        The estimated variance is a quadratic form e'Ke of the errors, with mean sum(s_i K_ii) and variance
        2 sum(s_i s_j K_ij²); the degrees of freedom are twice the mean squared over the variance.
        """
        weight = self.design @ self.inverse @ combination
        residual_maker = np.eye(len(self.design)) - self.design @ self.inverse @ self.design.T
        form = (residual_maker * (weight**2 / np.maximum(1 - self.leverage, ALONE))) @ residual_maker
        mean = self.run_variances @ np.diag(form)
        spread = self.run_variances @ form**2 @ self.run_variances
        return float(np.clip(mean**2 / spread, 1.0, self.max_freedom)) if spread > 0 else 1.0


def robust_variance(design: np.ndarray, residual: np.ndarray, combination) -> RobustVariance:
    """
    The robust variance of a fit.

    Parameters
    ----------
    design : array (runs, coefficients)
        The design, of full rank.
    residual : array (runs,)
    combination : sequence (runs,)
        The combination of levels of each run. Runs of the same combination share a variance.

    Examples
    --------
    Two groups give Welch's interval: here variances of 1 and 4 of means of 3 and 2 runs.

    >>> group = np.array([0, 0, 0, 1, 1])
    >>> design = np.column_stack([group == 0, group == 1]).astype(float)
    >>> robust = robust_variance(design, np.array([-1.0, 0.0, 1.0, -2**0.5, 2**0.5]), group)
    >>> round(float(robust.cover[1, 1]), 9), round(robust.freedom(np.array([-1.0, 1.0])), 3)
    (2.0, 1.342)
    """
    inverse = np.linalg.inv(design.T @ design)
    leverage = np.einsum("ij,jk,ik->i", design, inverse, design)
    freedom = len(design) - design.shape[1]
    single = np.where(
        leverage < 1 - ALONE, residual**2 / np.maximum(1 - leverage, ALONE), residual @ residual / freedom
    )
    _, at = np.unique(np.asarray(combination), return_inverse=True)
    shared = (np.bincount(at, single) / np.bincount(at))[at]
    return RobustVariance(design, inverse, leverage, shared, freedom)
