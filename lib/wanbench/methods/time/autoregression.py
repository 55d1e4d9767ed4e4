"""
A bias-corrected autoregression of a series, which whitens the series and can filter it back.

Coefficients are arrays, first lag first. The order is chosen by Akaike's criterion, corrected for short series (Hurvich
& Tsai 1989). Least squares underestimates persistence, most of all in short series. With one coefficient, the first
autocorrelation r, the bias is known, -(1 + 4 r) / n (Marriott & Pope 1954; Kendall 1954); with more it is taken from
simulations of the fit itself (Kilian 1998).
"""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter

MIN_VALUES = 20
"""With fewer values an autoregression cannot be distinguished from chance."""
LARGEST_ROOT = 0.97
"""Coefficients are shrunk to this root: nearer to 1 the long-run variance has no useful estimate."""
LARGEST_FITTED_ROOT = 0.995
"""Limit of the fit before its bias is subtracted, so that the simulated series are stationary."""
MAX_ORDER = 12
"""The orders tried grow with n as 8 (n / 100) ** (1 / 4), which reaches this at 507 values."""
SIMULATED = 50
"""Simulated series; the error of their mean is then small against the bias."""
BURN_IN = 100
"""Simulated values dropped, so that a series starts in its stationary state (0.97 ** 100 is 5 %)."""
RESPONSE = 2_000
"""Length of the impulse response: at the largest root it has died out long before."""


def fit(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Bias-corrected coefficients; empty for a series that does not vary or is too short."""
    n, centred = len(values), values - values.mean()
    # a constant series leaves a sum of squares of rounding errors, not of 0
    if n < MIN_VALUES or centred @ centred <= 1e-24 * max(float(values @ values), 1e-300):
        return np.empty(0)
    order = _order(centred, min(int(8 * (n / 100) ** 0.25), n // 10, MAX_ORDER))
    if order == 1:
        r = float(centred[1:] @ centred[:-1] / (centred @ centred))
        return stable(np.array([(n * r + 1) / (n - 4)]))
    fitted = stable(least_squares(centred[None, :], order)[0], LARGEST_FITTED_ROOT)
    residuals = whitened(centred, fitted)
    drawn = rng.choice(residuals - residuals.mean(), size=(SIMULATED, n + BURN_IN))
    rows = lfilter([1.0], np.concatenate([[1.0], -fitted]), drawn, axis=1)[:, BURN_IN:]
    return stable(2 * fitted - least_squares(rows, order).mean(axis=0))


def least_squares(rows: np.ndarray, order: int) -> np.ndarray:
    """
    Coefficients (rows, order) of each row about its mean.

    Of equally good fits, the one with the smallest norm: zero for a constant row, such as a resample of a bursty
    series.
    """
    rows = rows - rows.mean(axis=1, keepdims=True)
    n = rows.shape[1]
    lags = np.stack([rows[:, order - k : n - k] for k in range(1, order + 1)], axis=1)
    gram = lags @ lags.transpose(0, 2, 1)
    return (np.linalg.pinv(gram, rcond=1e-12, hermitian=True) @ lags @ rows[:, order:, None])[..., 0]


def whitened(centred: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """The residuals of the autoregression, shorter than the series by its order."""
    return lfilter(np.concatenate([[1.0], -coefficients]), [1.0], centred)[len(coefficients) :]


def filtered_back(residuals: np.ndarray, start: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """
    Series (rows, n) from residuals (rows, n - order) and the first values `start` (rows, order); undoes `whitened`.

    >>> filtered_back(np.array([[1.0, 0.0]]), np.array([[2.0]]), np.array([0.5]))
    array([[2., 2., 1.]])
    """
    order = len(coefficients)
    if not order:
        return residuals
    # the state of the filter after `start`, in the order that lfilter expects
    last_first = start[:, ::-1]
    state = np.stack([last_first[:, : order - m] @ coefficients[m:] for m in range(order)], axis=1)
    back, _ = lfilter([1.0], np.concatenate([[1.0], -coefficients]), residuals, axis=1, zi=state)
    return np.concatenate([start, back], axis=1)


def stable(coefficients: np.ndarray, limit: float = LARGEST_ROOT) -> np.ndarray:
    """
    The coefficients, shrunk so that no root exceeds the limit.

    >>> stable(np.array([1.1])).tolist(), stable(np.array([0.5])).tolist()
    ([0.97], [0.5])
    """
    root = largest_root(coefficients)
    if root <= limit:
        return coefficients
    return coefficients * (limit / root) ** np.arange(1, len(coefficients) + 1)


def largest_root(coefficients: np.ndarray) -> float:
    """
    The largest root in absolute value: the factor per step by which the slowest mode decays.

    >>> largest_root(np.array([0.5])), largest_root(np.empty(0))
    (0.5, 0.0)
    """
    if not len(coefficients):
        return 0.0
    companion = np.diag(np.ones(len(coefficients) - 1), -1)
    companion[0] = coefficients
    return float(np.abs(np.linalg.eigvals(companion)).max())


def variances(coefficients: np.ndarray) -> tuple[float, float]:
    """
    Variance of one value, and long-run variance (variance of the mean times n), for residuals of variance 1.

    >>> [round(variance, 3) for variance in variances(np.array([0.5]))]
    [1.333, 4.0]
    """
    if not len(coefficients):
        return 1.0, 1.0
    impulse = np.zeros(RESPONSE)
    impulse[0] = 1.0
    response = lfilter([1.0], np.concatenate([[1.0], -coefficients]), impulse)
    return float(response @ response), float((1 - coefficients.sum()) ** -2)


def _order(centred: np.ndarray, highest: int) -> int:
    """The order by AICc, along the recursion of Levinson & Durbin."""
    n = len(centred)
    covariance = np.array([centred[k:] @ centred[: n - k] for k in range(highest + 1)]) / n
    rest, coefficients, best, order = covariance[0], np.empty(0), np.inf, 1
    for p in range(1, highest + 1):
        partial = (covariance[p] - coefficients @ covariance[p - 1 : 0 : -1]) / rest
        coefficients = np.append(coefficients - partial * coefficients[::-1], partial)
        rest = max(rest * (1 - partial**2), 1e-300)
        score = n * np.log(rest) + 2 * (p + 1) * n / max(n - p - 2, 1)
        if score < best:
            best, order = score, p
    return order
