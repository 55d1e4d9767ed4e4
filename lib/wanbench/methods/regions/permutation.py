"""
Permuting regions: p-values of associations between matrices over pairs.

Under the null hypothesis the regions are exchangeable: relabelling the regions of one matrix keeps everything that
pairs share through their regions, and breaks only the link to the other matrix (Mantel 1967; Krackhardt 1988).
Permuting pairs instead would treat them as independent. With several covariates (MRQAP by double semi-partialling,
Dekker, Krackhardt & Snijders 2007) the residuals of a covariate on the others are relabelled: permuting the covariate
itself would also break its link to the others.

Matrices are (regions, regions) arrays, NaN where unknown; `cells` are the pairs in use, as two arrays of indices.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy import stats

from wanbench.checks import check_columns, check_number
from wanbench.errors import ParameterError
from wanbench.formatting import count
from wanbench.methods.result import exact_binomial
from wanbench.regions import geodesic_km

POSITION = ["name", "latitude_deg", "longitude_deg"]


def square(values, first, second, n_regions: int, *, symmetric: bool) -> np.ndarray:
    """Values at (first, second), and if `symmetric` at (second, first): (regions, regions)."""
    out = np.full((n_regions, n_regions), np.nan)
    out[first, second] = values
    if symmetric:
        out[second, first] = values
    return out


def of_column(pairs: pd.DataFrame, column: str, names: list[str], *, symmetric: bool) -> np.ndarray:
    """
    A matrix of a column of `pairs` over the regions `names`: the median of a pair's rows, of both directions if
    `symmetric`. Rows of other regions are ignored; a pair without a finite value is NaN.
    """
    check_columns("pairs", pairs, [column])
    value = pd.to_numeric(pairs[column], errors="coerce").astype("float64").to_numpy()
    index = pd.Index(names)
    first, second = (index.get_indexer(pairs[end].to_numpy(dtype=object)) for end in ("from_region", "to_region"))
    used = np.isfinite(value) & (first >= 0) & (second >= 0) & (first != second)
    rows = pd.DataFrame({"a": first[used], "b": second[used], "value": value[used]})
    if symmetric:
        rows["a"], rows["b"] = rows[["a", "b"]].min(axis=1), rows[["a", "b"]].max(axis=1)
    medians = rows.groupby(["a", "b"], as_index=False).value.median()
    return square(medians.value, medians.a.to_numpy(), medians.b.to_numpy(), len(names), symmetric=symmetric)


def distances(pairs: pd.DataFrame, names: list[str], regions: pd.DataFrame | None = None) -> np.ndarray:
    """
    Distance in km of every pair of the regions `names`: from any row of `pairs`, with or without the analysed value,
    otherwise along the WGS-84 geodesic between the coordinates in `regions` (columns name, latitude_deg,
    longitude_deg).
    """
    distance_km = of_column(pairs, "distance_km", names, symmetric=True)
    if regions is None:
        return distance_km
    columns = (check_columns("regions", regions, POSITION)[column] for column in POSITION)
    points = {name: (latitude, longitude) for name, latitude, longitude in zip(*columns, strict=True)}
    for i, j in zip(*np.nonzero(np.triu(np.isnan(distance_km), 1)), strict=True):
        ends = [points.get(names[end], (np.nan, np.nan)) for end in (i, j)]
        if np.isfinite(np.array(ends, dtype=float)).all():
            distance_km[i, j] = distance_km[j, i] = geodesic_km(*ends)
    return distance_km


def gaps(n_pairs: int, covariates: list[np.ndarray]) -> tuple[str, ...]:
    """The caution about missing unordered pairs for a permutation p-value; empty if none is missing."""
    n_regions = len(covariates[0])
    possible = n_regions * (n_regions - 1) // 2
    if n_pairs == possible:
        return ()
    off_diagonal = ~np.eye(n_regions, dtype=bool)
    unknown = int((~np.isfinite(np.stack(covariates)).all(axis=0) & off_diagonal).sum()) // 2
    missing = f"{count(possible - n_pairs, 'pair')} of {possible:,} not measured: "
    if not unknown:
        return (missing + f"every relabelling is compared over the {n_pairs:,} measured ones",)
    where = "its distance" if unknown == 1 else "their distances"
    return (
        missing + f"without {where} relabellings are compared over fewer pairs than the data, which makes p "
        "too large rather than too small; give coordinates (regions=)",
    )


PERMUTATIONS = 10_000
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


def as_extreme(drawn: np.ndarray, observed: float) -> int:
    """Count the drawn statistics at least as far from 0 as the observed one; NaN counts, which makes p larger."""
    return int((~(np.abs(drawn) < abs(observed) - TIE * max(1.0, abs(observed)))).sum())


def p_value(extreme: int, permutations: int, level: float = 0.95) -> tuple[float, float, float]:
    """
    The permutation p-value (k + 1) / (B + 1), and the Monte Carlo interval of the p-value over all relabellings
    (Clopper & Pearson 1934).

    >>> [round(number, 5) for number in p_value(0, 9999)]
    [0.0001, 0.0, 0.00037]
    """
    return (extreme + 1) / (permutations + 1), *exact_binomial(extreme, permutations, level)


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
