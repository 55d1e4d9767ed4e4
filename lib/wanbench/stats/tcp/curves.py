"""What `compare_models` fits: each model as a curve of log throughput with few free numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...errors import ParameterError
from .cubic import cubic_bps
from .finite import INITIAL_SEGMENTS, bytes_sent, transfer_time_s
from .mathis import MSS_BYTES, mathis_bps
from .pftk import pftk_bps
from .window import BITS, buffer_bytes, window_limited_bps

LEAST_LOSS, MOST_LOSS = 1e-10, 0.4
YARDSTICK = "constant"


@dataclass(frozen=True)
class Paths:
    """What a model may know of pairs: arrays of one length."""

    rtt_ms: np.ndarray
    distance_km: np.ndarray


@dataclass(frozen=True)
class Form:
    """
    A model to fit.

    Attributes
    ----------
    name, says : str
        Its name, and what it says in a few words with its source.
    parameters : tuple of (symbol, unit)
        Those with a unit are positive and fitted as their natural logarithm.
    curve : callable
        (numbers (rows, parameters), Paths) to the natural logarithm of bit/s (rows, pairs).
    bounds : callable
        (Paths, log throughput) to the lowest and highest value of each number.
    """

    name: str
    says: str
    parameters: tuple[tuple[str, str], ...]
    curve: Callable[[np.ndarray, Paths], np.ndarray]
    bounds: Callable[[Paths, np.ndarray], tuple[np.ndarray, np.ndarray]]


def forms(
    *,
    transfer_bytes: float | None = None,
    transfer_s: float | None = None,
    mss_bytes: float = MSS_BYTES,
    initial_segments: float = INITIAL_SEGMENTS,
    ceiling: bool = True,
) -> tuple[Form, ...]:
    """
    The models; the finite transfer only with one of `transfer_bytes` and `transfer_s`.

    With `ceiling` each of TCP's models is cut off at a fitted capacity C: every path has one, and without it the near
    pairs would decide. Mathis's curve is then that of the window: either says throughput ~ 1/RTT below C.
    """
    if transfer_bytes is not None and transfer_s is not None:
        raise ParameterError("give transfer_bytes or transfer_s, not both: a test ends by one of them")
    for name, value in (
        ("transfer_bytes", transfer_bytes),
        ("transfer_s", transfer_s),
        ("mss_bytes", mss_bytes),
    ):
        if value is not None and not (isinstance(value, int | float) and 0 < value < np.inf):
            raise ParameterError(f"{name}={value!r}: it must be a positive number")

    def physical(name, says, free, bps):
        """A form from a formula of (numbers by symbol, rtt_ms); C, if any, is the last of them."""
        parameters = (*free, ("C", "bit/s")) if ceiling else free

        def curve(numbers, paths):
            values = {symbol: np.exp(numbers[:, [k]]) for k, (symbol, _) in enumerate(parameters)}
            return np.log(np.minimum(values.get("C", np.inf), bps(values, paths.rtt_ms)))

        return Form(name, says, parameters, curve, lambda paths, y: _bounds(parameters, paths, y))

    window, loss = ("W", "bytes"), ("p", "fraction")

    def flight(values, rtt_ms):
        return np.minimum(values["W"], buffer_bytes(values.get("C", np.inf), rtt_ms))

    def finite(values, rtt_ms):
        given = {"window_bytes": flight(values, rtt_ms), "mss_bytes": mss_bytes}
        given["initial_segments"] = initial_segments
        if transfer_s is not None:
            return BITS * bytes_sent(transfer_s, rtt_ms, **given) / transfer_s
        return BITS * transfer_bytes / transfer_time_s(transfer_bytes, rtt_ms, **given)

    found = [
        physical(
            "window-limited",
            "8 W / RTT",
            (window,),
            lambda values, rtt_ms: window_limited_bps(values["W"], rtt_ms),
        ),
        physical(
            "Mathis",
            "one loss rate, MSS / (RTT sqrt(p)) (Mathis et al. 1997)",
            (loss,),
            lambda values, rtt_ms: mathis_bps(values["p"], rtt_ms, mss_bytes),
        ),
        physical(
            "PFTK",
            "one loss rate, timeouts and a window (Padhye et al. 1998)",
            (loss, window),
            lambda values, rtt_ms: pftk_bps(values["p"], rtt_ms, mss_bytes, values["W"]),
        ),
        physical(
            "CUBIC",
            "one loss rate, average window of RFC 9438",
            (loss,),
            lambda values, rtt_ms: cubic_bps(values["p"], rtt_ms, mss_bytes),
        ),
    ]
    if transfer_bytes is not None or transfer_s is not None:
        says = "slow start, then 8 W / RTT (Cardwell, Savage & Anderson 2000)"
        found.append(physical("finite transfer", says, (window,), finite))
    return (*found, *_empirical())


def _empirical() -> list[Form]:
    def line(name, says, x, unit):
        slope = (f"slope per {unit}", "")
        return Form(
            name,
            says,
            (("level", ""), slope),
            lambda numbers, paths: numbers[:, [0]] + numbers[:, [1]] * x(paths),
            lambda paths, y: _line_bounds(x(paths), y),
        )

    return [
        line(
            "log-distance",
            "log throughput falls evenly with distance",
            lambda p: p.distance_km / 1000,
            "1,000 km",
        ),
        line("log-log RTT", "a power of the RTT", lambda p: np.log(p.rtt_ms), "log RTT"),
        Form(
            YARDSTICK,
            "one throughput for all: a yardstick",
            (("level", ""),),
            lambda numbers, paths: np.repeat(numbers, len(paths.rtt_ms), axis=1),
            lambda paths, y: (np.array([y.min()]), np.array([y.max()])),
        ),
    ]


def _bounds(parameters, paths: Paths, y: np.ndarray):
    implied = y + np.log(paths.rtt_ms / 1000 / BITS)
    ends = {
        "W": (implied.min() - 1, implied.max() + 2),
        "C": (y.min(), y.max() + 2),
        "p": (np.log(LEAST_LOSS), np.log(MOST_LOSS)),
    }
    return tuple(np.array([ends[symbol][end] for symbol, _ in parameters]) for end in (0, 1))


def _line_bounds(x, y):
    steep = 4 * (np.ptp(y) + 1e-9) / max(np.ptp(x), 1e-9)
    reach = steep * np.abs(x).max()
    return np.array([y.min() - reach, -steep]), np.array([y.max() + reach, steep])
