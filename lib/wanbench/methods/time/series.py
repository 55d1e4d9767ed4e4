"""Measure the dependence in a series by an autoregression, which gives the effective number of independent values."""

from collections.abc import Sequence

import numpy as np
import scipy

MIN_VALUES = 20  # With fewer values an autoregression cannot be distinguished from chance.
LARGEST_ROOT = 0.97  # Coefficients are shrunk to this root; nearer to 1 the long-run variance cannot be estimated.
# Largest root before the bias is subtracted, so that the series simulated for the bias are stationary.
LARGEST_FITTED_ROOT = 0.995
# Orders up to 8 (n / 100) ** (1 / 4) are compared, at most this one, which that formula reaches at n = 507 values.
MAX_ORDER = 12
SIMULATED = 50  # Number of simulated series: the error of their mean is then small compared with the bias.
BURN_IN = 100  # Number of first simulated values that are dropped to reach the stationary state (0.97^100 is 5 %).
RESPONSE = 2_000  # Length of the impulse response: even with the largest root it is negligible by then.


def fit_autoregression(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """
    Fit the coefficients of an autoregression, and correct their bias; return an empty array for a series that is
    constant or too short.
    """
    n, centred = len(values), values - values.mean()
    # The sum of squares of a constant series is not 0, due to rounding.
    if n < MIN_VALUES or centred @ centred <= 1e-24 * max(float(values @ values), 1e-300):
        return np.empty(0)
    order = _order(centred, min(int(8 * (n / 100) ** 0.25), n // 10, MAX_ORDER))
    if order == 1:
        r = float(centred[1:] @ centred[:-1] / (centred @ centred))
        return stable(np.array([(n * r + 1) / (n - 4)]))
    fitted = stable(least_squares(centred[None, :], order)[0], LARGEST_FITTED_ROOT)
    residuals = whitened(centred, fitted)
    drawn = rng.choice(residuals - residuals.mean(), size=(SIMULATED, n + BURN_IN))
    rows = scipy.signal.lfilter([1.0], np.concatenate([[1.0], -fitted]), drawn, axis=1)[:, BURN_IN:]
    return stable(2 * fitted - least_squares(rows, order).mean(axis=0))


def least_squares(rows: np.ndarray, order: int) -> np.ndarray:
    """
    Fit the autoregression of each row about its mean by least squares: coefficients (rows, order).

    If several fits are equally good, return the one with the smallest norm: zeros for a constant row, such as a
    resample of a bursty series.
    """
    rows = rows - rows.mean(axis=1, keepdims=True)
    n = rows.shape[1]
    lags = np.stack([rows[:, order - k : n - k] for k in range(1, order + 1)], axis=1)
    gram = lags @ lags.transpose(0, 2, 1)
    return (np.linalg.pinv(gram, rcond=1e-12, hermitian=True) @ lags @ rows[:, order:, None])[..., 0]


def whitened(centred: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """Return the residuals of an autoregression of order p on a centred series; the first p values have none."""
    return scipy.signal.lfilter(np.concatenate([[1.0], -coefficients]), [1.0], centred)[len(coefficients) :]


def stable(coefficients: np.ndarray, limit: float = LARGEST_ROOT) -> np.ndarray:
    """
    Shrink the coefficients of an autoregression so that no root exceeds the limit.

    >>> stable(np.array([1.1])).tolist(), stable(np.array([0.5])).tolist()
    ([0.97], [0.5])
    """
    root = largest_root(coefficients)
    if root <= limit:
        return coefficients
    return coefficients * (limit / root) ** np.arange(1, len(coefficients) + 1)


def largest_root(coefficients: np.ndarray) -> float:
    """
    Return the largest absolute root of an autoregression: the factor per step by which its slowest mode decays.

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
    Return the variance of a value, and the long-run variance (n times the variance of the mean).

    Both are for an autoregression whose residuals have variance 1.

    >>> [round(variance, 3) for variance in variances(np.array([0.5]))]
    [1.333, 4.0]
    """
    if not len(coefficients):
        return 1.0, 1.0
    impulse = np.zeros(RESPONSE)
    impulse[0] = 1.0
    response = scipy.signal.lfilter([1.0], np.concatenate([[1.0], -coefficients]), impulse)
    return float(response @ response), float((1 - coefficients.sum()) ** -2)


def _order(centred: np.ndarray, highest: int) -> int:
    """Choose the order of the autoregression by AICc, with the recursion of Levinson & Durbin."""
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


def effective_n(n: int, coefficients: np.ndarray) -> float:
    """
    Return the number of independent values with the same information about the mean as n values of an autoregression.

    >>> effective_n(300, np.array([0.5])), effective_n(300, np.array([-0.5]))
    (100.0, 300.0)
    """
    single, long_run = variances(coefficients)
    return min(float(n), max(n * single / long_run, 2.0))


def welch_freedom(variances: Sequence[float] | np.ndarray, units: Sequence[float]) -> float:
    """
    Compute the degrees of freedom of a difference of estimates (Welch 1947; Satterthwaite 1946).

    variances, units: The variance of each estimate, and the number of units behind it.

    >>> welch_freedom([1.0, 1.0], [11, 11])
    20.0
    """
    total = sum(variances)
    if total <= 0:
        return float(sum(units) - len(units))
    return total**2 / sum(v * v / max(n - 1, 1.0) for v, n in zip(variances, units, strict=True))
