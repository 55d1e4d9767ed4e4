"""Pairs that were not measured: do the prediction intervals of RTT and throughput hold?"""

from __future__ import annotations

import numpy as np

from ..stats.distance import prediction
from ..stats.regions import simulated_surveys
from .study import Outcome

TITLE = "prediction intervals (90 %) for a pair that was not measured, with both, one or none of its regions known"
LEVEL = 0.9
EFFECTS = {"region_ms": 6.0, "pair_ms": 4.0, "region_log_sd": 0.2}
SETTINGS = [
    *({"n_regions": n, "situation": each} for n in (10, 16, 46) for each in ("both", "one", "none")),
    {"n_regions": 16, "situation": "one", "measured": 0.6},
]


def trial(seed: int, n_regions: int, situation: str, measured: float = 1.0) -> list[Outcome]:
    """
    One pair of a survey of `n_regions` measured regions; for "one" and "none" its unmeasured regions come on top.

    `measured` is the share of the other pairs that were measured.
    """
    new = {"both": 0, "one": 1, "none": 2}[situation]
    pairs = simulated_surveys.survey(n_regions + new, seed=seed, **EFFECTS)
    rng = np.random.default_rng(seed)
    names = rng.permutation(sorted(set(pairs.from_region)))
    unmeasured, ends = names[:new], names[:2]
    asked = pairs[(pairs.from_region == ends[0]) & (pairs.to_region == ends[1])].iloc[0]
    known = pairs[~pairs.from_region.isin(unmeasured) & ~pairs.to_region.isin(unmeasured)]
    known = known[~(known.from_region.isin(ends) & known.to_region.isin(ends))]
    if measured < 1:
        low, high = np.sort(known[["from_region", "to_region"]].to_numpy(dtype=str), axis=1).T
        pair = np.unique(np.char.add(np.char.add(low, "|"), high), return_inverse=True)[1]
        known = known[rng.random(pair.max() + 1)[pair] < measured]
    predictor = prediction.fit_predictor(known, level=LEVEL)
    found = predictor.predict(*ends, distance_km=float(asked.distance_km))
    rows = [Outcome("RTT", "jackknife+", found.rtt.low, found.rtt.high, float(asked.rtt_ms))]
    if found.throughput is not None:
        ends_bps = (found.throughput.low, found.throughput.high)
        rows.append(Outcome("throughput", "jackknife+", *ends_bps, float(asked.throughput_bps)))
    return rows
