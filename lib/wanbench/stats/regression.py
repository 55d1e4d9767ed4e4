"""Least squares over pairs with several columns, with variances that know the regions."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np
from scipy import stats

from ..errors import ParameterError
from . import dyadic
from .estimate import Interval
from .line import DYADIC, Part
from .sample import FEWEST_FOR_INTERVAL

SINGULAR = 1e-9
NAIVE = "pairs taken as independent"


@dataclass(frozen=True)
class Coefficients:
    """
    Coefficients of a linear model, and what they are without each region and without each unordered pair.

    `values` is (coefficients,); `without_region` (regions, coefficients) and `without_pair` (pairs,
    coefficients) come with `lost_region` and `lost_pair`, projections onto what cannot be told without that
    region or pair. `covariance` takes pairs as independent.
    """

    values: np.ndarray
    without_region: np.ndarray
    without_pair: np.ndarray
    lost_region: np.ndarray
    lost_pair: np.ndarray
    covariance: np.ndarray
    n_pairs: int
    n_regions: int

    def combination(self, weights, level: float, freedom: int | None = None) -> Part:
        """
        A weighted sum of the coefficients with its interval by region and its naive one.

        Parameters
        ----------
        weights : array (coefficients,)
        freedom : int, optional
            Degrees of freedom of the t quantile; default regions - 2.

        The interval is NaN with fewer than 5 regions, or where the sum cannot be told without some region.
        """
        weights = np.asarray(weights, dtype=float)
        value = float(weights @ self.values)
        naive = np.sqrt(weights @ self.covariance @ weights) * _t(level, self.n_pairs - len(weights))
        half = nan
        if self.n_regions >= FEWEST_FOR_INTERVAL:
            by_region, by_pair = (
                np.where(np.abs(lost @ weights).max(axis=1) > 1e-6, nan, left @ weights)
                for lost, left in (
                    (self.lost_region, self.without_region),
                    (self.lost_pair, self.without_pair),
                )
            )
            freedom = max(self.n_regions - 2 if freedom is None else freedom, 1)
            half = float(np.sqrt(dyadic.variance(by_region, by_pair))) * _t(level, freedom)
        ends = Interval(DYADIC, value - half, value + half)
        return Part(value, ends, Interval(NAIVE, value - naive, value + naive))


def least_squares(design, y, first, second, both, n_regions: int) -> Coefficients:
    """
    Ordinary least squares, fitted anew without each region and without each unordered pair.

    Parameters
    ----------
    design : array (rows, coefficients)
    y : array (rows,)
    first, second : array of int (rows,)
        The regions of each row.
    both : array of int (rows,)
        Number of the unordered pair of each row: two directions of one pair leave together.

    Raises
    ------
    ParameterError
        Where the columns depend on each other, or there are no more unordered pairs than columns.
    """
    design, y = np.asarray(design, dtype=float), np.asarray(y, dtype=float)
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
        raise ParameterError("the columns of the design depend on each other")
    left = {}
    for name, groups, n_groups in (
        ("region", (first, second), n_regions),
        ("pair", (both,), n_pairs),
    ):
        parts = []
        for total, rows in zip(whole, (gram, target), strict=True):
            taken = np.zeros((n_groups, *total.shape))
            for group in groups:
                np.add.at(taken, group, rows)
            parts.append(total - taken)
        left[name] = _solve(*parts)
    residual = y - scaled @ values[0]
    sigma2 = residual @ residual / max(len(y) - n_coefficients, 1)
    covariance = sigma2 * np.linalg.inv(whole[0]) / scale / scale[:, None]
    return Coefficients(
        values[0] / scale,
        left["region"][0] / scale,
        left["pair"][0] / scale,
        left["region"][1] / scale,
        left["pair"][1] / scale,
        covariance,
        n_pairs,
        n_regions,
    )


def _solve(gram: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Least-norm solutions (cases, k) and projections (cases, k, k) onto what the rows leave undetermined."""
    size, axes = np.linalg.eigh(gram)
    known = size > SINGULAR * size[:, -1:]
    inverse = np.where(known, 1 / np.where(known, size, 1.0), 0.0)
    solved = np.einsum("cij,cj,ckj,ck->ci", axes, inverse, axes, target, optimize=True)
    lost = np.einsum("cij,cj,ckj->cik", axes, (~known).astype(float), axes, optimize=True)
    return solved, lost


def _t(level: float, freedom: int) -> float:
    return float(stats.t.ppf((1 + level) / 2, max(freedom, 1)))
