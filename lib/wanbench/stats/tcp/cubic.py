"""CUBIC's average window under loss (RFC 9438), with its Reno-friendly region."""

from __future__ import annotations

import numpy as np

from .mathis import MSS_BYTES, PERIODIC
from .window import BITS

SCALE, DECREASE = 0.4, 0.7
"""C in segments per s^3, and the factor beta by which a loss shrinks the window (RFC 9438, section 4.6 and 5)."""
CONVEX = (SCALE * (3 + DECREASE) / (4 * (1 - DECREASE))) ** 0.25
"""1.054: mean window of the cubic region over (RTT / p) ^ (3/4), for losses at even distance (RFC 9438, 5.1)."""


def cubic_window(loss, rtt_ms, friendly=PERIODIC, convex=CONVEX):
    """
    Average window of CUBIC in segments (RFC 9438, section 5.1): the greater of its two regions.

    At short round-trip times or much loss CUBIC is held to what Reno would reach, sqrt(3/2) / sqrt(p); else its
    window is 1.054 (RTT / p) ^ (3/4), RTT in seconds. The greater of the two averages is slightly less than the
    average of the greater, near where they meet.

    Parameters
    ----------
    loss, rtt_ms : float or array
    friendly, convex : float
        Constants of both regions; those given are of losses at even distance.

    Examples
    --------
    At an RTT of 0.1 s, as in the tables of RFC 9438; and in the Reno-friendly region:

    >>> [round(float(cubic_window(p, 100))) for p in (1e-4, 1e-5)], round(float(cubic_window(1e-2, 10)), 1)
    ([187, 1054], 12.2)
    """
    rtt_s, loss = np.asarray(rtt_ms, dtype=float) / 1000, np.asarray(loss, dtype=float)
    with np.errstate(divide="ignore"):
        return np.maximum(friendly / np.sqrt(loss), convex * (rtt_s / loss) ** 0.75)


def cubic_bps(loss, rtt_ms, mss_bytes=MSS_BYTES, friendly=PERIODIC, convex=CONVEX):
    """
    Throughput of loss-limited CUBIC: its average window per round trip.

    Timeouts and the receiver's window are not in it, nor are senders of another kind: see `mathis_bps` on BBR.

    >>> round(float(cubic_bps(1e-4, 100)) / 1e6, 1)
    21.7
    """
    rtt_s = np.asarray(rtt_ms, dtype=float) / 1000
    return BITS * mss_bytes * cubic_window(loss, rtt_ms, friendly, convex) / rtt_s
