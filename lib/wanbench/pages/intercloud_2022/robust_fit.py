"""
Fit one model of throughput robustly to the same pairs with many different weights at once.

Huber's loss (constant 1.345, scale 1.4826 MAD of the residuals) is minimised by Levenberg-Marquardt steps with
reweighting, from the best points of a coarse grid. A leave-one-out analysis needs hundreds of fits, which SciPy's
`least_squares` could only do one after another.
"""

from collections.abc import Mapping
from itertools import product

import numpy as np

from wanbench.methods.tcp.knee import HUBER, huber_weights, mad_scale
from wanbench.methods.tcp.models import Paths, ThroughputModel

# Maximum number of Levenberg-Marquardt steps. In simulated surveys half of the fits take 6 steps, and 1 in 14 takes all
STEPS = 40
SCALES = 6  # Maximum number of rounds of fit and scale; in simulated surveys the scale converges to 0.1 % in 1 to 4
# Grid points per axis, by number of parameters: 200 to 8,000 curves, which cost less than the fit
GRID = {1: 200, 2: 80, 3: 20}
GRID_PAIRS = 100  # Number of pairs on which the grid is evaluated; more would not change which basin is best
STARTS = 6  # Number of grid points from which a fit starts: enough to reach every basin of curves with a knee
DIFFERENCE = 1e-5  # Step of the numerical derivatives, of logarithms: about the cube root of the precision of a float
MIN_SCALE = 1e-4  # Smallest scale of residuals, 0.01 %: exact data would otherwise have the scale 0


def fit(
    model: ThroughputModel, paths: Paths, y: np.ndarray, simpler: Mapping[tuple[str, str], float] | None = None
) -> tuple[np.ndarray, float]:
    """
    Fit a model to log throughput `y` (pairs,); return the logarithms of its parameters, and the scale of the residuals.

    `simpler` maps (model, symbol) to a fitted parameter of a simpler model. The fit also starts from these, so that it
    is at least as good as that of any simpler model which is a special case of this one.
    """
    bounds = model.bounds(paths, y)
    some = np.linspace(0, len(y) - 1, min(len(y), GRID_PAIRS)).astype(int)
    axes = [np.linspace(low, high, GRID[len(model.parameters)]) for low, high in zip(*bounds, strict=True)]
    grid = np.array(list(product(*axes)))
    cost = np.abs(y[some] - model.curve(grid, paths[some])).mean(axis=1).round(6)
    # Points of equal cost give the same curve (a parameter without effect there): one of them suffices as a start.
    _, distinct = np.unique(cost, return_index=True)
    starts = np.concatenate([_simpler_starts(model, bounds, simpler or {}), grid[distinct[:STARTS]]])
    starts = starts[np.argsort(np.abs(y - model.curve(starts, paths)).mean(axis=1), kind="stable")]
    weights, best = np.ones((len(starts), len(y))), starts[0]
    scale = mad_scale(y - model.curve(starts[:1], paths)[0], MIN_SCALE)
    for _ in range(SCALES):
        starts, cost = refit(model, paths, y, weights, starts, scale)
        best, before = starts[cost.argmin()], scale
        scale = mad_scale(y - model.curve(best[None], paths)[0], MIN_SCALE)
        if abs(scale - before) < 1e-3 * before:
            break
    return best, scale


def refit(
    model: ThroughputModel, paths: Paths, y: np.ndarray, weights: np.ndarray, starts: np.ndarray, scale: float
) -> tuple[np.ndarray, np.ndarray]:
    """
    Fit the model once per row of `weights` (rows, pairs), from `starts`, with a fixed scale of the residuals.

    Returns the logarithms of the parameters (rows, parameters), and the minimised loss of each row.
    """
    low, high = model.bounds(paths, y)
    values = np.clip(np.broadcast_to(starts, (len(weights), len(low))), low, high).copy()
    curve = model.curve(values, paths)
    cost, damping = _cost(y - curve, weights, scale), np.full(len(weights), 1e-2)
    active = np.ones(len(weights), dtype=bool)
    for _ in range(STEPS):
        rows = np.flatnonzero(active)
        residual = y - curve[rows]
        # Huber's loss as weighted least squares: a residual beyond the bend pulls as if it lay on it.
        pull = weights[rows] * huber_weights(residual, scale)
        slopes = np.stack(
            [
                (model.curve(values[rows] + DIFFERENCE * unit, paths) - curve[rows]) / DIFFERENCE
                for unit in np.eye(len(low))
            ],
            axis=-1,
        )
        pulled = slopes * pull[:, :, None]
        square = np.einsum("rpi,rpj->rij", pulled, slopes)
        gradient = np.einsum("rpi,rp->ri", pulled, residual)
        # Damping in proportion to the diagonal (Marquardt); the small constant keeps the system regular where a
        # parameter has no effect, such as C where no pair reaches it.
        added = damping[rows, None] * np.einsum("rii->ri", square) + 1e-9 * weights.shape[1]
        square = square + added[:, :, None] * np.eye(len(low))
        step = np.linalg.solve(square, gradient[:, :, None])[:, :, 0]
        trial = np.clip(values[rows] + step, low, high)
        trial_curve = model.curve(trial, paths)
        trial_cost = _cost(y - trial_curve, weights[rows], scale)
        better = trial_cost < cost[rows]
        accepted = rows[better]
        gain = (cost[rows] - trial_cost) / np.maximum(cost[rows], 1e-300)
        values[accepted], curve[accepted], cost[accepted] = (trial[better], trial_curve[better], trial_cost[better])
        damping[rows] = np.clip(np.where(better, damping[rows] / 5, damping[rows] * 6), 1e-6, 1e8)
        # A row is done when a step hardly helps, or when no step helps although damping has made it tiny.
        done = np.where(better, gain < 1e-8, damping[rows] > 1e5)
        active[rows[done]] = False
        if not active.any():
            break
    return values, cost


def _simpler_starts(
    model: ThroughputModel, bounds: tuple[np.ndarray, np.ndarray], simpler: Mapping[tuple[str, str], float]
) -> np.ndarray:
    """
    Return starting points (rows, parameters), one per parameter in `simpler`.

    A point has this parameter and, if that model has a capacity C, its C. All other parameters start where they have no
    effect: loss at its lower bound, others at their upper bound.
    """
    symbols = [symbol for symbol, _ in model.parameters]
    starts = []
    for (name, symbol), value in simpler.items():
        if symbol == "C" or symbol not in symbols:
            continue
        start = np.where([name == "p" for name in symbols], *bounds)
        start[symbols.index(symbol)] = value
        if "C" in symbols and (name, "C") in simpler:
            start[symbols.index("C")] = simpler[name, "C"]
        starts.append(start)
    return np.array(starts).reshape(-1, len(symbols))


def _cost(residual: np.ndarray, weights: np.ndarray, scale: float) -> np.ndarray:
    size = np.abs(residual) / scale
    return (weights * np.where(size <= HUBER, size**2 / 2, HUBER * (size - HUBER / 2))).sum(axis=1)
