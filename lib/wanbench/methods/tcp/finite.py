"""
Transfers of finite length: slow start, then the steady state, without loss (Cardwell, Savage & Anderson 2000).

A connection begins with about ten segments and doubles them each round trip, so a short test at a long round-trip time
measures the RTT rather than the path: 10 MB at 200 ms spend most of their time in slow start.
"""

from __future__ import annotations

import numpy as np

from .mathis import MSS_BYTES

INITIAL_SEGMENTS = 10
"""First flight (RFC 6928)."""


def transfer_time_s(transfer_bytes, rtt_ms, window_bytes=np.inf):
    """
    Time of a transfer until its last acknowledgement (Cardwell, Savage & Anderson 2000, equation 15).

    Parameters
    ----------
    transfer_bytes, rtt_ms, window_bytes : float or array
        Broadcast against each other. For a path of capacity C, give `window_bytes` as the smaller of the window and
        C x RTT / 8 (`buffer_bytes`).

    Examples
    --------
    10 MB at 200 ms through a window of 3 MiB: the time, and the rate, which in the steady state would be 126 Mbit/s:

    >>> time_s = transfer_time_s(10e6, 200, 3 * 2**20)
    >>> round(float(time_s), 2), round(float(80e6 / time_s) / 1e6, 1)
    (1.99, 40.2)
    """
    segments = np.maximum(np.asarray(transfer_bytes, dtype=float) / MSS_BYTES, 1.0)
    first, max_flight, ramp = _slow_start(window_bytes)
    with np.errstate(invalid="ignore", over="ignore"):
        growing = np.log2(segments / first + 1)
        steady = ramp + (segments - (2 * max_flight - first)) / max_flight
    return np.asarray(rtt_ms, dtype=float) / 1000 * np.where(growing <= ramp, growing, steady)


def bytes_sent(duration_s, rtt_ms, window_bytes=np.inf):
    """
    Bytes sent and acknowledged within a time: the inverse of `transfer_time_s`.

    >>> round(float(bytes_sent(1.989, 200, 3 * 2**20)) / 1e6, 1)
    10.0
    """
    rounds = np.asarray(duration_s, dtype=float) / (np.asarray(rtt_ms, dtype=float) / 1000)
    first, max_flight, ramp = _slow_start(window_bytes)
    with np.errstate(invalid="ignore", over="ignore"):
        growing = first * (np.exp2(np.minimum(rounds, np.minimum(ramp, 500.0))) - 1)  # 2^500: no overflow
        steady = 2 * max_flight - first + max_flight * (rounds - ramp)
    return MSS_BYTES * np.where(rounds <= ramp, growing, steady)


def _slow_start(window_bytes):
    """The first and the largest flight in segments, and the round trips until the largest is sent."""
    max_flight = np.maximum(np.asarray(window_bytes, dtype=float) / MSS_BYTES, 1.0)
    first = np.minimum(INITIAL_SEGMENTS, max_flight)
    return first, max_flight, np.log2(max_flight / first) + 1
