"""Simulation: 90 % prediction intervals for an unmeasured pair if both, one or none of its regions are measured."""

from __future__ import annotations

import numpy as np

from wanbench.pages.grids_and_predictions.prediction import fit_predictor

from . import simulated_surveys
from .simulation import Outcome

LEVEL = 0.9
"""Level of the prediction intervals."""
EFFECTS = {"region_ms": 6.0, "pair_ms": 4.0, "region_log_sd": 0.2}
SETTINGS = [
    *({"n_regions": n, "situation": situation} for n in (10, 16, 46) for situation in ("both", "one", "none")),
    {"n_regions": 16, "situation": "one", "measured": 0.6},
]


def trial(seed: int, n_regions: int, situation: str, measured: float = 1.0) -> list[Outcome]:
    """
    Predict RTT and throughput of one unmeasured pair from a survey of `n_regions` measured regions.

    `situation` says which regions of the pair were measured to other regions: "both", "one" or "none"; the others are
    not counted in `n_regions`. `measured` is the share of other pairs that were measured.
    """
    new = {"both": 0, "one": 1, "none": 2}[situation]
    pairs = simulated_surveys.survey(n_regions + new, seed=seed, **EFFECTS)
    rng = np.random.default_rng(seed)
    names = rng.permutation(sorted(set(pairs.from_region)))
    unmeasured, ends = names[:new], names[:2]
    asked = pairs[(pairs.from_region == ends[0]) & (pairs.to_region == ends[1])].iloc[0]
    training = pairs[~pairs.from_region.isin(unmeasured) & ~pairs.to_region.isin(unmeasured)]
    training = training[~(training.from_region.isin(ends) & training.to_region.isin(ends))]
    if measured < 1:
        low, high = np.sort(training[["from_region", "to_region"]].to_numpy(dtype=str), axis=1).T
        pair = np.unique(np.char.add(np.char.add(low, "|"), high), return_inverse=True)[1]
        training = training[rng.random(pair.max() + 1)[pair] < measured]
    predictor = fit_predictor(training, level=LEVEL)
    prediction = predictor.predict(*ends, distance_km=float(asked.distance_km))
    predicted = (("RTT", prediction.rtt, asked.rtt_ms), ("throughput", prediction.throughput, asked.throughput_bps))
    return [
        Outcome(quantity, "jackknife+", one.low, one.high, float(truth))
        for quantity, one, truth in predicted
        if one is not None
    ]
