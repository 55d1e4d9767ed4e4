"""Spearman's rho of the same pairs under many sets of weights at once."""

from __future__ import annotations

import numpy as np

CHUNK_CELLS = 4_000_000


def spearman(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Spearman's rho for each row of weights (0 or 1 per pair)."""
    rho = np.empty(len(weights))
    step = max(1, CHUNK_CELLS // len(x))
    for start in range(0, len(weights), step):
        part = weights[start : start + step]
        ranks = [weighted_ranks(values, part) for values in (x, y)]
        n = part.sum(axis=1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            a, b = (part * (rank - (part * rank).sum(axis=1, keepdims=True) / n) for rank in ranks)
            rho[start : start + step] = (a * b).sum(axis=1) / np.sqrt(
                (a * a).sum(axis=1) * (b * b).sum(axis=1)
            )
    return rho


def weighted_ranks(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Mid-ranks of `values` among themselves under each row of weights; ties share their mean rank."""
    _, group = np.unique(values, return_inverse=True)
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    weight = np.add.reduceat(weights[:, order], starts, axis=1)
    return (np.cumsum(weight, axis=1) - (weight - 1) / 2)[:, group]


def spearman_without(x: np.ndarray, y: np.ndarray, first, second, n_regions: int) -> np.ndarray:
    """Rho without each region."""
    region = np.arange(n_regions)[:, None]
    return spearman(x, y, ((first != region) & (second != region)).astype(float))
