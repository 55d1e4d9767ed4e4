"""
An autoregression of a series, corrected for its bias: what whitens a series, and what filters it back.

The order is chosen by Akaike's criterion, corrected for short series (Hurvich & Tsai 1989). Least squares makes a
persistent series look less so, the more the shorter it is. With one coefficient, the first autocorrelation, the bias
is known, -(1 + 4 r) / n (Marriott & Pope 1954; Kendall 1954); with more it is taken from simulations of the fit itself
(Kilian 1998).
"""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter

GREATEST_ROOT = 0.97
MOST = 12
SIMULATED = 50
BURN_IN = 100
RESPONSE = 2_000


def coefficients(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Coefficients, first lag first; none for a series that does not vary or has fewer than 20 values."""
    n, centred = len(values), values - values.mean()
    if n < 20 or centred @ centred <= 1e-24 * max(float(values @ values), 1e-300):
        return np.empty(0)
    order = _order(centred, min(int(8 * (n / 100) ** 0.25), n // 10, MOST))
    if order == 1:
        r = float(centred[1:] @ centred[:-1] / (centred @ centred))
        return stable(np.array([(n * r + 1) / (n - 4)]))
    fitted = stable(least_squares(centred[None, :], order)[0], 0.995)
    residuals = whitened(centred, fitted)
    drawn = rng.choice(residuals - residuals.mean(), size=(SIMULATED, n + BURN_IN))
    rows = lfilter([1.0], np.concatenate([[1.0], -fitted]), drawn, axis=1)[:, BURN_IN:]
    return stable(2 * fitted - least_squares(rows, order).mean(axis=0))


def least_squares(rows: np.ndarray, order: int) -> np.ndarray:
    """
    Coefficients of each row, its mean taken off: (rows, order).

    Those of least norm where several fit as well: zero for a row that does not vary, such as one that is drawn from
    the few values of a bursty series.
    """
    rows = rows - rows.mean(axis=1, keepdims=True)
    n = rows.shape[1]
    lags = np.stack([rows[:, order - k : n - k] for k in range(1, order + 1)], axis=1)
    gram = lags @ lags.transpose(0, 2, 1)
    return (np.linalg.pinv(gram, rcond=1e-12, hermitian=True) @ lags @ rows[:, order:, None])[..., 0]


def whitened(centred: np.ndarray, found: np.ndarray) -> np.ndarray:
    """What the autoregression leaves: one value less per coefficient."""
    return lfilter(np.concatenate([[1.0], -found]), [1.0], centred)[len(found) :]


def filtered_back(residuals: np.ndarray, start: np.ndarray, found: np.ndarray) -> np.ndarray:
    """
    Series (rows, n) out of residuals (rows, n - order) that go on from `start` (rows, order).

    >>> filtered_back(np.array([[1.0, 0.0]]), np.array([[2.0]]), np.array([0.5]))
    array([[2., 2., 1.]])
    """
    order = len(found)
    if not order:
        return residuals
    last_first = start[:, ::-1]
    state = np.stack([last_first[:, : order - m] @ found[m:] for m in range(order)], axis=1)
    back, _ = lfilter([1.0], np.concatenate([[1.0], -found]), residuals, axis=1, zi=state)
    return np.concatenate([start, back], axis=1)


def stable(found: np.ndarray, greatest: float = GREATEST_ROOT) -> np.ndarray:
    """
    The coefficients, shrunk where a root is greater than allowed.

    >>> stable(np.array([1.1])).tolist(), stable(np.array([0.5])).tolist()
    ([0.97], [0.5])
    """
    root = greatest_root(found)
    return found * (greatest / root) ** np.arange(1, len(found) + 1) if root > greatest else found


def greatest_root(found: np.ndarray) -> float:
    """
    How much of its slowest swing a series keeps from one value to the next.

    >>> greatest_root(np.array([0.5])), greatest_root(np.empty(0))
    (0.5, 0.0)
    """
    if not len(found):
        return 0.0
    companion = np.diag(np.ones(len(found) - 1), -1)
    companion[0] = found
    return float(np.abs(np.linalg.eigvals(companion)).max())


def variances(found: np.ndarray) -> tuple[float, float]:
    """
    Variance of one value, and long-run variance (of the mean, times n), where the residuals have variance 1.

    >>> [round(each, 3) for each in variances(np.array([0.5]))]
    [1.333, 4.0]
    """
    if not len(found):
        return 1.0, 1.0
    impulse = np.zeros(RESPONSE)
    impulse[0] = 1.0
    response = lfilter([1.0], np.concatenate([[1.0], -found]), impulse)
    return float(response @ response), float((1 - found.sum()) ** -2)


def _order(centred: np.ndarray, most: int) -> int:
    """The order by AICc, along the recursion of Levinson & Durbin."""
    n = len(centred)
    covariance = np.array([centred[k:] @ centred[: n - k] for k in range(most + 1)]) / n
    rest, found, best, order = covariance[0], np.empty(0), np.inf, 1
    for p in range(1, most + 1):
        partial = (covariance[p] - found @ covariance[p - 1 : 0 : -1]) / rest
        found = np.append(found - partial * found[::-1], partial)
        rest = max(rest * (1 - partial**2), 1e-300)
        score = n * np.log(rest) + 2 * (p + 1) * n / max(n - p - 2, 1)
        if score < best:
            best, order = score, p
    return order
