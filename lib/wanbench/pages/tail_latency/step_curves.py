"""
Build the curve of a latency quantile against the rate from trials at stepped rates, in each block and as the mean.

The mean is over logarithms of trials' quantiles, so it describes a typical trial. A missing trial is filled in from the
effects of its block and its step; otherwise the mean curve would bend where a slow block lacks a trial.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from math import isfinite, nan

import numpy as np
import pandas as pd
from scipy import optimize

from wanbench.checks import check_columns
from wanbench.errors import ParameterError
from wanbench.formatting import count
from wanbench.methods.result.estimate import t_quantile
from wanbench.methods.tails import quantile_intervals as order

RATE = "rate_records_per_s"
LEVEL = 0.95
"""Confidence level of every interval of a curve."""
COLUMNS = ("block", RATE, "tail")
MIN_STEPS = 4
"""Minimum number of steps of a curve: its flat part and its rising part need two steps each."""
MIN_BLOCKS = 2
"""Minimum number of blocks of a curve: a single block shows no scatter."""
FILL_ROUNDS = 50
"""Number of iterations that fill in missing trials; each iteration reduces the error by a constant factor."""


@dataclass(frozen=True, eq=False)
class StepCurve:
    """
    A latency quantile against the rate, at the steps `rates` in ascending order, in records/s.

    `logs` has the logarithm of each trial's quantile in ms: one row per block, one column per step. `n` is the number
    of trials. At the rates in `lost`, a trial's quantile is unknown, because the record at it was lost; `logs` has a
    lower bound.
    """

    q: float
    rates: np.ndarray
    blocks: tuple[Hashable, ...]
    logs: np.ndarray
    n: int
    notes: tuple[str, ...] = ()
    lost: tuple[float, ...] = ()

    def below(self, rate: float) -> StepCurve:
        """Return the curve with only the steps below a rate."""
        steps = self.rates < rate
        lost = tuple(each for each in self.lost if each < rate)
        return replace(self, rates=self.rates[steps], logs=self.logs[:, steps], lost=lost)

    @property
    def mean(self) -> np.ndarray:
        """The mean over blocks of the logarithm of the quantile in ms, at each step."""
        return self.logs.mean(axis=0)

    def table(self) -> pd.DataFrame:
        """
        Return one row per step: `rate_records_per_s`, `latency_ms`, and its interval `low_ms` to `high_ms`.

        `latency_ms` is the geometric mean over blocks, NaN at the rates in `lost`.
        """
        r = len(self.blocks)
        half = student(LEVEL, r) * self.logs.std(axis=0, ddof=1) / r**0.5 if r > 1 else np.full(len(self.rates), nan)
        mean = np.where(np.isin(self.rates, self.lost), nan, self.mean)
        with np.errstate(over="ignore"):
            latencies = {"latency_ms": np.exp(mean), "low_ms": np.exp(mean - half), "high_ms": np.exp(mean + half)}
        return pd.DataFrame({RATE: self.rates} | latencies)

    def jackknife(self, statistic: Callable[[np.ndarray], float]) -> tuple[float, float]:
        """
        Compute a statistic of the mean curve, and its standard error by the jackknife over blocks.

        The method is that of Shao & Tu (1995, section 2.3). The error is NaN if the statistic is NaN without some
        block.
        """
        r, value = len(self.blocks), statistic(self.mean)
        if r < 2:
            return value, nan
        without = np.array([statistic(np.delete(self.logs, k, axis=0).mean(axis=0)) for k in range(r)])
        return value, float(np.sqrt((r - 1) / r * ((without - without.mean()) ** 2).sum()))


def step_curve(trials: pd.DataFrame, q: float = 0.99) -> StepCurve:
    """
    Build the curve of the quantile `q` of one system.

    `trials` has one row per trial: `block`, `rate_records_per_s`, `tail`. Several trials of one block and step are
    averaged. Raises ParameterError: there are too few steps or blocks, or a quantile is not above 0.
    """
    check_columns("trials", trials, COLUMNS)
    order.check_quantile(q)
    values = np.array([tail.quantile(q) for tail in trials["tail"]], dtype=float)
    lost = ~np.isfinite(values)
    if len(lost) and lost.all():
        raise ParameterError(f"{order.name(q)} of every trial is that of a lost record.")
    values[lost] = max((tail.values_ms[-1] for tail in trials["tail"] if len(tail.values_ms)), default=nan)
    if not (values > 0).all():
        zero = count(int((values <= 0).sum()), "trial")
        raise ParameterError(f"{order.name(q)} of {zero} is not above 0 ms; allowed: latencies above 0.")
    frame = trials.assign(log=np.log(values))
    wide = frame.pivot_table(index="block", columns=RATE, values="log", aggfunc="mean", sort=True)
    if wide.shape[1] < MIN_STEPS or wide.shape[0] < MIN_BLOCKS:
        shape = f"{count(wide.shape[1], 'step')} and {count(wide.shape[0], 'block')}"
        raise ParameterError(f"trials has {shape}; allowed: at least {MIN_STEPS} steps and {MIN_BLOCKS} blocks.")
    missing = int(wide.isna().sum().sum())
    note = f"{count(missing, 'trial')} missing, filled in from the other trials of its block and step"
    logs, rates = filled(wide.to_numpy(dtype=float)), wide.columns.to_numpy(dtype=float)
    lost_at = tuple(sorted(set(trials[RATE][lost].astype(float))))
    return StepCurve(q, rates, tuple(wide.index), logs, len(trials), (note,) if missing else (), lost_at)


def filled(logs: np.ndarray) -> np.ndarray:
    """
    Return the table with NaN replaced by the overall mean plus the effects of the row and of the column.

    >>> filled(np.array([[1.0, 2.0], [3.0, np.nan]])).round(3).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    missing = np.isnan(logs)
    whole = np.where(missing, np.nanmean(logs, axis=0), logs)
    for _ in range(FILL_ROUNDS if missing.any() else 0):
        fitted = whole.mean(axis=1, keepdims=True) + whole.mean(axis=0) - whole.mean()
        whole = np.where(missing, fitted, whole)
    return whole


def rising(logs: np.ndarray) -> np.ndarray:
    """Return the closest non-decreasing curve (isotonic regression)."""
    return optimize.isotonic_regression(logs).x


def student(level: float, units: int) -> float:
    """Return Student's t quantile for an interval of this level from `units` units; infinite with fewer than two."""
    return float(t_quantile(level, units - 1)) if units > 1 else float("inf")


def ends(value: float, half: float) -> tuple[float, float]:
    """Return the ends of an interval, exp(value - half) and exp(value + half); NaN if an argument is not finite."""
    if not (isfinite(value) and isfinite(half)):
        return nan, nan
    with np.errstate(over="ignore"):
        return float(np.exp(value - half)), float(np.exp(value + half))
