"""Numbers too large or too small to be measurements."""

from __future__ import annotations

import numpy as np

from wanbench.checks import refusal
from wanbench.errors import ParameterError

SIZES = (1e-60, 1e60)
"""Numbers outside are errors in their file; inside, sums of fourth powers neither overflow nor underflow."""
SIZED = f"0, or a number from {SIZES[0]:g} to {SIZES[1]:g} in size"


def beyond_size(values) -> np.ndarray:
    """
    Which numbers are finite and not 0, but larger or smaller than `SIZES`.

    >>> beyond_size([1e300, -1e-300, 1e9, 0.0, np.inf]).tolist()
    [True, True, False, False, False]
    """
    sizes = np.abs(np.asarray(values, dtype=float))
    return np.isfinite(sizes) & (sizes > 0) & ((sizes < SIZES[0]) | (sizes > SIZES[1]))


def numbers(name: str, values) -> np.ndarray:
    """Values as an array of floats; ParameterError unless they are numbers in one dimension."""
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise refusal(name, np.asarray(values).tolist(), "numbers") from None
    if array.ndim != 1:
        raise ParameterError(f"{name} has {array.ndim} dimensions; allowed: 1.")
    return array


def check_sizes(name: str, values):
    """The values; ParameterError unless each is within `SIZES`, 0, infinite or NaN."""
    bad = np.flatnonzero(beyond_size(values))
    if len(bad):
        raise refusal(f"{name} in row {bad[0]}", float(np.asarray(values, dtype=float)[bad[0]]), SIZED)
    return values
