"""
Find the dates at which the level of a series, such as the daily RTT of a pair, changed for longer than a burst.

Bursts are clipped to a band around a running median (Hampel filter). Then the logarithms of the series are segmented by
least squares (package `ruptures`), with a penalty per change that is proportional to the long-run variance. This
variance is fitted to medians of absolute differences between values k steps apart, which changes of level and bursts
hardly affect (Chakar et al. 2017, section 3; Genton 1998).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log, sqrt

import numpy as np
import pandas as pd
import ruptures
from scipy.optimize import nnls

from wanbench.checks import refusal
from wanbench.methods.result import LEVEL, Estimate, RowsResult, t_quantile

MAD_TO_SD = 1.4826  # Standard deviation of a normal distribution over its median absolute deviation.
WINDOW = 29  # Steps of the running median: bursts of up to 14 steps are clipped, and a level must last longer.
SHORTEST = 7  # Fewest values of a level: a whole week of days.
CLIP = 3.0  # Half width of the band in standard deviations; 0.3 % of normal values lie outside.
# Penalty of a change over log n: one new level and one new date cost about 3 log n (Zhang & Siegmund 2007).
PENALTY = 3.0
LAGS = 20  # Steps over which dependence is fitted: memory of up to some weeks of days.
DECAYS = np.linspace(0.0, 0.96, 33)  # Candidate autocorrelations from step to step; beyond, a level is not defined.
SMALLEST_SD = 1e-3  # A change of one per mille is below what matters; constant series would have variance 0.
FEWEST = 2 * WINDOW  # With fewer values, no level before and after a change outlasts the running median.
METHOD = (
    "least-squares segmentation of logarithms (ruptures), penalty 3 log n times the long-run variance; "
    "interval of a ratio by Student's t with the long-run variance"
)
ASSUMPTION = (
    "Between changes the level is constant, with fluctuations that decay within weeks of steps; "
    "the interval ignores that the data chose the date"
)


@dataclass(frozen=True, repr=False)
class Changes(RowsResult):
    """
    Levels of one series, and the changes between them.

    `rows` has one row per level: `since` and `until` (first and last time), `n` (values), `level` (geometric mean) and,
    except in the first row, `ratio`, `low` and `high`: this level over the level before, with its interval. `values` is
    the series.
    """

    values: pd.Series

    @property
    def too_short(self) -> bool:
        """Whether the series has too few values to look for changes."""
        return len(self.values) < FEWEST

    @property
    def valid_since(self) -> pd.Timestamp:
        """The time since which the last level has held: the last change, or the first value if there is no change."""
        return self.rows.since.iloc[-1]

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """The ratio of the new to the old level at each change, oldest first."""
        rows, before = self.rows[1:], self.rows.n.shift()
        return tuple(
            Estimate(
                quantity=f"level since {row.since:%Y-%m-%d} over the level before",
                claim=f"On {row.since:%Y-%m-%d} the level became {{}} what it was",
                **{"estimate": row.ratio, "low": row.low, "high": row.high, "unit": "times", "n": int(row.n)},
                **{"method": METHOD, "assumption": ASSUMPTION, "level": LEVEL},
                basis=f"{int(before[at])} values before and {int(row.n)} after",
            )
            for at, row in zip(rows.index, rows.itertuples(), strict=True)
        )

    @property
    def sentence(self) -> str:
        if self.estimates:
            return " ".join(one.sentence for one in self.estimates)
        return f"No change of level in {len(self.values)} values since {self.valid_since:%Y-%m-%d}."


def medians_per_step(at: pd.Series, values: pd.Series, step: str = "1D") -> pd.Series:
    """Return the median of `values` in each step of time, such as a day; `at` has their times."""
    return values.groupby(pd.to_datetime(at, utc=True).dt.floor(step)).median().dropna().sort_index()


def find_changes(values: pd.Series, *, step: str = "1D") -> Changes:
    """
    Find the changes of level in a series of positive values.

    Parameters
    ----------
    values : Series
        One value per step, indexed by the time at which the step begins (`medians_per_step`); steps may be missing.
    step : str
        Length of a step. With "1D", differences between weekdays are removed first, and with "1h", differences
        between hours of the day.

    Raises
    ------
    ParameterError
        A value is not positive and finite, or times are not sorted multiples of the step, each once.
    """
    size, given = pd.Timedelta(step), values.to_numpy(dtype=float)
    if wrong := [value for value in given if not (np.isfinite(value) and value > 0)]:
        raise refusal("a value of the series", wrong[0], "positive and finite numbers, as ratios are estimated")
    index = ((values.index - values.index[0]) // size).to_numpy() if len(values) else np.empty(0, dtype=int)
    if (np.diff(index) < 1).any():
        raise refusal("times of the series", "not increasing", f"sorted times, at most one in each {step}")
    logs, starts, long_run, effective = np.log(given), [0], 0.0, float(len(given))
    if len(given) >= FEWEST:
        cycle = {pd.Timedelta("1D"): 7, pd.Timedelta("1h"): 24}.get(size)
        logs = clipped(without_cycle(logs, index, cycle) if cycle else logs)
        single, long_run = variances(logs, index)
        effective = max(2.0, min(1.0, single / long_run) * len(logs))
        model = ruptures.KernelCPD(kernel="linear", min_size=SHORTEST).fit(logs[:, None])
        starts += model.predict(pen=PENALTY * log(len(logs)) * long_run)[:-1]
    factor = t_quantile(LEVEL, max(effective - 1 - len(starts), 1.0)) * sqrt(long_run)
    rows, before = [], None
    for first, end in zip(starts, [*starts[1:], len(logs)], strict=True):
        if first == end:
            continue
        mean, n = logs[first:end].mean(), end - first
        row = {"since": values.index[first], "until": values.index[end - 1], "n": n, "level": exp(mean)}
        if before:
            half = factor * sqrt(1 / n + 1 / before[1])
            row |= {name: exp(mean - before[0] + k * half) for name, k in (("ratio", 0), ("low", -1), ("high", 1))}
        rows.append(row)
        before = mean, n
    columns = ["since", "until", "n", "level", "ratio", "low", "high"]
    return Changes(pd.DataFrame(rows, columns=columns), values)


def running_median(logs: np.ndarray) -> np.ndarray:
    """Return the median of the `WINDOW` values around each value; the series is mirrored at both ends."""
    mirrored = np.pad(logs, WINDOW // 2, mode="reflect")
    return np.median(np.lib.stride_tricks.sliding_window_view(mirrored, WINDOW), axis=1)


def clipped(logs: np.ndarray) -> np.ndarray:
    """Clip values to the running median plus or minus `CLIP` robust standard deviations."""
    middle = running_median(logs)
    spread = max(MAD_TO_SD * float(np.median(np.abs(logs - middle))), SMALLEST_SD)
    return middle + np.clip(logs - middle, -CLIP * spread, CLIP * spread)


def without_cycle(logs: np.ndarray, index: np.ndarray, cycle: int) -> np.ndarray:
    """
    Subtract from each value the typical deviation at its place in the cycle, such as its weekday.

    `index` has the number of each value's step, and `cycle` the number of steps of a cycle. The typical deviation is
    the median of the deviations from the running median.
    """
    deviations = pd.Series(logs - running_median(logs))
    effects = deviations.groupby(index % cycle).transform("median").to_numpy()
    return logs - (effects - effects.mean())


def variances(logs: np.ndarray, index: np.ndarray) -> tuple[float, float]:
    """
    Estimate the variance of a value about its level, and the long-run variance (n times the variance of a mean).

    The variogram of white noise plus an autoregression of order 1 is fitted to squared medians of absolute differences.
    To allow for remaining bursts, the first variance is at least the mean square of the deviations from the running
    median. The second is raised by the same ratio, and is at least the long-run variance of these deviations (Newey &
    West 1987). `index` has the number of each value's step.

    >>> noise = np.random.default_rng(0).normal(size=4_000)
    >>> series = np.convolve(noise, 0.5 ** np.arange(30))[:4_000]
    >>> [round(variance) for variance in variances(series, np.arange(4_000))]
    [1, 4]
    """
    steps = np.full(index[-1] + 1, np.nan)
    steps[index] = logs
    apart = [np.abs(steps[k:] - steps[:-k]) for k in range(1, LAGS + 1)]
    seen = [(k, np.median(d)) for k, d in enumerate((d[~np.isnan(d)] for d in apart), 1) if len(d) > LAGS]
    lags = np.array([k for k, _ in seen])
    half = np.maximum([(MAD_TO_SD * middle) ** 2 / 2 for _, middle in seen], SMALLEST_SD**2)
    best, found = np.inf, (SMALLEST_SD**2, SMALLEST_SD**2)
    for decay in DECAYS:
        grown = np.stack([np.ones(len(lags)), 1 - decay**lags], axis=1)
        (white, slow), rest = nnls(grown / half[:, None], np.ones(len(lags)))
        if rest < best - 1e-9:
            best, found = rest, (white + slow, white + slow * (1 + decay) / (1 - decay))
    rest = logs - running_median(logs)
    covariance = [rest[k:] @ rest[: len(rest) - k] / len(rest) for k in range(SHORTEST + 1)]
    weights = 2 * (1 - np.arange(1, SHORTEST + 1) / (SHORTEST + 1))
    raised = max(1.0, covariance[0] / found[0])
    return float(found[0] * raised), float(max(found[1] * raised, covariance[0] + float(weights @ covariance[1:])))
