"""CUBIC's average window under loss (RFC 9438), with its Reno-friendly region."""

from __future__ import annotations

import numpy as np

from .mathis import MSS_BYTES, PERIODIC
from .window import BITS

SCALE = 0.4
"""C, in segments per s^3 (RFC 9438, section 5)."""
DECREASE = 0.7
"""The factor beta by which a loss shrinks the window (RFC 9438, section 4.6)."""
CONVEX = (SCALE * (3 + DECREASE) / (4 * (1 - DECREASE))) ** 0.25
"""1.054: mean window of the cubic region over (RTT / p) ^ (3/4), for evenly spaced losses (RFC 9438, section 5.1)."""


def cubic_bps(loss, rtt_ms):
    """
    Throughput of loss-limited CUBIC, in bit/s: the average window of RFC 9438 (section 5.1) per round trip.

    At short round-trip times or much loss CUBIC keeps Reno's window, sqrt(3/2) / sqrt(p); elsewhere its window is
    1.054 (RTT / p) ^ (3/4), RTT in seconds. The larger of the two averages is slightly less than the average of the
    larger window, near where they meet. The formula ignores timeouts and the receiver's window.

    Parameters
    ----------
    loss, rtt_ms : float or array

    Examples
    --------
    Windows at an RTT of 0.1 s, as in the tables of RFC 9438:

    >>> [round(float(cubic_bps(p, 100)) * 0.1 / (8 * 1448)) for p in (1e-4, 1e-5)]
    [187, 1054]
    """
    rtt_s, loss = np.asarray(rtt_ms, dtype=float) / 1000, np.asarray(loss, dtype=float)
    with np.errstate(divide="ignore"):
        segments = np.maximum(PERIODIC / np.sqrt(loss), CONVEX * (rtt_s / loss) ** 0.75)
    return BITS * MSS_BYTES * segments / rtt_s
