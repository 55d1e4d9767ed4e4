"""Halved RTTs: one-way delays in a column, or in all pairs of one region."""

from __future__ import annotations

import numpy as np
import pandas as pd

from wanbench.formatting import count, number

from . import light
from .rule import IMPOSSIBLE, Rule

RULE = Rule(
    "half",
    "An RTT is the time there and back, not the time in one direction.",
    "less than half of a column's RTTs, or of a region's RTTs in at least 3 pairs, are below light in fibre; or "
    "twice the RTTs are impossible, or do not follow the distance (for a region: as closely as other regions' RTTs, "
    "at an inflation within a factor 1.3 of theirs)",
    "light in fibre, ITU-T G.652",
)
ONE_WAY = "factor 2: one-way delays for round trips"
MIN_PAIRS = 3
"""Fewer pairs may be too fast for other reasons."""
FAR_MS = 5.0
"""Over shorter paths the last mile hides a halved RTT."""
BELOW_LIGHT = 0.5
"""Paths take about 1.5 times light, so most halved RTTs are below it."""
POSSIBLE = 0.95
"""This share of the doubled RTTs must be possible; the rest may have other faults."""
MAX_SCATTER = 0.35
"""Paths of one survey scatter by about 0.2 around their usual multiple of light, in natural logarithms."""
MORE_SCATTER = 1.5
"""Distances from a wrong place scatter more than half as much again."""
SAME_INFLATION = np.log(1.3)
"""Regions of one survey differ by less in their usual multiple of light."""


def check(rtts: pd.DataFrame, open_rows: np.ndarray) -> tuple[list[dict], np.ndarray]:
    """Flags of the columns and regions whose RTTs are halved, and a mask of the rows they explain."""
    explained, flags = np.zeros(len(rtts), bool), []
    far = open_rows & (rtts.fibre_ms > FAR_MS).to_numpy()
    for (table, column), group in rtts[far].groupby(["table", "column_name"], sort=False):
        here = open_rows & ((rtts.table == table) & (rtts.column_name == column)).to_numpy()
        if _pairs(group) >= MIN_PAIRS and _halved(group) and _scatter(2 * group.rtt_ms, group) < MAX_SCATTER:
            found = (
                f"{column}: {_below(group):.0%} of {count(len(group), 'row')} are below light in fibre, and twice "
                f"their RTT is {number(_inflation(2 * group.rtt_ms, group))} times light in the median"
            )
            flags.append(_wide(table, "column", found, ONE_WAY, group))
            flags += light.flags(rtts[here & _fast(rtts)], ONE_WAY)
            explained |= here
            continue
        for region in _regions(group):
            cause = f"{ONE_WAY}, in what was measured with {region}"
            mine = _of(group, region)
            found = (
                f"{_below(mine):.0%} of {count(len(mine), 'row')} of {region} are below light in fibre, and twice "
                f"their RTT is {number(_inflation(2 * mine.rtt_ms, mine))} times light in the median, as others are"
            )
            flags.append(_wide(table, "region", found, cause, mine, region=region))
            theirs = here & ~explained & _ends_in(rtts, region)
            flags += light.flags(rtts[theirs & _fast(rtts)], f"{region}: {cause}")
            explained |= theirs
    return flags, explained


def _regions(group: pd.DataFrame) -> list[str]:
    """The regions whose RTTs are halved, each compared with the pairs of the regions not yet blamed."""
    fast = group[_fast(group)]
    counts = pd.concat([fast.from_region, fast.to_region]).value_counts()
    halved = []
    for region in counts.index:
        others = group[~_ends_in(group, region)]
        mine = _of(group, region)
        if len(others) < MIN_PAIRS or _pairs(mine) < MIN_PAIRS or not _halved(mine):
            continue
        alike = abs(np.log(_inflation(2 * mine.rtt_ms, mine) / _inflation(others.rtt_ms, others)))
        limit = min(MORE_SCATTER * _scatter(others.rtt_ms, others), MAX_SCATTER)
        if alike < SAME_INFLATION and _scatter(2 * mine.rtt_ms, mine) < limit:
            halved.append(region)
            group = others
    return halved


def _fast(rows: pd.DataFrame) -> np.ndarray:
    return (rows.rtt_ms < rows.fibre_ms).to_numpy()


def _below(rows: pd.DataFrame) -> float:
    return float(_fast(rows).mean())


def _halved(rows: pd.DataFrame) -> bool:
    """Whether most RTTs are impossible, and hardly any of the doubled RTTs."""
    return _below(rows) >= BELOW_LIGHT and float((2 * rows.rtt_ms >= rows.fibre_ms).mean()) >= POSSIBLE


def _inflation(rtt_ms: pd.Series, rows: pd.DataFrame) -> float:
    return float((rtt_ms / rows.light_ms).median())


def _scatter(rtt_ms: pd.Series, rows: pd.DataFrame) -> float:
    """The mean distance of the logarithm of RTT over light from its median."""
    logs = np.log(rtt_ms / rows.light_ms)
    return float((logs - logs.median()).abs().mean())


def _pairs(rows: pd.DataFrame) -> int:
    return len({frozenset(pair) for pair in zip(rows.from_region, rows.to_region, strict=True)})


def _ends_in(rows: pd.DataFrame, region: str) -> np.ndarray:
    return ((rows.from_region == region) | (rows.to_region == region)).to_numpy()


def _of(rows: pd.DataFrame, region: str) -> pd.DataFrame:
    return rows[_ends_in(rows, region)]


def _wide(table, scope, found, cause, rows, **where) -> dict:
    ends = {"value": float(rows.rtt_ms.median()), "bound": float(rows.fibre_ms.median())}
    column = rows.column_name.iloc[0]
    return RULE.flag(table, scope, IMPOSSIBLE, found, cause, column_name=column, **ends, **where)
