"""
Fit y = min(level, falling - x) robustly: a horizontal line up to a knee, and a line of slope -1 beyond it.

For given weights the least-squares solution is exact, without a stepwise search. With the knee between neighbouring
points, both lines are weighted means; with the knee on a point, a single weighted mean determines both. Running sums
compute all candidates at once, for many sets of weights. Huber's loss is minimised by reweighting.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

# Residuals beyond this many scales enter the loss linearly: 95 % efficient if residuals are normal (Huber 1981)
HUBER = 1.345
# Rounds of reweighting from weights close to those of the fit; the fit itself starts from equal weights and takes twice
# as many
MAD_TO_SD = 1.4826  # Standard deviation of a normal distribution over its median absolute deviation
ROUNDS = 6
CHUNK_CELLS = 1_000_000  # Cells of weights at a time: about 100 MB with the running sums


@dataclass(frozen=True)
class Knee:
    """
    The fit of y = min(level, falling - x).

    level: The height of the horizontal line, on the left of the knee; infinite if no point lies there.
    falling: The value at x = 0 of the falling line, on the right of the knee; infinite if no point lies there.
    x, y: The points, x ascending.
    scale: The residuals' standard deviation, as `mad_scale` estimates it.
    robust: The weights of the points by Huber's loss.
    """

    level: float
    falling: float
    x: np.ndarray
    y: np.ndarray
    scale: float
    robust: np.ndarray

    @property
    def is_falling(self) -> np.ndarray:
        """Whether each point lies beyond the knee."""
        return self.x > self.falling - self.level

    @property
    def residual(self) -> np.ndarray:
        """The residuals of all points."""
        return self.y - np.minimum(self.level, self.falling - self.x)

    @property
    def beyond_knee(self) -> np.ndarray:
        """The residuals of the points beyond the knee."""
        return self.residual[self.is_falling]

    def clipped(self, residual: np.ndarray) -> np.ndarray:
        """Clip residuals to 1.345 `scale`, where Huber's loss changes from quadratic to linear."""
        return np.clip(residual, -HUBER * self.scale, HUBER * self.scale)


def fit(x: np.ndarray, y: np.ndarray) -> Knee:
    """Fit by Huber's loss (constant 1.345, scale 1.4826 MAD of the residuals); x must be ascending."""
    robust, scale, level, falling = np.ones((1, len(x))), inf, x, y
    for _ in range(2 * ROUNDS):
        level, falling = least_squares(x, y, robust)
        residual = y - np.minimum(level[0], falling[0] - x)
        scale = mad_scale(residual)
        robust = huber_weights(residual, scale)[None, :]
    return Knee(float(level[0]), float(falling[0]), x, y, scale, robust[0])


def refit(knee: Knee, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """
    Fit `level` and `falling` again for each row of weights (rows, points), at the same scale.

    NaN for a row whose weights are all 0.
    """
    level, falling = np.empty(len(weights)), np.empty(len(weights))
    step = max(1, CHUNK_CELLS // len(knee.x))
    for start in range(0, len(weights), step):
        part = weights[start : start + step]
        robust, c, k = np.broadcast_to(knee.robust, part.shape), level, falling
        for _ in range(ROUNDS):
            c, k = least_squares(knee.x, knee.y, part * robust)
            robust = huber_weights(knee.y - np.minimum(c[:, None], k[:, None] - knee.x), knee.scale)
        empty = part.sum(axis=1) == 0
        c[empty] = k[empty] = np.nan
        level[start : start + step], falling[start : start + step] = c, k
    return level, falling


def without_each(knee: Knee) -> tuple[np.ndarray, np.ndarray]:
    """Return `level` and `falling` without each point in turn; the other points keep their side and robust weight."""
    # Each line is a weighted mean, so leaving out a point moves it by that point's share, without another fit.
    residual = knee.y - np.minimum(knee.level, knee.falling - knee.x)
    flat = knee.level < knee.falling - knee.x
    lines = []
    for value, side in ((knee.level, flat), (knee.falling, ~flat)):
        weight = np.where(side, knee.robust, 0.0)
        rest = weight.sum() - weight
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = value - weight * residual / rest
        lines.append(np.where(weight > 0, np.where(rest > 0, moved, np.nan), value))
    return lines[0], lines[1]


def least_squares(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """
    Compute the exact weighted least-squares fit of y = min(level, falling - x) for each row of weights (rows, points).

    x must be ascending. `level` is infinite if all points are beyond the knee, `falling` if none is.
    """
    # Centre the values, to avoid rounding errors in sums of squares.
    middle_x, middle_y = x.mean(), y.mean()
    x, y = x - middle_x, y - middle_y
    rows = np.arange(len(weights))
    z = x + y
    monomials = {"1": np.ones_like(x), "x": x, "y": y, "z": z, "yy": y * y, "zz": z**2, "xx": x * x, "xy": x * y}
    # The weighted sums over the first m points, m = 0 ... all.
    sums = {name: np.pad(np.cumsum(weights * v, axis=1), ((0, 0), (1, 0))) for name, v in monomials.items()}
    # The minimum of the cost is in a gap between neighbouring points, or at a point: compare all candidates.
    level, falling, cost = _between(x, sums)
    best = cost.argmin(axis=1)
    at_level, at_cost = _on_a_point(x, sums)
    point = at_cost.argmin(axis=1)
    take = at_cost[rows, point] < cost[rows, best] - 1e-12
    level = np.where(take, at_level[rows, point], level[rows, best])
    falling = np.where(take, at_level[rows, point] + x[point], falling[rows, best])
    return level + middle_y, falling + middle_y + middle_x


def huber_weights(residual: np.ndarray, scale: float | np.ndarray) -> np.ndarray:
    """Return the weights with which least squares minimise Huber's loss."""
    return np.minimum(1.0, HUBER * scale / np.maximum(np.abs(residual), 1e-300))


def mad_scale(residual: np.ndarray, smallest: float = 1e-9) -> float:
    """Estimate the standard deviation of normal residuals from their median absolute value; at least `smallest`."""
    return max(MAD_TO_SD * float(np.median(np.abs(residual))), smallest)


def _between(x: np.ndarray, sums: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """
    Return level, falling and cost with the knee just after the first m points; cost is infinite if the knee is
    elsewhere.
    """
    weight, rest = sums["1"], sums["1"][:, -1:] - sums["1"]
    fallen = sums["z"][:, -1:] - sums["z"]
    with np.errstate(divide="ignore", invalid="ignore"):
        level = np.where(weight > 1e-12, sums["y"] / weight, inf)
        falling = np.where(rest > 1e-12, fallen / rest, inf)
        cost = sums["yy"] - np.where(weight > 1e-12, sums["y"] * level, 0.0)
        cost = cost + sums["zz"][:, -1:] - sums["zz"] - np.where(rest > 1e-12, fallen * falling, 0.0)
        at = falling - level
    left, right = np.concatenate([[-inf], x]), np.concatenate([x, [inf]])
    possible = ((at >= left - 1e-9) & (at <= right + 1e-9)) | np.isinf(level) | np.isinf(falling)
    return level, falling, np.where(possible, cost, inf)


def _on_a_point(x: np.ndarray, sums: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return level and cost with the knee on each point: later points fall by their distance from it."""
    after = {name: value[:, -1:] - value[:, 1:] for name, value in sums.items()}
    total = sums["1"][:, -1:]
    summed = sums["y"][:, -1:] + after["x"] - x * after["1"]
    squares = sums["yy"][:, -1:] + 2 * (after["xy"] - x * after["y"])
    squares = squares + after["xx"] - 2 * x * after["x"] + x * x * after["1"]
    with np.errstate(divide="ignore", invalid="ignore"):
        level = summed / total
    return level, squares - summed * level
