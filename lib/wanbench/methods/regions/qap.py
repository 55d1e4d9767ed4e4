"""
Permuting regions: the p-value of an association between two matrices over pairs (Mantel 1967; Krackhardt 1988).

Under the null hypothesis the regions are exchangeable: relabelling the regions of one matrix keeps everything that
pairs share through their regions, and breaks only the link to the other matrix. Permuting pairs instead would treat
them as independent.

Matrices are (regions, regions) arrays, NaN where unknown; `cells` are the pairs in use, as two arrays of indices.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import stats

from wanbench.checks import check_number
from wanbench.methods.result import exact_binomial

CHUNK_CELLS = 100_000
"""Relabelled cells held at a time: 800 kB, which a processor's cache holds."""
TIE = 1e-12
"""Statistics closer than this are the same number, summed in another order."""

Cells = tuple[np.ndarray, np.ndarray]


def relabellings(n_regions: int, permutations: int, seed: int) -> np.ndarray:
    """Random orders of the regions: (permutations, regions)."""
    check_number("permutations", permutations, 1, whole=True)
    check_number("seed", seed, 0, whole=True)
    rng = np.random.default_rng(seed)
    return rng.permuted(np.tile(np.arange(n_regions), (permutations, 1)), axis=1)


def relabelled(matrix: np.ndarray, cells: Cells, orders: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """
    The cells of a matrix under each relabelling, in chunks of relabellings: (slice, (cells, relabellings)).

    Region i becomes region orders[k, i], so the cell (i, j) takes the value of (orders[k, i], orders[k, j]).
    """
    flat, n_regions = np.ascontiguousarray(matrix, dtype=float).ravel(), len(matrix)
    step = max(1, CHUNK_CELLS // max(len(cells[0]), 1))
    for start in range(0, len(orders), step):
        part = np.ascontiguousarray(orders[start : start + step].T)
        index = (part * n_regions).take(cells[0], axis=0)
        index += part.take(cells[1], axis=0)
        # Every index is in range; "clip" skips numpy's buffered check.
        yield slice(start, start + part.shape[1]), flat.take(index, mode="clip")


def correlations(x: np.ndarray, y: np.ndarray, cells: Cells, orders, *, ranks: bool = False) -> np.ndarray:
    """
    Pearson's r (with `ranks`, Spearman's rho) of x, relabelled, with y over the cells: one per relabelling.

    A relabelling omits the cells that are unknown in the relabelled x or in y. If x is known for every pair of regions,
    all relabellings use the same cells, those known in y. Spearman's ranks are taken among the cells in use. NaN for
    fewer than 3 cells or constant values.
    """
    known = np.isfinite(y[cells])
    cells = cells[0][known], cells[1][known]
    value = y[cells]
    whole = bool(np.isfinite(x[~np.eye(len(x), dtype=bool)]).all())
    every = whole and _every(x, cells)
    if every and ranks:
        x, value, ranks = _ranked(x, cells), stats.rankdata(value), False
    r = np.empty(len(orders))
    for rows, drawn in relabelled(x, cells, orders):
        if whole and not ranks:
            r[rows] = _pearson_complete(drawn, value, every)
        else:
            r[rows] = _pearson_incomplete(np.ascontiguousarray(drawn.T), value, ranks)
    return r


def _every(x: np.ndarray, cells: Cells) -> bool:
    """Whether the cells are all ordered pairs of regions, or all unordered ones of a symmetric matrix."""
    n, (first, second) = len(x), cells
    if len(first) == n * (n - 1):
        return len(np.unique(first * n + second)) == len(first)
    once = np.unique(np.minimum(first, second) * n + np.maximum(first, second))
    return len(first) == len(once) == n * (n - 1) // 2 and np.array_equal(x, x.T, equal_nan=True)


def _ranked(x: np.ndarray, cells: Cells) -> np.ndarray:
    """Ranks of x among its cells (regions, regions); symmetric if there is one cell per pair of regions."""
    out = np.full_like(x, np.nan)
    out[cells] = stats.rankdata(x[cells])
    if len(cells[0]) < len(x) * (len(x) - 1):
        out[cells[::-1]] = out[cells]
    return out


def _pearson_complete(drawn: np.ndarray, value: np.ndarray, every: bool) -> np.ndarray:
    """r of each column. If the cells are `every` pair of regions, all columns hold the same values in another order."""
    centred, n = value - value.mean(), len(value)
    middle = drawn[:, 0].mean()
    shifted = drawn[:, :1] - middle if every else drawn - middle
    spread = np.einsum("cb,cb->b", shifted, shifted) - shifted.sum(axis=0) ** 2 / n
    with np.errstate(divide="ignore", invalid="ignore"):
        return centred @ drawn / np.sqrt(spread * (centred @ centred))


def _pearson_incomplete(drawn: np.ndarray, value: np.ndarray, ranks: bool) -> np.ndarray:
    known = np.isfinite(drawn)
    n = known.sum(axis=1, keepdims=True)
    other = np.broadcast_to(value, drawn.shape)
    if ranks:
        drawn = stats.rankdata(np.where(known, drawn, np.inf), axis=1)
        if known.all():
            other = np.broadcast_to(stats.rankdata(value), drawn.shape)
        else:
            other = stats.rankdata(np.where(known, other, np.inf), axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        a, b = (np.where(known, part, 0.0) for part in (drawn, other))
        a, b = (np.where(known, part - part.sum(axis=1, keepdims=True) / n, 0.0) for part in (a, b))
        r = np.einsum("bc,bc->b", a, b) / np.sqrt(np.einsum("bc,bc->b", a, a) * np.einsum("bc,bc->b", b, b))
    return np.where(n[:, 0] >= 3, r, np.nan)


def as_extreme(drawn: np.ndarray, observed: float, alternative: str = "two-sided") -> int:
    """Number of drawn statistics at least as extreme as the observed one; NaN counts, which errs towards a large p."""
    if alternative == "two-sided":
        drawn, observed = np.abs(drawn), abs(observed)
    elif alternative == "less":
        drawn, observed = -drawn, -observed
    return int((~(drawn < observed - TIE * max(1.0, abs(observed)))).sum())


def p_value(extreme: int, permutations: int, level: float = 0.95) -> tuple[float, float, float]:
    """
    The permutation p-value (k + 1) / (B + 1), and the Monte Carlo interval of the p-value over all relabellings
    (Clopper & Pearson 1934).

    >>> [round(number, 5) for number in p_value(0, 9999)]
    [0.0001, 0.0, 0.00037]
    """
    return (extreme + 1) / (permutations + 1), *exact_binomial(extreme, permutations, level)
