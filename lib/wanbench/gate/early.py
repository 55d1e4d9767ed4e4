"""Least RTTs that are wrong in pings whose greatest RTT is right: single echoes timed too short."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..wording import count, quantity
from . import light
from .rule import IMPOSSIBLE
from .scale import opposite_ms

AGREES, LEAST_RATIO = 1.25, 1.2
FEWEST, MANY, SHARE = 3, 10, 0.9
CAUSE = (
    "some echoes of this ping were timed too short: its greatest RTT is possible and agrees with the opposite "
    "direction, so the place is right and the least RTT is not"
)
LOCAL = (
    "echoes from {region} answered before they reached their target (by a proxy or a translator near it), or timed "
    "wrongly there: the opposite directions are possible"
)


def check(rtts: pd.DataFrame, open_rows: np.ndarray) -> tuple[list[dict], np.ndarray]:
    """Flags of such pings among the open rows below light, and which rows they explain."""
    fibre, greatest = rtts.fibre_ms.to_numpy(), rtts.max_ms.to_numpy()
    below = open_rows & (rtts.rtt_ms.to_numpy() < fibre)
    if not below.any():
        return [], below
    opposite = opposite_ms(rtts)
    possible = below & (greatest >= fibre) & (greatest > LEAST_RATIO * rtts.rtt_ms.to_numpy())
    with np.errstate(invalid="ignore", divide="ignore"):
        agrees = (opposite >= fibre) & (np.abs(np.log(greatest / opposite)) < np.log(AGREES))
    cloud = rtts.from_region.str.partition(":")[0]
    many = cloud[possible & agrees].value_counts()
    usual = cloud.isin(many[many >= MANY].index).to_numpy()
    early = possible & (agrees | usual)
    return _of_a_sender(rtts, early) + light.flags(rtts[early], CAUSE), early


def answered_near(rtts: pd.DataFrame, open_rows: np.ndarray) -> tuple[list[dict], np.ndarray]:
    """Flags of the regions from which several pairs are faster than light, though their opposite directions are not."""
    explained = np.zeros(len(rtts), bool)
    fibre = rtts.fibre_ms.to_numpy()
    below = open_rows & (rtts.rtt_ms.to_numpy() < fibre) & (opposite_ms(rtts) >= fibre)
    flags = []
    for (table, region), group in rtts[below].groupby(["table", "from_region"]):
        if group.to_region.nunique() < FEWEST:
            continue
        cause = LOCAL.format(region=region)
        found = (
            f"{count(len(group), 'row')} from {region} faster than light, and the opposite directions are not"
        )
        ends = {"value": float(group.rtt_ms.median()), "bound": float(group.fibre_ms.median())}
        column = group.column_name.iloc[0]
        flags.append(
            light.RULE.flag(
                table, "region", IMPOSSIBLE, found, cause, region=region, column_name=column, **ends
            )
        )
        flags += light.flags(group, cause)
        explained[group.index] = True
    return flags, explained


def _of_a_sender(rtts, early) -> list[dict]:
    """One flag of the column, if the pings come from one cloud or region."""
    flags = []
    for (table, column), group in rtts[early].groupby(["table", "column_name"]):
        if len(group) < FEWEST:
            continue
        clouds = group.from_region.str.partition(":")[0]
        who = _one(group.from_region) or _one(clouds)
        if who is None:
            continue
        rows = rtts[rtts.table == table]
        theirs, mine = (sum(_of(each.from_region, who)) for each in (rows, group))
        worst = group.loc[(group.rtt_ms / group.fibre_ms).idxmin()]
        found = (
            f"{mine:,} of {count(theirs, 'row')} that start in {who} are faster than light, and {len(group) - mine:,} "
            f"of {count(len(rows) - theirs, 'other')}; least: {worst.from_region} to {worst.to_region}, "
            f"{quantity(worst.rtt_ms, 'ms')} where its greatest is {quantity(worst.max_ms, 'ms')}"
        )
        cause = (
            f"the ping or the clock of the hosts of {who} timed single echoes too short: the greatest RTTs of the "
            f"same pings are possible, so {column} cannot be used there"
        )
        region = who if ":" in who else None
        flags.append(
            light.RULE.flag(
                table,
                "region" if region else "column",
                IMPOSSIBLE,
                found,
                cause,
                region=region,
                column_name=column,
                value=float(worst.rtt_ms),
                bound=float(worst.vacuum_ms),
            )
        )
    return flags


def _of(names: pd.Series, who: str) -> pd.Series:
    """Whether a region is the one, or of the cloud, that is meant."""
    return (names == who) | names.str.startswith(f"{who}:")


def _one(names: pd.Series) -> str | None:
    """The name that nine in ten of them bear."""
    shares = names.value_counts(normalize=True)
    return shares.index[0] if shares.iloc[0] >= SHARE else None
