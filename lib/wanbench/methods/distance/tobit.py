"""
Maximum-likelihood regression with right-censored values: those known only to reach a limit (Tobin 1958).

y = design . b + s e with e standard normal; a censored row has only a limit, which y reaches or exceeds. In Olsen's
(1978) parameters, b / s and 1 / s, the likelihood is concave, so Newton's method with halved steps finds its one
maximum, here for many weightings of the rows at once.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr

from wanbench.errors import ParameterError

MAX_STEPS = 60  # Newton's method converges in far fewer steps, unless there is no maximum
MAX_HALVINGS = 40  # A step shorter by 2 to the 40th changes nothing but rounding
# The search ends when the predicted rise of the log-likelihood is smaller; a fit with a smaller spread is perfect
SMALL = 1e-10
LOG_ROOT_2_PI = 0.5 * np.log(2 * np.pi)


def tobit(design, y, censored, weights=None, start=None) -> tuple[np.ndarray, np.ndarray]:
    """
    Fit right-censored regressions: coefficients (weightings, coefficients) and standard deviations (weightings,).

    `design` is (rows, coefficients); `y` the value, or for a `censored` row its limit; `weights` (weightings, rows) how
    often each row counts; `start` coefficients and spread to start from. NaN for a weighting without a maximum: fewer
    uncensored rows than coefficients, or a perfect fit.

    Raises ParameterError: if all rows are censored, or the columns of the design are linearly dependent.
    """
    design, y, censored = np.asarray(design, float), np.asarray(y, float), np.asarray(censored, bool)
    weights = np.ones((1, len(y))) if weights is None else np.asarray(weights, float)
    n_coefficients = design.shape[1]
    if (~censored).sum() <= n_coefficients:
        raise ParameterError(f"{(~censored).sum()} rows below their limit are too few to fit a line")
    if start is None:
        begun, _, rank, _ = np.linalg.lstsq(design, y, rcond=None)
        if rank < n_coefficients:
            raise ParameterError("the columns of the design are linearly dependent")
        spread = float(np.std(y - design @ begun)) or SMALL
    else:
        begun, spread = start
    rows = np.column_stack([design, -y])
    squares = (rows[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)
    theta = np.tile(np.append(begun / spread, 1 / spread), (len(weights), 1))
    free = weights @ (~censored)
    value = _likelihood(theta, rows, censored, weights, free)
    active = np.flatnonzero(free > n_coefficients)
    failed = free <= n_coefficients
    for _ in range(MAX_STEPS):
        if not len(active):
            break
        step, rising = _newton(theta[active], rows, squares, censored, weights[active], free[active])
        done = rising < SMALL
        active, step = active[~done], step[~done]
        moved = np.zeros(len(active), dtype=bool)
        length = np.ones(len(active))
        # The likelihood is concave, so halving the step must at last raise it, unless there is no maximum.
        for _ in range(MAX_HALVINGS):
            left = np.flatnonzero(~moved)
            if not len(left):
                break
            at = active[left]
            tried = theta[at] + length[left, None] * step[left]
            now = _likelihood(tried, rows, censored, weights[at], free[at])
            up = now >= value[at]
            theta[at[up]], value[at[up]] = tried[up], now[up]
            moved[left[up]] = True
            length[left[~up]] /= 2
        active = active[moved]
    failed[active] = True
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.where(failed | (theta[:, -1] > 1 / SMALL), np.nan, 1 / theta[:, -1])
    return theta[:, :-1] * spread[:, None], spread


def _likelihood(theta, rows, censored, weights, free) -> np.ndarray:
    """Compute the log-likelihood of each weighting up to a constant; minus infinity where 1 / s is not positive."""
    u = theta @ rows.T
    terms = np.where(censored, log_ndtr(u), -0.5 * u * u)
    scale = theta[:, -1]
    positive = scale > 0
    logs = free * np.log(np.where(positive, scale, 1.0))
    return np.where(positive, (weights * terms).sum(axis=1) + logs, -np.inf)


def _newton(theta, rows, squares, censored, weights, free) -> tuple[np.ndarray, np.ndarray]:
    """Compute Newton's step, and twice the increase of the likelihood it predicts."""
    u, k = theta @ rows.T, theta.shape[1]
    ratio = np.exp(-0.5 * u * u - LOG_ROOT_2_PI - log_ndtr(u))
    gradient = (weights * np.where(censored, ratio, -u)) @ rows
    gradient[:, -1] += free / theta[:, -1]
    curvature = ((weights * np.where(censored, ratio * (ratio + u), 1.0)) @ squares).reshape(-1, k, k)
    curvature[:, -1, -1] += free / theta[:, -1] ** 2
    step = np.einsum("bij,bj->bi", np.linalg.pinv(curvature, hermitian=True), gradient)
    return step, (step * gradient).sum(axis=1)
