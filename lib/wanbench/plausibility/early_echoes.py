"""Least RTTs that are wrong in pings whose greatest RTT is right: single echoes timed too short."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..formatting import count, quantity
from . import asymmetry, light
from .rtt_units import opposite_ms
from .rule import IMPOSSIBLE, SUSPECT

AGREES, LEAST_RATIO, LEAST_MS = 1.25, 1.2, 5.0
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
    also = open_rows & usual & ~below & _short(rtts, opposite)
    flags = _of_a_sender(rtts, early, also) + light.flags(rtts[early], CAUSE)
    flags += [
        _shorter(row, other) for row, other in zip(rtts[also].itertuples(), opposite[also], strict=True)
    ]
    return flags, early | also


def _short(rtts: pd.DataFrame, opposite: np.ndarray) -> np.ndarray:
    """Pings whose least RTT is well below the opposite direction's, with which the greatest agrees."""
    with np.errstate(invalid="ignore", divide="ignore"):
        agrees = np.abs(np.log(rtts.max_ms.to_numpy() / opposite)) < np.log(AGREES)
    return (
        agrees & (rtts.rtt_ms.to_numpy() < opposite / AGREES) & (opposite - rtts.rtt_ms.to_numpy() > LEAST_MS)
    )


def _shorter(row, opposite: float) -> dict:
    found = (
        f"{row.from_region} to {row.to_region}: least {quantity(row.rtt_ms, 'ms')}, greatest "
        f"{quantity(row.max_ms, 'ms')}, and back {quantity(opposite, 'ms')}"
    )
    return asymmetry.RULE.flag(
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
        bound=opposite / AGREES,
    )


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


def _of_a_sender(rtts, early, also) -> list[dict]:
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
        n_also = int((also & _of(rtts.from_region, who)).sum())
        more = f"; {n_also:,} more are less than 0.8 of the opposite direction" if n_also else ""
        worst = group.loc[(group.rtt_ms / group.fibre_ms).idxmin()]
        found = (
            f"{mine:,} of {count(theirs, 'row')} that start in {who} are faster than light, and {len(group) - mine:,} "
            f"of {count(len(rows) - theirs, 'other')}; least: {worst.from_region} to {worst.to_region}, "
            f"{quantity(worst.rtt_ms, 'ms')} where its greatest is {quantity(worst.max_ms, 'ms')}{more}"
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
