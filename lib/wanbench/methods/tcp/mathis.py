"""The square-root law of loss-limited TCP (Mathis, Semke, Mahdavi & Ott 1997)."""

from __future__ import annotations

import numpy as np

from .window import BITS

MSS_BYTES = 1448
"""Payload of a segment of 1,500 bytes: 20 IPv4, 20 TCP, 12 timestamps."""
PERIODIC = np.sqrt(3 / 2)
"""
Constant of the law for evenly spaced losses (Mathis et al. 1997), for a sender whose window grows by one segment per
round trip, whatever its receiver acknowledges (Linux counts bytes, RFC 3465). For a sender that counts delayed
acknowledgements it is smaller by 1/sqrt(2).
"""
RANDOM = 1.3098
"""Constant of the law for the same sender if each packet is lost independently (Ott, Kemperman & Mathis 1996)."""


def mathis_bps(loss, rtt_ms, constant=PERIODIC):
    """
    Throughput of loss-limited Reno: constant x MSS / (RTT sqrt(p)), in bit/s.

    The law ignores timeouts and the receiver's window: it is too high beyond a loss of about 2 %, and wherever a
    window or the link is the limit. It holds for senders that halve their window. It does not hold for CUBIC beyond its
    Reno-friendly region, nor for BBR, which tolerates loss up to about 2 % (version 1: some 15 %).

    Parameters
    ----------
    loss : float or array
        Probability that a packet is lost, strictly the rate of loss events (several losses in one window count
        once).
    rtt_ms : float or array
    constant : float
        `PERIODIC` or `RANDOM`.

    Examples
    --------
    >>> round(float(mathis_bps(1e-4, 100)) / 1e6, 2)
    14.19
    """
    rtt_s, loss = np.asarray(rtt_ms, dtype=float) / 1000, np.asarray(loss, dtype=float)
    with np.errstate(divide="ignore"):
        return BITS * constant * MSS_BYTES / (rtt_s * np.sqrt(loss))
