"""Round trips far above the best detour over a third region."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..formatting import number, quantity
from . import tail_reach
from .rule import SUSPECT, Rule

RULE = Rule(
    "triangle",
    "A pair takes hardly longer than its best detour over a third region. Routes of the internet may break this, so "
    "only extremes are doubted.",
    "not more than 100 ms above the best detour, or not 3 times as long (20 ms added to both), or no farther than the "
    "tail of all such ratios of the table reaches (Pareto's law fitted to its greatest fifth; 0.001 of them expected "
    "beyond it)",
    "Savage et al. 1999, The end-to-end effects of internet path selection; Lumezanu et al. 2009, Triangle inequality "
    "variations in the internet",
)
LEAST_RATIO, LEAST_MS, OFFSET_MS = 3.0, 100.0, 20.0
CAUSE = "a wrong RTT or label, a queue in all echoes, or a route that goes far out of its way"


def check(rtts: pd.DataFrame, open_rows: np.ndarray) -> list[dict]:
    """Flags of the rows whose least RTT is far above every detour."""
    flags = []
    for _, frame in rtts[open_rows].groupby("table"):
        names = sorted({*frame.from_region, *frame.to_region})
        first, second = (np.searchsorted(names, frame[name]) for name in ("from_region", "to_region"))
        least = np.full((len(names), len(names)), np.inf)
        np.minimum.at(least, (first, second), frame.rtt_ms.to_numpy())
        least = np.minimum(least, least.T)
        detour = _detours(least)
        known = np.isfinite(least) & np.isfinite(detour)
        ratio = np.divide(least + OFFSET_MS, detour + OFFSET_MS, out=np.zeros_like(least), where=known)
        usual = tail_reach.reach(ratio[np.triu(known, 1)])
        bound = max(usual if np.isfinite(usual) else 0.0, LEAST_RATIO)
        more = np.subtract(least, detour, out=np.zeros_like(least), where=known)
        off = (ratio > bound) & (more > LEAST_MS)
        for row, a, b in zip(frame.itertuples(), first, second, strict=True):
            if off[a, b]:
                flags.append(_flag(row, detour[a, b], bound))
    return flags


def _detours(least: np.ndarray) -> np.ndarray:
    """The least sum over a third region, per pair; infinite where there is none."""
    best = np.full_like(least, np.inf)
    for k in range(len(least)):
        over = least[:, k][:, None] + least[k][None, :]
        over[k, :] = over[:, k] = np.inf
        np.minimum(best, over, out=best)
    return best


def _flag(row, detour: float, bound: float) -> dict:
    found = (
        f"{row.from_region} to {row.to_region}: {quantity(row.rtt_ms, 'ms')} where the best detour takes "
        f"{quantity(detour, 'ms')}; others take at most {number(bound)} times theirs"
    )
    return RULE.flag(
        row.table,
        "row",
        SUSPECT,
        found,
        CAUSE,
        row=row.row,
        from_region=row.from_region,
        to_region=row.to_region,
        column_name=row.column_name,
        value=row.rtt_ms,
        bound=detour,
    )
