"""Reno with timeouts and a receiver's window: the full model of Padhye, Firoiu, Towsley & Kurose (1998)."""

from __future__ import annotations

import numpy as np

from .mathis import MSS_BYTES
from .window import BITS

MIN_RTO_MS = 200.0
"""Minimum retransmission timeout of Linux (RFC 6298 recommends 1 s)."""
TINY_LOSS = 1e-12
"""Minimum loss in the formula: below it, 1 / p leaves no digits for the other terms."""


def pftk_bps(loss, rtt_ms, window_bytes=np.inf, rto_ms=None):
    """
    Send rate of a Reno sender in bit/s: equation 32 of Padhye et al. (1998), the full model.

    A loss stops the window's growth by three duplicate acknowledgements or, more often for small windows, by a timeout,
    which backs off to at most 64 times its length. The window stays below the receiver's. The window grows by one
    segment per round trip (b = 1), as Linux counts acknowledged bytes. Several losses of one round count as one, so
    `loss` is a rate of loss events. As for `mathis_bps`, the sender must behave like Reno.

    Parameters
    ----------
    loss : float or array
        Between 0 and 1; without loss only the window limits.
    rtt_ms, window_bytes : float or array
        `window_bytes` is the receiver's; infinite for none.
    rto_ms : float or array, optional
        The first timeout, T0; by default the round-trip time plus 200 ms, as in Linux on a path without jitter.

    Examples
    --------
    Without loss, the window per round trip; with little loss, nearly the square-root law; with much, far below it:

    >>> float(pftk_bps(0, 80, window_bytes=65_536).round())
    6553600.0
    >>> [round(float(pftk_bps(p, 80)) / 1e6, 2) for p in (1e-5, 1e-2, 0.1)]
    [56.04, 1.62, 0.32]
    """
    loss, rtt_s, max_window = (np.asarray(v, dtype=float) for v in (loss, rtt_ms, window_bytes))
    rtt_s, max_window = rtt_s / 1000, np.maximum(max_window / MSS_BYTES, 1.0)
    rto_s = rtt_s + MIN_RTO_MS / 1000 if rto_ms is None else np.asarray(rto_ms, dtype=float) / 1000
    p = np.clip(loss, TINY_LOSS, 1 - TINY_LOSS)
    unlimited = unlimited_window(p)
    window = np.minimum(unlimited, max_window)
    # Round trips between two losses: growth from half the window, or growth up to the receiver's window and then
    # a steady flight. The unused branch may be inf / inf.
    with np.errstate(invalid="ignore", over="ignore"):
        limited_rounds = window / 8 + (1 - p) / (p * window) + 2
    rounds = np.where(unlimited < max_window, unlimited / 2 + 1, limited_rounds)
    timed_out = timeout_share(p, window)
    segments = (1 - p) / p + window + timed_out / (1 - p)
    sent = BITS * MSS_BYTES * segments / (rtt_s * rounds + timed_out * backoff(p) * rto_s / (1 - p))
    return np.where(loss <= 0, BITS * MSS_BYTES * max_window / rtt_s, sent)


def unlimited_window(loss):
    """Mean window in segments when a loss occurs, without a receiver's limit (Padhye et al. 1998, eq. 13, b = 1)."""
    return 1 + np.sqrt(8 * (1 - loss) / (3 * loss) + 1)


def timeout_share(loss, window):
    """
    Probability that a loss in a window of this many segments ends in a timeout (Padhye et al. 1998, eq. 24).

    >>> float(timeout_share(0.01, 3)), round(float(timeout_share(0.01, 30)), 3)
    (1.0, 0.14)
    """
    p, window = np.asarray(loss, dtype=float), np.asarray(window, dtype=float)
    log_kept = np.log1p(-p)  # log1p and expm1 keep the digits that 1 - (1 - p)^n loses at small p
    three_lost = -np.expm1(3 * log_kept)
    rest = 1 - (1 - three_lost) * np.expm1(np.maximum(window - 3, 0) * log_kept)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = three_lost * rest / -np.expm1(window * log_kept)
    return np.where(window <= 3, 1.0, np.minimum(1.0, share))


def backoff(loss):
    """Mean length of a sequence of timeouts, in first timeouts: they double six times (Padhye et al. 1998, eq. 29)."""
    return 1 + loss * np.polynomial.polynomial.polyval(loss, [1, 2, 4, 8, 16, 32])
