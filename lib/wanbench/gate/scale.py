"""Round-trip times in another unit than ms: a column, the rows of one region, one direction, or single rows."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..wording import count, number, quantity
from .rule import IMPOSSIBLE, Rule

RULE = Rule(
    "unit of RTT",
    "An RTT in ms is what light and the opposite direction let expect, not a thousandth or a thousand times it.",
    "a thousandth: below light in fibre, or below 1/300 of the opposite direction, and 1,000 times it is from light in "
    "fibre to 4 times that and 40 ms more, and within a factor 2 of the opposite direction; likewise a thousand times, "
    "but not for single pairs under 2,000 ms that take as long in the other direction: satellites and detours may",
    "light in fibre, ITU-T G.652",
)
SECONDS = "factor 1,000: seconds for milliseconds"
MICROSECONDS = "factor 1,000: microseconds for milliseconds"
FACTORS = ((1e3, SECONDS), (1e-3, MICROSECONDS))
MOST_INFLATION, MOST_EXTRA_MS = 4.0, 40.0
AGREES, FAR = 2.0, 300.0
WHOLE, FEWEST = 0.8, 3
ONE_DIRECTION = 0.05
A_DETOUR_MS = 2000.0


def check(rtts: pd.DataFrame) -> tuple[list[dict], np.ndarray]:
    """Flags of the round trips in another unit, and which rows they explain."""
    explained = np.zeros(len(rtts), bool)
    flags = []
    if rtts.empty:
        return flags, explained
    for factor, cause in FACTORS:
        opposite = opposite_ms(rtts, ~explained)
        found = _classified(rtts, opposite, factor) & ~explained
        if not found.any():
            continue
        for (table, column), group in rtts.groupby(["table", "column_name"], sort=False):
            here = rtts.index.isin(group.index)
            found = found & ~(here & _detours(rtts, here & found, here, opposite, factor))
            new, marked = _wider(rtts, here, found, table, column, cause)
            flags += new
            marked |= here & found
            doubted = zip(rtts[marked].itertuples(index=False), opposite[marked], strict=True)
            flags += [_row(row, other, cause) for row, other in doubted]
            explained |= marked
    return flags, explained


def opposite_ms(rtts: pd.DataFrame, among=slice(None)) -> np.ndarray:
    """The median of the opposite direction's round trips (`among` these rows), per row; NaN where there is none."""
    median = rtts[among].groupby(["from_region", "to_region"]).rtt_ms.median().to_dict()
    return np.array(
        [median.get(pair, np.nan) for pair in zip(rtts.to_region, rtts.from_region, strict=True)], float
    )


def _classified(rtts: pd.DataFrame, opposite: np.ndarray, factor: float) -> np.ndarray:
    """Rows that are wrong as they stand, and right once multiplied by the factor."""
    value, fibre, greatest = (rtts[name].to_numpy() for name in ("rtt_ms", "fibre_ms", "max_ms"))
    most = MOST_INFLATION * rtts.light_ms.to_numpy() + MOST_EXTRA_MS
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = opposite / value
        if factor > 1:
            wrong = (value < fibre) | (ratio > FAR)
            inside = (greatest < fibre) | np.isnan(fibre) | (factor * value <= 1.1 * greatest) | (ratio > FAR)
        else:
            wrong = (value > 5 * most) | (ratio < 1 / FAR)
            inside = True
        plausible = np.isnan(fibre) | ((factor * value >= 0.95 * fibre) & (factor * value <= most))
        agreement = np.abs(np.log(ratio / factor))
        same_unit = np.abs(np.log(ratio)) < np.log(AGREES)
        agrees = np.isnan(opposite) | same_unit | (agreement < np.log(AGREES))
        return wrong & inside & plausible & agrees & ~(np.isnan(fibre) & np.isnan(opposite))


def _detours(rtts, found, here, opposite, factor) -> np.ndarray:
    """Of the rows found 1,000 times too great, those that a satellite or a detour explains; none if all are so."""
    if factor > 1 or _whole(rtts, found, here):
        return np.zeros(len(rtts), bool)
    value = rtts.rtt_ms.to_numpy()
    return found & (value < A_DETOUR_MS) & ~(opposite < value / FAR)


def _whole(rtts, found, here) -> bool:
    """Whether the rows found are enough of the column's that could tell."""
    telling = here & ((rtts.fibre_ms.to_numpy() > 0.5) | found)
    n = int((found & here).sum())
    return n >= FEWEST and n >= WHOLE * telling.sum()


def _wider(rtts, here, found, table, column, cause) -> tuple[list[dict], np.ndarray]:
    """A flag of the column, of regions, or of one direction, if the rows found are theirs; and whose rows."""
    nothing = np.zeros(len(rtts), bool)
    telling = here & ((rtts.fibre_ms.to_numpy() > 0.5) | found)
    n, of = int((found & here).sum()), int(telling.sum())
    say = f"{column}: {n:,} of {count(int(here.sum()), 'row')} are so"
    middle = float(rtts.rtt_ms[found & here].median()) if n else np.nan
    common = {"column_name": column, "value": middle, "bound": float(rtts.fibre_ms[found & here].median())}
    if _whole(rtts, found, here):
        what = (
            f"{say}, {number(middle)} in the median where light in fibre takes {number(common['bound'])} ms"
        )
        return [RULE.flag(table, "column", IMPOSSIBLE, what, cause, **common)], here.copy()
    flags, marked = [], nothing.copy()
    groups = rtts[telling].groupby("from_region")
    whole = {}
    for region, group in groups:
        inside = found[group.index.to_numpy()]
        if inside.sum() >= FEWEST and inside.mean() >= WHOLE:
            whole[region] = int(inside.sum()), len(group)
    if sum(n_inside for n_inside, _ in whole.values()) < WHOLE * n:
        whole = {}
    for region, (n_inside, n_region) in whole.items():
        what = f"{column}: {n_inside:,} of {count(n_region, 'row')} that start in {region} are so"
        where = f"{cause}, in what was measured from {region}"
        flags.append(RULE.flag(table, "region", IMPOSSIBLE, what, where, region=region, **common))
        marked |= here & (rtts.from_region == region).to_numpy()
    rest = found & here & ~marked
    if rest.sum() >= max(FEWEST, ONE_DIRECTION * of):
        pairs = {tuple(pair) for pair in rtts.loc[rest, ["from_region", "to_region"]].to_numpy()}
        both = sum((b, a) in pairs for a, b in pairs)
        which = "all in one direction of their pairs" if not both else f"{both:,} of them in both directions"
        what = f"{column}: {int(rest.sum()):,} of {count(int(here.sum()), 'row')} are so, {which}"
        flags.append(RULE.flag(table, "column", IMPOSSIBLE, what, cause, **common))
    return flags, marked


def _row(row, opposite: float, cause: str) -> dict:
    other = f", and the opposite direction took {quantity(opposite, 'ms')}" if np.isfinite(opposite) else ""
    light = f" where light in fibre takes {quantity(row.fibre_ms, 'ms')}" if np.isfinite(row.fibre_ms) else ""
    return RULE.flag(
        row.table,
        "row",
        IMPOSSIBLE,
        f"{row.from_region} to {row.to_region}: {quantity(row.rtt_ms, 'ms')}{light}{other}",
        cause,
        row=row.row,
        from_region=row.from_region,
        to_region=row.to_region,
        column_name=row.column_name,
        value=row.rtt_ms,
        bound=row.fibre_ms,
    )
