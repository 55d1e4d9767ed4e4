"""Simulation: the ratio of two links from interleaved trials, and the effects in factorial experiments."""

from __future__ import annotations

import numpy as np
import pandas as pd

from wanbench.designs import factorial, interleaved
from wanbench.methods.trials.rates import BY_LOG, TrialRates
from wanbench.pages.private_vs_internet.fit import fit_factorial
from wanbench.pages.private_vs_internet.two_links import compare_links

from .simulation import Outcome

NAMES = ("internet", "private")
MEANS = {"internet": 100.0, "private": 225.0}
SECONDS = 10
"""Seconds per trial that are counted."""
LEVELS = {
    "delay_ms": [10.0, 60.0],
    "jitter_ms": [0.0, 10.0],
    "loss": [0.0, 1e-3],
    "rate_bps": [4e7, 4e8],
    "acks": ["1", "all"],
    "batch_bytes": [16_384.0, 131_072.0],
}
"""Two levels of each factor."""
SLOPES = {"delay_ms": -0.6, "rate_bps": 0.4, "batch_bytes": -0.2}
"""Elasticities of the response by factor."""
IN_FLIGHT = 5
"""Batches in flight if a window limits throughput (`bent`)."""
STEPS = {"jitter_ms": -0.1, "loss": -0.4, "acks": -0.1}
"""Effects of the second level of a factor, as logarithms."""
INTERACTIONS = {("delay_ms", "rate_bps"): -0.1, ("rate_bps", "batch_bytes"): 0.1}
"""Interactions of the logarithms of two factors."""
FRACTIONS = {"full": None, "half": {"batch_bytes": ["delay_ms", "jitter_ms", "loss", "rate_bps", "acks"]}}
SETTINGS = [
    *({"kind": "two links", "blocks": blocks, "drift": 0.0, "spread": 0.03} for blocks in (2, 3, 6)),
    {"kind": "two links", "blocks": 3, "drift": 0.02, "spread": 0.03},
    {"kind": "two links", "blocks": 3, "drift": 0.0, "spread": 0.1},
    {"kind": "factorial, full", "replicates": 1, "spread": 0.1},
    {"kind": "factorial, half", "replicates": 1, "spread": 0.1},
    {"kind": "factorial, half", "replicates": 2, "spread": 0.1},
    {"kind": "factorial, half", "replicates": 2, "spread": 0.1, "noisy": 10.0},
    {"kind": "factorial, full", "replicates": 1, "spread": 0.1, "bent": True},
]
ROBUST = "HC2 or pooled, the wider"


def trial(seed: int, kind: str, spread: float, **setting) -> list[Outcome]:
    """
    Simulate trials with log-normal scatter, whose standard deviation is proportional to `spread`.

    The standard deviation is twice as large over the internet, or with the longer delay, as otherwise.

    Two settings violate assumptions. With `noisy`, the scatter of one combination is multiplied by this factor. With
    `bent`, batches per second are the minimum of a window's and a link's rate, and the truth is the average elasticity
    between the levels.
    """
    rng = np.random.default_rng(seed)
    if kind == "two links":
        return _two_links(rng, seed, spread, **setting)
    return _factorial(rng, seed, spread, kind.removeprefix("factorial, "), **setting)


def _two_links(rng, seed: int, spread: float, blocks: int, drift: float) -> list[Outcome]:
    plan = interleaved(list(NAMES), blocks, seed=seed)
    own = spread * np.where(plan.setting == "internet", 2.0, 1.0)
    hours = rng.normal(0, 2 * spread, blocks)[plan.block - 1]
    level = plan.setting.map(MEANS) * np.exp(hours + drift * plan.order + rng.normal(0, own))
    rates = plan.assign(run_id="run", test_id=[f"{k:04d}" for k in plan.order], batches_per_s=level)
    rates = rates.assign(counted_by=BY_LOG, window_rule="", n_seconds=SECONDS, autocorrelation=0.0)
    single = rates.loc[rates.index.repeat(SECONDS)].reset_index(drop=True)
    counted = single.batches_per_s * np.exp(rng.normal(0, 0.05, len(single)))
    seconds = single[["run_id", "test_id", "setting"]].assign(
        second=np.tile(np.arange(SECONDS), len(rates)), at_s=0, batches=counted, records=counted, bytes=counted
    )
    empty = pd.DataFrame(columns=["run_id", "test_id", "setting", "reason"])
    found = compare_links(TrialRates(rates, seconds, empty, ""))
    # trials are log-normal and scatter more over the internet, so the ratio of means contains both variances
    means = MEANS["private"] / MEANS["internet"] * np.exp((spread**2 - (2 * spread) ** 2) / 2)
    single = found.by_trial
    return [
        Outcome("ratio of two links", "trials in pairs", found.ratio.low, found.ratio.high, means),
        Outcome("ratio of two links", "trials, unpaired", single.low, single.high, means),
        Outcome("ratio of two links", "seconds as independent", single.naive.low, single.naive.high, means),
    ]


def _factorial(
    rng, seed: int, spread: float, which: str, replicates: int, noisy: float = 1.0, bent: bool = False
) -> list[Outcome]:
    plan = factorial(LEVELS, fraction=FRACTIONS[which], replicates=replicates, seed=seed)
    codes = _codes(plan)
    level = sum(size * codes[name] for name, size in (SLOPES | STEPS).items())
    level = level + sum(size * codes[one] * codes[other] for (one, other), size in INTERACTIONS.items())
    slope = SLOPES["delay_ms"]
    if bent:
        window = IN_FLIGHT * plan.batch_bytes / (2 * plan.delay_ms / 1000)
        level = np.log(np.minimum(window, plan.rate_bps / 8) / plan.batch_bytes) + STEPS["acks"] * codes["acks"]
        ends = level.groupby(plan.delay_ms).mean()
        slope = float(np.diff(ends)[0] / np.diff(np.log(ends.index))[0])
    own = spread * np.where(plan.delay_ms > LEVELS["delay_ms"][0], 4 / 3, 2 / 3)
    first = (plan[list(LEVELS)] == plan.sort_values(list(LEVELS))[list(LEVELS)].iloc[0]).all(axis=1)
    own = own * np.where(first, noisy, 1.0)
    plan = plan.assign(batches_per_s=100 * np.exp(level + rng.normal(0, own)))
    harder = bent or noisy != 1
    found = fit_factorial(
        plan,
        "batches_per_s",
        list(LEVELS),
        contrasts=["jitter_ms", "loss"],
        block="replicate" if replicates > 1 else None,
        delay="" if harder else "delay_ms",
    )
    delay, acks = found.elasticities["delay_ms"], found.effects["acks"]
    outcomes = [
        Outcome("elasticity", ROBUST, delay.low, delay.high, slope),
        Outcome("effect of two levels", ROBUST, acks.low, acks.high, np.exp(STEPS["acks"])),
    ]
    if harder:
        return outcomes
    at = _codes(found.grid)
    truth = 2.0 ** (
        -SLOPES["delay_ms"] - SLOPES["rate_bps"]
        - INTERACTIONS["delay_ms", "rate_bps"] * (at["rate_bps"] + at["delay_ms"])
        - INTERACTIONS["rate_bps", "batch_bytes"] * at["batch_bytes"]
    )  # fmt: skip
    worst = float((found.grid.low / truth).max()), float((found.grid.high / truth).min())
    together = "greatest |t|, the greater of robust and pooled errors"
    return [
        *outcomes,
        Outcome("gain at one place", ROBUST, found.thesis.low, found.thesis.high, 2**0.2),
        Outcome("gain at all places together", together, *worst, 1.0),
    ]


def _codes(plan: pd.DataFrame) -> dict[str, np.ndarray]:
    return {
        name: np.log(plan[name].astype(float)).to_numpy() - np.log(levels).mean()
        if name in SLOPES
        else np.where(plan[name] == levels[1], 0.5, -0.5)
        for name, levels in LEVELS.items()
    }
