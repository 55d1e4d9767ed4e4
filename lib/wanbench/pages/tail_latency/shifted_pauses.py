"""
Which seconds of a trial contain a pause, as measured and with all pauses shifted along the trial.

Shifting all pauses together around the trial, as on a circle, keeps the autocorrelation of pauses and latencies, and
breaks only their association (random toroidal shifts: Lotwick & Silverman 1982, J. R. Stat. Soc. B 44, 406). Shuffling
seconds would lose both, and see a cause in anything that comes in bursts.
"""

from __future__ import annotations

import numpy as np


def with_pause(second: np.ndarray, at: np.ndarray, length: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """
    Whether each second overlaps a pause: one row per shift.

    Parameters
    ----------
    second : array of int
        Ordinals of the observed seconds, from 0; those between that are missing stay empty.
    at, length : array
        Start of each pause since the start of second 0, and its length, both in seconds.
    shifts : array
        Seconds by which all pauses are late; what leaves at the end comes back at the start.

    Examples
    --------
    >>> with_pause(np.arange(4), np.array([0.9, 3.5]), np.array([0.2, 0.1]), np.array([0.0, 1.0])).astype(int)
    array([[1, 1, 0, 1],
           [1, 1, 1, 0]])
    """
    size = int(second.max()) + 1
    ends = np.minimum(at + length, size)
    at = np.maximum(at, 0.0)
    at, length = at[ends > at], (ends - at)[ends > at]
    starts = (at[None, :] + shifts[:, None]) % size
    first = np.minimum(np.floor(starts).astype(int), size - 1)
    last = np.maximum(np.ceil(starts + length).astype(int) - 1, first)
    # +1 where a pause begins to cover seconds and -1 after, over two turns of the circle
    width = 2 * size + 1
    rows = np.arange(len(shifts))[:, None] * width
    steps = np.bincount((rows + first).ravel(), minlength=len(shifts) * width)
    steps = steps - np.bincount((rows + last + 1).ravel(), minlength=len(shifts) * width)
    covered = np.cumsum(steps.reshape(len(shifts), width), axis=1) > 0
    return (covered[:, :size] | covered[:, size : 2 * size])[:, second]
