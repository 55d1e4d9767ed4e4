"""
The loss of a path from the throughput of loss-limited TCP, by the model of the sender's own congestion control.

A throughput, an RTT and a segment size give the average window; the model says at which loss a sender keeps it.
The formulas of `models` are of losses at even distance; here each packet is lost on its own, which leaves longer gaps
and a larger average window. So the constants are those of Reno and CUBIC under independent losses (for Reno Ott,
Kemperman & Mathis 1996; for CUBIC the fixed point of Linux's rules with fast convergence, computed the same way),
and the round trip that a recovery takes without growth is taken off. It holds for losses below about 3 %: beyond,
timeouts rule. What this is worth on real Linux senders was measured on an emulated link; see `MODEL_SD`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log, nan, sqrt

import numpy as np
import pandas as pd
from scipy import stats

from ...checks import check_level
from ...errors import ParameterError
from ...formatting import count, percent, quantity
from ..result import Estimate, Interval, exact_binomial
from .mathis import RANDOM
from .window import buffer_bytes

FRIENDLY_RANDOM, CONVEX_RANDOM, BEND = 1.273, 1.195, 6.5
"""
CUBIC's two constants under independent losses, and the power mean that joins the regions, right to 1 %. The first is
that of Linux, whose Reno-friendly estimate grows by 3 (1 - beta) / (1 + beta) of a segment per round trip throughout
(RFC 8312, 4.2). RFC 9438 (4.3) lets it grow by 1 once it has reached the window before the loss, `cwnd_prior`; senders
that do so keep windows 11 % larger there (`validity.models` simulates them), and their loss comes out too low.
"""
RECOVERY = {"reno": 0.5, "cubic": 1.0}
"""
The average window is divided by 1 + this x sqrt(p): the round trips in which a sender recovers and does not grow. Set
by 120 connections of Linux 6.18 on an emulated link (12 cells of 0.05 to 2 % and 10 to 100 ms).
"""
MODEL_SD = 0.08
"""
Standard deviation of the model's own error, of log loss. In those cells the estimate was off the losses that did happen
by 0.05 (CUBIC) and 0.04 (Reno), standard deviation of the log, chance included; more is allowed for other senders.
"""
NOISE = 1.15
"""Standard deviation of log loss times the root of the losses seen: 1.03 for Reno, 1.12 for CUBIC, in simulation."""
FEWEST_LOSSES, MOST_LOSS, LEAST_LOSS = 5, 0.03, 1e-9
WARM_UP_LOSSES = 10
BISECTIONS = 60
RATE_BASED = ("bbr", "bbr2", "bbr3")
METHOD = "average window = throughput x RTT / (8 MSS), put into the model of {} under independent losses ({})"
MODELS = {
    "reno": "Mathis et al. 1997 with the constant of Ott, Kemperman & Mathis 1996",
    "cubic": "CUBIC as in Linux, with constants for independent losses; a sender that follows RFC 9438 past cwnd_prior "
    "loses up to 23 % more than this says",
}
ASSUMPTION = (
    "Loss alone limits the sender, each packet is lost on its own, and start-up is over; a receiver's window, a full "
    "queue or an application that writes too slowly makes the estimate too high, bursts of loss make it too low"
)
RETRANSMITS = "segments sent again per segment"


def loss_limited_window(loss, rtt_ms, congestion_control: str = "cubic"):
    """
    Average window in segments of a Linux sender whose packets are lost independently.

    Parameters
    ----------
    loss, rtt_ms : float or array
    congestion_control : str
        "reno" or "cubic".

    Examples
    --------
    >>> [round(float(loss_limited_window(1e-4, 100, name))) for name in ("reno", "cubic")]
    [130, 212]
    """
    loss = np.asarray(loss, dtype=float)
    window = RANDOM / np.sqrt(loss)
    if congestion_control == "cubic":
        convex = CONVEX_RANDOM * (np.asarray(rtt_ms, dtype=float) / 1000 / loss) ** 0.75
        window = ((FRIENDLY_RANDOM / np.sqrt(loss)) ** BEND + convex**BEND) ** (1 / BEND)
    elif congestion_control != "reno":
        raise ParameterError(
            f"congestion_control={congestion_control!r}: a loss follows from throughput for {', '.join(MODELS)} only"
        )
    return window / (1 + RECOVERY[congestion_control] * np.sqrt(loss))


def loss_of_window(window_segments, rtt_ms, congestion_control: str = "cubic"):
    """
    The loss at which `loss_limited_window` is so many segments; at most 1, at least 1e-9.

    >>> float(loss_of_window(loss_limited_window(1e-3, 50), 50).round(9))
    0.001
    """
    window, rtt = np.broadcast_arrays(
        np.asarray(window_segments, dtype=float), np.asarray(rtt_ms, dtype=float)
    )
    low, high = np.full(window.shape, log(LEAST_LOSS)), np.zeros(window.shape)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        too_little = loss_limited_window(np.exp(middle), rtt, congestion_control) > window
        low, high = np.where(too_little, middle, low), np.where(too_little, high, middle)
    return np.exp((low + high) / 2)


def estimate_loss(
    transfers: pd.DataFrame,
    *,
    rtt_ms: float | None = None,
    mss_bytes: float | None = None,
    congestion_control: str | None = None,
    omitted_s: float | None = None,
    level: float = 0.95,
) -> Estimate:
    """
    The loss of one direction of a path, from its TCP transfers.

    Each transfer gives a loss; they are averaged as logarithms, weighted by the losses that each must have seen. The
    interval has two parts: how much chance there is in so many losses (or the scatter of three or more transfers, if
    that is greater), and the model's own error, `MODEL_SD`. What the sender sent again per segment stands beside it as
    another interval: it needs no model, but counts what was sent again needlessly, and few hosts other than the sender
    know it.

    On an emulated link (16 cells of 0.07 to 1.5 % and 8 to 60 ms, not those that `RECOVERY` was set by), the estimate
    from several connections was off the loss set by 7 % at the root mean square and by 16 % at worst, and the interval
    held it in all cells and for each of the 68 connections alone.

    Parameters
    ----------
    transfers : DataFrame
        Rows of table `transfers` in one direction with one congestion control. Those that are not TCP, ended in an
        error or lack a value are left out and counted. The measured time should begin after some ten losses
        (iperf3 -O): until then slow start's large window still makes throughput too high.
    rtt_ms, mss_bytes, congestion_control : optional
        In place of the columns mean_rtt_ms, mss_bytes and congestion_control. The RTT is that under load.
    omitted_s : float, optional
        Seconds of start-up that the transfers leave out; given, it is checked that they held enough losses.

    Returns
    -------
    Estimate
        A fraction. NaN for BBR, whose throughput does not follow from loss.

    Raises
    ------
    ParameterError
        If the rows are of several directions or congestion controls, of one without a model here, or if none is left.
    """
    level = check_level(level)
    rows, left_out = _usable(transfers, rtt_ms, mss_bytes)
    names = {congestion_control} if congestion_control else set(rows.congestion_control.dropna())
    if len(names) != 1:
        found = ", ".join(sorted(names)) or "none"
        raise ParameterError(f"the transfers must have one congestion control; they have {found}")
    name = names.pop()
    warnings = (f"{count(left_out, 'transfer')} left out",) if left_out else ()
    if name in RATE_BASED:
        why = f"{name} sends at the rate it measures: no loss follows from its throughput"
        return _estimate(nan, (nan, nan), rows, name, level, (), (*warnings, why), "")
    streams = rows.streams.astype(float).fillna(1.0).clip(lower=1.0).to_numpy()
    rtt, mss = rows.rtt_ms.to_numpy(), rows.mss_bytes.to_numpy()
    window = buffer_bytes(rows.throughput_bps.to_numpy() / streams, rtt) / mss
    loss = loss_of_window(window, rtt, name)
    segments = rows.throughput_bps.to_numpy() * rows.duration_s.to_numpy() / 8 / mss
    seen = loss * segments
    weight = seen / seen.sum()
    middle = float(weight @ np.log(loss))
    half = _half(np.log(loss), weight, middle, float(seen.sum()), MODEL_SD, level)
    ends = exp(middle - half), min(exp(middle + half), 1.0)
    again = _sent_again(rows, segments, level)
    warnings += _cautions(exp(middle), ends, float(seen.sum()), again)
    if omitted_s is not None:
        warnings += _start_up(omitted_s, float(np.median(seen / rows.duration_s.to_numpy() / streams)))
    about = f"{count(len(rows), 'transfer')}, about {count(round(seen.sum()), 'loss', 'losses')}"
    return _estimate(
        min(exp(middle), 1.0), (min(ends[0], 1.0), ends[1]), rows, name, level, again, warnings, about
    )


def _usable(transfers: pd.DataFrame, rtt_ms, mss_bytes) -> tuple[pd.DataFrame, int]:
    needed = ["throughput_bps", "duration_s"]
    needed += [] if rtt_ms is not None else ["mean_rtt_ms"]
    needed += [] if mss_bytes is not None else ["mss_bytes"]
    missing = [name for name in needed if name not in transfers.columns]
    if missing:
        raise ParameterError(f"the transfers lack {', '.join(missing)}")
    ends = [name for name in ("from_region", "to_region", "direction") if name in transfers.columns]
    if ends and len(found := transfers[ends].drop_duplicates()) > 1:
        raise ParameterError(f"the transfers are of {len(found)} directions; a loss is that of one")
    optional = {"streams": 1, "congestion_control": None, "retransmits": np.nan}
    rows = transfers.assign(**{name: value for name, value in optional.items() if name not in transfers})
    rows = rows.assign(
        rtt_ms=rows.mean_rtt_ms if rtt_ms is None else rtt_ms,
        mss_bytes=rows.mss_bytes if mss_bytes is None else mss_bytes,
    )
    numbers = ["throughput_bps", "duration_s", "rtt_ms", "mss_bytes"]
    rows[numbers] = rows[numbers].apply(pd.to_numeric, errors="coerce").astype("float64")
    good = (rows[numbers] > 0).all(axis=1) & np.isfinite(rows[numbers]).all(axis=1)
    if "protocol" in rows:
        good &= (rows.protocol == "TCP").fillna(False)
    if "error" in rows:
        good &= rows.error.isna()
    if not good.any():
        raise ParameterError("no TCP transfer has a throughput, a duration, an RTT and a segment size")
    return rows[good], int((~good).sum())


def _half(logs, weight, middle, seen, model_sd, level) -> float:
    """Half the width of the interval of log loss."""
    tail = (1 + level) / 2
    noise = stats.norm.ppf(tail) * NOISE / sqrt(max(seen, 1.0))
    if len(logs) >= 3:
        scatter = weight @ (logs - middle) ** 2 / max(1 - weight @ weight, 1e-9) * (weight @ weight)
        noise = max(noise, stats.t.ppf(tail, len(logs) - 1) * sqrt(scatter))
    return float(np.hypot(noise, stats.norm.ppf(tail) * model_sd))


def _sent_again(rows: pd.DataFrame, segments, level) -> tuple[Interval, ...]:
    known = rows.retransmits.notna().to_numpy()
    if not known.any():
        return ()
    again = int(rows.retransmits[known].sum())
    sent = max(round(segments[known].sum()) + again, again)
    return (Interval(RETRANSMITS, *exact_binomial(again, sent, level)),)


def _cautions(loss, ends, seen, again) -> tuple[str, ...]:
    said = []
    if seen < FEWEST_LOSSES:
        said.append(f"the transfers can have seen only about {count(round(seen), 'loss', 'losses')}")
    if loss > MOST_LOSS:
        said.append(f"beyond {percent(MOST_LOSS)} timeouts rule, which the model has not")
    if again and again[0].high < ends[0]:
        most = quantity(again[0].high, "fraction")
        said.append(
            f"the sender sent at most {most} of its segments again: something else limits it as well, and the estimate "
            "is an upper bound of the loss"
        )
    if again and again[0].low > ends[1]:
        least = quantity(again[0].low, "fraction")
        said.append(
            f"the sender sent at least {least} of its segments again: losses come in bursts, start-up is in the "
            "measured time, or much was sent again needlessly"
        )
    return tuple(said)


def _start_up(omitted_s: float, losses_per_s: float) -> tuple[str, ...]:
    if omitted_s * losses_per_s >= WARM_UP_LOSSES:
        return ()
    needed_s = WARM_UP_LOSSES / losses_per_s
    return (
        f"{omitted_s:g} s of start-up were left out; it takes {quantity(needed_s, 's')} until a sender has lost "
        f"{WARM_UP_LOSSES} segments and forgotten slow start, and until then the estimate is too low",
    )


def _estimate(loss, ends: Sequence[float], rows, name, level, again, warnings, about) -> Estimate:
    where = ""
    if {"from_region", "to_region"} <= set(rows.columns):
        where = f" from {rows.from_region.iloc[0]} to {rows.to_region.iloc[0]}"
    model = METHOD.format(name, MODELS[name]) if name in MODELS else f"none for {name}"
    return Estimate(
        quantity="loss from throughput",
        claim=f"The loss that explains the throughput{where} is {{}}",
        estimate=loss,
        low=ends[0],
        high=ends[1],
        unit="fraction",
        n=1,
        n_regions=2,
        method=f"{model}; {about}" if about else model,
        assumption=ASSUMPTION,
        level=level,
        others=tuple(again),
        warnings=warnings,
    )
