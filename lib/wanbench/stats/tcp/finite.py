"""
Transfers that end: slow start, then the steady state (Cardwell, Savage & Anderson 2000).

A connection begins with about ten segments and doubles them each round trip, so a short test at a long round-trip
time says more of the RTT than of the path: 10 MB at 200 ms spend most of their time in slow start.
"""

from __future__ import annotations

import numpy as np

from .mathis import MSS_BYTES
from .pftk import LEAST_RTO_MS, SMALLEST, backoff, pftk_bps, timeout_share
from .window import BITS

INITIAL_SEGMENTS = 10
"""First flight (RFC 6928)."""
GROWTH = 2.0
"""Flight of one round trip over that of the round before; 1.5 where the sender counts delayed acknowledgements."""
FIRST_RTO_MS = 1000.0
"""Timeout of a SYN (RFC 6298)."""


def transfer_time_s(
    transfer_bytes,
    rtt_ms,
    *,
    loss=0.0,
    mss_bytes=MSS_BYTES,
    window_bytes=np.inf,
    rto_ms=None,
    initial_segments=INITIAL_SEGMENTS,
    growth=GROWTH,
    handshake=False,
):
    """
    Expected time of a transfer: Cardwell, Savage & Anderson (2000), equation 22 and those before it.

    It is the sum of slow start until the first loss, of the recovery from that loss, and of the rest at the steady
    rate of the full model of Padhye et al. (`pftk_bps`). The last acknowledgement is waited for.

    Parameters
    ----------
    transfer_bytes, rtt_ms, loss, mss_bytes, window_bytes, rto_ms : float or array
        Broadcast against each other. For a path of capacity C, give `window_bytes` as the lesser of the window and
        C x RTT / 8 (`buffer_bytes`).
    initial_segments, growth : float
        First flight and growth per round trip.
    handshake : bool
        Add the connection's set-up: a round trip, and timeouts of 1 s for lost SYNs.

    Examples
    --------
    10 MB at 200 ms through a window of 3 MiB, and what that is as a rate, against the steady 126 Mbit/s:

    >>> time_s = transfer_time_s(10e6, 200, window_bytes=3 * 2**20)
    >>> round(float(time_s), 2), round(float(80e6 / time_s) / 1e6, 1)
    (1.99, 40.2)
    """
    given = (transfer_bytes, rtt_ms, loss, mss_bytes, window_bytes)
    size, rtt, p, mss, most = np.broadcast_arrays(*(np.asarray(value, dtype=float) for value in given))
    rtt_s, d, most = rtt / 1000, np.maximum(size / mss, 1.0), np.maximum(most / mss, 1.0)
    rto = rtt + LEAST_RTO_MS if rto_ms is None else np.asarray(rto_ms, dtype=float)
    lossless = p <= 0
    q = np.clip(p, SMALLEST, 1 - 1e-9)
    any_loss = -np.expm1(d * np.log1p(-q))
    in_slow_start = np.where(lossless, d, np.minimum(d, any_loss * (1 - q) / q + 1))
    first = np.minimum(initial_segments, most)
    reached = np.minimum(in_slow_start * (growth - 1) / growth + first / growth, most)
    time_s = rtt_s * slow_start_rounds(in_slow_start, most, first, growth)
    by_timeout = timeout_share(q, reached)
    recovery_s = by_timeout * backoff(q) * rto / 1000 / (1 - q) + (1 - by_timeout) * rtt_s
    rate = pftk_bps(q, rtt, mss, most * mss, rto) / BITS / mss
    rest_s = any_loss * recovery_s + (d - in_slow_start) / rate
    time_s = time_s + np.where(lossless, 0.0, rest_s)
    if handshake:
        time_s = (
            time_s
            + rtt_s
            + 2 * FIRST_RTO_MS / 1000 * np.where(q < 0.5, q / np.maximum(1 - 2 * q, 1e-9), np.inf)
        )
    return time_s


def slow_start_rounds(segments, most, first=INITIAL_SEGMENTS, growth=GROWTH):
    """
    Round trips of slow start until so many segments are sent, with a flight of at most `most` (equation 15).

    >>> float(slow_start_rounds(70, np.inf)), float(slow_start_rounds(70, 20))
    (3.0, 4.0)
    """
    first = np.minimum(first, most)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        free = np.log(segments * (growth - 1) / first + 1) / np.log(growth)
        ramp = np.log(most / first) / np.log(growth) + 1
        bound = ramp + (segments - (growth * most - first) / (growth - 1)) / most
    return np.where(free <= ramp, free, bound)


def bytes_sent(
    duration_s,
    rtt_ms,
    *,
    window_bytes=np.inf,
    mss_bytes=MSS_BYTES,
    initial_segments=INITIAL_SEGMENTS,
    growth=GROWTH,
):
    """
    What a connection without loss sends and has acknowledged within a time: `transfer_time_s` the other way round.

    >>> round(float(bytes_sent(1.989, 200, window_bytes=3 * 2**20)) / 1e6, 1)
    10.0
    """
    mss, most = np.asarray(mss_bytes, dtype=float), np.asarray(window_bytes, dtype=float)
    most = np.maximum(most / mss, 1.0)
    rounds = np.asarray(duration_s, dtype=float) / (np.asarray(rtt_ms, dtype=float) / 1000)
    first = np.minimum(initial_segments, most)
    with np.errstate(invalid="ignore", over="ignore"):
        ramp = np.log(most / first) / np.log(growth) + 1
        free = first * np.expm1(np.minimum(rounds, np.minimum(ramp, 500.0)) * np.log(growth)) / (growth - 1)
        bound = (growth * most - first) / (growth - 1) + most * (rounds - ramp)
    return mss * np.where(rounds <= ramp, free, bound)
