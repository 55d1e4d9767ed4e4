"""Round-trip times in another unit than ms: a column, the rows of one region, one direction, or single rows."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..formatting import count, number, quantity
from . import light
from .rule import IMPOSSIBLE, Rule
from .summaries import MOST_DECIMALS, decimals

RULE = Rule(
    "unit of RTT",
    "An RTT in ms is what light and the opposite direction let expect, not a thousandth or a thousand times it.",
    "a thousandth: below light in fibre, or below 1/300 of the opposite direction, and 1,000 times it is from light in "
    "fibre to 4 times that and 40 ms more, and within a factor 2 of the opposite direction; likewise a thousand times, "
    "but not for single pairs under 2,000 ms that take as long in the other direction: satellites and detours may; "
    "single RTTs under 1 ms are in seconds only where the opposite direction agrees within 5 %, or they have more "
    "decimals than others: a NAT or a proxy near the sender answers as fast",
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
SUB_MS, FAR_MS = 1.0, 5.0
SINGLE_AGREES, PINGS_DECIMALS = 0.05, 3
SPREAD, FOLLOWS, MANY = 0.3, 0.8, 0.2
"""
RTTs of one region are in seconds if three quarters of those with an opposite direction agree with it within a fifth;
with fewer than 3 such, if they scatter less than 0.8 times as much about the distance as distances scatter themselves,
or, where these hardly do (by less than 0.3 in natural logarithms), if no fifth of them is implausible.
"""
NEAR = "answered near the sender, by a NAT or a proxy, or a wrong RTT"
NEAR_OR_SECONDS = (
    "answered near the sender, by a NAT or a proxy, or in seconds: an RTT under 1 ms over so long a way is one of "
    "both, and this row alone does not tell which"
)


def check(rtts: pd.DataFrame, open_rows: np.ndarray) -> tuple[list[dict], np.ndarray]:
    """Flags of the round trips in another unit among the open rows, and which rows they explain."""
    explained = ~open_rows
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
            new, marked = _wider(rtts, here, found, opposite, table, column, cause)
            flags += new
            left = here & found & ~marked
            if factor > 1 and not any(each["scope"] == "column" for each in new):
                unclear = _ambiguous(rtts, left, opposite)
                flags += light.flags(rtts[unclear], NEAR_OR_SECONDS)
                explained |= unclear
                left &= ~unclear
            marked = (marked | left) & ~explained
            doubted = zip(rtts[marked].itertuples(index=False), opposite[marked], strict=True)
            flags += [_row(row, other, cause) for row, other in doubted]
            explained |= marked
    return flags, explained & open_rows


def opposite_ms(rtts: pd.DataFrame, among=slice(None)) -> np.ndarray:
    """The median of the opposite direction's round trips (`among` these rows), per row; NaN where there is none."""
    median = rtts[among].groupby(["from_region", "to_region"]).rtt_ms.median().to_dict()
    return np.array(
        [median.get(pair, np.nan) for pair in zip(rtts.to_region, rtts.from_region, strict=True)], float
    )


def _classified(rtts: pd.DataFrame, opposite: np.ndarray, factor: float) -> np.ndarray:
    """Rows that are wrong as they stand, and right once multiplied by the factor."""
    value, fibre, greatest = (rtts[name].to_numpy() for name in ("rtt_ms", "fibre_ms", "max_ms"))
    most = _most_ms(rtts)
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


def _most_ms(rtts: pd.DataFrame) -> np.ndarray:
    """The greatest RTT that is usual over the distance."""
    return (MOST_INFLATION * rtts.light_ms + MOST_EXTRA_MS).to_numpy()


def sub_millisecond(rtts: pd.DataFrame) -> np.ndarray:
    """Rows under 1 ms, the greatest echo included, over a way that takes light in fibre more than 5 ms."""
    return ((rtts.max_ms < SUB_MS) & (rtts.fibre_ms > FAR_MS)).to_numpy()


def follows_distance(rows: pd.DataFrame, opposite: np.ndarray) -> bool:
    """Whether RTTs are, in seconds, what the opposite directions or the distances let expect; True if undecided."""
    opposite, rows = opposite[rows.light_ms > 0], rows[rows.light_ms > 0]
    if rows.empty:
        return True
    value, light_ms = 1000 * rows.rtt_ms.to_numpy(), rows.light_ms.to_numpy()
    known = opposite > FAR_MS
    if known.sum() >= FEWEST:
        off = np.abs(np.log(value[known] / opposite[known]))
        return bool(np.quantile(off, 0.75) < np.log(1 + MANY))
    implausible = (value < 0.95 * rows.fibre_ms.to_numpy()) | (value > _most_ms(rows))
    spread = _scatter(light_ms)
    return _scatter(value / light_ms) < FOLLOWS * spread if spread > SPREAD else implausible.mean() < MANY


def _scatter(values: np.ndarray) -> float:
    """The mean distance of the logarithms from their median."""
    logs = np.log(values[values > 0])
    return float(np.abs(logs - np.median(logs)).mean()) if len(logs) else 0.0


def _ambiguous(rtts: pd.DataFrame, rows: np.ndarray, opposite: np.ndarray) -> np.ndarray:
    """
    Which of these rows, each alone in its column, may as well be answers from near as RTTs in seconds.

    Two things show that it is seconds: an opposite direction that took 1,000 times as long, within 5 %; and more
    decimals than the other RTTs of the column, and ping's three, for a thousandth has three more.
    """
    unclear = rows & sub_millisecond(rtts)
    if not unclear.any():
        return unclear
    value = rtts.rtt_ms.to_numpy()
    unclear &= ~(np.abs(1000 * value / opposite - 1) < SINGLE_AGREES)
    places = max(decimals(rtts.rtt_ms[~rows], share=0.99), PINGS_DECIMALS)
    finer = np.abs(value - value.round(places)) > 1e-9
    return unclear & ~(finer & (places < MOST_DECIMALS))


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


def _wider(rtts, here, found, opposite, table, column, cause) -> tuple[list[dict], np.ndarray]:
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
    follow = follows_distance(rtts[rest], opposite[rest]) or not sub_millisecond(rtts[rest]).all()
    if rest.sum() >= max(FEWEST, ONE_DIRECTION * of) and follow:
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
