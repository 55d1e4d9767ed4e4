"""Simulation: whether the comparison of two arms warns of slow regimes and long memory, and only of these."""

from __future__ import annotations

import numpy as np

from wanbench.pages.private_vs_internet import arms as comparison

from .compare import MEANS, SPREAD, autoregressive, compare_series
from .simulation import MAIN, Outcome

DATASETS = 300
RESAMPLES = 150
"""Few, because coverage is far from 95 % here or need not be exact."""
QUIET = "those without a caution"
"""Method name of the intervals of comparisons without a caution."""
KINDS = {
    300: ("independent", "AR(1) 0.6", "AR(1) 0.9", "skewed AR(1) 0.6", "AR(1) 0.985", "5 regimes", "10 regimes",
          "long memory, d 0.3", "long memory, d 0.4"),
    1000: ("AR(1) 0.6", "AR(1) 0.9", "AR(1) 0.985", "10 regimes", "long memory, d 0.4"),
}  # fmt: skip
SETTINGS = [{"kind": kind, "n": n} for n, kinds in KINDS.items() for kind in kinds]
HIGH_SHARE = 0.3
"""Share of the time with the higher level."""
STEP = 2.0
"""Difference of the levels in standard deviations of the noise."""


def trial(seed: int, kind: str, n: int) -> list[Outcome]:
    """
    Simulate two arms with means 100 and 200 and a standard deviation of 10.

    The method `QUIET` has an interval only if there is no caution other than that of a single run, so that the column
    `without_interval` counts the cautions.
    """
    rng = np.random.default_rng(seed)
    arms = [mean + SPREAD * swings(kind, n, rng) for mean in MEANS]
    means = compare_series(*arms, resamples=RESAMPLES, seed=seed).ratio
    given = means.low, means.high
    quiet = (np.nan, np.nan) if {*means.warnings} - {comparison.ONE_RUN} else given
    ratio = MEANS[1] / MEANS[0]
    return [Outcome("ratio of means", MAIN, *given, ratio), Outcome("ratio of means", QUIET, *quiet, ratio)]


def swings(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return a stationary series with mean 0 and standard deviation 1."""
    name, _, size = kind.rpartition(" ")
    if name.endswith("AR(1)"):
        return autoregressive(name, float(size), n, rng)
    if kind == "independent":
        return rng.normal(size=n)
    return _long_memory(float(size), n, rng) if name.startswith("long") else _regimes(n / int(name), n, rng)


def _regimes(mean: float, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return two alternating levels plus white noise; levels last exponential times, with the mean `mean` over both."""
    level, start, high = np.zeros(n), 0, rng.random() < HIGH_SHARE
    while start < n:
        length = 1 + int(rng.exponential(2 * mean * (HIGH_SHARE if high else 1 - HIGH_SHARE)))
        level[start : start + length] = high
        start, high = start + length, not high
    spread = np.sqrt(STEP**2 * HIGH_SHARE * (1 - HIGH_SHARE) + 1)
    return (STEP * (level - HIGH_SHARE) + rng.normal(size=n)) / spread


def _long_memory(d: float, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return fractional Gaussian noise with Hurst exponent d + 1/2, by circulant embedding (Davies & Harte 1987)."""
    lags, power = np.arange(n + 1.0), 2 * d + 1
    covariance = (np.abs(lags + 1) ** power - 2 * lags**power + np.abs(lags - 1) ** power) / 2
    circulant = np.concatenate([covariance, covariance[-2:0:-1]])
    strength = np.fft.fft(circulant).real.clip(0) / len(circulant)
    noise = rng.normal(size=len(circulant)) + 1j * rng.normal(size=len(circulant))
    return np.fft.fft(np.sqrt(strength) * noise).real[:n]
