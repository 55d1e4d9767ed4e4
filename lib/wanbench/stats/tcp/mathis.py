"""The square-root law of loss-limited TCP (Mathis, Semke, Mahdavi & Ott 1997)."""

from __future__ import annotations

import numpy as np

from .window import BITS

MSS_BYTES = 1448
"""Payload of a segment of 1,500 bytes: 20 IPv4, 20 TCP, 12 timestamps."""

PERIODIC, RANDOM = np.sqrt(3 / 2), 1.3098
"""
Constant of the law for a sender that grows one segment per round trip, whatever its receiver acknowledges
(Linux counts bytes, RFC 3465): losses at even distance (Mathis et al. 1997), and losses that fall on each packet
independently (Ott, Kemperman & Mathis 1996: 1.31). A sender that counts delayed acknowledgements has 1/sqrt(2) of
either.
"""


def mathis_bps(loss, rtt_ms, mss_bytes=MSS_BYTES, constant=PERIODIC):
    """
    Throughput of loss-limited Reno: constant x MSS / (RTT sqrt(p)).

    It has neither timeouts nor a receiver's window: too high beyond a loss of about 2 %, and wherever a window
    or the link is the limit. It holds for senders that halve their window; not for CUBIC beyond its Reno-friendly
    region, and not for BBR, which sends at the rate it has measured and hardly minds loss below about 2 % (version 2
    and later; version 1 up to some 15 %): there no loss follows from a throughput.

    Parameters
    ----------
    loss : float or array
        Probability that a packet is lost, strictly the rate of loss events (several losses in one window count
        once).
    rtt_ms, mss_bytes, constant : float or array

    Examples
    --------
    >>> round(float(mathis_bps(1e-4, 100)) / 1e6, 2)
    14.19
    """
    rtt_s, loss = np.asarray(rtt_ms, dtype=float) / 1000, np.asarray(loss, dtype=float)
    with np.errstate(divide="ignore"):
        return BITS * constant * mss_bytes / (rtt_s * np.sqrt(loss))


def mathis_loss(throughput_bps, rtt_ms, mss_bytes=MSS_BYTES, constant=PERIODIC):
    """
    The loss at which `mathis_bps` gives this throughput.

    >>> float(mathis_loss(mathis_bps(1e-4, 100), 100).round(8))
    0.0001
    """
    rtt_s = np.asarray(rtt_ms, dtype=float) / 1000
    return (BITS * constant * mss_bytes / (rtt_s * np.asarray(throughput_bps, dtype=float))) ** 2
