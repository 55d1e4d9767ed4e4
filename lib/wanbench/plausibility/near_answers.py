"""Echoes over a long way that something near the sender answered: a NAT, a proxy, a load balancer."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..formatting import count, quantity
from . import light, rtt_units
from .rule import IMPOSSIBLE

FEWEST = 3
CAUSE = (
    "answered near {region}, by a NAT or a proxy: these RTTs are under 1 ms and do not follow the distance, as RTTs in "
    "seconds would"
)


def check(rtts: pd.DataFrame, open_rows: np.ndarray) -> tuple[list[dict], np.ndarray]:
    """Flags of the regions whose RTTs are under 1 ms whatever the distance, and which rows these explain."""
    explained, flags = np.zeros(len(rtts), bool), []
    near = open_rows & rtt_units.sub_millisecond(rtts)
    opposite = rtt_units.opposite_ms(rtts, ~near)
    for (table, region), group in rtts[near].groupby(["table", "from_region"]):
        few = group.to_region.nunique() < FEWEST
        if few or rtt_units.follows_distance(group, opposite[group.index]):
            continue
        cause = CAUSE.format(region=region)
        found = (
            f"{count(len(group), 'row')} from {region} take {quantity(group.rtt_ms.median(), 'ms')} in the median "
            f"where light in fibre takes {quantity(group.fibre_ms.median(), 'ms')}"
        )
        where = {"region": region, "column_name": group.column_name.iloc[0]}
        where |= {"value": float(group.rtt_ms.median()), "bound": float(group.fibre_ms.median())}
        flags.append(light.RULE.flag(table, "region", IMPOSSIBLE, found, cause, **where))
        flags += light.flags(group, cause)
        explained[group.index] = True
    return flags, explained
