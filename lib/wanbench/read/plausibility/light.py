"""RTT against light over the geodesic, in fibre and in vacuum."""

from __future__ import annotations

import numpy as np
import pandas as pd

from wanbench.formatting import quantity
from wanbench.regions import FIBRE_INDEX, LIGHT_RTT_MS_PER_KM

from .positions import distances
from .rule import IMPOSSIBLE, SUSPECT, Rule

RULE = Rule(
    "light",
    "No RTT is less than the round trip of light over the geodesic between the two regions.",
    "2 d / c in vacuum: impossible; 2 d n / c in fibre, n = 1.468: suspect; d is the geodesic minus the precision "
    "of both coordinates",
    "ITU-T G.652; Singla et al. 2014, The Internet at the speed of light",
)
ONE_WAY = "this RTT is wrong, or its label: the opposite direction is possible"
ISOLATED = "a wrong RTT, label or coordinate; this pair alone does not show which"
ZERO = "an RTT of 0 ms was not measured, or was cut to whole units"
MIN_LIGHT_MS = 1.0
"""Where light takes less, an RTT cut to whole ms may be 0."""


def zero_rtts(rtts: pd.DataFrame) -> tuple[list[dict], pd.DataFrame]:
    """Flags of RTTs of 0 ms over paths where light takes more than 1 ms, and the remaining round trips."""
    zero = rtts.rtt_ms <= 0
    return flags(rtts[zero & (rtts.vacuum_ms > MIN_LIGHT_MS)], ZERO), rtts[~zero].reset_index(drop=True)


def against_light(rtts: pd.DataFrame, places: pd.DataFrame) -> pd.DataFrame:
    """
    The round trips with distance_km, light_ms in fibre over that distance, and the bounds fibre_ms and vacuum_ms, from
    which the tolerance of the coordinates is subtracted; NaN where a place is not known.
    """
    apart = distances(places, rtts.from_region, rtts.to_region)
    nearest = (apart.distance_km - apart.tolerance_km).clip(lower=0)
    fibre = nearest * LIGHT_RTT_MS_PER_KM
    return rtts.assign(
        distance_km=apart.distance_km,
        light_ms=apart.distance_km * LIGHT_RTT_MS_PER_KM,
        fibre_ms=fibre,
        vacuum_ms=fibre / FIBRE_INDEX,
    )


def flags(rows: pd.DataFrame, causes=ISOLATED) -> list[dict]:
    """A flag for each of these round trips, which are all faster than light in fibre."""
    causes = np.broadcast_to(np.asarray(causes, dtype=object), len(rows))
    return [_flag(row, cause) for row, cause in zip(rows.itertuples(index=False), causes, strict=True)]


def flags_of_region(rows: pd.DataFrame, table: str, region: str, found: str, cause: str) -> list[dict]:
    """A flag for the region behind these impossible round trips, and one for each of them."""
    where = {"region": region, "column_name": rows.column_name.iloc[0]}
    where |= {"value": float(rows.rtt_ms.median()), "bound": float(rows.fibre_ms.median())}
    return [RULE.flag(table, "region", IMPOSSIBLE, found, cause, **where), *flags(rows, cause)]


def _flag(row, cause: str) -> dict:
    medium, verdict, bound = "fibre", SUSPECT, row.fibre_ms
    if row.rtt_ms < row.vacuum_ms:
        medium, verdict, bound = "vacuum", IMPOSSIBLE, row.vacuum_ms
    found = (
        f"{row.from_region} to {row.to_region}: {quantity(row.rtt_ms, 'ms')} where light in {medium} takes at "
        f"least {quantity(bound, 'ms')} over {row.distance_km:,.0f} km"
    )
    return RULE.flag_round_trip(row, verdict, found, cause, bound)
