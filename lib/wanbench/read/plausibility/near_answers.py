"""Echoes over a long path, answered by a NAT, proxy or load balancer near the sender."""

from __future__ import annotations

import numpy as np
import pandas as pd

from wanbench.formatting import count, quantity

from . import light, rtt_units

MIN_TARGETS = 3
"""Minimum regions answered near the sender before the sender is blamed."""
CAUSE = (
    "answered near {region}, by a NAT or a proxy: these RTTs are under 1 ms and do not follow the distance, which "
    "RTTs in seconds would do"
)


def check(rtts: pd.DataFrame, open_rows: np.ndarray) -> tuple[list[dict], np.ndarray]:
    """Flags of the regions whose RTTs are under 1 ms at every distance, and a mask of the rows they explain."""
    explained, flags = np.zeros(len(rtts), bool), []
    near = open_rows & rtt_units.sub_millisecond(rtts)
    opposite = rtt_units.opposite_ms(rtts, ~near)
    for (table, region), group in rtts[near].groupby(["table", "from_region"]):
        few = group.to_region.nunique() < MIN_TARGETS
        if few or rtt_units.follows_distance(group, opposite[group.index]):
            continue
        cause = CAUSE.format(region=region)
        found = (
            f"{count(len(group), 'row')} from {region} take {quantity(group.rtt_ms.median(), 'ms')} in the median "
            f"where light in fibre takes {quantity(group.fibre_ms.median(), 'ms')}"
        )
        flags += light.flags_of_region(group, table, region, found, cause)
        explained[group.index] = True
    return flags, explained
