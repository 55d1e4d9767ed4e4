"""Rates that heap at a round number: what a rate limiter lets pass, not what the paths carry."""

from __future__ import annotations

import numpy as np

from ..formatting import count, quantity
from .rate_ceilings import Column
from .rate_units import rounding
from .rule import SUSPECT, Rule

RULE = Rule(
    "limiter",
    "Rates of many pairs do not heap at one round number.",
    "no 2 % of the rates' range holds a fifth of a cloud's rows (10 or more, of 3 senders and 3 receivers, over RTTs "
    "that differ by a factor 2), 5 times as many as the bands of the same width beside it, 0 to 8 % below 1, 2, 2.5 or "
    "5 times a power of ten; not asked where the rate of the link, or of the sender's instance, is known",
    "Flach et al. 2016, An internet-wide analysis of traffic policing",
)
ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)
WIDTH, FEWEST, SHARE, TIMES, FEWEST_ENDS = 0.02, 10, 0.2, 5, 3
OVERHEAD = 0.08
"""Of a limiter's rate that headers take: 40 to 66 bytes of 1,500, and of smaller packets more."""
RTT_RATIO = 2.0
CAUSE = "a rate limiter at {round}: these are its rates, not what the paths carry"


def check(column: Column, rtt_ms: np.ndarray, limits: np.ndarray) -> list[dict]:
    """A flag per sending cloud whose rates heap so; `limits` are the ceilings that are known of the rows, else NaN."""
    flags = []
    clouds = column.sender.astype("str").str.partition(":")[0]
    open_rows = (column.rate > 0).to_numpy() & np.isnan(limits)
    for cloud in sorted(clouds[open_rows].unique()):
        rows = np.flatnonzero(open_rows & (clouds == cloud).to_numpy())
        rates = column.rate.iloc[rows].to_numpy(dtype=float)
        heap, beside = _heap(rates)
        inside = rows[(rates >= heap) & (rates <= heap * (1 + WIDTH))]
        if len(inside) < max(FEWEST, SHARE * len(rows)) or len(inside) < TIMES * beside:
            continue
        ends = column.sender.iloc[inside].nunique(), column.receiver.iloc[inside].nunique()
        times = rtt_ms[inside][np.isfinite(rtt_ms[inside])]
        apart = len(times) and np.quantile(times, 0.9) > RTT_RATIO * np.quantile(times, 0.1)
        at = _round(float(np.median(column.rate.iloc[inside])))
        if min(ends) < FEWEST_ENDS or not apart or at is None or rounding(column.rate) > WIDTH / 4 * heap:
            continue
        found = (
            f"{len(inside):,} of {count(len(rows), 'rate')} from {cloud} lie between {quantity(heap, 'bit/s')} and 2 % "
            f"more, and {beside:,.0f} in the bands of that width beside it"
        )
        cause = CAUSE.format(round=quantity(at, "bit/s"))
        flags.append(
            column.whole(RULE, found, cause, float(np.median(column.rate.iloc[inside])), at, SUSPECT)
        )
    return flags


def _heap(rates: np.ndarray) -> tuple[float, float]:
    """The least rate of the fullest band, and how many are in the fuller of the bands below and above it."""
    ordered = np.sort(rates)
    within = np.searchsorted(ordered, ordered * (1 + WIDTH), side="right") - np.arange(len(ordered))
    heap = float(ordered[np.argmax(within)])
    edges = np.searchsorted(ordered, heap * np.array([1 / (1 + WIDTH), 1, 1 + WIDTH, (1 + WIDTH) ** 2]))
    return heap, float(max(edges[1] - edges[0], edges[3] - edges[2]))


def _round(rate: float) -> float | None:
    """The round number that a rate is, or lies just below; None: it is none."""
    power = 10.0 ** np.floor(np.log10(rate))
    return next(
        (each * power for each in ROUND if (1 - OVERHEAD) * each * power <= rate <= 1.002 * each * power),
        None,
    )
