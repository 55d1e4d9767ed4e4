"""Pings whose minimum RTT is wrong and whose maximum RTT is right: single echoes timed too short."""

from __future__ import annotations

import numpy as np
import pandas as pd

from wanbench.formatting import count, quantity

from . import asymmetry, light
from .rtt_units import opposite_ms
from .rule import IMPOSSIBLE, SUSPECT

AGREEMENT = 1.25
"""A maximum within a quarter of the opposite direction confirms it."""
MIN_RATIO = 1.2
"""A ping whose maximum is closer to its minimum has no single wrong echo."""
MIN_DIFFERENCE_MS = 5.0
"""Queues alone make smaller differences between the directions."""
MIN_ROWS = 3
"""Minimum rows before a sender is blamed."""
MIN_ROWS_OF_CLOUD = 10
"""This many confirmed pings of a cloud show that its hosts time echoes too short."""
SENDER_SHARE = 0.9
"""A sender of a smaller share of the rows does not explain them."""
CAUSE = (
    "some echoes of this ping were timed too short: its maximum RTT is possible and agrees with the opposite "
    "direction, so the place is right and the minimum RTT is wrong"
)
LOCAL = (
    "echoes from {region} answered before they reached their target (by a proxy or a translator near it), or timed "
    "wrongly there: the opposite directions are possible"
)


def check(rtts: pd.DataFrame, open_rows: np.ndarray) -> tuple[list[dict], np.ndarray]:
    """
    Flags of pings whose minimum is too short, among the open rows below light, and a mask of the rows they explain.
    """
    fibre, maximum = rtts.fibre_ms.to_numpy(), rtts.max_ms.to_numpy()
    below = open_rows & (rtts.rtt_ms.to_numpy() < fibre)
    if not below.any():
        return [], below
    opposite = opposite_ms(rtts)
    possible = below & (maximum >= fibre) & (maximum > MIN_RATIO * rtts.rtt_ms.to_numpy())
    with np.errstate(invalid="ignore", divide="ignore"):
        agrees = (opposite >= fibre) & (np.abs(np.log(maximum / opposite)) < np.log(AGREEMENT))
    cloud = rtts.from_region.str.partition(":")[0]
    many = cloud[possible & agrees].value_counts()
    usual = cloud.isin(many[many >= MIN_ROWS_OF_CLOUD].index).to_numpy()
    early = possible & (agrees | usual)
    also = open_rows & usual & ~below & _short(rtts, opposite)
    flags = _of_a_sender(rtts, early, also) + light.flags(rtts[early], CAUSE)
    flags += [_shorter(row, other) for row, other in zip(rtts[also].itertuples(), opposite[also], strict=True)]
    return flags, early | also


def _short(rtts: pd.DataFrame, opposite: np.ndarray) -> np.ndarray:
    """Pings whose maximum RTT agrees with the opposite direction, and whose minimum is well below it."""
    with np.errstate(invalid="ignore", divide="ignore"):
        agrees = np.abs(np.log(rtts.max_ms.to_numpy() / opposite)) < np.log(AGREEMENT)
    return (
        agrees
        & (rtts.rtt_ms.to_numpy() < opposite / AGREEMENT)
        & (opposite - rtts.rtt_ms.to_numpy() > MIN_DIFFERENCE_MS)
    )


def _shorter(row, opposite: float) -> dict:
    found = (
        f"{row.from_region} to {row.to_region}: minimum {quantity(row.rtt_ms, 'ms')}, maximum "
        f"{quantity(row.max_ms, 'ms')}, and back {quantity(opposite, 'ms')}"
    )
    return asymmetry.RULE.flag_round_trip(row, SUSPECT, found, CAUSE, opposite / AGREEMENT)


def answered_near(rtts: pd.DataFrame, open_rows: np.ndarray) -> tuple[list[dict], np.ndarray]:
    """Flags of regions from which several pairs are faster than light, unlike their opposite directions."""
    explained = np.zeros(len(rtts), bool)
    fibre = rtts.fibre_ms.to_numpy()
    below = open_rows & (rtts.rtt_ms.to_numpy() < fibre) & (opposite_ms(rtts) >= fibre)
    flags = []
    for (table, region), group in rtts[below].groupby(["table", "from_region"]):
        if group.to_region.nunique() < MIN_ROWS:
            continue
        cause = LOCAL.format(region=region)
        found = f"{count(len(group), 'row')} from {region} faster than light, and the opposite directions are not"
        flags += light.flags_of_region(group, table, region, found, cause)
        explained[group.index] = True
    return flags, explained


def _of_a_sender(rtts, early, also) -> list[dict]:
    """One flag of the column or region, if most pings come from one cloud or region."""
    flags = []
    for (table, column), group in rtts[early].groupby(["table", "column_name"]):
        if len(group) < MIN_ROWS:
            continue
        clouds = group.from_region.str.partition(":")[0]
        who = _one(group.from_region) or _one(clouds)
        if who is None:
            continue
        rows = rtts[rtts.table == table]
        theirs, mine = (sum(_of(frame.from_region, who)) for frame in (rows, group))
        n_also = int((also & _of(rtts.from_region, who)).sum())
        more = f"; {n_also:,} more are less than 0.8 of the opposite direction" if n_also else ""
        worst = group.loc[(group.rtt_ms / group.fibre_ms).idxmin()]
        found = (
            f"{mine:,} of {count(theirs, 'row')} that start in {who} are faster than light in fibre, and "
            f"{len(group) - mine:,} of {count(len(rows) - theirs, 'other')}; fastest: {worst.from_region} to "
            f"{worst.to_region}, {quantity(worst.rtt_ms, 'ms')} where its maximum is "
            f"{quantity(worst.max_ms, 'ms')}{more}"
        )
        cause = (
            f"the ping or the clock of the hosts of {who} timed single echoes too short: the maximum RTTs of the "
            f"same pings are possible, so {column} cannot be used there"
        )
        region = who if ":" in who else None
        where = {"region": region, "column_name": column}
        where |= {"value": float(worst.rtt_ms), "bound": float(worst.vacuum_ms)}
        scope = "region" if region else "column"
        flags.append(light.RULE.flag(table, scope, IMPOSSIBLE, found, cause, **where))
    return flags


def _of(names: pd.Series, who: str) -> pd.Series:
    """Whether a region is `who`, or belongs to the cloud `who`."""
    return (names == who) | names.str.startswith(f"{who}:")


def _one(names: pd.Series) -> str | None:
    """The name that nine in ten rows have; None if there is no such name."""
    shares = names.value_counts(normalize=True)
    return shares.index[0] if shares.iloc[0] >= SENDER_SHARE else None
