"""
The shift function: by how much one distribution lies beyond another, at each quantile (Doksum 1974; Doksum & Sievers
1976; Rousselet, Pernet & Wilcox 2017), with a band that holds at all quantiles together.

The differences and their intervals are those of `compare_tails`, where runs are the units and seconds within a run
depend on each other. Only the level of each interval differs: errors of quantiles of one sample are correlated (a
Brownian bridge for independent records), so the distribution of the largest is known. If whole runs are slow or fast,
the correlation is stronger and the band too wide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite

import numpy as np
from scipy import stats

from ...checks import check_level
from ...formatting import count, percent
from .compare import TailComparison, compare_tails
from .distribution import Tail
from .quantile_intervals import check_quantile

SHIFT_AT = (*(k / 10 for k in range(1, 10)), 0.95, 0.99, 0.999, 0.9999)
"""Deciles, and the quantiles of a latency report."""
DRAWS = 20_000
"""Number of draws of the largest error: enough to determine 1 minus the level of a single interval to a tenth."""


@dataclass(frozen=True, repr=False)
class Shift(TailComparison):
    """
    A shift function; attributes as in `TailComparison`, with simultaneous intervals.

    Attributes
    ----------
    level : float
        Level of the whole band; the `level` of a single estimate is higher.
    """

    level: float = 0.95

    TITLE = "Shift function: difference of latency at each quantile"
    DRAWN_BY = "shift_figure.shift"

    @property
    def sentence(self) -> str:
        """At which quantiles the two differ, simultaneously."""
        return (
            f"{super().sentence[:-1]} (a simultaneous band, which holds in {percent(self.level)} of cases)."
        )


def shift(a: Tail, b: Tail, at: Sequence[float] = SHIFT_AT, *, level: float = 0.95, **settings) -> Shift:
    """
    The shift function of b against a: differences in ms at each quantile with a simultaneous band.

    Parameters
    ----------
    at : sequence of float
        Quantiles; by default deciles, p95, p99, p99.9 and p99.99.
    level : float
        Simultaneous level of the band.
    **settings
        Settings of `Tail.estimate`.
    """
    units = min((tail.parts.n_runs for tail in (a, b) if tail.parts is not None), default=1)
    single = single_level(at, level, units)
    found = compare_tails(a, b, at, level=single, **settings)
    note = f"; level {percent(round(single, 4))} each, so that {len(at)} are simultaneous at {percent(level)}"
    cautions = tuple(dict.fromkeys((*a.cautions, *b.cautions, *_open_ends(found))))
    differences = tuple(
        replace(one, method=one.method + note, warnings=cautions) for one in found.differences
    )
    return Shift(found.a, found.b, differences, level)


def _open_ends(found: TailComparison) -> tuple[str, ...]:
    """One caution on all quantiles of a side without an upper end, instead of one each."""
    sides = [
        (side.tail.name, sum(not isfinite(e.high) for e in side.estimates)) for side in (found.a, found.b)
    ]
    names = " and ".join(f"{count(n, 'quantile')} of {name}" for name, n in sides if n)
    if not names:
        return ()
    return (
        f"{names} have no upper end: the records beyond are lost, too few, or came in too few bursts; measure longer",
    )


def single_level(at: Sequence[float], level: float = 0.95, runs: int = 1) -> float:
    """
    The level of each interval that makes the intervals of all quantiles hold simultaneously.

    Parameters
    ----------
    runs : int
        Number of runs of the side with fewer: all errors then share one variance with `runs` - 1 degrees of freedom, so
        they tend to be large together. 1 if the units are records or stretches of time.

    Examples
    --------
    >>> round(single_level([0.5]), 3), round(single_level([0.1, 0.5, 0.9, 0.99, 0.999]), 3)
    (0.95, 0.989)
    """
    level, q = check_level(level), np.array(sorted({check_quantile(each) for each in at}))
    if len(q) == 1:
        return level
    low, high = np.minimum.outer(q, q), np.maximum.outer(q, q)
    correlation = np.sqrt(low * (1 - high) / (high * (1 - low)))
    rng = np.random.default_rng(0)
    largest = np.abs(rng.multivariate_normal(np.zeros(len(q)), correlation, DRAWS, method="cholesky")).max(
        axis=1
    )
    if runs < 2:
        return float(1 - 2 * stats.norm.sf(np.quantile(largest, level)))
    largest /= np.sqrt(rng.chisquare(runs - 1, DRAWS) / (runs - 1))
    return float(1 - 2 * stats.t.sf(np.quantile(largest, level), runs - 1))
