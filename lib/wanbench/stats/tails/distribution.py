"""
One distribution of latencies, and its quantiles with intervals.

A quantile is the smallest latency that the share q of the records does not exceed. A record that never arrived exceeds
every latency. Next to the interval by order statistics for independent values stands the one that counts: with the
effective number of values, from how much the share beyond a latency varies from run to run, or in one run from one
spell of time to the next (Korn & Graubard 1998 for a share; Woodruff 1952 to turn it into a quantile's). That number is
the least of all latencies between the quantile and the end, since bursts may lie beyond a quantile that does not
feel them. The upper end is open where one burst holds too many of the records beyond the quantile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import inf, isfinite, nan

import numpy as np
from scipy import stats

from ...checks import check_level
from ...errors import ParameterError
from ...formatting import count, number
from ..result import Estimate, Interval
from ..time import series
from . import order_statistics as order
from .exceedances import Parts, equal_bursts

FEWEST_BURSTS, LARGE_BURST = 5, 0.1
"""The upper end is open if one burst holds more than this share of the records beyond the quantile, and all bursts are
worth fewer than so many of equal size: then neither their size nor how many are still to come is known. Chosen by
simulation (data/validity/tails.csv) between intervals that miss and intervals that are never closed."""
STEP = 1.5
"""From one latency at which the design effect is seen to the next, so many times fewer records take longer."""
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
    "stretches of time": "The run is stationary, and long enough to hold every kind of burst that there is; what "
    "differs from one run to the next is not in the interval",
    "": "The values are independent of each other",
}


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

    def __repr__(self) -> str:
        middle = f", p50 {number(self.quantile(0.5), 1)} ms" if self.n else ""
        return f"Latency of {self.name}: {count(self.n, 'record')}{middle}"

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
        if self.parts is None or not isfinite(x):
            return float(self.n)
        return max(self.n / self.parts.design_effect(x, level), 1.0)

    def independent_interval(self, q: float, level: float = 0.95) -> tuple[float, float]:
        """Interval of the quantile in ms as if records were independent; infinite where n is too small for an end."""
        low, high = order.ranks(self.n, q, level)
        return self._ends(low, high)

    def interval(self, q: float, level: float = 0.95) -> tuple[float, float]:
        """Interval of the quantile in ms; infinite where an end is open."""
        if self.parts is None or not isfinite(self.quantile(q)):
            return self.independent_interval(q, level)
        low, high = (self._end(q, level, upper) for upper in (False, True))
        return self._ends(low, None if self.too_few_bursts(q) else high)

    def bursts(self, q: float) -> np.ndarray:
        """How many of the records beyond the quantile each burst holds; empty if none came in bursts."""
        x = self.quantile(q)
        return self.parts.bursts(x) if self.parts is not None and isfinite(x) else np.empty(0)

    def too_few_bursts(self, q: float) -> bool:
        """Whether so much of what is beyond the quantile came in few bursts that it has no upper end."""
        bursts = self.bursts(q)
        beyond = self.n - order.rank(self.n, q)
        # two records meet by chance
        largest = max(bursts, default=0.0)
        return largest > max(LARGE_BURST * beyond, 2) and equal_bursts(bursts) < FEWEST_BURSTS

    def _ends(self, low: int | None, high: int | None) -> tuple[float, float]:
        ends = -inf if low is None else self.at(low), inf if high is None else self.at(high)
        return ends[0] - self.resolution_ms, ends[1] + self.resolution_ms

    def _end(self, q: float, level: float, upper: bool) -> int | None:
        """
        Rank of an end by the greatest design effect at any latency from the quantile to that end; None where open.
        """
        effect, beyond = 1.0, self.n - order.rank(self.n, q)
        factor = 1 / STEP if upper else STEP
        while True:
            x = self.at(self.n - round(beyond))
            effect = max(effect, self.parts.design_effect(x, level) if isfinite(x) else 1.0)
            end = order.ranks(self.n, q, level, max(self.n / effect, 1.0))[upper]
            beyond *= factor
            if end is None or not 1 <= beyond < self.n or (end < self.n - beyond) is upper:
                return end

    def contrast(self, q: float, *, level: float = 0.95, resamples: int = 1_000, seed: int = 0) -> Estimate:
        """
        The quantile with its intervals, as it is said.

        Its standard error is that of Woodruff (1952): the width of the interval over that of a normal one.
        """
        q, level = order.check_quantile(q), check_level(level)
        if not self.n:
            raise ParameterError(f"{self.name} has no record")
        found, effective_n = self.quantile(q), self.effective_n(q, level)
        low, high = self.interval(q, level)
        kind = self.parts.kind if self.parts is not None else ""
        drawn = self._bootstrap(q, level, resamples, seed)
        return Estimate(
            quantity=f"{order.name(q)} of latency, {self.name}",
            claim=f"{order.name(q)[1:]} % of the records of {self.name} took at most {{}}",
            estimate=found if isfinite(found) else nan,
            low=low,
            high=high,
            unit="ms",
            n=self.n,
            basis=_basis(self, q, kind, effective_n),
            method=EFFECTIVE.format(kind) if kind else METHOD,
            assumption=ASSUMPTIONS[kind],
            level=level,
            naive=Interval(NAIVE, *self.independent_interval(q, level)) if kind else Interval(NAIVE),
            others=(Interval(BOOTSTRAP, *drawn),) if drawn else (),
            warnings=(*self._cautions(q, level, effective_n, found, high), *self.notes),
            standard_error=(high - low) / (2 * stats.norm.ppf((1 + level) / 2))
            if isfinite(high - low)
            else nan,
            ends=partial(self.interval, q),
        )

    def _cautions(self, q, level, effective_n, found, high) -> list[str]:
        said = []
        if not isfinite(found):
            lost = f"{count(self.never, 'record')} of {self.n:,} never arrived"
            said.append(f"{order.name(q)} of {self.name} is beyond what was waited for: {lost}")
        elif not isfinite(high):
            said.append(
                f"{order.name(q)} of {self.name} has no upper limit: {self._why_open(q, level, effective_n)}"
            )
        return said

    def _why_open(self, q: float, level: float, effective_n: float) -> str:
        if self.too_few_bursts(q):
            bursts = self.bursts(q)
            beyond = count(self.n - order.rank(self.n, q), "record")
            largest = f", the largest of {number(bursts.max(), 0)}" if len(bursts) > 1 else ""
            return (
                f"{number(bursts.sum(), 0)} of the {beyond} beyond it came in {count(len(bursts), 'burst')}{largest}; "
                f"it takes {FEWEST_BURSTS} of equal size, so measure longer"
            )
        fewest = order.fewest(q, level)
        if effective_n < fewest:
            is_worth = (
                "" if effective_n > 0.99 * self.n else f", worth {number(effective_n, 0)} independent ones"
            )
            return f"{count(self.n, 'record')}{is_worth} are too few, it takes {fewest:,}"
        if self.never:
            return f"{count(self.never, 'record')} of {self.n:,} never arrived"
        return "the records above it cluster, so that they are too few"

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
    if resamples < FEWEST_RESAMPLES or len(values) < series.MIN_VALUES:
        return None
    rng, place = np.random.default_rng(seed), order.rank(len(values), q) - 1
    limit = np.partition(values, place)[place]
    blocks = [series.block_length((run > limit).astype(float)) for run in runs]
    found = np.empty(resamples)
    step = max(1, series.CHUNK_CELLS // len(values))
    for at in range(0, resamples, step):
        size = min(step, resamples - at)
        rows = [
            run[series.bootstrap_indices(len(run), len(run), block, size, rng)]
            for run, block in zip(runs, blocks, strict=True)
        ]
        found[at : at + size] = np.partition(np.concatenate(rows, axis=1), place, axis=1)[:, place]
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2], method="inverted_cdf")
    return float(low), float(high)


def _basis(tail: Tail, q: float, kind: str, effective_n: float) -> str:
    said, bursts = count(tail.n, "record"), tail.bursts(q)
    if kind == "runs":
        said += f" of {count(tail.parts.n_runs, 'run')}"
    said += f" worth {number(effective_n, 0)}" if effective_n < 0.99 * tail.n else ""
    said += f", after {number(tail.cut, 0)} of warm-up" if tail.cut else ""
    beyond = tail.n - order.rank(tail.n, q)
    if not bursts.sum() > LARGE_BURST * beyond:
        return said
    return f"{said}; {number(bursts.sum(), 0)} of {beyond:,} beyond it in {count(len(bursts), 'burst')}"
