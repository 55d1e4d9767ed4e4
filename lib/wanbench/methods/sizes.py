"""Checks that numbers are neither too large nor too small to be measurements."""

import numpy as np

from wanbench.checks import refusal
from wanbench.errors import ParameterError

SIZES = (1e-60, 1e60)
"""
The smallest and largest absolute value of a measurement. A number outside is an error in its file; within these limits,
sums of fourth powers neither overflow nor underflow.
"""
SIZED = f"0, or a number from {SIZES[0]:g} to {SIZES[1]:g} in size"


def beyond_size(values: np.typing.ArrayLike) -> np.ndarray:
    """
    Return a mask of the finite nonzero numbers whose absolute value is outside `SIZES`.

    >>> beyond_size([1e300, -1e-300, 1e9, 0.0, np.inf]).tolist()
    [True, True, False, False, False]
    """
    sizes = np.abs(np.asarray(values, dtype=float))
    return np.isfinite(sizes) & (sizes > 0) & ((sizes < SIZES[0]) | (sizes > SIZES[1]))


def numbers(name: str, values: object) -> np.ndarray:
    """Return values as a one-dimensional array of floats; ParameterError if they are not numbers in one dimension."""
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise refusal(name, np.asarray(values).tolist(), "numbers") from None
    if array.ndim != 1:
        raise ParameterError(f"{name} has {array.ndim} dimensions; allowed: 1.")
    return array


def check_sizes(name: str, values: np.typing.ArrayLike) -> None:
    """Raise ParameterError if the absolute value of a finite nonzero number is outside `SIZES`."""
    bad = np.flatnonzero(beyond_size(values))
    if len(bad):
        raise refusal(f"{name} in row {bad[0]}", float(np.asarray(values, dtype=float)[bad[0]]), SIZED)
