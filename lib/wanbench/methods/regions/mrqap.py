"""
Several covariates at once: MRQAP by double semi-partialling (Dekker, Krackhardt & Snijders 2007).

For each covariate, its residuals on the other covariates are relabelled, the outcome is regressed on them and on the
others, and the t statistic is compared with the one of the data. Permuting the covariate itself would also break its
link to the other covariates, and so test the wrong hypothesis.
"""

from __future__ import annotations

import numpy as np

from wanbench.errors import ParameterError

from .qap import Cells, relabelled


def t_statistics(
    y: np.ndarray, covariate: np.ndarray, others: list[np.ndarray], cells: Cells, orders: np.ndarray
) -> tuple[float, np.ndarray]:
    """
    The t statistic of a covariate given the others, and for each relabelling of its residuals on them.

    Parameters
    ----------
    y, covariate : array (regions, regions)
        NaN where unknown. The regression uses the cells known in all of them. The residuals of the covariate are
        computed for every cell known in it and the others, even without y: then all relabellings of a covariate that is
        known for all pairs of regions use the same cells.
    others : list of array (regions, regions)
        Without the constant, which is always included.

    Returns
    -------
    float, array (relabellings,)
    """
    stack = np.stack([np.ones_like(y), *others])
    known = np.isfinite(y[cells]) & np.isfinite(covariate[cells]) & np.isfinite(stack[:, *cells]).all(axis=0)
    cells = cells[0][known], cells[1][known]
    design, value = stack[:, *cells].T, y[cells]
    n, k = len(value), design.shape[1] + 1
    if n <= k:
        raise ParameterError(f"{k} coefficients need more pairs; there are {n}")
    weights, _, rank, _ = np.linalg.lstsq(design, covariate[cells], rcond=None)
    rest = covariate - np.tensordot(weights, stack, axes=1)
    left = rest[cells]
    if rank < k - 1 or left @ left <= 1e-18 * max(covariate[cells] @ covariate[cells], 1e-300):
        raise ParameterError("the covariates are linearly dependent over these pairs")
    basis = np.linalg.qr(design)[0]
    diagonal = np.eye(len(rest), dtype=bool)
    rest = np.where(diagonal, np.nan, rest)
    whole = bool(np.isfinite(rest[~diagonal]).all())
    observed = _complete(left[:, None], value, basis)[0]
    t = np.empty(len(orders))
    for rows, drawn in relabelled(rest, cells, orders):
        t[rows] = _complete(drawn, value, basis) if whole else _incomplete(drawn.T, value, design)
    return float(observed), t


def _complete(drawn: np.ndarray, value: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """t of each column of `drawn` next to the orthonormal `basis` of the others (Frisch & Waugh 1933)."""
    remaining = value - basis @ (basis.T @ value)
    projected = basis.T @ drawn
    size = np.einsum("cb,cb->b", drawn, drawn)
    free = size - np.einsum("kb,kb->b", projected, projected)
    free = np.where(free > 1e-12 * size, free, np.nan)
    return _t(remaining @ drawn, free, remaining @ remaining, len(value) - basis.shape[1] - 1)


def _incomplete(drawn: np.ndarray, value: np.ndarray, design: np.ndarray) -> np.ndarray:
    """The same for each row of `drawn`, whose unknown cells differ; NaN for too few cells."""
    known = np.isfinite(drawn)
    mask, drawn = known.astype(float), np.where(known, drawn, 0.0)
    n, k = mask.sum(axis=1), design.shape[1]
    products = (design[:, :, None] * design[:, None, :]).reshape(len(design), -1)
    gram = (mask @ products).reshape(-1, k, k)
    inverse = np.linalg.pinv(gram, hermitian=True)
    with_y, with_drawn = mask @ (design * value[:, None]), drawn @ design
    solved = np.einsum("bij,bj->bi", inverse, with_drawn)
    size = np.einsum("bc,bc->b", drawn, drawn)
    free = size - np.einsum("bi,bi->b", solved, with_drawn)
    free = np.where(free > 1e-12 * size, free, np.nan)
    slope = drawn @ value - np.einsum("bi,bi->b", solved, with_y)
    spread = mask @ value**2 - np.einsum("bi,bij,bj->b", with_y, inverse, with_y)
    return np.where(n > k + 1, _t(slope, free, spread, np.maximum(n - k - 1, 1)), np.nan)


def _t(product, free, spread, freedom) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = np.maximum(spread - product**2 / free, 0.0)
        return product / np.sqrt(free * rest / freedom)
