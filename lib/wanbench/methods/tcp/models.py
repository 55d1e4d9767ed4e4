"""
Model TCP throughput: vectorised formulas, and curves of log throughput to fit to pairs.

The formulas describe a window-limited sender, Reno under loss (Mathis et al. 1997; with timeouts: Padhye et al. 1998),
CUBIC (RFC 9438), and a transfer of finite duration (Cardwell, Savage & Anderson 2000).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from wanbench.checks import check_number

BITS = 8  # Bits per byte
# Share of a receive buffer that Linux advertises as window, for segments of 1,448 bytes: 0.61 if they arrive singly,
# 0.66 if the device merges them (measured with Linux 6.18). Since 6.6 the kernel derives the share from the memory that
# packets actually use; before, it was one half (`tcp_adv_win_scale` = 1).
WINDOW_SHARE = 0.64
MSS_BYTES = 1448  # Payload of a segment of 1,500 bytes: 20 IPv4, 20 TCP, 12 timestamps
# Constant of Mathis's law for evenly spaced losses (1997), for a sender whose window grows by one segment per round
# trip because it counts acknowledged bytes, as Linux does (RFC 3465). For a sender that counts delayed acknowledgements
# it is smaller by a factor 1/sqrt(2).
PERIODIC = np.sqrt(3 / 2)
# Constant of the law for the same sender if each packet is lost independently (Ott, Kemperman & Mathis 1996)
RANDOM = 1.3098
MIN_RTO_MS = 200.0  # Minimum retransmission timeout of Linux (RFC 6298 recommends 1 s)
TINY_LOSS = 1e-12  # Minimum loss in the formula: below it, the other terms are lost in the rounding of 1 / p
SCALE = 0.4  # C, in segments per s^3 (RFC 9438, section 5)
DECREASE = 0.7  # The factor beta by which a loss shrinks the window (RFC 9438, section 4.6)
# 1.054: mean window of the cubic region over (RTT / p) ^ (3/4), for evenly spaced losses (RFC 9438, section 5.1)
CONVEX = (SCALE * (3 + DECREASE) / (4 * (1 - DECREASE))) ** 0.25
INITIAL_SEGMENTS = 10  # First flight (RFC 6928)
MIN_LOSS = 1e-10  # Smallest loss that a fit tries: at 1 ms Reno would reach 1.4 Tbit/s, more than any path
MAX_LOSS = 0.4  # Largest loss that a fit tries: beyond it the formulas no longer hold, and a transfer hardly moves
UNITS = {"W": "bytes", "p": "fraction", "C": "bit/s"}
CONSTANT = "constant"  # Name of the model with one throughput for all pairs: the baseline that a useful model must beat


def window_limited_bps(window_bytes: ArrayLike, rtt_ms: ArrayLike, capacity_bps: ArrayLike = np.inf) -> Any:
    """
    Compute the throughput of a sender with at most `window_bytes` unacknowledged: min(C, 8 W / RTT), in bit/s.

    window_bytes, rtt_ms, capacity_bps: Broadcast against each other.

    >>> float(window_limited_bps(65_536, 80)), float(window_limited_bps(65_536, 80, capacity_bps=5e6))
    (6553600.0, 5000000.0)
    """
    rtt_s = np.asarray(rtt_ms, dtype=float) / 1000
    return np.minimum(capacity_bps, BITS * np.asarray(window_bytes, dtype=float) / rtt_s)


def buffer_bytes(rate_bps: ArrayLike, rtt_ms: ArrayLike) -> Any:
    """
    Return the bandwidth-delay product: the bytes in flight that fill a path, and so the smallest sufficient window.

    A socket buffer must be larger, as it also holds the kernel's bookkeeping (Linux: about twice).

    >>> float(buffer_bytes(1e9, 80))
    10000000.0
    """
    return np.asarray(rate_bps, dtype=float) * np.asarray(rtt_ms, dtype=float) / 1000 / BITS


def advertised_window_bytes(receive_buffer_bytes: ArrayLike) -> Any:
    """
    Return the window that a Linux receiver advertises if the application reads at once.

    `ss -ti` on the sender shows the real window as snd_wnd.

    receive_buffer_bytes: With autotuning, the third number of `tcp_rmem`. For a program that sets SO_RCVBUF (iperf3 -w)
        it is twice the requested size, at most twice `net.core.rmem_max`, as the kernel adds room for bookkeeping.

    >>> round(float(advertised_window_bytes(2 * 65_536)), 1)
    83886.1
    """
    return np.asarray(receive_buffer_bytes, dtype=float) * WINDOW_SHARE


def mathis_bps(loss: ArrayLike, rtt_ms: ArrayLike, constant: float = PERIODIC) -> Any:
    """
    Compute the throughput of loss-limited Reno: constant x MSS / (RTT sqrt(p)), in bit/s.

    The law ignores timeouts and the receiver's window, so its throughput is too high beyond a loss of about 2 %. The
    law applies to senders that halve their window, not to CUBIC beyond its Reno-friendly region, nor to BBR.

    loss: Loss events per packet; several losses in one window count as one event.
    constant: `PERIODIC` or `RANDOM`.

    >>> round(float(mathis_bps(1e-4, 100)) / 1e6, 2)
    14.19
    """
    rtt_s, loss = np.asarray(rtt_ms, dtype=float) / 1000, np.asarray(loss, dtype=float)
    with np.errstate(divide="ignore"):
        return BITS * constant * MSS_BYTES / (rtt_s * np.sqrt(loss))


def pftk_bps(loss: ArrayLike, rtt_ms: ArrayLike, window_bytes: ArrayLike = np.inf) -> np.ndarray:
    """
    Compute the send rate of a Reno sender in bit/s: equation 32 of Padhye et al. (1998), the full model.

    The sender notices a loss by three duplicate acknowledgements or by a timeout, which is more frequent for small
    windows. Timeouts back off to at most 64 times the first. The window stays below the receiver's window, and grows by
    one segment per round trip (b = 1), as Linux counts acknowledged bytes.

    loss: Loss events per packet.

    >>> float(pftk_bps(0, 80, window_bytes=65_536).round())
    6553600.0
    >>> [round(float(pftk_bps(p, 80)) / 1e6, 2) for p in (1e-5, 1e-2, 0.1)]
    [56.04, 1.62, 0.32]
    """
    loss, rtt_s, max_window = (np.asarray(v, dtype=float) for v in (loss, rtt_ms, window_bytes))
    rtt_s, max_window = rtt_s / 1000, np.maximum(max_window / MSS_BYTES, 1.0)
    rto_s = rtt_s + MIN_RTO_MS / 1000  # as in Linux on a path without jitter
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


def unlimited_window(loss: float | np.ndarray) -> Any:
    """Return the mean window in segments when a loss occurs, without a receiver's limit (Padhye 1998, eq. 13, b=1)."""
    return 1 + np.sqrt(8 * (1 - loss) / (3 * loss) + 1)


def timeout_share(loss: ArrayLike, window: ArrayLike) -> np.ndarray:
    """
    Return the probability that a loss in a window (in segments) ends in a timeout (Padhye et al. 1998, eq. 24).

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


def backoff(loss: float | np.ndarray) -> Any:
    """
    Return the mean duration of a sequence of timeouts, in multiples of the first (Padhye et al. 1998, eq. 29).

    Timeouts double up to six times.
    """
    return 1 + loss * np.polynomial.polynomial.polyval(loss, [1, 2, 4, 8, 16, 32])


def cubic_bps(loss: ArrayLike, rtt_ms: ArrayLike) -> Any:
    """
    Compute the throughput of loss-limited CUBIC, in bit/s: the average window of RFC 9438 (section 5.1) per round trip.

    At short RTTs or much loss CUBIC keeps Reno's window, sqrt(3/2) / sqrt(p) segments. Elsewhere CUBIC's window is
    1.054 (RTT / p) ^ (3/4) segments, with the RTT in seconds. The formula ignores timeouts and the receiver's window.
    As in the RFC's tables:

    >>> [round(float(cubic_bps(p, 100)) * 0.1 / (8 * 1448)) for p in (1e-4, 1e-5)]
    [187, 1054]
    """
    rtt_s, loss = np.asarray(rtt_ms, dtype=float) / 1000, np.asarray(loss, dtype=float)
    with np.errstate(divide="ignore"):
        segments = np.maximum(PERIODIC / np.sqrt(loss), CONVEX * (rtt_s / loss) ** 0.75)
    return BITS * MSS_BYTES * segments / rtt_s


def bytes_sent(duration_s: ArrayLike, rtt_ms: ArrayLike, window_bytes: ArrayLike = np.inf) -> Any:
    """
    Compute the bytes sent and acknowledged in `duration_s` (Cardwell, Savage & Anderson 2000, equation 15, inverted).

    A connection starts with a window of about ten segments, which doubles each round trip. So a short test at a long
    RTT measures the RTT rather than the capacity of the path.

    window_bytes: For a path of capacity C, the smaller of the window and C x RTT / 8 (`buffer_bytes`).

    >>> round(float(bytes_sent(1.989, 200, 3 * 2**20)) / 1e6, 1)
    10.0
    """
    rounds = np.asarray(duration_s, dtype=float) / (np.asarray(rtt_ms, dtype=float) / 1000)
    max_flight = np.maximum(np.asarray(window_bytes, dtype=float) / MSS_BYTES, 1.0)
    first = np.minimum(INITIAL_SEGMENTS, max_flight)
    ramp = np.log2(max_flight / first) + 1  # round trips until the largest flight is sent
    with np.errstate(invalid="ignore", over="ignore"):
        growing = first * (np.exp2(np.minimum(rounds, np.minimum(ramp, 500.0))) - 1)  # 2^500: no overflow
        steady = 2 * max_flight - first + max_flight * (rounds - ramp)
    return MSS_BYTES * np.where(rounds <= ramp, growing, steady)


@dataclass(frozen=True)
class Paths:
    """Inputs of a throughput model: arrays with one value per pair."""

    rtt_ms: np.ndarray
    distance_km: np.ndarray

    def __len__(self) -> int:
        return len(self.rtt_ms)

    def __getitem__(self, rows: np.ndarray) -> Paths:
        return Paths(self.rtt_ms[rows], self.distance_km[rows])


@dataclass(frozen=True)
class ThroughputModel:
    """
    A model of throughput with parameters to fit.

    name, formula: Its name, and its formula in short with the source.
    parameters: Name and unit of each. A parameter with a unit is positive and fitted as its natural logarithm.
    curve: Function of parameter values (rows, parameters) and Paths; returns the natural logarithm of the throughput in
        bit/s (rows, pairs).
    bounds: Function of Paths and log throughput; returns the lowest and the highest value of each parameter.
    """

    name: str
    formula: str
    parameters: tuple[tuple[str, str], ...]
    curve: Callable[[np.ndarray, Paths], np.ndarray]
    bounds: Callable[[Paths, np.ndarray], tuple[np.ndarray, np.ndarray]]


def throughput_models(transfer_s: float | None = None) -> tuple[ThroughputModel, ...]:
    """
    Return all models.

    Each TCP model is limited by a fitted capacity C, because every path has a capacity and near pairs would otherwise
    dominate the fit. Mathis's curve then equals the window-limited curve: both are proportional to 1/RTT below C.

    transfer_s: The duration of each test in seconds; without it, the model of finite transfers is left out.
    """
    check_number("transfer_s", transfer_s, 0, above=True, optional=True)

    mathis = "one loss rate, MSS / (RTT sqrt(p)) (Mathis et al. 1997)"
    pftk = "one loss rate, timeouts and a window (Padhye et al. 1998)"
    tcp = [
        ("window-limited", "8 W / RTT", "W", lambda v, rtt_ms: window_limited_bps(v["W"], rtt_ms)),
        ("Mathis", mathis, "p", lambda v, rtt_ms: mathis_bps(v["p"], rtt_ms)),
        ("PFTK", pftk, "pW", lambda v, rtt_ms: pftk_bps(v["p"], rtt_ms, v["W"])),
        ("CUBIC", "one loss rate, average window of RFC 9438", "p", lambda v, rtt_ms: cubic_bps(v["p"], rtt_ms)),
    ]
    if transfer_s is not None:

        def finite_bps(v: dict[str, np.ndarray], rtt_ms: np.ndarray) -> Any:
            window = np.minimum(v["W"], buffer_bytes(v["C"], rtt_ms))
            return BITS * bytes_sent(transfer_s, rtt_ms, window) / transfer_s

        finite = "slow start, then 8 W / RTT (Cardwell, Savage & Anderson 2000)"
        tcp.append(("finite transfer", finite, "W", finite_bps))
    by_distance = "log throughput falls evenly with distance"
    return (
        *(_tcp(*model) for model in tcp),
        _line("log-distance", by_distance, "1,000 km", lambda paths: paths.distance_km / 1000),
        _line("log-log RTT", "a power of the RTT", "log RTT", lambda paths: np.log(paths.rtt_ms)),
        ThroughputModel(
            CONSTANT,
            "one throughput for all pairs, as a baseline",
            (("level", ""),),
            lambda values, paths: np.repeat(values, len(paths), axis=1),
            lambda paths, y: (np.array([y.min()]), np.array([y.max()])),
        ),
    )


def _tcp(
    name: str, formula: str, symbols: str, bps: Callable[[dict[str, np.ndarray], np.ndarray], np.ndarray]
) -> ThroughputModel:
    """
    Make a model from a TCP formula, with the capacity C as its last parameter.

    symbols: The formula's parameters, a letter each.
    bps: Function of the parameters by symbol and the RTTs in ms; returns bit/s.
    """
    letters = [*symbols, "C"]

    def curve(values: np.ndarray, paths: Paths):
        by_symbol = {symbol: np.exp(values[:, [k]]) for k, symbol in enumerate(letters)}
        return np.log(np.minimum(by_symbol["C"], bps(by_symbol, paths.rtt_ms)))

    def bounds(paths: Paths, y: np.ndarray):
        # W and C are near the values that pairs reach; a limit that no pair reaches may be up to e^2 times the largest.
        implied = y + np.log(paths.rtt_ms / 1000 / BITS)
        ends = {
            "W": (implied.min() - 1, implied.max() + 2),
            "C": (y.min(), y.max() + 2),
            "p": (np.log(MIN_LOSS), np.log(MAX_LOSS)),
        }
        low, high = zip(*(ends[symbol] for symbol in letters), strict=True)
        return np.array(low), np.array(high)

    return ThroughputModel(name, formula, tuple((symbol, UNITS[symbol]) for symbol in letters), curve, bounds)


def _line(name: str, formula: str, unit: str, x: Callable[[Paths], np.ndarray]) -> ThroughputModel:
    """Make a model with log throughput as a straight line over x; `x` is a function of Paths."""

    def bounds(paths: Paths, y: np.ndarray):
        # A robust line is hardly steeper than four times the range of y over that of x.
        steepest = 4 * (np.ptp(y) + 1e-9) / max(np.ptp(x(paths)), 1e-9)
        reach = steepest * np.abs(x(paths)).max()
        return np.array([y.min() - reach, -steepest]), np.array([y.max() + reach, steepest])

    return ThroughputModel(
        name,
        formula,
        (("level", ""), (f"slope per {unit}", "")),
        lambda values, paths: values[:, [0]] + values[:, [1]] * x(paths),
        bounds,
    )
