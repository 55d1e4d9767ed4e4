"""Simulation: a response surface whose best setting is inside the region of the design, or at its edge."""

from __future__ import annotations

import numpy as np
import pandas as pd

from wanbench.designs import Range, space_filling
from wanbench.pages.geo_kafka.surface import fit_surface
from wanbench.pages.geo_kafka.surface_fit import surface_columns

from .simulation import Outcome

DATASETS = 100
"""Enough to know a coverage near 95 % to within 5 percentage points; a fit takes half a second."""
SPACE = {
    "batch_bytes": Range(16_384, 1_048_576, log=True),
    "linger_ms": Range(1, 64, log=True),
    "compression": ["none", "lz4"],
}
GAIN = 0.3
"""Effect of the second choice (lz4), as a logarithm."""
SETTINGS = [
    {"best": 0.4, "spread": 0.05, "runs": 24},
    {"best": 0.4, "spread": 0.2, "runs": 24},
    {"best": 1.5, "spread": 0.05, "runs": 24},
    {"best": 0.4, "spread": 0.05, "runs": 24, "noisy": 4.0},
    {"best": 0.4, "spread": 0.05, "runs": 24, "between_blocks": 0.1},
]
CENTRES = 4
BLOCKS = 4


def trial(
    seed: int, best: float, spread: float, runs: int, noisy: float = 1.0, between_blocks: float = 0.0
) -> list[Outcome]:
    """
    Simulate runs on a quadratic surface with log-normal scatter; `best` is the coded maximum along the first factor.

    The scatter of runs with the second choice is multiplied by `noisy`. With scatter between blocks, the fit accounts
    for the four blocks.
    """
    plan = space_filling(SPACE, runs, seed=seed, centres=CENTRES)
    rng = np.random.default_rng(seed)
    own = spread * np.where(plan.compression == "lz4", noisy, 1.0)
    block = rng.permutation(np.arange(len(plan)) % BLOCKS)
    shared = rng.normal(0, between_blocks, BLOCKS)[block]
    found = fit_surface(
        plan.assign(rate=_truth(plan, best) * np.exp(rng.normal(0, own) + shared), block=block),
        "rate",
        list(SPACE),
        block="block" if between_blocks else None,
    )
    chosen = pd.DataFrame([found.best_setting])
    reached = float(_truth(chosen, best).iloc[0])
    alone = found.best.others[0]
    ends = {axis.name: (axis.low, axis.high) for axis in found.axes if not axis.levels}
    inside = {
        "batch_bytes": [float(np.clip(_decode("batch_bytes", best), *ends["batch_bytes"]))],
        "linger_ms": [float(np.clip(_decode("linger_ms", -0.2), *ends["linger_ms"]))],
        "compression": ["lz4"],
    }
    true = found.fit.columns(surface_columns(found.axes, pd.DataFrame(inside))[0])[0]
    places = found.fit.columns(surface_columns(found.axes, found.places)[0])
    above, limit = found.fit.may_be_best(true, places)
    effect = found.effects["compression"]
    turned = effect.quantity.endswith("over lz4")
    reach = "response at the best setting"
    return [
        Outcome(reach, "all settings together", found.best.low, found.best.high, reached),
        Outcome(reach, "this setting alone", alone.low, alone.high, reached),
        Outcome("true best setting is among the best", "largest t, by draws", -np.inf, limit, above),
        Outcome("effect of a choice", "HC2", effect.low, effect.high, np.exp(-GAIN if turned else GAIN)),
    ]


def _decode(name: str, code: float) -> float:
    return float(SPACE[name].at((code + 1) / 2))


def _truth(rows: pd.DataFrame, best: float) -> pd.Series:
    codes = {
        name: 2 * np.log(rows[name].astype(float) / SPACE[name].low) / np.log(SPACE[name].high / SPACE[name].low) - 1
        for name in ("batch_bytes", "linger_ms")
    }
    bend = -0.8 * (codes["batch_bytes"] - best) ** 2 - 0.5 * (codes["linger_ms"] + 0.2) ** 2
    return 100 * np.exp(bend + np.where(rows.compression == "lz4", GAIN, 0.0))
