"""Throughput of a window-limited sender, and the windows that socket buffers allow."""

from __future__ import annotations

import numpy as np

BITS = 8
"""Bits per byte."""
WINDOW_SHARE = 0.64
"""
Part of a receive buffer that Linux advertises as window, for segments of 1,448 bytes: 0.61 if they arrive one by one,
0.66 if the device merges them (measured, 6.18). Since 6.6 the kernel derives it from the memory that packets actually
use; before, it was half of the buffer (`tcp_adv_win_scale` = 1).
"""


def window_limited_bps(window_bytes, rtt_ms, capacity_bps=np.inf):
    """
    Throughput of a sender with at most `window_bytes` unacknowledged: min(C, 8 W / RTT), in bit/s.

    Parameters
    ----------
    window_bytes, rtt_ms, capacity_bps : float or array
        Broadcast against each other.

    Examples
    --------
    >>> float(window_limited_bps(65_536, 80)), float(window_limited_bps(65_536, 80, capacity_bps=5e6))
    (6553600.0, 5000000.0)
    """
    rtt_s = np.asarray(rtt_ms, dtype=float) / 1000
    return np.minimum(capacity_bps, BITS * np.asarray(window_bytes, dtype=float) / rtt_s)


def buffer_bytes(rate_bps, rtt_ms):
    """
    The bandwidth-delay product: bytes in flight that fill a path, which is the smallest sufficient window.

    A socket buffer must be larger, as it also holds the kernel's bookkeeping (Linux: about twice).

    >>> float(buffer_bytes(1e9, 80))
    10000000.0
    """
    return np.asarray(rate_bps, dtype=float) * np.asarray(rtt_ms, dtype=float) / 1000 / BITS


def advertised_window_bytes(receive_buffer_bytes):
    """
    The window that a Linux receiver advertises for a buffer, when the application reads at once.

    The buffer is the one that autotuning may reach, the third number of `tcp_rmem`. A program that sets SO_RCVBUF
    itself (iperf3 -w) gets twice the requested size, up to twice `net.core.rmem_max`: the kernel adds room for
    bookkeeping. `ss -ti` on the sender shows the real window as snd_wnd.

    >>> round(float(advertised_window_bytes(2 * 65_536)), 1)
    83886.1
    """
    return np.asarray(receive_buffer_bytes, dtype=float) * WINDOW_SHARE
