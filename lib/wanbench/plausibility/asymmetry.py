"""Two directions of a pair that take different times."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..formatting import number, quantity
from . import tail_reach
from .rule import SUSPECT, Rule

RULE = Rule(
    "asymmetry",
    "A round trip takes the same time from either end.",
    "the two directions of a pair differ by less than a factor 2, or by no more than the tail of all such differences "
    "of the table reaches (Pareto's law fitted to its greatest fifth; 0.001 of them expected beyond it), and 10 ms",
    "Hill 1975, A simple general approach to inference about the tail of a distribution",
)
LEAST_RATIO, LEAST_MS = 2.0, 10.0
EARLY = "single echoes of its ping timed too short: the greatest RTT agrees with the opposite direction, the least not"


def check(rtts: pd.DataFrame, open_rows: np.ndarray) -> tuple[list[dict], np.ndarray]:
    """Flags of the direction that is off, one per row of it that is; and which rows those are."""
    explained = np.zeros(len(rtts), bool)
    flags = []
    for _, frame in rtts[open_rows].groupby("table"):
        each = frame.groupby(["from_region", "to_region"]).rtt_ms.median()
        pairs = each.rename("there").to_frame()
        pairs["back"] = [each.get((b, a), np.nan) for a, b in each.index]
        pairs = pairs[pairs.back.notna() & (each.index.get_level_values(0) < each.index.get_level_values(1))]
        apart = (pairs.there - pairs.back).abs()
        bound = max(tail_reach.reach(apart.to_numpy()), LEAST_MS)
        ratio = np.maximum(pairs.there / pairs.back, pairs.back / pairs.there)
        for (a, b), pair in pairs[(apart > bound) & (ratio > LEAST_RATIO)].iterrows():
            new = _flags(frame, a, b, pair, bound)
            flags += new[0]
            explained[new[1]] = True
    return flags, explained


def _flags(frame, a, b, pair, bound):
    """Which direction is off: the one farther from the path's usual multiple of light."""
    usual = float((frame.rtt_ms / frame.light_ms).where(frame.light_ms > 5).median())
    rows = frame[(frame.from_region == a) & (frame.to_region == b)]
    expected = usual * float(rows.light_ms.iloc[0])
    if not np.isfinite(expected):
        expected = min(pair.there, pair.back)
    off = abs(np.log((pair.there + 5) / (expected + 5))) >= abs(np.log((pair.back + 5) / (expected + 5)))
    start, end, other = (a, b, pair.back) if off else (b, a, pair.there)
    rows = frame[(frame.from_region == start) & (frame.to_region == end)]
    rows = rows[(rows.rtt_ms - other).abs() > bound]
    flags = []
    for row in rows.itertuples():
        cause = "a wrong RTT or label of one direction, or a queue in all of its echoes"
        if row.rtt_ms < other and abs(np.log(row.max_ms / other)) < np.log(1.25):
            cause = EARLY
        found = (
            f"{start} to {end}: {quantity(row.rtt_ms, 'ms')}, and back {quantity(other, 'ms')}; no other pairs "
            f"differ by more than {number(bound)} ms and a factor {LEAST_RATIO:g}"
        )
        flags.append(
            RULE.flag(
                row.table,
                "row",
                SUSPECT,
                found,
                cause,
                row=row.row,
                from_region=start,
                to_region=end,
                column_name=row.column_name,
                value=row.rtt_ms,
                bound=other,
            )
        )
    return flags, rows.index.to_numpy()
