"""Least RTTs that are wrong in pings whose greatest RTT is right: single echoes timed too short."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..wording import count, quantity
from . import light
from .scale import opposite_ms

AGREES = 1.25
FEWEST, SHARE = 3, 0.9
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
    below = open_rows & (rtts.rtt_ms < rtts.fibre_ms).to_numpy()
    if not below.any():
        return [], below
    opposite = opposite_ms(rtts)
    greatest = rtts.max_ms.to_numpy()
    with np.errstate(invalid="ignore", divide="ignore"):
        near = np.abs(np.log(greatest / opposite)) < np.log(AGREES)
        alone = np.isnan(opposite) | (opposite < rtts.fibre_ms.to_numpy())
        possible = (greatest >= rtts.fibre_ms.to_numpy()) & (greatest > 1.2 * rtts.rtt_ms.to_numpy())
    early = below & possible & (near | alone | _usual(rtts, below & possible))
    local = below & ~early & (opposite >= rtts.fibre_ms.to_numpy())
    flags = _of_a_sender(rtts, early)
    causes = np.full(len(rtts), CAUSE, dtype=object)
    explained = early.copy()
    for region, group in rtts[local].groupby("from_region"):
        if len(group) >= FEWEST:
            cause = LOCAL.format(region=region)
            found = (
                f"{count(len(group), 'row')} from {region} faster than light; the opposite directions are not"
            )
            flags.append(
                light.RULE.flag(
                    group.table.iloc[0],
                    "region",
                    "impossible",
                    found,
                    cause,
                    region=region,
                    column_name=group.column_name.iloc[0],
                    value=float(group.rtt_ms.median()),
                    bound=float(group.fibre_ms.median()),
                )
            )
            causes[group.index] = cause
            explained[group.index] = True
    return flags + light.flags(rtts[explained], causes[explained]), explained


def _usual(rtts, rows) -> np.ndarray:
    """Rows of a sender's cloud where many are so, whatever their opposite direction says."""
    cloud = rtts.from_region.str.partition(":")[0]
    many = cloud[rows].value_counts()
    return rows & cloud.isin(many[many >= 10 * FEWEST].index).to_numpy()


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
        all_rows = rtts[rtts.table == table]
        theirs = all_rows[(all_rows.from_region == who) | all_rows.from_region.str.startswith(f"{who}:")]
        worst = group.loc[(group.rtt_ms / group.fibre_ms).idxmin()]
        found = (
            f"{len(group):,} of {count(len(theirs), 'row')} that start in {who} are faster than light, and "
            f"{'none' if len(theirs) == len(all_rows) else 'next to none'} elsewhere; least: "
            f"{worst.from_region} to {worst.to_region}, {quantity(worst.rtt_ms, 'ms')} where its greatest is "
            f"{quantity(worst.max_ms, 'ms')}"
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
                "impossible",
                found,
                cause,
                region=region,
                column_name=column,
                value=float(worst.rtt_ms),
                bound=float(worst.vacuum_ms),
            )
        )
    return flags


def _one(names: pd.Series) -> str | None:
    """The name that nine in ten of them bear."""
    shares = names.value_counts(normalize=True)
    return shares.index[0] if shares.iloc[0] >= SHARE else None
