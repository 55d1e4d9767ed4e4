"""Rates that cluster at a round number: the rate of a limiter, not of the paths."""

from __future__ import annotations

import numpy as np

from wanbench.formatting import count, quantity

from .rate_ceilings import Column
from .rate_units import rounding
from .rule import SUSPECT, Rule

RULE = Rule(
    "limiter",
    "Rates of many pairs do not cluster at one round number.",
    "no band of 2 %, 0 to 8 % below 1, 2, 2.5 or 5 times a power of ten, holds a fifth of a cloud's rows (10 or "
    "more, with 3 senders and 3 receivers, over RTTs that differ by a factor 2) and 5 times as many as the adjacent "
    "bands of the same width; not applied where the rate of the link, or of the sender's instance, is known",
    "Flach et al. 2016, An internet-wide analysis of traffic policing",
)
ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)
"""Rates that people configure, times a power of ten."""
BAND = 0.02
"""Width of the band: limited rates of ten seconds vary by less."""
MIN_ROWS = 10
"""Fewer rates cluster by chance."""
MIN_SHARE = 0.2
"""A limiter that slows fewer rows does not change the picture."""
MIN_DENSITY = 5
"""Times the rows of the adjacent bands: rates without a limiter are spread smoothly."""
MIN_ENDS = 3
"""Fewer hosts may share one slow network card."""
OVERHEAD = 0.08
"""The part of a limiter's rate that headers take: 40 to 66 bytes of 1,500, and more of smaller packets."""
MIN_RTT_RATIO = 2.0
"""Rates that a window limits depend on RTT; those of a limiter do not."""
CAUSE = "a rate limiter at {round}: these are its rates, not what the paths carry"


def check(column: Column, rtt_ms: np.ndarray, limits: np.ndarray) -> list[dict]:
    """A flag per sending cloud with such a cluster; `limits` are the known ceilings of the rows, else NaN."""
    flags = []
    clouds = column.sender.astype("str").str.partition(":")[0]
    open_rows = (column.rate > 0).to_numpy() & np.isnan(limits) & clouds.notna().to_numpy()
    for cloud in sorted(clouds[open_rows].unique()):
        rows = np.flatnonzero(open_rows & (clouds == cloud).to_numpy())
        rates = column.rate.iloc[rows].to_numpy(dtype=float)
        start, adjacent = _fullest_band(rates)
        inside = rows[(rates >= start) & (rates <= start * (1 + BAND))]
        if len(inside) < max(MIN_ROWS, MIN_SHARE * len(rows)) or len(inside) < MIN_DENSITY * adjacent:
            continue
        ends = column.sender.iloc[inside].nunique(), column.receiver.iloc[inside].nunique()
        times = rtt_ms[inside][np.isfinite(rtt_ms[inside])]
        apart = len(times) and np.quantile(times, 0.9) > MIN_RTT_RATIO * np.quantile(times, 0.1)
        at = _round(float(np.median(column.rate.iloc[inside])))
        if min(ends) < MIN_ENDS or not apart or at is None or rounding(column.rate) > BAND / 4 * start:
            continue
        found = (
            f"{len(inside):,} of {count(len(rows), 'rate')} from {cloud} lie between {quantity(start, 'bit/s')} and "
            f"2 % more, and {adjacent:,.0f} in an adjacent band of that width"
        )
        cause = CAUSE.format(round=quantity(at, "bit/s"))
        flags.append(column.whole(RULE, found, cause, float(np.median(column.rate.iloc[inside])), at, SUSPECT))
    return flags


def _fullest_band(rates: np.ndarray) -> tuple[float, float]:
    """The lower end of the fullest band, and the number of rates in the fuller of its two adjacent bands."""
    ordered = np.sort(rates)
    within = np.searchsorted(ordered, ordered * (1 + BAND), side="right") - np.arange(len(ordered))
    start = float(ordered[np.argmax(within)])
    edges = np.searchsorted(ordered, start * np.array([1 / (1 + BAND), 1, 1 + BAND, (1 + BAND) ** 2]))
    return start, float(max(edges[1] - edges[0], edges[3] - edges[2]))


def _round(rate: float) -> float | None:
    """The round number that a rate equals or lies just below; None if there is none."""
    power = 10.0 ** np.floor(np.log10(rate))
    limits = [factor * power for factor in ROUND]
    return next((limit for limit in limits if (1 - OVERHEAD) * limit <= rate <= 1.002 * limit), None)
