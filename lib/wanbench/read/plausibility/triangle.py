"""Round trips far longer than the best detour via a third region."""

from __future__ import annotations

import numpy as np
import pandas as pd

from wanbench.formatting import number, quantity

from . import tail_reach
from .rule import SUSPECT, Rule

RULE = Rule(
    "triangle",
    "A pair takes hardly longer than its best detour over a third region. Internet routes may break this, so only "
    "extremes are flagged.",
    "at most 100 ms above the best detour, or less than 3 times as long (20 ms added to both), or no farther than "
    "the tail of all such ratios in the table reaches (Pareto's law fitted to the largest fifth; 0.001 of them "
    "expected beyond)",
    "Savage et al. 1999, The end-to-end effects of internet path selection; Lumezanu et al. 2009, Triangle inequality "
    "variations in the internet",
)
MIN_RATIO = 3.0
"""Real routes stay below it, by the papers above."""
MIN_DIFFERENCE_MS = 100.0
"""More than a detour within a continent costs."""
OFFSET_MS = 20.0
"""Added to both sides, so that short paths do not give large ratios."""
CAUSE = "a wrong RTT or label, a queue in all echoes, or a route that goes far out of its way"


def check(rtts: pd.DataFrame, open_rows: np.ndarray) -> list[dict]:
    """Flags of the rows whose pair has a minimum RTT far above every detour."""
    flags = []
    for _, frame in rtts[open_rows].groupby("table"):
        names = sorted({*frame.from_region, *frame.to_region})
        first, second = (np.searchsorted(names, frame[name]) for name in ("from_region", "to_region"))
        direct = np.full((len(names), len(names)), np.inf)
        np.minimum.at(direct, (first, second), frame.rtt_ms.to_numpy())
        direct = np.minimum(direct, direct.T)
        detour = _detours(direct)
        comparable = np.isfinite(direct) & np.isfinite(detour)
        ratio = np.zeros_like(direct)
        np.divide(direct + OFFSET_MS, detour + OFFSET_MS, out=ratio, where=comparable)
        usual = tail_reach.reach(ratio[np.triu(comparable, 1)])
        bound = max(usual if np.isfinite(usual) else 0.0, MIN_RATIO)
        longer = np.subtract(direct, detour, out=np.zeros_like(direct), where=comparable)
        off = (ratio > bound) & (longer > MIN_DIFFERENCE_MS)
        for row, a, b in zip(frame.itertuples(), first, second, strict=True):
            if off[a, b]:
                flags.append(_flag(row, detour[a, b], bound))
    return flags


def _detours(direct: np.ndarray) -> np.ndarray:
    """The smallest sum over a third region, per pair; infinite where there is none."""
    best = np.full_like(direct, np.inf)
    for k in range(len(direct)):
        over = direct[:, k][:, None] + direct[k][None, :]
        over[k, :] = over[:, k] = np.inf
        np.minimum(best, over, out=best)
    return best


def _flag(row, detour: float, bound: float) -> dict:
    found = (
        f"{row.from_region} to {row.to_region}: {quantity(row.rtt_ms, 'ms')} where the best detour takes "
        f"{quantity(detour, 'ms')}; others take at most {number(bound)} times theirs"
    )
    return RULE.flag_round_trip(row, SUSPECT, found, CAUSE, detour)
