"""
Several covariates at once: MRQAP by double semi-partialling (Dekker, Krackhardt & Snijders 2007).

For each covariate: what the others do not explain of it is relabelled, the outcome is regressed on that and on the
others, and the t statistic is compared with its value without relabelling. Permuting the covariate itself would
break its link with the other covariates as well, and the outcome's with them, and so test the wrong hypothesis.
"""

from __future__ import annotations

import numpy as np

from ...errors import ParameterError
from .qap import Cells, relabelled


def t_statistics(
    y: np.ndarray, covariate: np.ndarray, others: list[np.ndarray], cells: Cells, orders: np.ndarray
) -> tuple[float, np.ndarray]:
    """
    The t statistic of a covariate beside the others, and under each relabelling of what they leave of it.

    Parameters
    ----------
    y, covariate : array (regions, regions)
        NaN where unknown. The regression takes the cells in which all are known. What is left of the
        covariate is computed for every cell in which it and the others are known, also where y is not, so
        that a covariate known for all pairs of regions gives each relabelling the same cells.
    others : list of array (regions, regions)
        Without the constant, which is always among them.

    Returns
    -------
    float, array (relabellings,)
    """
    stack = np.stack([np.ones_like(y), *others])
    known = np.isfinite(y[cells]) & np.isfinite(covariate[cells]) & np.isfinite(stack[:, *cells]).all(axis=0)
    cells = cells[0][known], cells[1][known]
    beside, value = stack[:, *cells].T, y[cells]
    n, k = len(value), beside.shape[1] + 1
    if n <= k:
        raise ParameterError(f"{k} coefficients need more pairs; there are {n}")
    weights, _, rank, _ = np.linalg.lstsq(beside, covariate[cells], rcond=None)
    rest = covariate - np.tensordot(weights, stack, axes=1)
    left = rest[cells]
    if rank < k - 1 or left @ left <= 1e-18 * max(covariate[cells] @ covariate[cells], 1e-300):
        raise ParameterError("the covariates depend on each other over these pairs")
    basis = np.linalg.qr(beside)[0]
    rest = np.where(np.eye(len(rest), dtype=bool), np.nan, rest)
    whole = bool(np.isfinite(rest[~np.eye(len(rest), dtype=bool)]).all())
    observed = _complete(left[:, None], value, basis)[0]
    found = np.empty(len(orders))
    for rows, drawn in relabelled(rest, cells, orders):
        found[rows] = _complete(drawn, value, basis) if whole else _incomplete(drawn.T, value, beside)
    return float(observed), found


def _complete(drawn: np.ndarray, value: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """t of each column of `drawn` beside `basis` (orthonormal), by Frisch & Waugh."""
    remaining = value - basis @ (basis.T @ value)
    projected = basis.T @ drawn
    size = np.einsum("cb,cb->b", drawn, drawn)
    free = size - np.einsum("kb,kb->b", projected, projected)
    free = np.where(free > 1e-12 * size, free, np.nan)
    return _t(remaining @ drawn, free, remaining @ remaining, len(value) - basis.shape[1] - 1)


def _incomplete(drawn: np.ndarray, value: np.ndarray, beside: np.ndarray) -> np.ndarray:
    """The same for each row, where each lacks other cells; NaN where too little is left."""
    known = np.isfinite(drawn)
    mask, drawn = known.astype(float), np.where(known, drawn, 0.0)
    n, k = mask.sum(axis=1), beside.shape[1]
    products = (beside[:, :, None] * beside[:, None, :]).reshape(len(beside), -1)
    gram = (mask @ products).reshape(-1, k, k)
    inverse = np.linalg.pinv(gram, hermitian=True)
    with_y, with_drawn = mask @ (beside * value[:, None]), drawn @ beside
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
