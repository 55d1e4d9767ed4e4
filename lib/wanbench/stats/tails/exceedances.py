"""
How strongly the records beyond a latency cluster: in bursts, in slow spells of time, in runs.

Two questions, because few data answer neither alone. The design effect says how much more the share beyond a latency
varies than that of independent records (Kish 1965; Korn & Graubard 1998). The bursts say whether the records come
from so few events that this variance is not known itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import stats

from ..time import autoregression, series

STRETCHES, FEWEST_IN_STRETCH = 1_000, 10
"""Stretches of a run, and records in each where there are enough: one that is shorter could not hold a burst."""
SPELLS, FEWEST_SPELLS = 30, 10
"""Between so many spells of a run the design effect is seen: enough for t to be near the normal, and few enough that a
spell is longer than most bursts. With fewer than the second, nothing is taken as chance."""
CLUSTERED_P = 0.05
"""Spells are taken as independent records unless chance would scatter them as much less often than this. In between the
design effect is noise: it would leave the intervals of independent records a third wider."""
RARE = 1e-3
"""A stretch belongs to a burst if it holds two records or more, and independent records would be as many there less
often than this."""


@dataclass(frozen=True)
class Parts:
    """
    A sample in stretches of time, between which its dependence shows.

    Attributes
    ----------
    run : array
        The number of the run of each stretch, from 0; stretches are in order of run and time.
    sizes : array
        Records in each.
    below : function
        How many of each took at most a latency.
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
        """How many records of each stretch took longer."""
        return self.sizes - self.below(x)

    def design_effect(self, x: float, level: float = 0.95) -> float:
        """
        How many records count for one independent record in the share beyond a latency, from 1.

        It includes what few units add to an interval: t at this level in place of the normal.
        """
        unit = self.run if self.n_runs > 1 else np.arange(len(self.sizes)) * SPELLS // len(self.sizes)
        unit = np.unique(unit, return_inverse=True)[1]
        sizes, beyond = (np.bincount(unit, weights=each) for each in (self.sizes, self.beyond(x)))
        sizes, beyond = sizes[sizes > 0], beyond[sizes > 0]
        share = beyond.sum() / sizes.sum()
        if not 0 < share < 1 or len(sizes) < 2:
            return 1.0
        apart = beyond - share * sizes
        if self.n_runs > 1:
            units = float(len(sizes))
        elif len(sizes) >= FEWEST_SPELLS and _as_by_chance(apart / np.sqrt(sizes * share * (1 - share))):
            return 1.0
        else:
            units = series.effective_n(len(apart), autoregression.fit(apart, np.random.default_rng(0)))
        variance = (apart / sizes.mean()).var(ddof=1) / units
        wider = stats.t.ppf((1 + level) / 2, max(units - 1, 1.0)) / stats.norm.ppf((1 + level) / 2)
        return max(float(sizes.sum() * variance / (share * (1 - share)) * wider**2), 1.0)

    def bursts(self, x: float) -> np.ndarray:
        """
        How many records beyond a latency each burst holds: neighbouring stretches with more than chance puts there.
        """
        beyond = self.beyond(x)
        due = self.sizes * beyond.sum() / self.sizes.sum()
        hot = beyond > np.maximum(stats.poisson.isf(RARE, due), 1)
        goes_on = np.concatenate([[False], hot[:-1] & (self.run[1:] == self.run[:-1])])
        return np.bincount(np.cumsum(hot & ~goes_on)[hot], weights=beyond[hot])[1:]


def equal_bursts(bursts: np.ndarray) -> float:
    """
    How many bursts of equal size vary as much as these.

    >>> equal_bursts(np.array([5.0, 5.0])), round(equal_bursts(np.array([20.0, 3.0, 3.0])), 2)
    (2.0, 1.62)
    """
    return float(bursts.sum() ** 2 / (bursts @ bursts)) if len(bursts) else 0.0


def _as_by_chance(standardised: np.ndarray) -> bool:
    """Whether counts of spells scatter, and follow each other, as those of independent records would."""
    squares, n = float(standardised @ standardised), len(standardised)
    following = float(standardised[1:] @ standardised[:-1]) / max(squares, 1e-300)
    p = stats.chi2.sf(squares, n - 1), stats.norm.sf(following * n**0.5)
    return 2 * min(p) > CLUSTERED_P


def parts_of(runs: Sequence[np.ndarray]) -> Parts | None:
    """Runs of values, each in order of time, in stretches; None without values."""
    if not runs:
        return None
    starts, run, at = [], [], 0
    for k, values in enumerate(runs):
        stretches = min(max(len(values) // FEWEST_IN_STRETCH, min(len(values), SPELLS)), STRETCHES)
        starts.append(at + np.linspace(0, len(values), stretches + 1).astype(int)[:-1])
        run.append(np.full(stretches, k))
        at += len(values)
    values, first = np.concatenate(runs), np.concatenate(starts)
    return Parts(
        np.concatenate(run),
        np.diff([*first, at]).astype(float),
        lambda x: np.add.reduceat((values <= x).astype(float), first),
    )
