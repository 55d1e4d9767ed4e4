"""Robust variances of least squares, tests of lack of fit, and critical values of simultaneous intervals."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan, sqrt

import numpy as np
from scipy import stats

DRAWS = 10_000  # Enough to determine the critical value to about 1 %.
CHUNK = 1_000  # Draws at a time, to limit memory.
NAME = (
    "heteroscedasticity-consistent variance HC2 (MacKinnon & White 1985), t with Satterthwaite's degrees of freedom "
    "(Lipsitz, Ibrahim & Parzen 1999)"
)
ALONE = 1e-9  # A run whose leverage is this close to 1 determines its own fitted value: its residual is always 0.


@dataclass(frozen=True)
class RobustVariance:
    """
    The variance of least-squares coefficients when runs have different variances.

    design: Array (runs, coefficients).
    inverse: The inverse of design.T @ design.
    leverage: The leverage of each run.
    run_variances: The variance of each run: squared residual over 1 - leverage, averaged over the runs of the same
        combination of levels.
    max_freedom: The residuals' degrees of freedom.
    """

    design: np.ndarray
    inverse: np.ndarray
    leverage: np.ndarray
    run_variances: np.ndarray
    max_freedom: int

    @property
    def covariance(self) -> np.ndarray:
        """The covariance of the coefficients."""
        weighted = self.design @ self.inverse
        return weighted.T @ (self.run_variances[:, None] * weighted)

    def freedom(self, combination: np.ndarray) -> float:
        """
        Compute the degrees of freedom of the variance of a linear combination of coefficients, at most `max_freedom`.

        The estimated variance is a quadratic form e'Ke of the errors. If run i has variance s_i, the form has mean m =
        sum(s_i K_ii) and variance v = 2 sum(s_i s_j K_ij²); the degrees of freedom are 2 m² / v.
        """
        weight = self.design @ self.inverse @ combination
        residual_maker = np.eye(len(self.design)) - self.design @ self.inverse @ self.design.T
        form = (residual_maker * (weight**2 / np.maximum(1 - self.leverage, ALONE))) @ residual_maker
        mean = self.run_variances @ np.diag(form)
        spread = self.run_variances @ form**2 @ self.run_variances
        return float(np.clip(mean**2 / spread, 1.0, self.max_freedom)) if spread > 0 else 1.0


def robust_variance(design: np.ndarray, residual: np.ndarray, combination: np.typing.ArrayLike) -> RobustVariance:
    """
    Compute the robust variance of a fit.

    design: Array (runs, coefficients), of full rank.
    residual: Array (runs,).
    combination: A label of each run's combination of levels; runs of the same combination share a variance.

    For two groups, the result gives Welch's interval. In this example, groups of 3 and 2 runs have variances 1 and 4.

    >>> group = np.array([0, 0, 0, 1, 1])
    >>> design = np.column_stack([group == 0, group == 1]).astype(float)
    >>> robust = robust_variance(design, np.array([-1.0, 0.0, 1.0, -2**0.5, 2**0.5]), group)
    >>> round(float(robust.covariance[1, 1]), 9), round(robust.freedom(np.array([-1.0, 1.0])), 3)
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


ROUNDING = 1e-12  # Share of the total sum of squares below which residuals are rounding errors.
REPLICATES, BEND = "replicates", "a bend"


def lack_of_fit(design: np.ndarray, response: np.ndarray, cells: np.ndarray, squares: np.ndarray):
    """
    Test by an F test whether a model fits.

    With replicates, the alternative has a separate mean for each combination of levels. Without replicates, the
    alternative has squares of the factors and of the fitted values (Tukey's degree of freedom for non-additivity,
    1949), which detects only curvature along a factor and joint saturation.

    design: Array (runs, coefficients).
    response: Array (runs,).
    cells: An indicator column per combination of levels, and the columns of the blocks.
    squares: Squared codes of factors with three levels or more.

    Returns: the p-value (NaN if too few runs are left for a test), and the alternative: "replicates" or "a bend".
    """
    basis, left = _residual(design, response)
    freedom = len(response) - basis.shape[1]
    every, pure = _residual(np.column_stack([design, cells]), response)
    if (against := len(response) - every.shape[1]) >= 1:
        return _f_test(float(left @ left), float(pure @ pure), freedom, against, response), REPLICATES
    fitted = response - left
    added = np.column_stack([squares, (fitted - fitted.mean()) ** 2])
    every, pure = _residual(np.column_stack([design, added]), response)
    return _f_test(float(left @ left), float(pure @ pure), freedom, len(response) - every.shape[1], response), BEND


def _residual(columns: np.ndarray, response: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return an orthonormal basis of the columns, and the residual of the response on them."""
    vectors, values, _ = np.linalg.svd(columns / np.linalg.norm(columns, axis=0), full_matrices=False)
    basis = vectors[:, values > 1e-9 * values[0]]
    return basis, response - basis @ (basis.T @ response)


def _f_test(less: float, more: float, freedom: int, against: int, response: np.ndarray) -> float:
    if against < 1 or freedom <= against or more <= ROUNDING * max(float(response @ response), 1e-300):
        return nan
    return float(stats.f.sf((less - more) / (freedom - against) / (more / against), freedom - against, against))


def critical(contrasts: np.ndarray, covariance: np.ndarray, freedom: int, level: float) -> float:
    """
    Compute the critical value, in standard errors, for simultaneous two-sided intervals of all contrasts.

    contrasts: Array (contrasts, coefficients).
    covariance: The covariance of the coefficients.
    freedom: The covariance's degrees of freedom.

    >>> alone = critical(np.eye(1), np.eye(1), 30, 0.95)
    >>> abs(alone - 2.04) < 0.05
    True
    """
    rank = int(np.linalg.matrix_rank(contrasts))
    if freedom < 1 or not rank:
        return inf
    scheffe = sqrt(rank * stats.f.ppf(level, rank, freedom))
    # In whitened coefficients, the t of a contrast is its unit vector times a normal vector over a chi variable: draw
    # these, and take the largest |t| of each draw. Contrasts of the same direction have the same t and count once.
    values, vectors = np.linalg.eigh(covariance)
    roots = contrasts @ (vectors * np.sqrt(np.maximum(values, 0.0)))
    length = np.sqrt((roots**2).sum(axis=1))
    roots = np.unique(np.round(roots[length > 0] / length[length > 0, None], 9), axis=0)
    if not len(roots):
        return scheffe
    rng = np.random.default_rng(0)  # so that the same fit gives the same value
    largest = [
        np.abs(rng.normal(size=(CHUNK, roots.shape[1])) @ roots.T).max(axis=1)
        / np.sqrt(rng.chisquare(freedom, CHUNK) / freedom)
        for _ in range(DRAWS // CHUNK)
    ]
    return min(scheffe, float(np.quantile(np.concatenate(largest), level)))
