"""
One distribution of latencies, and its quantiles with intervals.

A quantile is the smallest latency that the share q of the records does not exceed. A record that never arrived exceeds
every latency. Next to the interval by order statistics for
independent values stands the one that counts: with the effective number of values, from how much the share below the
quantile varies from run to run, or in one run from one stretch of time to the next (Korn & Graubard 1998 for a share;
Woodruff 1952 to turn it into a quantile's).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, isfinite, nan

import numpy as np
from scipy import stats

from ..errors import ParameterError
from ..wording import count, number
from . import order_statistics as order
from . import series
from .contrast import Contrast
from .estimate import Interval, check_level

STRETCHES = 1_000
FEWEST_PARTS = 2
MOST_CELLS, FEWEST_RESAMPLES = 10_000_000, 200
METHOD = "order statistics (Hahn & Meeker 1991, section 5.2)"
EFFECTIVE = (
    METHOD
    + " with the effective number of values (Korn & Graubard 1998; Woodruff 1952), from how much the share "
    "below varies between {}"
)
NAIVE = "order statistics of independent values"
BOOTSTRAP = "stationary bootstrap (Politis & Romano 1994), percentiles"
ASSUMPTIONS = {
    "runs": "The runs are independent of each other and stand for further ones",
    "stretches of time": "The run is stationary; what differs from one run to the next is not in the interval",
    "": "The values are independent of each other",
}


@dataclass(frozen=True)
class Parts:
    """
    A sample's parts, between which its dependence shows.

    Attributes
    ----------
    kind : str
        "runs", which are independent of each other; or "stretches of time", in order.
    sizes : array
        Values in each.
    below : function
        How many of each are at most a latency.
    """

    kind: str
    sizes: np.ndarray
    below: Callable[[float], np.ndarray] = field(repr=False)


@dataclass(frozen=True)
class Tail:
    """
    A distribution of latencies: how many records took how long.

    Parameters
    ----------
    name : str
        What was measured, as sentences call it.
    values_ms, counts : array
        Latencies, ascending, and how many records have each.
    never : int
        Records that never arrived.
    parts : Parts, optional
        None if nothing is known of how the values depend on each other.
    resolution_ms : float
        By how much any value may be off because of clock or histogram; intervals are wider by it at both ends.
    runs : tuple of array
        The values of each run in order of time, infinite for those that never arrived, if they are known one by one.
    cut : int
        Records before these that were cut as warm-up.
    notes : tuple of str
        What a reader must know before quoting a quantile.
    """

    name: str
    values_ms: np.ndarray
    counts: np.ndarray
    never: int = 0
    parts: Parts | None = None
    resolution_ms: float = 0.0
    runs: tuple[np.ndarray, ...] = ()
    cut: int = 0
    notes: tuple[str, ...] = ()

    @cached_property
    def cumulative(self) -> np.ndarray:
        """How many records took at most each of `values_ms`."""
        return np.cumsum(self.counts)

    @property
    def n(self) -> int:
        """Records, with those that never arrived."""
        return round(float(self.cumulative[-1])) + self.never if len(self.counts) else self.never

    def at(self, rank: int) -> float:
        """The latency of that rank, from 1; infinite for a record that never arrived."""
        place = int(np.searchsorted(self.cumulative, rank - 1e-6))
        return float(self.values_ms[place]) if place < len(self.values_ms) else inf

    def quantile(self, q: float) -> float:
        """The smallest latency that the share q does not exceed, in ms."""
        return self.at(order.rank(self.n, order.check_quantile(q)))

    def share_above(self, latency_ms: float) -> float:
        """The share of records that took longer."""
        place = int(np.searchsorted(self.values_ms, latency_ms, side="right"))
        return 1 - (float(self.cumulative[place - 1]) if place else 0.0) / self.n

    def effective_n(self, q: float, level: float = 0.95) -> float:
        """How many independent values say as much about the quantile: from 1 to n."""
        x = self.quantile(q)
        if self.parts is None or len(self.parts.sizes) < FEWEST_PARTS or not isfinite(x):
            return float(self.n)
        sizes, below = self.parts.sizes, self.parts.below(x)
        share = below.sum() / sizes.sum()
        apart = (below - share * sizes) / sizes.mean()
        units = float(len(sizes))
        if self.parts.kind != "runs":
            units = series.series(apart).effective_n
        variance = apart.var(ddof=1) / units
        if not variance > 0:
            return float(self.n)
        wider = stats.norm.ppf((1 + level) / 2) / stats.t.ppf((1 + level) / 2, max(units - 1, 1.0))
        return min(max(share * (1 - share) / variance * wider**2, 1.0), float(self.n))

    def interval(
        self, q: float, level: float = 0.95, effective_n: float | None = None
    ) -> tuple[float, float]:
        """Interval of the quantile in ms; infinite above where n is too small, minus infinite below."""
        low, high = order.ranks(self.n, q, level, effective_n)
        ends = -inf if low is None else self.at(low), inf if high is None else self.at(high)
        return ends[0] - self.resolution_ms, ends[1] + self.resolution_ms

    def contrast(self, q: float, *, level: float = 0.95, resamples: int = 1_000, seed: int = 0) -> Contrast:
        """The quantile with its intervals, as it is said."""
        q, level = order.check_quantile(q), check_level(level)
        if not self.n:
            raise ParameterError(f"{self.name} has no record")
        found, worth = self.quantile(q), self.effective_n(q, level)
        low, high = self.interval(q, level, worth)
        kind = self.parts.kind if self.parts is not None and len(self.parts.sizes) >= FEWEST_PARTS else ""
        drawn = self._bootstrap(q, level, resamples, seed)
        return Contrast(
            quantity=f"{order.name(q)} of latency, {self.name}",
            claim=f"{order.name(q)[1:]} % of the records of {self.name} took at most {{}}",
            estimate=found if isfinite(found) else nan,
            low=low,
            high=high,
            unit="ms",
            n=self.n,
            basis=_basis(self, kind, worth),
            method=EFFECTIVE.format(kind) if kind else METHOD,
            assumption=ASSUMPTIONS[kind],
            level=level,
            naive=Interval(NAIVE, *self.interval(q, level)) if kind else Interval(NAIVE),
            others=(Interval(BOOTSTRAP, *drawn),) if drawn else (),
            warnings=(*self._cautions(q, level, worth, found, high), *self.notes),
        )

    def _cautions(self, q, level, worth, found, high) -> list[str]:
        said = []
        if not isfinite(found):
            lost = f"{count(self.never, 'record')} of {self.n:,} never arrived"
            said.append(f"{order.name(q)} of {self.name} is beyond what was waited for: {lost}")
        elif not isfinite(high):
            it_takes = order.fewest(q, level)
            if worth < it_takes:
                is_worth = "" if worth > 0.99 * self.n else f", worth {number(worth, 0)} independent ones"
                said.append(
                    f"{order.name(q)} of {self.name} has no upper limit: {count(self.n, 'record')}{is_worth} are too "
                    f"few, it takes {it_takes:,}"
                )
        return said

    def _bootstrap(self, q, level, resamples, seed) -> tuple[float, float] | None:
        """Percentiles of stationary-bootstrap quantiles, within each run; None without values in order of time."""
        if not self.runs or not isfinite(self.quantile(q)):
            return None
        return bootstrap(self.runs, q, level, resamples, seed)


def bootstrap(
    runs: Sequence[np.ndarray], q: float, level: float, resamples: int, seed: int
) -> tuple[float, float] | None:
    """
    Percentiles of the quantile of resamples, each run resampled in stretches of time as long as the exceedances of the
    quantile depend on each other; None where that would take too long.
    """
    values = np.concatenate(runs)
    resamples = min(resamples, MOST_CELLS // len(values))
    if resamples < FEWEST_RESAMPLES or len(values) < series.FEWEST:
        return None
    rng, place = np.random.default_rng(seed), order.rank(len(values), q) - 1
    limit = np.partition(values, place)[place]
    blocks = [series.block_length((run > limit).astype(float)) for run in runs]
    found = np.empty(resamples)
    step = max(1, series.CHUNK_CELLS // len(values))
    for at in range(0, resamples, step):
        size = min(step, resamples - at)
        rows = [
            run[series.indices(len(run), len(run), block, size, rng)]
            for run, block in zip(runs, blocks, strict=True)
        ]
        found[at : at + size] = np.partition(np.concatenate(rows, axis=1), place, axis=1)[:, place]
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2], method="inverted_cdf")
    return float(low), float(high)


def parts_of(runs: Sequence[np.ndarray]) -> Parts | None:
    """The runs as parts; of a single run up to `STRETCHES` stretches of time."""
    if len(runs) > 1:
        sizes = np.array([len(run) for run in runs])
        return Parts("runs", sizes, lambda x: np.array([(run <= x).sum() for run in runs]))
    if not runs:
        return None
    (run,) = runs
    starts = np.unique(np.linspace(0, len(run), min(STRETCHES, len(run)) + 1).astype(int)[:-1])
    sizes = np.diff([*starts, len(run)])
    return Parts("stretches of time", sizes, lambda x: np.add.reduceat((run <= x).astype(float), starts))


def _basis(tail: Tail, kind: str, worth: float) -> str:
    said = count(tail.n, "record")
    if kind == "runs":
        said += f" of {count(len(tail.parts.sizes), 'run')}"
    said += f" worth {number(worth, 0)}" if worth < 0.99 * tail.n else ""
    return said + (f", after {number(tail.cut, 0)} of warm-up" if tail.cut else "")
