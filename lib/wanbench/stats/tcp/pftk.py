"""Reno with timeouts and a receiver's window: the full model of Padhye, Firoiu, Towsley & Kurose (1998)."""

from __future__ import annotations

import numpy as np

from .mathis import MSS_BYTES
from .window import BITS

LEAST_RTO_MS = 200.0
"""Least retransmission timeout of Linux (RFC 6298 would have 1 s)."""
SMALLEST = 1e-12


def pftk_bps(loss, rtt_ms, mss_bytes=MSS_BYTES, window_bytes=np.inf, rto_ms=None, packets_per_ack=1):
    """
    Send rate of a Reno sender: equation 32 of Padhye et al. (1998), the full model.

    A loss ends the growth of the window by three duplicate acknowledgements or, the likelier the smaller the window,
    by a timeout that doubles up to 64 times itself. The window stays below the receiver's. Several losses of one
    round count as one, so `loss` is a rate of loss events. Where senders are not of Reno's kind, as for `mathis_bps`.

    Parameters
    ----------
    loss : float or array
        Between 0 and 1; 0 leaves the window alone.
    rtt_ms, mss_bytes, window_bytes : float or array
        `window_bytes` is the receiver's; infinite for none.
    rto_ms : float or array, optional
        The first timeout, T0; without it the round-trip time plus 200 ms, as Linux has on a path without jitter.
    packets_per_ack : float
        b: 2 where the sender counts delayed acknowledgements; 1 where it counts bytes (Linux).

    Examples
    --------
    Without loss, the window per round trip; with little loss, nearly the square-root law; with much, far below it:

    >>> float(pftk_bps(0, 80, window_bytes=65_536).round())
    6553600.0
    >>> [round(float(pftk_bps(p, 80)) / 1e6, 2) for p in (1e-5, 1e-2, 0.1)]
    [56.04, 1.62, 0.32]
    """
    p, rtt_s, mss, most = (np.asarray(v, dtype=float) for v in (loss, rtt_ms, mss_bytes, window_bytes))
    rtt_s, most = rtt_s / 1000, np.maximum(most / mss, 1.0)
    rto_s = rtt_s + LEAST_RTO_MS / 1000 if rto_ms is None else np.asarray(rto_ms, dtype=float) / 1000
    p, b = np.clip(p, SMALLEST, 1 - SMALLEST), packets_per_ack
    free = unlimited_window(p, b)
    window = np.minimum(free, most)
    packets = (1 - p) / p + window
    is_free = free < most
    with np.errstate(invalid="ignore", over="ignore"):
        rounds = np.where(is_free, b / 2 * free + 1, b / 8 * window + (1 - p) / (p * window) + 2)
    timed_out = timeout_share(p, window)
    pause_s = timed_out * backoff(p) * rto_s / (1 - p)
    sent = BITS * mss * (packets + timed_out / (1 - p)) / (rtt_s * rounds + pause_s)
    return np.where(np.asarray(loss) <= 0, BITS * mss * most / rtt_s, sent)


def unlimited_window(loss, packets_per_ack=1):
    """Mean window in segments when a loss occurs, without a receiver's limit (Padhye et al. 1998, eq. 13)."""
    b = packets_per_ack
    part = (2 + b) / (3 * b)
    return part + np.sqrt(8 * (1 - loss) / (3 * b * loss) + part**2)


def timeout_share(loss, window):
    """
    Probability that a loss in a window of so many segments ends in a timeout (Padhye et al. 1998, eq. 24).

    >>> float(timeout_share(0.01, 3)), round(float(timeout_share(0.01, 30)), 3)
    (1.0, 0.14)
    """
    p, window = np.asarray(loss, dtype=float), np.asarray(window, dtype=float)
    log_kept = np.log1p(-p)
    three = -np.expm1(3 * log_kept)
    rest = 1 - (1 - three) * np.expm1(np.maximum(window - 3, 0) * log_kept)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = three * rest / -np.expm1(window * log_kept)
    return np.where(window <= 3, 1.0, np.minimum(1.0, share))


def backoff(loss):
    """Mean of a sequence of timeouts over the first: they double six times (Padhye et al. 1998, eq. 29)."""
    return 1 + loss * (1 + loss * (2 + loss * (4 + loss * (8 + loss * (16 + loss * 32)))))
