"""Pairs whose two directions have different round-trip times."""

from __future__ import annotations

import numpy as np
import pandas as pd

from wanbench.formatting import number, quantity

from . import tail_reach
from .rule import SUSPECT, Rule

RULE = Rule(
    "asymmetry",
    "A round trip takes the same time from either end.",
    "the two directions of a pair differ by less than a factor 2, or by no more than 10 ms, or by no more than the "
    "tail of all such differences in the table reaches (Pareto's law fitted to the largest fifth; 0.001 of them "
    "expected beyond)",
    "Hill 1975, A simple general approach to inference about the tail of a distribution",
)
MIN_RATIO = 2.0
"""Load and unequal routes of the two tests stay below it."""
MIN_DIFFERENCE_MS = 10.0
"""Between near regions the queue of one test can double an RTT."""
AGREEMENT = 1.25
"""A maximum within a quarter of the opposite direction confirms it."""
FAR_LIGHT_MS = 5.0
"""Over shorter paths the last mile, not light, determines the RTT."""
OFFSET_MS = 5.0
"""Added to both RTTs before they are compared, so that fractions of a ms do not decide."""
EARLY = (
    "some echoes of its ping were timed too short: the maximum RTT agrees with the opposite direction, the minimum "
    "does not"
)


def check(rtts: pd.DataFrame, open_rows: np.ndarray) -> tuple[list[dict], np.ndarray]:
    """Flags of the rows in the wrong direction of a pair, and a mask of these rows."""
    explained = np.zeros(len(rtts), bool)
    flags = []
    for _, frame in rtts[open_rows].groupby("table"):
        medians = frame.groupby(["from_region", "to_region"]).rtt_ms.median()
        pairs = medians.rename("there").to_frame()
        pairs["back"] = [medians.get((b, a), np.nan) for a, b in medians.index]
        once = medians.index.get_level_values(0) < medians.index.get_level_values(1)
        pairs = pairs[pairs.back.notna() & once]
        apart = (pairs.there - pairs.back).abs()
        bound = max(tail_reach.reach(apart.to_numpy()), MIN_DIFFERENCE_MS)
        ratio = np.maximum(pairs.there / pairs.back, pairs.back / pairs.there)
        for (a, b), pair in pairs[(apart > bound) & (ratio > MIN_RATIO)].iterrows():
            new, rows = _flags(frame, a, b, pair, bound)
            flags += new
            explained[rows] = True
    return flags, explained


def _flags(frame, a, b, pair, bound):
    """Flags of the direction that deviates more from what the distance suggests, and the index of its rows."""
    usual = float((frame.rtt_ms / frame.light_ms).where(frame.light_ms > FAR_LIGHT_MS).median())
    rows = frame[(frame.from_region == a) & (frame.to_region == b)]
    expected = usual * float(rows.light_ms.iloc[0])
    if not np.isfinite(expected):  # without coordinates: queues lengthen an RTT, nothing shortens it
        expected = min(pair.there, pair.back)
    off_there, off_back = (abs(np.log((rtt + OFFSET_MS) / (expected + OFFSET_MS))) for rtt in (pair.there, pair.back))
    start, end, other = (a, b, pair.back) if off_there >= off_back else (b, a, pair.there)
    rows = frame[(frame.from_region == start) & (frame.to_region == end)]
    rows = rows[(rows.rtt_ms - other).abs() > bound]
    flags = []
    for row in rows.itertuples():
        cause = "a wrong RTT or label of one direction, or a queue in all of its echoes"
        if row.rtt_ms < other and abs(np.log(row.max_ms / other)) < np.log(AGREEMENT):
            cause = EARLY
        found = (
            f"{start} to {end}: {quantity(row.rtt_ms, 'ms')}, and back {quantity(other, 'ms')}; no other pairs "
            f"differ by more than {number(bound)} ms and a factor {MIN_RATIO:g}"
        )
        flags.append(RULE.flag_round_trip(row, SUSPECT, found, cause, other))
    return flags, rows.index.to_numpy()
