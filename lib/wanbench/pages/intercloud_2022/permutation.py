"""
P-values of associations between matrices over pairs, by permuting regions (Krackhardt 1988).

Under the null hypothesis the regions are exchangeable: relabelling the regions of one matrix keeps the dependence of
pairs that share a region, and breaks only the association with the other matrix. With several covariates (MRQAP:
Dekker, Krackhardt & Snijders 2007) the residuals of one covariate on the others are relabelled, which keeps its
association with them.

Matrices are arrays (regions, regions), NaN where unknown. `cells` are the pairs in use, as two arrays of indices.
"""

from collections.abc import Iterator
from math import factorial

import numpy as np
import pandas as pd

from wanbench.checks import check_number
from wanbench.errors import ParameterError
from wanbench.formatting import count, number
from wanbench.methods.result import Estimate, exact_binomial
from wanbench.regions import catalogue, distance_km

PERMUTATIONS = 10_000
FEWEST = 4  # 3 regions have 6 orders, so p could not fall below 1/6
NULL = (
    "Under the hypothesis of no association any region could replace any other. The p-value is about the association "
    "in these regions; the interval of the correlation is about other regions"
)
CHUNK_CELLS = 100_000  # Relabelled cells held at a time: 800 kB, which fits a processor's cache
TIE = 1e-12  # A smaller difference between statistics is rounding
Cells = tuple[np.ndarray, np.ndarray]


def square(values, first, second, n_regions: int, *, symmetric: bool) -> np.ndarray:
    """Return a matrix with values at (first, second), and if `symmetric` also at (second, first); NaN elsewhere."""
    out = np.full((n_regions, n_regions), np.nan)
    out[first, second] = values
    if symmetric:
        out[second, first] = values
    return out


def distances(pairs: pd.DataFrame, names: list[str]) -> np.ndarray:
    """
    Return the distance in km between every two of the regions `names`: (regions, regions).

    Distances come from table `pairs`, including rows without the analysed value, or else from the region catalogue.

    Raises ParameterError: the distance of a pair is unknown.
    """
    index = pd.Index(names)
    first, second = (index.get_indexer(pairs[end].to_numpy(dtype=object)) for end in ("from_region", "to_region"))
    value = pd.to_numeric(pairs.distance_km, errors="coerce").astype("float64").to_numpy()
    used = np.isfinite(value) & (first >= 0) & (second >= 0) & (first != second)
    a, b = np.minimum(first, second)[used], np.maximum(first, second)[used]
    median = pd.Series(value[used]).groupby([a, b]).median()
    far = square(median, *(median.index.get_level_values(k) for k in (0, 1)), len(names), symmetric=True)
    for i, j in zip(*np.nonzero(np.triu(np.isnan(far), 1)), strict=True):
        if not catalogue().name.isin([names[i], names[j]]).sum() == 2:
            raise ParameterError(
                f"the distance between {names[i]} and {names[j]} is not known, and relabelling regions needs that of "
                "every pair; add a row of this pair with its distance_km to table pairs."
            )
        far[i, j] = far[j, i] = distance_km(names[i], names[j])
    return far


def gaps(n_pairs: int, n_regions: int) -> tuple[str, ...]:
    """
    Warn if unordered pairs were not measured, because a permutation p-value then compares only the measured pairs.
    """
    possible = n_regions * (n_regions - 1) // 2
    if n_pairs == possible:
        return ()
    missing = f"{count(possible - n_pairs, 'pair')} of {possible:,} not measured"
    return (f"{missing}, so every relabelling is compared over the {n_pairs:,} measured pairs",)


def relabellings(n_regions: int, permutations: int, seed: int) -> np.ndarray:
    """Draw random orders of the regions: (permutations, regions)."""
    check_number("permutations", permutations, 1, whole=True)
    check_number("seed", seed, 0, whole=True)
    rng = np.random.default_rng(seed)
    return rng.permuted(np.tile(np.arange(n_regions), (permutations, 1)), axis=1)


def relabelled(matrix: np.ndarray, cells: Cells, orders: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """
    Yield the cells of a matrix under each relabelling, in chunks of relabellings: (slice, (cells, relabellings)).

    In relabelling k, region i becomes region orders[k, i]: cell (i, j) takes the value of (orders[k, i], orders[k, j]).
    """
    flat, n_regions = np.ascontiguousarray(matrix, dtype=float).ravel(), len(matrix)
    step = max(1, CHUNK_CELLS // max(len(cells[0]), 1))
    for start in range(0, len(orders), step):
        part = np.ascontiguousarray(orders[start : start + step].T)
        index = (part * n_regions).take(cells[0], axis=0)
        index += part.take(cells[1], axis=0)
        # Every index is in range; "clip" skips numpy's buffered check.
        yield slice(start, start + part.shape[1]), flat.take(index, mode="clip")


def as_extreme(drawn: np.ndarray, observed: float) -> int:
    """Count the drawn statistics that are at least as far from 0 as the observed one, or NaN (which makes p larger)."""
    return int((~(np.abs(drawn) < abs(observed) - TIE * max(1.0, abs(observed)))).sum())


def p_value(extreme: int, permutations: int) -> tuple[float, float, float]:
    """
    Return the permutation p-value (k + 1) / (B + 1) and both ends of its Monte Carlo interval (Clopper & Pearson 1934).

    extreme, permutations: k and B: the numbers of relabellings at least as extreme as the data, and of all drawn.

    >>> [round(number, 5) for number in p_value(0, 9999)]
    [0.0001, 0.0, 0.00037]
    """
    return (extreme + 1) / (permutations + 1), *exact_binomial(extreme, permutations)


def t_statistics(
    y: np.ndarray, covariate: np.ndarray, others: list[np.ndarray], cells: Cells, orders: np.ndarray
) -> tuple[float, np.ndarray]:
    """
    Compute the t statistic of a covariate, given the others, for the data and for each relabelling.

    A relabelling permutes the residuals of the covariate on the others.

    y: The values, NaN where unknown.
    covariate, others: Matrices without NaN, so every relabelling uses the cells that are known in y. The constant is
        added to `others`.
    """
    stack = np.stack([np.ones_like(y), *others])
    measured = np.isfinite(y[cells])
    cells = cells[0][measured], cells[1][measured]
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
    remaining = value - basis @ (basis.T @ value)

    def statistics(drawn: np.ndarray) -> np.ndarray:
        """Compute t of each column of `drawn`, given the orthonormal basis of the others (Frisch & Waugh 1933)."""
        projected = basis.T @ drawn
        size = np.einsum("cb,cb->b", drawn, drawn)
        free = size - np.einsum("kb,kb->b", projected, projected)
        free = np.where(free > 1e-12 * size, free, np.nan)
        product = remaining @ drawn
        with np.errstate(divide="ignore", invalid="ignore"):
            scatter = np.maximum(remaining @ remaining - product**2 / free, 0.0)
            return product / np.sqrt(free * scatter / (n - k))

    t = np.empty(len(orders))
    for rows, drawn in relabelled(rest, cells, orders):
        t[rows] = statistics(drawn)
    return float(statistics(left[:, None])[0]), t


def p_estimate(
    quantity: str,
    claim: str,
    extreme: int,
    permutations: int,
    basis: tuple[int, int],
    warnings: tuple[str, ...],
    method: str,
) -> Estimate:
    """
    Return a permutation p-value as an Estimate.

    extreme: Number of relabellings with a statistic at least as far from 0 as the observed one.
    basis: Numbers of unordered pairs and of regions.
    """
    p = p_value(extreme, permutations)
    claim, method = claim[0].upper() + claim[1:], f"{method}; B = {permutations:,}"
    n, n_regions = basis
    return Estimate(quantity, claim, *p, "", n, method, NULL, n_regions=n_regions, warnings=warnings)


def few_orders(n_regions: int, permutations: int) -> tuple[str, ...]:
    """Warn if the regions have fewer different permutations than were drawn."""
    orders = factorial(n_regions)
    if orders > permutations:
        return ()
    return (f"{n_regions} regions have only {orders:,} orders, so p cannot be much below {number(1 / orders)}",)
