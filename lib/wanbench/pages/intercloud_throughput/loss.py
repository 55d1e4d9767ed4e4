"""
Estimate the packet loss of a path from the throughput of TCP, if loss is what limits the sender.

Throughput, RTT and segment size give the sender's average window, and a model of its congestion control gives the loss
that leads to this window. The models assume independent losses: Reno by Ott, Kemperman & Mathis (1996), CUBIC by the
fixed point of Linux's rules with fast convergence. Both allow for the round trips in which a sender recovers from a
loss, because its window does not grow then. They lack timeouts, which dominate beyond a loss of about 3 %. `MODEL_SD`
is the standard deviation of their error, in log loss, on real Linux senders.
"""

from math import exp, log, nan, sqrt
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from wanbench.checks import check_choice, check_columns
from wanbench.errors import ParameterError
from wanbench.formatting import count, percent, quantity
from wanbench.methods.result import LEVEL, Estimate, Interval, exact_binomial, t_quantile
from wanbench.methods.sizes import check_sizes
from wanbench.methods.tcp.models import RANDOM, buffer_bytes

# CUBIC's constant in the Reno-friendly region under independent losses, as in Linux: the Reno estimate always grows by
# 3 (1 - beta) / (1 + beta) segments per round trip (RFC 8312, 4.2). By RFC 9438 (4.3) it grows by 1 once it has reached
# `cwnd_prior`, the window before the loss. Windows are then 11 % larger (`validity.models` simulates such senders), so
# the loss is underestimated.
FRIENDLY_RANDOM = 1.273
CONVEX_RANDOM = 1.195  # CUBIC's constant of the cubic region under independent losses
BEND = 6.5  # Exponent of the power mean that joins both regions: it reproduces the window of simulated senders to 1 %
# The average window is divided by 1 + RECOVERY x sqrt(loss), for the round trips in which a sender recovers. Fitted to
# 120 connections of Linux 6.18 on an emulated link (12 settings: loss 0.05 to 2 %, RTT 10 to 100 ms).
RECOVERY = {"reno": 0.5, "cubic": 1.0}
# Standard deviation of the model's error in log loss. In the 12 settings above it was 0.05 (CUBIC) and 0.04 (Reno),
# chance included; the value allows for other senders.
MODEL_SD = 0.08
# Standard deviation of estimated log loss, times the root of the number of losses. Simulated: 1.03 (Reno), 1.12 (CUBIC)
NOISE = 1.15
MIN_LOSSES = 5  # With fewer losses the logarithm of their number is far from normal, so the interval is unreliable
MAX_LOSS = 0.03  # From this loss on, timeouts, which the model lacks, take a large part of the time
SMALLEST_LOSS = 1e-9  # Start of the search for a loss: at 1 ms a Reno sender would reach 480 Gbit/s
BISECTIONS = 60  # Halvings of the range of log loss, 20.7: the last step is below the precision of a float
MIN_TRANSFERS_FOR_SCATTER = 3  # Minimum number of transfers for their scatter to count: two give no useful variance
RATE_BASED = ("bbr", "bbr2", "bbr3")
METHOD = "average window = throughput x RTT / (8 MSS), and the loss that gives this window with {} ({})"
MODELS = {
    "reno": "Mathis et al. 1997 with the constant of Ott, Kemperman & Mathis 1996",
    "cubic": "CUBIC as in Linux, with constants for independent losses; a sender that follows RFC 9438 past cwnd_prior "
    "loses up to 23 % more than estimated",
}
ASSUMPTION = (
    "Only loss limits the sender, packets are lost independently, and start-up is over; a receiver's window, a full "
    "queue or a slow application makes the estimate too high, and bursts of loss make it too low"
)
RETRANSMITS = "retransmitted share of segments"
NUMBERS = ["throughput_bps", "duration_s", "mean_rtt_ms", "mss_bytes"]


def loss_limited_window(loss: ArrayLike, rtt_ms: ArrayLike, congestion_control: str = "cubic") -> Any:
    """
    Compute the average congestion window of a Linux sender, in segments, under independent packet loss.

    loss: As a fraction.
    congestion_control: "reno" or "cubic".

    >>> [round(float(loss_limited_window(1e-4, 100, name))) for name in ("reno", "cubic")]
    [130, 212]
    """
    check_choice("congestion_control", congestion_control, MODELS)
    loss = np.asarray(loss, dtype=float)
    window = RANDOM / np.sqrt(loss)
    if congestion_control == "cubic":
        convex = CONVEX_RANDOM * (np.asarray(rtt_ms, dtype=float) / 1000 / loss) ** 0.75
        window = ((FRIENDLY_RANDOM / np.sqrt(loss)) ** BEND + convex**BEND) ** (1 / BEND)
    return window / (1 + RECOVERY[congestion_control] * np.sqrt(loss))


def loss_of_window(window_segments: ArrayLike, rtt_ms: ArrayLike, congestion_control: str = "cubic") -> Any:
    """
    Return the loss, between 1e-9 and 1, at which `loss_limited_window` is `window_segments`.

    >>> float(loss_of_window(loss_limited_window(1e-3, 50), 50).round(9))
    0.001
    """
    window, rtt = np.broadcast_arrays(np.asarray(window_segments, dtype=float), np.asarray(rtt_ms, dtype=float))
    low, high = np.full(window.shape, log(SMALLEST_LOSS)), np.zeros(window.shape)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        too_low = loss_limited_window(np.exp(middle), rtt, congestion_control) > window
        low, high = np.where(too_low, middle, low), np.where(too_low, high, middle)
    return np.exp((low + high) / 2)


def estimate_loss(transfers: pd.DataFrame) -> Estimate:
    """
    Estimate the loss in one direction of a path, as a fraction, from TCP transfers with one congestion control.

    The loss is estimated for each transfer; the logarithms are averaged, weighted by the expected number of losses. The
    interval combines the model's error, `MODEL_SD`, with the random variation of the number of losses (or with the
    scatter of three or more transfers, if larger). On emulated links (16 settings of 0.07 to 1.5 % and 8 to 60 ms) the
    interval contained the true loss of all 68 connections. `mean_rtt_ms` must be the RTT under load, and a transfer
    must count only seconds after its first ten losses or so (iperf3 -O). Transfers that are not TCP, failed, or lack a
    value are left out and counted. The estimate is NaN for BBR, whose throughput does not depend on loss in this way.

    Raises ParameterError: the transfers have several directions or congestion controls, there is no model of the
        congestion control, or no usable transfer is left.
    """
    rows = _usable(transfers)
    names = sorted(rows.congestion_control.dropna().unique())
    if len(names) != 1:
        raise ParameterError(f"the transfers must have one congestion control; they have {', '.join(names) or 'none'}")
    [name] = names
    n_left_out = len(transfers) - len(rows)
    warnings = (f"{count(n_left_out, 'transfer')} left out",) if n_left_out else ()
    if name in RATE_BASED:
        why = f"{name} sends at the rate that it measures, so its throughput does not determine the loss"
        return _estimate(nan, (nan, nan), rows, method=f"none for {name}", warnings=(*warnings, why))
    rtt_ms, mss_bytes = rows.mean_rtt_ms.to_numpy(), rows.mss_bytes.to_numpy()
    streams = rows.streams.astype(float).fillna(1.0).clip(lower=1.0).to_numpy()
    window = buffer_bytes(rows.throughput_bps.to_numpy() / streams, rtt_ms) / mss_bytes
    losses = loss_of_window(window, rtt_ms, name)
    segments = rows.throughput_bps.to_numpy() * rows.duration_s.to_numpy() / 8 / mss_bytes
    seen = losses * segments
    logs, weight, n_seen = np.log(losses), seen / seen.sum(), float(seen.sum())
    half = _half_width(logs, weight, n_seen)
    loss = exp(weight @ logs)
    low, high = loss * exp(-half), loss * exp(half)
    retransmits = _retransmits(rows, segments)
    warnings += _cautions(loss, low, high, n_seen, retransmits)
    method = f"{METHOD.format(name, MODELS[name])}; {count(len(rows), 'transfer')}, about "
    method += count(round(n_seen), "loss", "losses")
    ends = min(low, 1.0), min(high, 1.0)
    return _estimate(min(loss, 1.0), ends, rows, method=method, others=retransmits, warnings=warnings)


def _usable(transfers: pd.DataFrame) -> pd.DataFrame:
    """Select the successful TCP transfers that have all of `NUMBERS`."""
    check_columns("transfers", transfers, NUMBERS)
    ends = [name for name in ("from_region", "to_region", "direction") if name in transfers.columns]
    directions = len(transfers[ends].drop_duplicates()) if ends and len(transfers) > 1 else 1
    if directions > 1:
        raise ParameterError(f"the transfers are of {directions} directions; allowed: one direction")
    optional = {"streams": 1, "congestion_control": None, "retransmits": np.nan, "protocol": "TCP", "error": None}
    rows = transfers.assign(**{name: value for name, value in optional.items() if name not in transfers})
    if (rows.dtypes[NUMBERS] != "float64").any():
        rows[NUMBERS] = rows[NUMBERS].apply(pd.to_numeric, errors="coerce").astype("float64")
    numbers = rows[NUMBERS].to_numpy()
    for name, values in zip(NUMBERS, numbers.T, strict=True):
        check_sizes(name, values)
    good = ((numbers > 0) & np.isfinite(numbers)).all(axis=1)
    good &= ((rows.protocol == "TCP").fillna(False) & rows.error.isna()).to_numpy(dtype=bool)
    if not good.any():
        raise ParameterError("no TCP transfer has a throughput, a duration, an RTT and a segment size")
    return rows[good]


def _half_width(logs: np.ndarray, weight: np.ndarray, n_seen: float) -> float:
    """Return half the width of the interval of log loss, given `n_seen` expected losses and the model's error."""
    z = stats.norm.ppf((1 + LEVEL) / 2)
    chance = z * NOISE / sqrt(max(n_seen, 1.0))
    if len(logs) >= MIN_TRANSFERS_FOR_SCATTER:
        # Variance of a weighted mean; with equal weights it is s^2 / n.
        squares = weight @ weight
        variance = weight @ (logs - weight @ logs) ** 2 / max(1 - squares, 1e-9) * squares
        chance = max(chance, t_quantile(LEVEL, len(logs) - 1) * np.sqrt(variance))
    return float(np.hypot(chance, z * MODEL_SD))


def _retransmits(rows: pd.DataFrame, segments: np.ndarray) -> tuple[Interval, ...]:
    """Return the share of retransmitted segments with its interval, or () if no transfer reports retransmits."""
    stated = rows.retransmits.notna().to_numpy()
    if not stated.any():
        return ()
    again = int(rows.retransmits[stated].sum())
    return (Interval(RETRANSMITS, *exact_binomial(again, round(segments[stated].sum()) + again, LEVEL)),)


def _cautions(
    loss: float, low: float, high: float, n_seen: float, retransmits: tuple[Interval, ...]
) -> tuple[str, ...]:
    cautions = []
    if n_seen < MIN_LOSSES:
        cautions.append(f"the estimate rests on only about {count(round(n_seen), 'loss', 'losses')}")
    if loss > MAX_LOSS:
        cautions.append(f"beyond a loss of {percent(MAX_LOSS)} timeouts dominate, which the model lacks")
    if retransmits and retransmits[0].high < low:
        cautions.append(
            f"the sender retransmitted at most {quantity(retransmits[0].high, 'fraction')} of its segments: something "
            "else limits it as well, and the estimate is an upper bound of the loss"
        )
    if retransmits and retransmits[0].low > high:
        cautions.append(
            f"the sender retransmitted at least {quantity(retransmits[0].low, 'fraction')} of its segments: losses "
            "come in bursts, start-up was measured as well, or many retransmissions were unnecessary"
        )
    return tuple(cautions)


def _estimate(loss: float, ends: tuple[float, float], rows: pd.DataFrame, **about: Any) -> Estimate:
    where = ""
    if {"from_region", "to_region"} <= set(rows.columns):
        where = f" from {rows.from_region.iloc[0]} to {rows.to_region.iloc[0]}"
    return Estimate(
        "loss from throughput",
        f"The loss that explains the throughput{where} is {{}}",
        *(loss, *ends),
        unit="fraction",
        n=1,
        n_regions=2,
        assumption=ASSUMPTION,
        **about,
    )
