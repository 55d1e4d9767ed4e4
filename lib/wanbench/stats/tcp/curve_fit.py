"""
Robust fits of one curve to many weightings of the same pairs at once.

Huber's loss (constant 1.345, scale 1.4826 MAD of the residuals) is reached by reweighting inside Levenberg's and
Marquardt's damped steps; every row of weights has its own damping. The start is the best of a coarse grid.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np

from .curves import Form, Paths
from .knee import HUBER

STEPS, SCALES = 40, 6
GRID, GRID_PAIRS, STARTS = {1: 200, 2: 80, 3: 20}, 100, 6
DIFFERENCE = 1e-5
SMALLEST_SCALE = 1e-4


def fit(
    form: Form, paths: Paths, y: np.ndarray, known: Mapping[tuple[str, str], float] | None = None
) -> tuple[np.ndarray, float]:
    """
    The numbers of a form that fit `y`, log throughput, and the scale of the residuals.

    `known` are the numbers of simpler models by (model, symbol): one more start for each, the others as far out as
    they go, so that a model finds at least what one that it contains has found.
    """
    bounds = form.bounds(paths, y)
    some = np.linspace(0, len(y) - 1, min(len(y), GRID_PAIRS)).astype(int)
    few = Paths(paths.rtt_ms[some], paths.distance_km[some])
    axes = [np.linspace(low, high, GRID[len(form.parameters)]) for low, high in zip(*bounds, strict=True)]
    grid = np.array(list(product(*axes)))
    cost = np.abs(y[some] - form.curve(grid, few)).mean(axis=1).round(6)
    _, apart = np.unique(cost, return_index=True)
    starts = np.concatenate([_contained(form, bounds, known or {}), grid[apart[:STARTS]]])
    starts = starts[np.argsort(np.abs(y - form.curve(starts, paths)).mean(axis=1), kind="stable")]
    weights = np.ones((len(starts), len(y)))
    scale = max(float(np.median(np.abs(y - form.curve(starts[:1], paths)[0]))) * 1.4826, SMALLEST_SCALE)
    for _ in range(SCALES):
        starts, cost = refit(form, paths, y, weights, starts, scale)
        best, before = starts[cost.argmin()], scale
        residual = y - form.curve(best[None], paths)[0]
        scale = max(1.4826 * float(np.median(np.abs(residual))), SMALLEST_SCALE)
        if abs(scale - before) < 1e-3 * before:
            break
    return best, scale


def _contained(form: Form, bounds, known: Mapping[tuple[str, str], float]) -> np.ndarray:
    """Starts (rows, parameters) with one of the known numbers each, and with C if it is known with it."""
    symbols = [symbol for symbol, _ in form.parameters]
    far = np.where([symbol == "p" for symbol in symbols], *bounds) if known else bounds[1]
    found = []
    for (model, symbol), value in known.items():
        if symbol == "C" or symbol not in symbols:
            continue
        start = far.copy()
        start[symbols.index(symbol)] = value
        if "C" in symbols and (model, "C") in known:
            start[symbols.index("C")] = known[model, "C"]
        found.append(start)
    return np.array(found).reshape(-1, len(symbols))


def refit(
    form: Form, paths: Paths, y: np.ndarray, weights: np.ndarray, starts: np.ndarray, scale: float
) -> tuple[np.ndarray, np.ndarray]:
    """
    The numbers (rows, parameters) and the cost of each row of weights (rows, pairs), from its start, at one scale.
    """
    low, high = form.bounds(paths, y)
    numbers = np.clip(np.broadcast_to(starts, (len(weights), len(low))), low, high).copy()
    curve = form.curve(numbers, paths)
    cost, damping = _cost(y - curve, weights, scale), np.full(len(weights), 1e-2)
    active = np.ones(len(weights), dtype=bool)
    for _ in range(STEPS):
        rows = np.flatnonzero(active)
        residual = y - curve[rows]
        pull = weights[rows] * np.minimum(1.0, HUBER * scale / np.maximum(np.abs(residual), 1e-300))
        slopes = np.stack(
            [
                (form.curve(numbers[rows] + DIFFERENCE * unit, paths) - curve[rows]) / DIFFERENCE
                for unit in np.eye(len(low))
            ],
            axis=-1,
        )
        pulled = slopes * pull[:, :, None]
        square = np.einsum("rpi,rpj->rij", pulled, slopes)
        gradient = np.einsum("rpi,rp->ri", pulled, residual)
        diagonal = np.einsum("rii->ri", square)
        added = damping[rows, None] * diagonal + 1e-9 * weights.shape[1]
        square = square + added[:, :, None] * np.eye(len(low))
        step = np.linalg.solve(square, gradient[:, :, None])[:, :, 0]
        trial = np.clip(numbers[rows] + step, low, high)
        trial_curve = form.curve(trial, paths)
        trial_cost = _cost(y - trial_curve, weights[rows], scale)
        better = trial_cost < cost[rows]
        won = rows[better]
        gain = (cost[rows] - trial_cost) / np.maximum(cost[rows], 1e-300)
        numbers[won], curve[won], cost[won] = trial[better], trial_curve[better], trial_cost[better]
        damping[rows] = np.clip(np.where(better, damping[rows] / 5, damping[rows] * 6), 1e-6, 1e8)
        done = np.where(better, gain < 1e-8, damping[rows] > 1e5)
        active[rows[done]] = False
        if not active.any():
            break
    return numbers, cost


def _cost(residual, weights, scale):
    size = np.abs(residual) / scale
    return (weights * np.where(size <= HUBER, size**2 / 2, HUBER * (size - HUBER / 2))).sum(axis=1)
