"""Two arms of autocorrelated values, and of runs: do the intervals of their ratio cover?"""

from __future__ import annotations

from math import sqrt

import numpy as np
import pandas as pd
from scipy.signal import lfilter

from ..stats.time import compare as two_arms
from .study import Outcome

TITLE = "intervals of the ratio of two arms, one autocorrelated series each or several runs"
MEANS, SPREAD = (100.0, 200.0), 10.0
RESAMPLES = 250
BURN_IN = 200
SETTINGS = [
    *({"kind": "AR(1)", "phi": phi, "n": n} for phi in (0.0, 0.3, 0.6, 0.9) for n in (100, 300)),
    *({"kind": "AR(1)", "phi": phi, "n": 1000} for phi in (0.0, 0.9)),
    {"kind": "AR(1)", "phi": 0.9, "n": 50},
    {"kind": "AR(1)", "phi": 0.97, "n": 300},
    {"kind": "AR(1) and white noise", "phi": 0.9, "n": 1000},
    {"kind": "skewed AR(1)", "phi": 0.6, "n": 300},
    {"kind": "runs", "phi": 0.6, "n": 50, "runs": 3},
    {"kind": "runs", "phi": 0.6, "n": 50, "runs": 6},
    {"kind": "blocks", "phi": 0.6, "n": 50, "runs": 6},
]


def trial(seed: int, kind: str, phi: float, n: int, runs: int = 1) -> list[Outcome]:
    """Two arms with means 100 and 200 and a standard deviation of 10; with runs, 5 more between runs."""
    rng = np.random.default_rng(seed)
    if kind in ("runs", "blocks"):
        found, truth = _with_runs(kind, phi, n, runs, rng, seed)
        return _outcomes(found, truth, truth)
    arms = [mean + SPREAD * autoregressive(kind, phi, n, rng) for mean in MEANS]
    found = two_arms.compare_series(*arms, resamples=RESAMPLES, seed=seed)
    ratio = MEANS[1] / MEANS[0]
    off = SPREAD * _median(kind)
    return _outcomes(found, ratio, (MEANS[1] + off) / (MEANS[0] + off))


def _outcomes(found, ratio: float, of_medians: float) -> list[Outcome]:
    own = {"series": "stationary bootstrap", "runs": "runs as units", "blocks": "blocks as units"}
    name = own[found.unit_of_replication]
    rows = [
        Outcome("ratio of means", name, found.means.low, found.means.high, ratio),
        Outcome(
            "ratio of means", "Welch, single values", found.means.naive.low, found.means.naive.high, ratio
        ),
        Outcome("ratio of medians", name, found.medians.low, found.medians.high, of_medians),
    ]
    rows += [
        Outcome("ratio of means", each.method, each.low, each.high, ratio) for each in found.means.others
    ]
    return rows


def autoregressive(kind: str, phi: float, n: int, rng: np.random.Generator) -> np.ndarray:
    """A stationary series with mean 0 and standard deviation 1."""
    noise = rng.normal(size=n + BURN_IN)
    # a first-order series starts in its stationary state
    noise[0] /= sqrt(1 - phi**2)
    smooth = lfilter([1.0], [1.0, -phi], noise)[BURN_IN:] * sqrt(1 - phi**2)
    if kind == "AR(1) and white noise":
        return (smooth + rng.normal(size=n)) / sqrt(2)
    if kind == "skewed AR(1)":
        return (np.exp(smooth) - np.exp(0.5)) / sqrt((np.e - 1) * np.e)
    return smooth


def _median(kind: str) -> float:
    return (1 - np.exp(0.5)) / sqrt((np.e - 1) * np.e) if kind == "skewed AR(1)" else 0.0


def _with_runs(kind: str, phi: float, n: int, runs: int, rng: np.random.Generator, seed: int):
    hours = rng.normal(0, 5, runs)
    frames = []
    for name, mean in zip("ab", MEANS, strict=True):
        for run in range(runs):
            level = mean + (hours[run] * mean / MEANS[0] if kind == "blocks" else 0.0) + rng.normal(0, 5)
            values = level + SPREAD * autoregressive("AR(1)", phi, n, rng)
            frames.append(pd.DataFrame({"arm": name, "run": f"{name}{run}", "block": run, "value": values}))
    by = {"block": "block"} if kind == "blocks" else {"run": "run"}
    found = two_arms.compare_arms(pd.concat(frames), "value", **by, resamples=RESAMPLES, seed=seed)
    return found, MEANS[1] / MEANS[0]
