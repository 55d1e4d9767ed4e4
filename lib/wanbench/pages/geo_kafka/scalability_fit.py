"""
Fit the Universal Scalability Law, with intervals by profile likelihood.

The interval of a quantity is its range over all allowed parameters: those whose sum of squares is at most
(1 + F(1, n)/n) times the minimum, for n residual degrees of freedom. A grid search finds the allowed alpha and beta. At
each, gamma and the factors of blocks, which are linear in logarithms, follow by least squares. Blocks differ in mean
throughput, so the width of the t interval of the mean over blocks is added in quadrature for gamma and for the peak.
"""

from math import inf, isfinite, nan, sqrt
from typing import Any

import numpy as np
import pandas as pd
from scipy import optimize, stats

from wanbench.errors import ParameterError
from wanbench.formatting import count
from wanbench.methods.factorial.terms import block_half_width, with_blocks

Array = np.ndarray
Number = float | Array
MIN_LEVELS = 3  # Minimum number of different producer counts: as many as the law has parameters.
STEPS = 161  # Grid points of alpha and of beta over the allowed range: ends are exact to about 1 % of the interval.
COARSE_STEPS = 41
CURVE_STEPS = 60
EXACT = 1 + 1e-7  # A fit with a parameter at 0 is preferred if its sum of squares is within this factor of the best.
SEARCHES = 200  # Maximum number of steps until a box encloses the allowed parameters; about 30 are usual.


def usl(producers: Number, gamma: Number, alpha: Number, beta: Number) -> Any:
    """
    Return the throughput that the law predicts for a number of producers, in the unit of `gamma`.

    >>> usl(1, 10, 0.1, 0.01), round(usl(10, 10, 0.1, 0.0), 2)
    (10.0, 52.63)
    """
    return gamma * producers / (1 + alpha * (producers - 1) + beta * producers * (producers - 1))


class Fit:
    """The least-squares fit of the law (`usl`) to `log`, the logarithm of throughput at `n` producers in each trial."""

    def __init__(self, n: Array, log: Array, block: pd.Series | None, level: float):
        self.n, self.log = n, log
        design = with_blocks(np.ones((len(n), 1)), block)
        self.design, self.inverse = design, np.linalg.pinv(design.T @ design)
        self.maker = np.eye(len(n)) - design @ self.inverse @ design.T
        self.freedom = len(n) - np.linalg.matrix_rank(design) - 2
        if self.freedom < 1:
            raise ParameterError(
                f"{count(len(n), 'trial')} cannot determine {len(n) - self.freedom} parameters; allowed: more trials."
            )
        self.alpha, self.beta, self.least = self._best()
        critical = stats.f.ppf(level, 1, self.freedom)
        self.threshold = max(self.least, 1e-20) * (1 + critical / self.freedom)
        self.block_half = block_half_width(self._without_law(self.alpha, self.beta), block, level)
        # The error of the mean log is that of gamma; with blocks it is in `block_half`.
        self.mean_error = sqrt(1 / len(n)) if block is None else 0.0

    def squares(self, alpha: np.typing.ArrayLike, beta: np.typing.ArrayLike) -> Any:
        """Return the sum of squared residuals at each alpha and beta."""
        return ((self._without_law(alpha, beta) @ self.maker) ** 2).sum(axis=-1)

    def log_gamma(self, alpha: np.typing.ArrayLike, beta: np.typing.ArrayLike) -> Any:
        """Return the least-squares log gamma at each alpha and beta, for the average block."""
        return self._without_law(alpha, beta) @ (self.design @ self.inverse[:, 0])

    def _without_law(self, alpha: np.typing.ArrayLike, beta: np.typing.ArrayLike) -> Array:
        alpha, beta = (np.asarray(value, dtype=float)[..., None] for value in (alpha, beta))
        return self.log - np.log(usl(self.n, 1.0, alpha, beta))

    def _best(self) -> tuple[float, float, float]:
        def residual(theta: Array):
            return self.maker @ self._without_law(*theta)

        bounds = {"bounds": ([0, 0], [1, np.inf]), "x_scale": "jac", "xtol": 1e-12, "ftol": 1e-12, "gtol": 1e-12}
        inside = [
            optimize.least_squares(residual, start, **bounds).x for start in ((0.01, 1e-5), (0.1, 1e-3), (0.5, 0.02))
        ]
        best = min(inside, key=lambda theta: self.squares(*theta))
        exact = {"bounds": (0, 1), "method": "bounded", "options": {"xatol": 1e-10}}
        at_bounds = [
            (0.0, 0.0),
            (optimize.minimize_scalar(lambda a: self.squares(a, 0.0), **exact).x, 0.0),
            (0.0, optimize.minimize_scalar(lambda b: self.squares(0.0, b), **exact).x),
        ]
        least = self.squares(*best) * EXACT + 1e-18
        best = next((theta for theta in at_bounds if self.squares(*theta) <= least), best)
        return float(best[0]), float(best[1]), float(self.squares(*best))

    def allowed(self) -> tuple[Array, Array, Array]:
        """
        Return the allowed alphas and betas, and by how much each pair's sum of squares is below the allowed maximum.

        The search covers a box around the best fit. The box grows while allowed pairs touch its sides, and shrinks
        while they fill less than half of it.
        """
        middle = np.array([self.alpha, self.beta])
        half = np.maximum(middle / 2, [1e-4, 1e-6])
        low, high = np.maximum(middle - half, 0), np.minimum(middle + half, [1, inf])
        for _ in range(SEARCHES):
            axes, inside = self._grid(low, high, COARSE_STEPS)
            ends = [axis[np.flatnonzero(inside.any(axis=1 - k))[[0, -1]]] for k, axis in enumerate(axes)]
            first, last = np.transpose(ends)
            width, cell = high - low, (high - low) / (COARSE_STEPS - 1)
            grow_low, grow_high = (first <= low) & (low > 0), (last >= high) & (high < [1, inf])
            if not (grow_low | grow_high).any():
                small = (last - first) < 0.5 * width
                if not small.any():
                    break
                low = np.where(small, np.maximum(first - cell, low), low)
                high = np.where(small, np.minimum(last + cell, high), high)
                continue
            low = np.where(grow_low, np.maximum(low - width, 0), low)
            high = np.where(grow_high, np.minimum(high + width, [1, inf]), high)
        axes, inside = self._grid(low, high, STEPS)
        rows, columns = np.nonzero(inside)
        alphas, betas = axes[0][rows], axes[1][columns]
        return alphas, betas, np.maximum(self.threshold - self.squares(alphas, betas), 0.0)

    def _grid(self, low: Array, high: Array, steps: int) -> tuple[list[Array], Array]:
        axes = [
            np.union1d(np.linspace(one, other, steps), [best])
            for one, other, best in zip(low, high, (self.alpha, self.beta), strict=True)
        ]
        alphas, betas = np.meshgrid(*axes, indexing="ij")
        return axes, self.squares(alphas, betas) <= self.threshold

    def ends(self, alphas: Array, betas: Array, slack: Array) -> dict[str, dict[str, float]]:
        """Return `estimate`, `low` and `high` of every quantity, by name; the arguments are the result of `allowed`."""
        best = np.array([self.alpha]), np.array([self.beta])
        most = self.n.max()
        out = {}
        for name, of in (
            ("efficiency", lambda a, b: usl(most, 1.0, a, b) / most),
            ("peak_producers", _peak_producers),
            ("alpha", lambda a, b: a),
            ("beta", lambda a, b: b),
        ):
            values = of(alphas, betas)
            out[name] = {"estimate": float(of(*best)[0]), "low": values.min(), "high": values.max()}
        for name, of in (("peak", _peak), ("gamma", lambda a, b: np.ones_like(a))):
            estimate = self.log_gamma(*best)[0] + np.log(of(*best)[0])
            low, high = self._level_ends(alphas, betas, slack, of(alphas, betas), estimate)
            out[name] = {"estimate": np.exp(estimate), "low": low, "high": high}
        return {name: {key: float(value) for key, value in one.items()} for name, one in out.items()}

    def _level_ends(self, alphas: Array, betas: Array, slack: Array, of: Array, estimate: float) -> tuple[float, float]:
        """Return both ends of the interval of gamma times `of`, which has a value at each of alphas and betas."""
        middle, play = self.log_gamma(alphas, betas) + np.log(of), np.sqrt(slack) * self.mean_error
        ends = []
        for side, end in ((-1, (middle - play).min()), (1, (middle + play).max())):
            distance = abs(end - estimate)
            distance = distance if isfinite(distance) else 0.0
            ends.append(float(np.exp(end + side * (np.hypot(distance, self.block_half) - distance))))
        return ends[0], ends[1]

    def curve(self, alphas: Array, betas: Array, slack: Array) -> pd.DataFrame:
        """Return the table `Scalability.curve`; the arguments are the result of `allowed`."""
        n = np.geomspace(self.n.min(), self.n.max(), CURVE_STEPS)
        gamma = float(np.exp(self.log_gamma(self.alpha, self.beta)))
        fitted = usl(n, gamma, self.alpha, self.beta)
        ends = [
            self._level_ends(alphas, betas, slack, usl(at, 1.0, alphas, betas), np.log(one))
            for at, one in zip(n, fitted, strict=True)
        ]
        low, high = np.transpose(ends)
        return pd.DataFrame({"producers": n, "fitted": fitted, "low": low, "high": high, "linear": gamma * n})

    def lack_of_fit(self) -> float:
        """Return the p-value of the F test of the law against a separate mean for each number of producers."""
        levels = np.unique(self.n)
        means = np.column_stack([self.n[:, None] == levels, self.design[:, 1:]]).astype(float)
        pure = self.log - means @ np.linalg.lstsq(means, self.log, rcond=None)[0]
        against, more = len(self.n) - np.linalg.matrix_rank(means), len(levels) - MIN_LEVELS
        if against < 1 or more < 1 or not pure @ pure > 0:
            return nan
        ratio = max(self.least - pure @ pure, 0.0) / more / (pure @ pure / against)
        return float(stats.f.sf(ratio, more, against))


def _peak_producers(alpha: Array, beta: Array) -> Array:
    """Return the number of producers at the peak, at least 1; infinite for beta = 0 and alpha below 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.maximum(np.nan_to_num(np.sqrt((1 - alpha) / beta), nan=1.0, posinf=inf), 1.0)


def _peak(alpha: Array, beta: Array) -> Array:
    """Return the largest throughput divided by gamma: the value at the peak, or the limit 1/alpha if beta is 0."""
    at = _peak_producers(alpha, beta)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.isinf(at), 1 / alpha, usl(at, 1.0, alpha, beta))
