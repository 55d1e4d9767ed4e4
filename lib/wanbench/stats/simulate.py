"""Surveys with a known answer and effects of regions in them, to judge estimates by."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..errors import ParameterError
from .distance import FIBRE_INDEX, LIGHT_KM_PER_MS

EARTH_RADIUS_KM = 6371.0


def survey(
    n_regions: int,
    *,
    seed: int,
    clouds: tuple[str, ...] = ("aws", "azure", "gcp"),
    intercept_ms: float = 40.0,
    slope_ms_per_1000_km: float = 14.0,
    region_ms: float = 0.0,
    region_slope: float = 0.0,
    pair_ms: float = 1.0,
    window_bytes: float = 3e6,
    capacity_bps: float = 300e6,
    region_log_sd: float = 0.0,
    pair_log_sd: float = 0.1,
) -> pd.DataFrame:
    """
    A table `pairs` of all ordered pairs of invented regions, in a few clusters on a sphere.

    RTT = intercept + slope x distance + effects; throughput = min(capacity, 8 window / RTT) x effects. An
    effect of a region is one normal draw that all its pairs share; both directions of a pair have one RTT,
    and throughputs that differ by a draw of their own.

    Parameters
    ----------
    region_ms, pair_ms : float
        Standard deviations of the effects of a region, and of a pair, on RTT in ms.
    region_slope : float
        Standard deviation of the effect of a region on the slope, in ms per 1,000 km.
    region_log_sd, pair_log_sd : float
        Standard deviations of the effects of a region, and of an ordered pair, on the natural logarithm of
        throughput.
    """
    if n_regions < 2:
        raise ParameterError(f"n_regions={n_regions!r}: a survey has at least 2")
    rng = np.random.default_rng(seed)
    points = _clusters(n_regions, rng)
    names = np.array([f"{clouds[k % len(clouds)]}:region-{k:03d}" for k in range(n_regions)])
    first, second = np.triu_indices(n_regions, 1)
    angle = np.arccos(np.clip((points[first] * points[second]).sum(axis=1), -1, 1))
    distance_km = EARTH_RADIUS_KM * angle
    on_rtt = rng.normal(0, region_ms, n_regions)
    on_slope = rng.normal(0, region_slope, n_regions)
    on_log = rng.normal(0, region_log_sd, n_regions)
    slope = slope_ms_per_1000_km + on_slope[first] + on_slope[second]
    rtt_ms = intercept_ms + slope * distance_km / 1000 + on_rtt[first] + on_rtt[second]
    rtt_ms = rtt_ms + rng.normal(0, pair_ms, len(first))
    if rtt_ms.min() <= 0:
        raise ParameterError("these effects make an RTT of 0 or less; give a greater intercept_ms")
    base = (
        np.log(np.minimum(capacity_bps, 8 * window_bytes / (rtt_ms / 1000))) + on_log[first] + on_log[second]
    )
    directions = []
    for start, end in ((first, second), (second, first)):
        noise = rng.normal(0, pair_log_sd, len(first))
        directions.append(_rows(names[start], names[end], distance_km, rtt_ms, np.exp(base + noise)))
    return pd.concat(directions).sort_values(["from_region", "to_region"], ignore_index=True)


def _clusters(n: int, rng: np.random.Generator) -> np.ndarray:
    """Unit vectors around a quarter as many centres."""
    centres = rng.normal(size=(max(3, n // 4), 3))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    points = centres[rng.integers(len(centres), size=n)] + rng.normal(0, 0.25, size=(n, 3))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def _rows(start, end, distance_km, rtt_ms, throughput_bps) -> pd.DataFrame:
    columns = {
        "from_region": start,
        "to_region": end,
        "from_cloud": [name.partition(":")[0] for name in start],
        "to_cloud": [name.partition(":")[0] for name in end],
        "distance_km": distance_km,
        "light_rtt_ms": 2 * distance_km * FIBRE_INDEX / LIGHT_KM_PER_MS,
        "n_tests": 1,
        "n_echoes": 20,
        "n_lost": 0,
        "rtt_ms": rtt_ms,
        "throughput_bps": throughput_bps,
        "n_transfers": 1,
        "retransmits": 0,
    }
    return pd.DataFrame(columns)
