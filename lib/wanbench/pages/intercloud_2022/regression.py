"""Fit multiple regressions over pairs; variances allow for pairs that share a region (module `jackknife`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan

import numpy as np

from wanbench.errors import ParameterError
from wanbench.methods.regions import dyadic
from wanbench.methods.regions.jackknife import LOST, SINGULAR, LeaveOut, Sums, leave_out, pseudo_inverses, reml
from wanbench.methods.regions.line import DYADIC, SCALED, Part
from wanbench.methods.regions.pairs import FEWEST_FOR_INTERVAL
from wanbench.methods.regions.places import Units
from wanbench.methods.result import LEVEL, PAIRS_INDEPENDENT, Interval, t_quantile


@dataclass(frozen=True)
class Coefficients:
    """
    The coefficients of a linear regression, and their values without each unit (a region or place) and without each
    pair of units.

    values: The coefficients (coefficients,).
    without_region, without_pair: Coefficients without each unit (units, coefficients) and without each unordered pair
        (pairs, coefficients).
    lost_region, lost_pair: For each unit or pair, the projection onto the combinations of coefficients that cannot be
        determined without it.
    covariance: The covariance of the coefficients if pairs were independent.
    n_pairs, n_regions: Numbers of pairs and of units.
    left: Variances from the jackknife over units, for the coefficients of the transformed columns (see `_turned`).
    turned: Matrix (coefficients, coefficients) that converts weights of the coefficients to weights of the transformed
        ones.
    """

    values: np.ndarray
    without_region: np.ndarray
    without_pair: np.ndarray
    lost_region: np.ndarray
    lost_pair: np.ndarray
    covariance: np.ndarray
    n_pairs: int
    n_regions: int
    left: LeaveOut
    turned: np.ndarray

    def combination(self, weights: np.typing.ArrayLike, level: float = LEVEL, freedom: int | None = None) -> Part:
        """
        Compute a weighted sum of the coefficients, with two intervals: by the jackknife over units (regions or places),
        and the naive one, which treats pairs as independent.

        The first is NaN with fewer than 5 units, or if the sum is undetermined without some unit.

        freedom: Degrees of freedom of the t quantile; for ordered pairs only. As a region may have different effects as
            sender and as receiver, the variance is then the jackknife over units minus the jackknife over pairs.
        """
        weights = np.asarray(weights, dtype=float)
        value = float(weights @ self.values)
        naive = float(np.sqrt(weights @ self.covariance @ weights)) * _t(level, self.n_pairs - len(weights))
        half = nan
        if self.n_regions >= FEWEST_FOR_INTERVAL:
            half = float(self.left.half(weights @ self.turned, level))
            if freedom is not None:
                half = self._less_pairs(weights) * _t(level, freedom)
        ends = Interval(SCALED if freedom is None else DYADIC, value - half, value + half)
        return Part(value, ends, Interval(PAIRS_INDEPENDENT, value - naive, value + naive))

    def _less_pairs(self, weights: np.ndarray) -> float:
        by_region, by_pair = (
            np.where(np.abs(lost @ weights).max(axis=1) > LOST, nan, left @ weights)
            for lost, left in ((self.lost_region, self.without_region), (self.lost_pair, self.without_pair))
        )
        return float(np.sqrt(dyadic.variance(by_region, by_pair)))


def least_squares(
    design: np.ndarray, y: np.ndarray, grouped: Units, both: np.ndarray, shifted: Sequence[int | np.ndarray] = ()
) -> Coefficients:
    """
    Fit ordinary least squares to all rows, and again without each unit and without each unordered pair.

    design: Array (rows, coefficients).
    grouped: The units of each row.
    both: The number of each row's unordered pair; both directions of a pair are left out together.
    shifted: Columns (or weights of sums of columns) whose coefficients have a random effect of each unit, as the
        constant has, in the model that scales the jackknife's variances.

    Raises ParameterError: the columns are linearly dependent, or there are not more unordered pairs than columns.
    """
    n_pairs, n_coefficients = int(np.max(both)) + 1, design.shape[1]
    if n_pairs <= n_coefficients:
        raise ParameterError(f"{n_coefficients} coefficients need more pairs; there are {n_pairs}")
    scale = np.sqrt((design**2).mean(axis=0))
    if not scale.all():
        raise ParameterError("a column of the design is zero for every pair")
    scaled = design / scale
    gram, target = scaled[:, :, None] * scaled[:, None, :], scaled * y[:, None]
    whole = gram.sum(axis=0), target.sum(axis=0)
    values, lost = _solve(*(part[None] for part in whole))
    if lost.any():
        raise ParameterError("the columns of the design are linearly dependent")
    sums = list(zip(whole, (gram, target), strict=True))
    regions = _solve(
        *(total - dyadic.region_sums(rows, grouped.first, grouped.second, grouped.n) for total, rows in sums)
    )
    pairs = _solve(*(total - dyadic.sums(rows, both, n_pairs) for total, rows in sums))
    residual = y - scaled @ values[0]
    sigma2 = residual @ residual / max(len(y) - n_coefficients, 1)
    covariance = sigma2 * np.linalg.inv(whole[0]) / scale / scale[:, None]
    turned = _turned(design, shifted)
    spread = y.std() or 1.0
    sums = Sums.of(design @ turned, (y - y.mean()) / spread, grouped.first, grouped.second, grouped.n)
    left = leave_out(sums, reml(sums, random=1 + len(shifted)))
    back = [part / scale for part in (values[0], regions[0], pairs[0], regions[1], pairs[1])]
    turned = turned * spread
    return Coefficients(back[0], back[1], back[2], back[3], back[4], covariance, n_pairs, grouped.n, left, turned)


def determined(design: np.ndarray, grouped: Units) -> bool:
    """Return whether all coefficients are determined without any one unit; columns must have a mean square of 1."""
    gram = design[:, :, None] * design[:, None, :]
    total = gram.sum(axis=0)
    left = total - dyadic.region_sums(gram, grouped.first, grouped.second, grouped.n)
    size = np.linalg.eigvalsh(np.concatenate([total[None], left]))
    return bool((size[:, 0] > SINGULAR * np.abs(total).max()).all())


def _turned(design: np.ndarray, shifted: Sequence[int | np.ndarray]) -> np.ndarray:
    """
    Return the matrix (coefficients, coefficients) that transforms the columns to others that span the same space.

    The first new column is the constant; the shifted columns follow, standardised; then the others.
    """
    constant = np.linalg.lstsq(design, np.ones(len(design)), rcond=None)[0]
    if not np.allclose(design @ constant, 1.0, atol=1e-6):
        raise ParameterError("the design has no constant among its columns and their sums")
    columns = [constant]
    for k in shifted:
        one = np.eye(design.shape[1])[k] if isinstance(k, int) else np.asarray(k, dtype=float)
        column = design @ one
        columns.append((one - column.mean() * constant) / column.std())
    size = np.sqrt((design**2).mean(axis=0))
    for column in np.eye(design.shape[1]) / size:
        # Scaled by the columns' sizes, all entries are about 1, so rounding cannot be mistaken for a direction.
        candidates = np.column_stack([*columns, column]) * size[:, None]
        if np.linalg.matrix_rank(candidates, tol=1e-6) > len(columns):
            columns.append(column)
    return np.column_stack(columns)


def _solve(gram: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """
    Solve the normal equations of several cases (cases, k, k).

    Returns the solutions of smallest norm (cases, k), and projections (cases, k, k) onto what is undetermined.
    """
    inverse, lost = pseudo_inverses(gram, SINGULAR * np.linalg.eigvalsh(gram)[:, -1:])
    return np.einsum("cij,cj->ci", inverse, target), lost


def _t(level: float, freedom: int) -> float:
    return float(t_quantile(level, max(freedom, 1)))
