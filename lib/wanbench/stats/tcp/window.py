"""Throughput of a window that limits, buffers that would not, and how many streams make up for one that does."""

from __future__ import annotations

import numpy as np

BITS = 8
WINDOW_SHARE = 0.64
"""
Part of a receive buffer that Linux advertises as window, for segments of 1,448 bytes: 0.61 where they arrive one by
one, 0.66 where the device joins them (measured, 6.18). Since 6.6 the kernel takes it from the memory that packets
really fill; before, it was half of the buffer (`tcp_adv_win_scale` = 1).
"""


def window_limited_bps(window_bytes, rtt_ms, capacity_bps=np.inf, streams=1):
    """
    Throughput of streams with at most `window_bytes` unacknowledged each: min(C, n 8 W / RTT).

    Parameters
    ----------
    window_bytes, rtt_ms, capacity_bps, streams : float or array
        Broadcast against each other; bytes and streams are per connection and a count.

    Examples
    --------
    >>> float(window_limited_bps(65_536, 80))
    6553600.0
    >>> float(window_limited_bps(65_536, 80, capacity_bps=50e6, streams=10))
    50000000.0
    """
    window_bytes, rtt_s = np.asarray(window_bytes, dtype=float), np.asarray(rtt_ms, dtype=float) / 1000
    return parallel_bps(BITS * window_bytes / rtt_s, streams, capacity_bps)


def parallel_bps(stream_bps, streams, capacity_bps=np.inf):
    """
    Throughput of parallel streams: n times that of one, up to the bandwidth limit.

    It holds for streams that a window limits, and for those that loss limits as long as each loss meets only one of
    them. Beyond the limit they share it and fill the queue; more of them then only take from others.

    >>> float(parallel_bps(6.5e6, 4, 50e6)), float(parallel_bps(6.5e6, 16, 50e6))
    (26000000.0, 50000000.0)
    """
    return np.minimum(capacity_bps, streams * np.asarray(stream_bps, dtype=float))


def buffer_bytes(rate_bps, rtt_ms):
    """
    The bandwidth-delay product: bytes in flight that fill a path, and so the least window that does.

    A socket buffer must be larger, as it also holds the kernel's bookkeeping (Linux: about twice).

    >>> float(buffer_bytes(1e9, 80))
    10000000.0
    """
    return np.asarray(rate_bps, dtype=float) * np.asarray(rtt_ms, dtype=float) / 1000 / BITS


def streams_needed(rate_bps, window_bytes, rtt_ms):
    """
    The fewest parallel streams of this window that fill a rate.

    >>> float(streams_needed(50e6, 65_536, 80)), float(streams_needed(1e6, 65_536, 80))
    (8.0, 1.0)
    """
    flight = buffer_bytes(rate_bps, rtt_ms) / np.asarray(window_bytes, dtype=float)
    return np.maximum(1.0, np.ceil(flight - 1e-9))


def advertised_window_bytes(receive_buffer_bytes, share=WINDOW_SHARE):
    """
    The window that a Linux receiver advertises for a buffer, when the application reads at once.

    The buffer is what autotuning may reach, the third number of `tcp_rmem`; or twice what a program asks for by
    SO_RCVBUF (iperf3 -w), which the kernel doubles for its bookkeeping, `net.core.rmem_max` at the most before that.
    What it really is, the sender's kernel tells: `ss -ti`, snd_wnd.

    >>> round(float(advertised_window_bytes(2 * 65_536)), 1)
    83886.1
    """
    return np.asarray(receive_buffer_bytes, dtype=float) * share
