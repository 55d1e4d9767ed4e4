"""Simulation: the ratio of two arms that have one autocorrelated series each, several runs, or blocks."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pandas as pd
from scipy.signal import lfilter

from wanbench.methods.sizes import numbers
from wanbench.pages.private_vs_internet import arms as comparison
from wanbench.pages.private_vs_internet.arms import Comparison, compare_arms

from .simulation import Outcome

MEANS = (100.0, 200.0)
SPREAD = 10.0
"""Standard deviation of the values of an arm."""
BETWEEN_RUNS = 5.0
"""Standard deviation of the levels of runs, and of blocks."""
RESAMPLES = 250
"""Enough for 95 % intervals, and fast enough for a thousand data sets."""
BURN_IN = 200
"""Number of first values of a series that are dropped."""
UNITS = {"series": "stationary bootstrap", "runs": "runs as units", "blocks": "blocks as units"}
"""Names of the main method by unit of replication."""
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


def compare_series(a, b, *, names: tuple[str, str] = ("a", "b"), value: str = "value", **settings) -> Comparison:
    """
    Compare two arrays, each the series of an arm in order of time; `settings` are those of `compare_arms`.

    >>> rng = np.random.default_rng(0)
    >>> result = compare_series(rng.normal(20, 2, 300), rng.normal(45, 5, 300), names=("private", "internet"))
    >>> bool(result.ratio.low < 2.25 < result.ratio.high), result.unit_of_replication
    (True, 'series')
    """
    arrays = [numbers(name, values) for name, values in zip(names, (a, b), strict=True)]
    frame = pd.DataFrame({"arm": np.repeat(list(names), [len(values) for values in arrays])})
    return compare_arms(frame.assign(**{value: np.concatenate(arrays)}), value, arms=names, **settings)


def trial(seed: int, kind: str, phi: float, n: int, runs: int = 1) -> list[Outcome]:
    """Simulate two arms with means 100 and 200 and a standard deviation of 10 within, and 5 between, runs or blocks."""
    rng = np.random.default_rng(seed)
    ratio = MEANS[1] / MEANS[0]
    if kind in ("runs", "blocks"):
        result = _with_runs(kind, phi, n, runs, rng, seed)
    else:
        arms = [mean + SPREAD * autoregressive(kind, phi, n, rng) for mean in MEANS]
        result = compare_series(*arms, resamples=RESAMPLES, seed=seed)
    method, means = UNITS[result.unit_of_replication], result.ratio
    return [
        Outcome("ratio of means", method, means.low, means.high, ratio),
        Outcome("ratio of means", "Welch, single values", means.naive.low, means.naive.high, ratio),
        *(Outcome("ratio of means", other.method, other.low, other.high, ratio) for other in means.others),
    ]


def autoregressive(kind: str, phi: float, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return a stationary series with mean 0 and standard deviation 1."""
    noise = rng.normal(size=n + BURN_IN)
    # start in the stationary state
    noise[0] /= sqrt(1 - phi**2)
    smooth = lfilter([1.0], [1.0, -phi], noise)[BURN_IN:] * sqrt(1 - phi**2)
    if kind == "AR(1) and white noise":
        return (smooth + rng.normal(size=n)) / sqrt(2)
    if kind == "skewed AR(1)":
        return (np.exp(smooth) - np.exp(0.5)) / sqrt((np.e - 1) * np.e)
    return smooth


def _with_runs(kind: str, phi: float, n: int, runs: int, rng: np.random.Generator, seed: int):
    hours = rng.normal(0, BETWEEN_RUNS, runs)
    frames = []
    for name, mean in zip("ab", MEANS, strict=True):
        for run in range(runs):
            hour = hours[run] * mean / MEANS[0] if kind == "blocks" else 0.0
            level = mean + hour + rng.normal(0, BETWEEN_RUNS)
            values = level + SPREAD * autoregressive("AR(1)", phi, n, rng)
            frames.append(pd.DataFrame({"arm": name, "run": f"{name}{run}", "block": run, "value": values}))
    by = {"block": "block"} if kind == "blocks" else {"run": "run"}
    return comparison.compare_arms(pd.concat(frames), "value", **by, resamples=RESAMPLES, seed=seed)
