"""The models that `compare_models` and `fit_model` fit: curves of log throughput with few parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from wanbench.checks import check_number
from wanbench.errors import ParameterError

from .cubic import cubic_bps
from .finite import bytes_sent, transfer_time_s
from .mathis import mathis_bps
from .pftk import pftk_bps
from .window import BITS, buffer_bytes, window_limited_bps

MIN_LOSS = 1e-10
"""Smallest loss that a fit tries: at 1 ms Reno would reach 1.4 Tbit/s, more than any path."""
MAX_LOSS = 0.4
"""Largest loss that a fit tries: beyond it the formulas no longer hold, and a transfer hardly moves."""
UNITS = {"W": "bytes", "p": "fraction", "C": "bit/s"}
CONSTANT = "constant"
"""Name of the model with one throughput for all pairs: the baseline that a useful model must beat."""


@dataclass(frozen=True)
class Paths:
    """Inputs of a model: arrays with one value per pair."""

    rtt_ms: np.ndarray
    distance_km: np.ndarray

    def __len__(self) -> int:
        return len(self.rtt_ms)

    def __getitem__(self, rows) -> Paths:
        return Paths(self.rtt_ms[rows], self.distance_km[rows])


@dataclass(frozen=True)
class ThroughputModel:
    """
    A model of throughput: its formula and its parameters.

    Attributes
    ----------
    name, formula : str
        Its name, and a short form of its formula with the source.
    parameters : tuple of (symbol, unit)
        Those with a unit are positive and fitted as their natural logarithm.
    curve : callable
        (values (rows, parameters), Paths) to the natural logarithm of bit/s (rows, pairs).
    bounds : callable
        (Paths, log throughput) to the lowest and highest value of each parameter.
    """

    name: str
    formula: str
    parameters: tuple[tuple[str, str], ...]
    curve: Callable[[np.ndarray, Paths], np.ndarray]
    bounds: Callable[[Paths, np.ndarray], tuple[np.ndarray, np.ndarray]]


def throughput_models(
    *, transfer_bytes: float | None = None, transfer_s: float | None = None
) -> tuple[ThroughputModel, ...]:
    """
    All models; the finite transfer only with one of `transfer_bytes` and `transfer_s`.

    Each TCP model is capped at a fitted capacity C: every path has one, and without it near pairs would dominate the
    fit. Mathis's curve is then the same as the window's: throughput ~ 1/RTT below C.
    """
    if transfer_bytes is not None and transfer_s is not None:
        raise ParameterError("give transfer_bytes or transfer_s, not both: a test ends by one of them")
    check_number("transfer_bytes", transfer_bytes, 0, above=True, optional=True)
    check_number("transfer_s", transfer_s, 0, above=True, optional=True)

    def finite_bps(values, rtt_ms):
        window = np.minimum(values["W"], buffer_bytes(values["C"], rtt_ms))
        if transfer_s is not None:
            return BITS * bytes_sent(transfer_s, rtt_ms, window) / transfer_s
        return BITS * transfer_bytes / transfer_time_s(transfer_bytes, rtt_ms, window)

    found = [
        _tcp("window-limited", "8 W / RTT", "W", lambda v, rtt_ms: window_limited_bps(v["W"], rtt_ms)),
        _tcp(
            "Mathis",
            "one loss rate, MSS / (RTT sqrt(p)) (Mathis et al. 1997)",
            "p",
            lambda v, rtt_ms: mathis_bps(v["p"], rtt_ms),
        ),
        _tcp(
            "PFTK",
            "one loss rate, timeouts and a window (Padhye et al. 1998)",
            "pW",
            lambda v, rtt_ms: pftk_bps(v["p"], rtt_ms, v["W"]),
        ),
        _tcp("CUBIC", "one loss rate, average window of RFC 9438", "p", lambda v, rtt_ms: cubic_bps(v["p"], rtt_ms)),
    ]
    if transfer_bytes is not None or transfer_s is not None:
        formula = "slow start, then 8 W / RTT (Cardwell, Savage & Anderson 2000)"
        found.append(_tcp("finite transfer", formula, "W", finite_bps))
    constant = ThroughputModel(
        CONSTANT,
        "one throughput for all: a yardstick",
        (("level", ""),),
        lambda values, paths: np.repeat(values, len(paths), axis=1),
        lambda paths, y: (np.array([y.min()]), np.array([y.max()])),
    )
    by_distance = _line(
        "log-distance", "log throughput falls evenly with distance", "1,000 km", lambda p: p.distance_km / 1000
    )
    by_rtt = _line("log-log RTT", "a power of the RTT", "log RTT", lambda p: np.log(p.rtt_ms))
    return (*found, by_distance, by_rtt, constant)


def _tcp(name: str, formula: str, symbols: str, bps) -> ThroughputModel:
    """A model from a formula of (values by symbol, rtt_ms), cut off at C, which is the last of its parameters."""
    symbols = [*symbols, "C"]

    def curve(values, paths):
        by_symbol = {symbol: np.exp(values[:, [k]]) for k, symbol in enumerate(symbols)}
        return np.log(np.minimum(by_symbol["C"], bps(by_symbol, paths.rtt_ms)))

    def bounds(paths, y):
        # W and C lie near what the pairs reach; e^2 above the largest, as a limit that no pair reaches may be higher.
        implied = y + np.log(paths.rtt_ms / 1000 / BITS)
        ends = {
            "W": (implied.min() - 1, implied.max() + 2),
            "C": (y.min(), y.max() + 2),
            "p": (np.log(MIN_LOSS), np.log(MAX_LOSS)),
        }
        return tuple(np.array(end) for end in zip(*(ends[symbol] for symbol in symbols), strict=True))

    return ThroughputModel(name, formula, tuple((symbol, UNITS[symbol]) for symbol in symbols), curve, bounds)


def _line(name: str, formula: str, unit: str, x) -> ThroughputModel:
    """A straight line of log throughput on x of paths."""

    def bounds(paths, y):
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
