"""
How strongly slow records cluster: in bursts, in slow periods, in runs.

Two measures, as neither suffices with few data. The design effect is the variance of the share beyond a latency over
that of independent records (Kish 1965; Korn & Graubard 1998). Bursts show whether too few events hold these records to
estimate that variance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy import stats

from wanbench.methods.time import autoregression, series

STRETCHES = 1_000
"""Number of stretches of a long run: each is short enough to separate one burst from the next."""
MIN_IN_STRETCH = 10
"""Minimum number of records in a stretch: a shorter stretch could not hold a burst."""
SPELLS = 30
"""
Number of periods of a run whose differences give the design effect: enough for t to be near the normal, and few enough
for a period to be longer than most bursts.
"""
MIN_SPELLS = 10
"""With fewer periods the test of `CLUSTERED_P` has no power, so the design effect always counts."""
CLUSTERED_P = 0.05
"""Records count as independent unless the scatter between periods has a p-value below this. Without this test the noise
of the design effect would widen the intervals of independent records by a third."""
BURST_P = 1e-3
"""
A stretch belongs to a burst if it holds at least two records, and the probability of that many independent records in
it is below this.
"""


@dataclass(frozen=True)
class Parts:
    """
    A sample divided into stretches of time, whose differences show how dependent its records are.

    Attributes
    ----------
    run : array
        The number of the run of each stretch, from 0; stretches are in order of run and time.
    sizes : array
        Records in each.
    below : function
        The number of records of each stretch with at most a latency; one that can be pickled.
    """

    run: np.ndarray = field(repr=False)
    sizes: np.ndarray = field(repr=False)
    below: Callable[[float], np.ndarray] = field(repr=False)

    @property
    def n_runs(self) -> int:
        return len(np.unique(self.run))

    @property
    def kind(self) -> str:
        """The unit of replication: "runs", which are independent of each other, or "stretches of time"."""
        return "runs" if self.n_runs > 1 else "stretches of time"

    def beyond(self, x: float) -> np.ndarray:
        """The number of records of each stretch that took longer than x ms."""
        return self.sizes - self.below(x)

    def design_effect(self, x: float, level: float = 0.95) -> float:
        """
        The number of records that carry as much information as one independent record, from 1.

        It includes the widening for few units: t at this level in place of the normal.
        """
        unit = self.run if self.n_runs > 1 else np.arange(len(self.sizes)) * SPELLS // len(self.sizes)
        unit = np.unique(unit, return_inverse=True)[1]
        sizes, beyond = (np.bincount(unit, weights=counts) for counts in (self.sizes, self.beyond(x)))
        sizes, beyond = sizes[sizes > 0], beyond[sizes > 0]
        share = beyond.sum() / sizes.sum()
        if not 0 < share < 1 or len(sizes) < 2:
            return 1.0
        deviation = beyond - share * sizes
        if self.n_runs > 1:
            units = float(len(sizes))
        elif len(sizes) >= MIN_SPELLS and _as_by_chance(deviation / np.sqrt(sizes * share * (1 - share))):
            return 1.0
        else:
            units = series.effective_n(len(deviation), autoregression.fit(deviation, np.random.default_rng(0)))
        variance = (deviation / sizes.mean()).var(ddof=1) / units
        wider = stats.t.ppf((1 + level) / 2, max(units - 1, 1.0)) / stats.norm.ppf((1 + level) / 2)
        return max(float(sizes.sum() * variance / (share * (1 - share)) * wider**2), 1.0)

    def bursts(self, x: float) -> np.ndarray:
        """
        The number of records beyond a latency in each burst: adjacent stretches with more than expected by chance.
        """
        beyond = self.beyond(x)
        expected = self.sizes * beyond.sum() / self.sizes.sum()
        hot = beyond > np.maximum(stats.poisson.isf(BURST_P, expected), 1)
        # a burst goes on in the next stretch of the same run
        goes_on = np.concatenate([[False], hot[:-1] & (self.run[1:] == self.run[:-1])])
        return np.bincount(np.cumsum(hot & ~goes_on)[hot], weights=beyond[hot])[1:]


def equal_bursts(bursts: np.ndarray) -> float:
    """
    The effective number of bursts: how many equal ones would give the same variance of the total.

    >>> equal_bursts(np.array([5.0, 5.0])), round(equal_bursts(np.array([20.0, 3.0, 3.0])), 2)
    (2.0, 1.62)
    """
    return float(bursts.sum() ** 2 / (bursts @ bursts)) if len(bursts) else 0.0


def _as_by_chance(standardised: np.ndarray) -> bool:
    """Whether counts vary, and are autocorrelated, no more than those of independent records."""
    squares, n = float(standardised @ standardised), len(standardised)
    autocorrelation = float(standardised[1:] @ standardised[:-1]) / max(squares, 1e-300)
    p = stats.chi2.sf(squares, n - 1), stats.norm.sf(autocorrelation * n**0.5)
    return 2 * min(p) > CLUSTERED_P


def parts_of(runs: Sequence[np.ndarray]) -> Parts | None:
    """Runs of values, each in order of time, split into stretches; None without values."""
    if not runs:
        return None
    starts, run, at = [], [], 0
    for k, values in enumerate(runs):
        stretches = min(max(len(values) // MIN_IN_STRETCH, min(len(values), SPELLS)), STRETCHES)
        starts.append(at + np.linspace(0, len(values), stretches + 1).astype(int)[:-1])
        run.append(np.full(stretches, k))
        at += len(values)
    values, first = np.concatenate(runs), np.concatenate(starts)
    return Parts(np.concatenate(run), np.diff([*first, at]).astype(float), partial(_below, values, first))


def _below(values: np.ndarray, first: np.ndarray, x: float) -> np.ndarray:
    return np.add.reduceat((values <= x).astype(float), first)
