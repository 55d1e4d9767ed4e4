"""
A distribution of latencies, and its quantiles with intervals.

A quantile is the smallest latency that a share q of the records does not exceed. A lost record (one that never arrived)
exceeds every latency.

The naive interval uses order statistics of n independent values. The main interval uses an effective number of values
instead of n (Korn & Graubard 1998 for a share; Woodruff 1952 for the quantile). The more the share of records beyond a
latency varies between runs, or between periods of a single run, the smaller is this number. Of the latencies from the
quantile to the end of the interval, the one with the smallest effective number counts, because bursts may lie beyond
the quantile. There is no upper end if one burst contains too many of the records beyond the quantile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, isfinite, nan

import numpy as np
from hdrh.histogram import HdrHistogram
from scipy import stats

from wanbench.checks import check_level, refusal
from wanbench.errors import ParameterError
from wanbench.formatting import count, number
from wanbench.methods.result import Estimate, Fields, Interval
from wanbench.methods.result.estimate import t_quantile
from wanbench.methods.tails import quantile_intervals as order
from wanbench.methods.time import series

# Number of periods of a run whose differences give the design effect: enough for t to be near the normal, and few
# enough for a period to be longer than most bursts.
SPELLS = 30
MIN_SPELLS = 10  # With fewer periods the test with `CLUSTERED_P` has no power, so the design effect always counts.
# Records count as independent unless the test for scatter between periods has a p-value below this. Without this test,
# the noise of the design effect would widen the intervals of independent records by a third.
CLUSTERED_P = 0.05
# A stretch belongs to a burst if it holds at least two records, and the probability of that many independent records in
# it is below this.
BURST_P = 1e-3


@dataclass(frozen=True)
class Parts:
    """
    A sample divided into stretches of time. The differences between stretches show how strongly records are correlated.

    run: The number of each stretch's run, from 0; stretches are in order of run and time.
    sizes: The number of records in each stretch.
    below: Function of a latency in ms: the number of records of each stretch that do not exceed it. Can be pickled.
    """

    run: np.ndarray = field(repr=False)
    sizes: np.ndarray = field(repr=False)
    below: Callable[[float], np.ndarray] = field(repr=False)

    @property
    def n_runs(self) -> int:
        return len(np.unique(self.run))

    @property
    def kind(self) -> str:
        """The unit of replication: "runs", or "stretches of time" of a single run."""
        return "runs" if self.n_runs > 1 else "stretches of time"

    def beyond(self, x: float) -> np.ndarray:
        """Return the number of records of each stretch that took longer than x ms."""
        return self.sizes - self.below(x)

    def design_effect(self, x: float, level: float = 0.95) -> float:
        """
        Return the design effect: how many records contain as much information on the share above x ms as a single
        independent record. It is at least 1.

        For few units (runs, or periods of one run) it includes the squared ratio of Student's to the normal quantile.
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
            units = series.effective_n(len(deviation), series.fit_autoregression(deviation, np.random.default_rng(0)))
        variance = (deviation / sizes.mean()).var(ddof=1) / units
        wider = t_quantile(level, max(units - 1, 1.0)) / stats.norm.ppf((1 + level) / 2)
        return max(float(sizes.sum() * variance / (share * (1 - share)) * wider**2), 1.0)

    def bursts(self, x: float) -> np.ndarray:
        """
        Return the number of records that took longer than x ms in each burst.

        A burst is a series of adjacent stretches with more of these records than expected by chance.
        """
        beyond = self.beyond(x)
        expected = self.sizes * beyond.sum() / self.sizes.sum()
        hot = beyond > np.maximum(stats.poisson.isf(BURST_P, expected), 1)
        # A burst continues in the next stretch of the same run.
        goes_on = np.concatenate([[False], hot[:-1] & (self.run[1:] == self.run[:-1])])
        return np.bincount(np.cumsum(hot & ~goes_on)[hot], weights=beyond[hot])[1:]


def equal_bursts(bursts: np.ndarray) -> float:
    """
    Return the effective number of bursts: the number of bursts of equal size whose total has the same variance.

    >>> equal_bursts(np.array([5.0, 5.0])), round(equal_bursts(np.array([20.0, 3.0, 3.0])), 2)
    (2.0, 1.62)
    """
    return float(bursts.sum() ** 2 / (bursts @ bursts)) if len(bursts) else 0.0


def _as_by_chance(standardised: np.ndarray) -> bool:
    """Return whether counts vary, and are autocorrelated, no more than counts of independent records."""
    squares, n = float(standardised @ standardised), len(standardised)
    autocorrelation = float(standardised[1:] @ standardised[:-1]) / max(squares, 1e-300)
    p = stats.chi2.sf(squares, n - 1), stats.norm.sf(autocorrelation * n**0.5)
    return bool(2 * min(p) > CLUSTERED_P)


def decoded(text: str) -> tuple[np.ndarray, np.ndarray]:
    """
    Decode an HdrHistogram: return the values, ascending, and the count of each.

    A value stands for all values in the same bucket, and is the largest of them.

    >>> made = HdrHistogram(1, 3_600_000_000, 3)
    >>> _ = [made.record_value(value) for value in (5, 5, 100_000)]
    >>> [column.tolist() for column in decoded(made.encode().decode())]
    [[5, 100031], [2.0, 1.0]]
    """
    try:
        histogram = HdrHistogram.decode(text)
    except Exception as error:
        raise refusal("histogram", text, f"an HdrHistogram in V2 encoding ({error})") from None
    counts = np.frombuffer(histogram.counts, dtype=f"u{histogram.word_size}")
    filled = np.flatnonzero(counts)
    shift = (filled // histogram.sub_bucket_half_count - 1).clip(0)  # bits of a value that its bucket leaves out
    above = (filled - shift * histogram.sub_bucket_half_count + 1) << (shift + histogram.unit_magnitude)
    return above - 1, counts[filled].astype(float)


def summed(units: Iterable[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """
    Merge several distributions, each as (values, counts), into one.

    >>> units = [(np.array([1, 2]), np.array([3.0, 4.0])), (np.array([2]), np.array([1.0]))]
    >>> [column.tolist() for column in summed(units)]
    [[1, 2], [3.0, 5.0]]
    """
    units = list(units)
    values, place = np.unique(np.concatenate([values for values, _ in units]), return_inverse=True)
    return values, np.bincount(place, weights=np.concatenate([counts for _, counts in units]), minlength=len(values))


# There is no upper end if the effective number of bursts beyond the quantile is smaller than this and one of them is
# large, because neither their size nor their number is then known well. Chosen by simulation (data/validity/tails.csv):
# with a smaller number intervals miss the true value, with a larger one they hardly ever have an upper end.
MIN_BURSTS = 5
LARGE_BURST = 0.1  # A burst is large if it holds at least this share of the records beyond the quantile.
RATIO_OF_SHARES = 1.5  # Ratio of the shares beyond two successive latencies at which the design effect is taken.
# The design effect is taken at latencies with at least this many records beyond; a single record cannot show bursts.
FEW_BEYOND = 5
NEARLY_ALL = 0.99  # The effective number is mentioned only if it is below this share of n.
METHOD = "order statistics (Hahn & Meeker 1991, section 5.2)"
EFFECTIVE = (
    METHOD + " with the effective number of values (Korn & Graubard 1998; Woodruff 1952), from how much the share "
    "below varies between {}"
)
NAIVE = "order statistics of independent values"
ASSUMPTIONS = {
    "runs": "The runs are independent of each other and represent further runs",
    "stretches of time": "The run is stationary, and long enough to contain every kind of burst; "
    "differences from run to run are not in the interval",
    "": "The values are independent of each other",
}


@dataclass(frozen=True)
class Tail:
    """
    A distribution of latencies.

    name: Name of the measured quantity, for sentences.
    values_ms, counts: Latencies, ascending, and the number of records with each.
    n_lost: Number of records that never arrived.
    parts: The sample in stretches of time; None if the dependence of the values is unknown.
    resolution_ms: Largest error of a value due to clock or histogram, by which both ends of intervals are widened.
    n_cut: Number of records cut as warm-up.
    cautions: Warnings to read before quoting a quantile.
    """

    name: str
    values_ms: np.ndarray
    counts: np.ndarray
    n_lost: int = 0
    parts: Parts | None = None
    resolution_ms: float = 0.0
    n_cut: int = 0
    cautions: tuple[str, ...] = ()

    def __repr__(self) -> str:
        middle = f", p50 {number(self.quantile(0.5), 1)} ms" if self.n else ""
        return f"Latency of {self.name}: {count(self.n, 'record')}{middle}"

    @cached_property
    def cumulative(self) -> np.ndarray:
        """The number of records that do not exceed each of `values_ms`."""
        return np.cumsum(self.counts)

    @property
    def n(self) -> int:
        """The number of records, including lost ones."""
        return round(float(self.cumulative[-1])) + self.n_lost if len(self.counts) else self.n_lost

    def at_rank(self, rank: int) -> float:
        """Return the latency at a rank, counted from 1; infinite for a lost record."""
        place = int(np.searchsorted(self.cumulative, rank - 1e-6))
        return float(self.values_ms[place]) if place < len(self.values_ms) else inf

    def quantile(self, q: float) -> float:
        """
        Return the smallest latency in ms that a share q of the records does not exceed; infinite if there is no such
        latency.
        """
        return self.at_rank(order.rank(self.n, order.check_quantile(q)))

    def effective_n(self, q: float, level: float = 0.95) -> float:
        """Return the number of independent values with as much information on the quantile as the n records: 1 to n."""
        x = self.quantile(q)
        if self.parts is None or not isfinite(x):
            return float(self.n)
        return max(self.n / self.parts.design_effect(x, level), 1.0)

    def independent_interval(self, q: float, level: float = 0.95) -> tuple[float, float]:
        """
        Return the interval of the quantile in ms for independent records; an end is infinite if n is too small for it.
        """
        low, high = order.ranks(self.n, q, level)
        return self._ends(low, high)

    def interval(self, q: float, level: float = 0.95) -> tuple[float, float]:
        """Return the interval of the quantile in ms; an end is infinite if the records do not determine it."""
        if self.parts is None or not isfinite(self.quantile(q)):
            return self.independent_interval(q, level)
        low, high = (self._end(q, level, upper) for upper in (False, True))
        return self._ends(low, None if self.too_few_bursts(q) else high)

    def bursts(self, q: float) -> np.ndarray:
        """Return the number of records beyond the quantile in each burst."""
        x = self.quantile(q)
        return self.parts.bursts(x) if self.parts is not None and isfinite(x) else np.empty(0)

    def too_few_bursts(self, q: float) -> bool:
        """Return whether the records beyond the quantile are in so few bursts that its interval has no upper end."""
        bursts = self.bursts(q)
        beyond = self.n - order.rank(self.n, q)
        # A burst of two records may be chance.
        largest = max(bursts, default=0.0)
        return bool(largest > max(LARGE_BURST * beyond, 2) and equal_bursts(bursts) < MIN_BURSTS)

    def _ends(self, low: int | None, high: int | None) -> tuple[float, float]:
        ends = -inf if low is None else self.at_rank(low), inf if high is None else self.at_rank(high)
        return ends[0] - self.resolution_ms, ends[1] + self.resolution_ms

    def _end(self, q: float, level: float, upper: bool) -> int | None:
        """
        Return the rank of an end, by the largest design effect from the quantile to that end; None if there is none.
        """
        # Go outwards from the quantile in steps. The end moves outwards with the effect, until the next step is beyond.
        effect, beyond = 1.0, self.n - order.rank(self.n, q)
        factor = 1 / RATIO_OF_SHARES if upper else RATIO_OF_SHARES
        beyond = beyond if upper else min(max(beyond, FEW_BEYOND), self.n - 1)
        while True:
            x = self.at_rank(self.n - round(beyond))
            effect = max(effect, self.parts.design_effect(x, level) if self.parts and isfinite(x) else 1.0)
            end = order.ranks(self.n, q, level, max(self.n / effect, 1.0))[upper]
            beyond *= factor
            if end is None or not 1 <= beyond < self.n or (end < self.n - beyond) is upper:
                return end

    def estimate(self, q: float, *, level: float = 0.95) -> Estimate:
        """
        Estimate a quantile, with its intervals.

        The standard error is Woodruff's (1952): the width of the interval over the width of a standard normal one.

        Raises ParameterError: there is no record, or the quantile or the level is not between 0 and 1.
        """
        q, level = order.check_quantile(q), check_level(level)
        if not self.n:
            raise ParameterError(f"{self.name} has no record.")
        value, effective_n = self.quantile(q), self.effective_n(q, level)
        low, high = self.interval(q, level)
        kind = self.parts.kind if self.parts is not None else ""
        width = high - low
        quantity = f"{order.name(q)} of latency, {self.name}"
        claim = f"{order.name(q)[1:]} % of the records of {self.name} took at most {{}}"
        numbers = (value if isfinite(value) else nan, low, high)
        how = (EFFECTIVE.format(kind) if kind else METHOD, ASSUMPTIONS[kind], _basis(self, q, kind, effective_n))
        about: Fields = {"level": level}
        about["naive"] = Interval(NAIVE, *self.independent_interval(q, level)) if kind else Interval(NAIVE)
        about["warnings"] = (*self._interval_cautions(q, level, effective_n, high), *self.cautions)
        about["standard_error"] = width / (2 * stats.norm.ppf((1 + level) / 2)) if isfinite(width) else nan
        return Estimate(quantity, claim, *numbers, "ms", self.n, *how, **about)

    def _interval_cautions(self, q: float, level: float, effective_n: float, high: float) -> tuple[str, ...]:
        name = f"{order.name(q)} of {self.name}"
        if not isfinite(self.quantile(q)):
            return (f"{name} is longer than the time waited for records: {self._lost}",)
        if isfinite(high):
            return ()
        return (f"{name} has no upper end: {self._why_open(q, level, effective_n)}",)

    @property
    def _lost(self) -> str:
        return f"{count(self.n_lost, 'record')} of {self.n:,} never arrived"

    def _why_open(self, q: float, level: float, effective_n: float) -> str:
        if self.too_few_bursts(q):
            bursts = self.bursts(q)
            beyond = count(self.n - order.rank(self.n, q), "record")
            largest = f", the largest of {number(bursts.max(), 0)}" if len(bursts) > 1 else ""
            return (
                f"{number(bursts.sum(), 0)} of the {beyond} beyond it came in {count(len(bursts), 'burst')}{largest}; "
                f"it needs the equivalent of {MIN_BURSTS} bursts of equal size, so measure longer"
            )
        needed = order.min_values(q, level)
        if effective_n < needed:
            dependent = effective_n <= NEARLY_ALL * self.n
            worth = f", worth {number(effective_n, 0)} independent ones" if dependent else ""
            return f"{count(self.n, 'record')}{worth} are too few; it needs {needed:,}"
        return self._lost if self.n_lost else "the records above it cluster, so they count as too few"


def _basis(tail: Tail, q: float, kind: str, effective_n: float) -> str:
    basis, bursts = count(tail.n, "record"), tail.bursts(q)
    if kind == "runs" and tail.parts:
        basis += f" of {count(tail.parts.n_runs, 'run')}"
    basis += f" worth {number(effective_n, 0)}" if effective_n < NEARLY_ALL * tail.n else ""
    basis += f", after {number(tail.n_cut, 0)} of warm-up" if tail.n_cut else ""
    beyond = tail.n - order.rank(tail.n, q)
    if bursts.sum() > LARGE_BURST * beyond:
        basis += f"; {number(bursts.sum(), 0)} of {beyond:,} beyond it in {count(len(bursts), 'burst')}"
    return basis
