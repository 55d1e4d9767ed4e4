"""
Fit values of pairs of regions with a random effect of each region, and repeat the fit without some of the pairs.

The model is y = fixed part + u[first] + u[second] + error, with a random effect u of each region. Effects are shrunk
towards 0 (Henderson 1975). The ratio of error variance to effect variance, which sets the amount, is estimated by
restricted maximum likelihood (Patterson & Thompson 1971). For given weights and ratio the fit is a ridge regression, so
the fits without a pair, a region or two regions are computed exactly, without iteration.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize_scalar

from wanbench.methods.tcp.knee import huber_weights, mad_scale

ROUNDS = 5  # Rounds of reweighting, enough for Huber's weights to settle
LOG_RATIO = (-6.0, 14.0)  # Search range of the log ratio: from almost no shrinkage to no effects of regions
CHUNK_CELLS = 2_000_000  # Floats in memory at a time, 16 MB
IMPOSSIBLE = 1e30  # Replaces an infinite deviance, which the search could not subtract


@dataclass(frozen=True)
class Effects:
    """
    A fit of `y`, one value per pair, with effects of regions.

    coefficients: Those of the fixed part, then one effect per region (0 for a region without pairs).
    design: The design matrix (pairs, coefficients).
    weights: The final Huber weights (pairs,).
    ratio: Variance of the errors over variance of the effects.
    n_fixed: Number of coefficients of the fixed part.
    first, second: Indices of each pair's regions (pairs,).
    """

    coefficients: np.ndarray
    design: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    ratio: float
    n_fixed: int
    first: np.ndarray
    second: np.ndarray

    def _normal(self) -> tuple[np.ndarray, np.ndarray]:
        fixed = self.design[:, : self.n_fixed]
        n_regions = self.design.shape[1] - self.n_fixed
        normal, right = _gram(fixed, self.first, self.second, n_regions, self.weights, self.y)
        _add_ratio(normal, self.n_fixed, self.ratio)
        return normal, right

    def without_pairs(self) -> np.ndarray:
        """Return, for each pair, the coefficients of the fit without this pair: (pairs, coefficients)."""
        inverse = np.linalg.pinv(self._normal()[0], hermitian=True)
        moved = self.design @ inverse
        leverage = self.weights * (moved * self.design).sum(axis=1)
        residual = self.y - self.design @ self.coefficients
        step = self.weights * residual / np.maximum(1 - leverage, 1e-9)
        return self.coefficients - moved * step[:, None]

    def without_regions(self) -> np.ndarray:
        """Return, for each region, the coefficients without its pairs: (regions, coefficients); NaN if undetermined."""
        grams, sums = self._by_region()
        normal, right = self._normal()
        return _solve(normal - grams, right - sums)

    def without_ends(self) -> np.ndarray:
        """Return, for each pair, the coefficients without all pairs of both its regions: (pairs, coefficients)."""
        grams, sums = self._by_region()
        normal, right = self._normal()
        first, second = self.first, self.second
        coefficients = np.empty_like(self.design)
        step = max(1, CHUNK_CELLS // normal.size)
        for start in range(0, len(self.y), step):
            k = slice(start, start + step)
            rows, weight = self.design[k], self.weights[k]
            own = (rows * weight[:, None])[:, :, None] * rows[:, None, :]
            left = normal - grams[first[k]] - grams[second[k]] + own
            # Subtracting both regions removes their common pair twice, so it is added back once.
            own_y = rows * (weight * self.y[k])[:, None]
            coefficients[k] = _solve(left, right - sums[first[k]] - sums[second[k]] + own_y)
        return coefficients

    def _by_region(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the contribution of each region's pairs to the normal equations: matrices, and right-hand sides."""
        n_coefficients = self.design.shape[1]
        grams = np.zeros((n_coefficients - self.n_fixed, n_coefficients, n_coefficients))
        sums = np.zeros((len(grams), n_coefficients))
        for region, members in enumerate(self.design[:, self.n_fixed :].T):
            own = np.flatnonzero(members)
            part = self.design[own]
            weighted = (part * self.weights[own, None]).T
            grams[region], sums[region] = weighted @ part, weighted @ self.y[own]
        return grams, sums


def design_rows(fixed: np.ndarray, first: np.ndarray, second: np.ndarray, n_regions: int) -> np.ndarray:
    """
    Return the design matrix of pairs: the `fixed` columns (pairs, k), then a column per region that is 1 for its pairs.

    first, second: Indices of each pair's regions; -1 for a region that has no effect and so no column.
    """
    design = np.zeros((len(fixed), fixed.shape[1] + n_regions))
    design[:, : fixed.shape[1]] = fixed
    for end in (first, second):
        has_effect = end >= 0
        design[np.flatnonzero(has_effect), fixed.shape[1] + end[has_effect]] += 1.0
    return design


def fit_effects(fixed: np.ndarray, first: np.ndarray, second: np.ndarray, n_regions: int, y: np.ndarray) -> Effects:
    """
    Fit `y` (pairs,) by Huber's loss (constant 1.345, scale 1.4826 MAD of the residuals), with effects of regions.

    fixed: Columns of the fixed part, including a constant (pairs, k).
    first, second: Indices of each pair's regions, from 0 to `n_regions` - 1 (pairs,).
    """
    design, n_fixed = design_rows(fixed, first, second, n_regions), fixed.shape[1]
    weights, coefficients, ratio = np.ones(len(y)), np.empty(0), np.nan
    for round_ in range(ROUNDS):
        normal, right = _gram(fixed, first, second, n_regions, weights, y)
        total = float((weights * y) @ y)
        ratio = _ratio(normal, right, total, n_fixed, len(y))
        _add_ratio(normal, n_fixed, ratio)
        coefficients = np.linalg.lstsq(normal, right, rcond=None)[0]
        residual = y - (design * coefficients).sum(axis=1)
        if round_ < ROUNDS - 1:
            weights = huber_weights(residual, mad_scale(residual))
    return Effects(coefficients, design, y, weights, ratio, n_fixed, first, second)


def _gram(
    fixed: np.ndarray, first: np.ndarray, second: np.ndarray, n_regions: int, weights: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the normal equations without the penalty, from sums per region, as most of the design matrix is 0."""
    k = fixed.shape[1]
    gram, right = np.zeros((k + n_regions,) * 2), np.zeros(k + n_regions)
    weighted = fixed * weights[:, None]
    gram[:k, :k], right[:k] = weighted.T @ fixed, weighted.T @ y
    columns = np.column_stack([weighted, weights, weights * y])
    sums = np.column_stack(
        [sum(np.bincount(end, column, n_regions) for end in (first, second)) for column in columns.T]
    )
    gram[k:, :k], gram[:k, k:] = sums[:, :k], sums[:, :k].T
    np.add.at(gram, (k + first, k + second), weights)
    np.add.at(gram, (k + second, k + first), weights)
    diagonal = np.arange(k, k + n_regions)
    gram[diagonal, diagonal] = sums[:, k]
    right[k:] = sums[:, k + 1]
    return gram, right


def _add_ratio(normal: np.ndarray, n_fixed: int, ratio: float) -> None:
    diagonal = np.arange(n_fixed, len(normal))
    normal[diagonal, diagonal] += ratio


def _ratio(gram: np.ndarray, right: np.ndarray, total: float, n_fixed: int, n_pairs: int) -> float:
    """Estimate the variance of errors over the variance of effects, by restricted maximum likelihood."""
    n_effects, freedom = len(gram) - n_fixed, n_pairs - n_fixed

    def deviance(log_ratio: float) -> float:
        normal = gram.copy()
        _add_ratio(normal, n_fixed, np.exp(log_ratio))
        try:
            factor = cho_factor(normal, lower=True, check_finite=False)
        except LinAlgError:
            return IMPOSSIBLE
        rest = total - right @ cho_solve(factor, right, check_finite=False)
        if rest <= 0:
            return IMPOSSIBLE
        determinant = 2 * np.log(np.diag(factor[0])).sum()
        return freedom * np.log(rest) + determinant - n_effects * log_ratio

    best = minimize_scalar(deviance, bounds=LOG_RATIO, method="bounded", options={"xatol": 0.05})
    return float(np.exp(best.x if best.fun < IMPOSSIBLE else LOG_RATIO[1]))


def _solve(normal: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve many small systems at once; NaN for singular systems."""
    try:
        return np.linalg.solve(normal, right[..., None])[..., 0]
    except np.linalg.LinAlgError:
        if len(normal) == 1:
            return np.full(right.shape, np.nan)
        return np.concatenate([_solve(normal[[k]], right[[k]]) for k in range(len(normal))])
