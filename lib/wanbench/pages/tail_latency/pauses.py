"""
Do the slowest seconds coincide with broker pauses more often than others? A tail's cause as a number.

The slowest seconds are ranked within each trial, so that a slow trial with many pauses does not by itself suggest a
cause. Shifting all pauses together around the trial, as on a circle, keeps the autocorrelation of pauses and latencies,
and breaks only their association (random toroidal shifts: Lotwick & Silverman 1982, J. R. Stat. Soc. B 44, 406).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from math import ceil, exp, inf, log, nan, sqrt

import numpy as np
import pandas as pd
from scipy import stats

from wanbench.checks import check_choice, check_columns, check_level, check_number
from wanbench.errors import MissingDataError, ParameterError
from wanbench.formatting import count, number, p_value
from wanbench.methods.result import Estimate, Interval, Result, exact_binomial

from .quantiles import difference
from .seconds import QUANTILES, over_time, per_second, trial_keys


def with_pause(second: np.ndarray, at: np.ndarray, length: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """
    Whether each second overlaps a pause: one row per shift.

    Parameters
    ----------
    second : array of int
        Ordinals of the observed seconds, from 0; those between that are missing stay empty.
    at, length : array
        Start of each pause since the start of second 0, and its length, both in seconds.
    shifts : array
        Seconds by which all pauses are late; what leaves at the end comes back at the start.

    Examples
    --------
    >>> with_pause(np.arange(4), np.array([0.9, 3.5]), np.array([0.2, 0.1]), np.array([0.0, 1.0])).astype(int)
    array([[1, 1, 0, 1],
           [1, 1, 1, 0]])
    """
    size = int(second.max()) + 1
    ends = np.minimum(at + length, size)
    at = np.maximum(at, 0.0)
    at, length = at[ends > at], (ends - at)[ends > at]
    starts = (at[None, :] + shifts[:, None]) % size
    first = np.minimum(np.floor(starts).astype(int), size - 1)
    last = np.maximum(np.ceil(starts + length).astype(int) - 1, first)
    # +1 where a pause begins to cover seconds and -1 after, over two turns of the circle
    width = 2 * size + 1
    rows = np.arange(len(shifts))[:, None] * width
    steps = np.bincount((rows + first).ravel(), minlength=len(shifts) * width)
    steps = steps - np.bincount((rows + last + 1).ravel(), minlength=len(shifts) * width)
    covered = np.cumsum(steps.reshape(len(shifts), width), axis=1) > 0
    return (covered[:, :size] | covered[:, size : 2 * size])[:, second]


KINDS = ("gc", "safepoint", "roll", "snapshot")
FEW = 5
"""With fewer slow seconds a share is meaningless: the exact interval of 0 of 5 reaches 52 %."""
ALPHA = 0.05
METHOD = (
    "Wilson's interval with the effective number of seconds (Korn & Graubard 1998): n over the ratio of the share's "
    "variance under shifts of the pauses to the binomial one; two shares combined (Zou & Donner 2008)"
)
ASSUMPTION = (
    "Brokers' and clients' clocks agree to well within a second; seconds of a trial are stationary; "
    "coincidence is not cause: a burst of load may cause both"
)
NAIVE = "seconds taken as independent"


@dataclass(frozen=True, repr=False)
class Causes(Result):
    """
    Slow seconds and pauses.

    Attributes
    ----------
    excess, slow, others, ratio : Estimate
        Shares of seconds with a pause: of the slow less that of the others (fractions), both shares, and their ratio.
    p : float
        Share of `n_shifts` random shifts of the pauses, the unshifted data included, with at least as large an excess.
    n_shifts : int
    by_kind : DataFrame
        kind, pauses, slow_share, other_share, p of each kind alone; p not adjusted for their number.
    seconds : DataFrame
        As `per_second`, with slow, and the longest pause in each: node_id, kind, duration_ms, text (null: none).
    """

    excess: Estimate
    slow: Estimate
    others: Estimate
    ratio: Estimate
    p: float
    n_shifts: int
    by_kind: pd.DataFrame
    seconds: pd.DataFrame
    least_ms: float
    pauses: pd.DataFrame

    TITLE = "Slow seconds with a pause of a broker in them"

    @property
    def beyond_chance(self) -> bool:
        """Whether slow seconds coincide with pauses more often than by chance, at 5 %."""
        return self.p <= ALPHA

    @property
    def sentence(self) -> str:
        """Both shares and the p-value."""
        verdict = "more often than by chance" if self.beyond_chance else "not shown to be more often than by chance"
        return (
            f"{self.slow.formatted} of the {count(self.slow.n, 'slowest second')} have a pause of at least "
            f"{number(self.least_ms)} ms in them, against {self.others.formatted} of the {count(self.others.n, 'other')}"
            f": {verdict} ({p_value(self.p)}, {count(self.n_shifts, 'shift')} of the pauses)."
        )

    def figure(self, *, note: str = ""):
        """The seconds of the first trial, with the pauses that count below."""
        first, keys = self.seconds, trial_keys(self.seconds)
        if keys:
            first = next(iter(first.groupby(keys, dropna=False, sort=False)))[1]
        title = "Latency and pauses of brokers over time"
        return over_time(first, pauses=self.pauses, title=title, note=note or self.sentence)

    @property
    def named(self) -> pd.DataFrame:
        """The slow seconds, slowest first, each with its longest pause."""
        return self.seconds[self.seconds.slow].sort_values("latency_ms", ascending=False, ignore_index=True)


def causes(
    latencies: pd.DataFrame,
    pauses: pd.DataFrame | None,
    *,
    least_ms: float = 20.0,
    by: str = "p99_ms",
    slowest: float = 0.1,
    over_ms: float | None = None,
    kinds: Collection[str] = KINDS,
    what: str = "end to end",
    group: int = 0,
    shifts: int = 999,
    seed: int = 0,
    level: float = 0.95,
) -> Causes:
    """
    The share of the slowest seconds that contain a pause, against that of all other seconds.

    Parameters
    ----------
    latencies : DataFrame
        Table open_loop_histograms, or the result of `per_second`.
    pauses : DataFrame or None
        Table broker_pauses; None if the run has no such table. If both tables have run_id, pauses are matched only to
        seconds of their own run.
    least_ms : float
        Shorter pauses do not count. Default 20 ms: longer than young collections of an idle broker, so that seconds
        with a pause are rare.
    by : "p99_ms", "max_ms" or "p50_ms"
        The quantile by which a second is slow.
    slowest : float
        Share of the seconds of each trial that are slow, at least one.
    over_ms : float, optional
        Instead: seconds above this latency are slow.
    kinds : collection of str
        Kinds of pauses that count.
    what, group
        See `per_second`.
    shifts, seed : int
        Random shifts of the test.
    level : float
        Level of the intervals.

    Raises
    ------
    MissingDataError
        If there is no table, as for brokers outside the lab.
    ParameterError
        If a parameter is not as described, or no second is slow or all are.
    """
    if pauses is None:
        raise MissingDataError("the brokers' logs are not known: they run outside the lab.")
    check_number("least_ms", least_ms, 0)
    check_number("slowest", slowest, 0, 0.5, above=True)
    check_number("over_ms", over_ms, 0, optional=True)
    check_number("shifts", shifts, 99, 100_000, whole=True)
    check_choice("by", by, QUANTILES)
    check_level(level)
    for kind in kinds:
        check_choice("kinds", kind, KINDS)
    check_columns("broker_pauses", pauses, ("node_id", "at_s", "duration_ms", "kind", "text"))
    made = {"start_s", "length_s", by} <= set(latencies.columns)
    seconds = latencies if made else per_second(latencies, what=what, group=group)
    seconds = seconds.assign(latency_ms=seconds[by]).reset_index(drop=True)
    counted = pauses[(pauses.duration_ms >= least_ms) & pauses.kind.isin(list(kinds))]
    trials = _trials(seconds, counted)
    slow = np.zeros(len(seconds), bool)
    for rows, *_ in trials:
        values = seconds.latency_ms.to_numpy()[rows]
        if over_ms is None:
            slow[rows[np.argsort(-values, kind="stable")[: ceil(slowest * len(rows) - 1e-9)]]] = True
        else:
            slow[rows] = values > over_ms
    if not slow.any() or slow.all():
        raise ParameterError(
            f"{int(slow.sum())} of {len(slow)} seconds are slow; allowed: some, and not all: see slowest and over_ms."
        )
    random = np.random.default_rng(check_number("seed", seed, 0, whole=True))
    moved = [np.r_[0.0, random.uniform(0, second.max() + 1, shifts)] for _, second, *_ in trials]
    flags = _flags(trials, moved, len(seconds))
    shares = np.array([flags[:, slow].mean(axis=1), flags[:, ~slow].mean(axis=1)])
    table = []
    for kind in kinds:
        of_kind = [(rows, second, p[p.kind == kind], zero) for rows, second, p, zero in trials]
        one = _flags(of_kind, moved, len(seconds))
        both = one[:, slow].mean(axis=1), one[:, ~slow].mean(axis=1)
        n = sum(len(p) for _, _, p, _ in of_kind)
        table.append((kind, n, both[0][0], both[1][0], _p(both[0] - both[1])))
    by_kind = pd.DataFrame(table, columns=["kind", "pauses", "slow_share", "other_share", "p"])
    met = {index: None for _, _, part, _ in trials for index in part.index}
    estimates = _estimates(shares, int(slow.sum()), int((~slow).sum()), len(trials), len(met), least_ms, level)
    return Causes(
        *estimates,
        p=_p(shares[0] - shares[1]),
        n_shifts=shifts,
        by_kind=by_kind,
        seconds=_named(seconds.assign(slow=slow), trials),
        least_ms=least_ms,
        pauses=counted.loc[list(met)],
    )


def _trials(seconds, pauses) -> list[tuple]:
    """Per trial: its rows, the indices of its seconds, the pauses that overlap it, and its start."""
    keys, found = trial_keys(seconds), []
    for rows in (
        seconds.groupby(keys, dropna=False, sort=False) if keys else seconds.groupby(lambda _: 0)
    ).indices.values():
        part = seconds.iloc[rows]
        zero, length = part.start_s.min(), float(part.length_s.iloc[0])
        if not np.isclose(length, 1.0) or not (part.length_s == length).all():
            raise ParameterError(f"length_s is {length:g}; allowed: windows of 1 s.")
        second = np.round(part.start_s.to_numpy() - zero).astype(int)
        near = pauses[(pauses.at_s < zero + second.max() + 1) & (pauses.at_s + pauses.duration_ms / 1_000 > zero)]
        if "run_id" in pauses and "run_id" in part and part.run_id.notna().all():
            near = near[near.run_id.isna() | (near.run_id == part.run_id.iloc[0])]
        found.append((rows, second, near, zero))
    return found


def _flags(trials, moved, n: int) -> np.ndarray:
    flags = np.zeros((len(moved[0]), n), bool)
    for (rows, second, part, zero), shifts in zip(trials, moved, strict=True):
        if len(part):
            at, length = part.at_s.to_numpy() - zero, part.duration_ms.to_numpy() / 1_000
            flags[:, rows] = with_pause(second, at, length, shifts)
    return flags


def _p(excess: np.ndarray) -> float:
    """The p-value; the observed arrangement (the first) counts as one of the shifts, so p is never 0."""
    return float((excess >= excess[0] - 1e-12).mean())


def _estimates(shares, n_slow, n_others, n_trials, n_pauses, least_ms, level) -> list[Estimate]:
    basis = f"{count(n_slow, 'slow second')} and {count(n_others, 'other')} of {count(n_trials, 'trial')}"
    warnings = []
    if n_slow < FEW:
        warnings.append(f"{count(n_slow, 'slow second')}: fewer than {FEW} are too few")
    if not n_pauses:
        warnings.append(f"no pause of at least {number(least_ms)} ms in any second")
    ends = [_wilson(row, n, level) for row, n in zip(shares, (n_slow, n_others), strict=True)]
    naive = [exact_binomial(round(row[0] * n), n, level) for row, n in zip(shares, (n_slow, n_others), strict=True)]
    values = [float(row[0]) for row in shares]

    def estimate(name, claim, value, low, high, n, unit, by_seconds, notes=()):
        return Estimate(
            name, claim, value, low, high, unit, n, METHOD, ASSUMPTION, basis,
            level=level, naive=Interval(NAIVE, *by_seconds), warnings=(*notes,),
        )  # fmt: skip

    triples = [(value, *end) for value, end in zip(values, ends, strict=True)]
    bare = [(value, *end) for value, end in zip(values, naive, strict=True)]
    named = [
        estimate(
            f"{name} seconds with a pause",
            f"the share of {name} seconds with a pause is {{}}",
            *triple,
            n,
            "fraction",
            end,
        )
        for name, triple, n, end in zip(("slow", "other"), triples, (n_slow, n_others), naive, strict=True)
    ]
    gap = difference(triples[1], triples[0])
    excess = estimate(
        "excess of slow seconds with a pause",
        "slow seconds contain a pause more often than others by {}",
        *gap, n_slow + n_others, "fraction", difference(bare[1], bare[0])[1:], warnings,
    )  # fmt: skip
    ratio = estimate(
        "ratio of the shares",
        "slow seconds contain a pause {} times as often as others",
        *_ratio(*triples), n_slow + n_others, "", _ratio(*bare)[1:],
    )  # fmt: skip
    return [excess, *named, ratio]


def _wilson(shares: np.ndarray, n: int, level: float) -> tuple[float, float]:
    """Wilson's interval (1927) of the first share, with n divided by the design effect estimated from the shifts."""
    mean = shares[1:].mean()
    binomial = mean * (1 - mean) / n
    effective = n / max(1.0, shares[1:].var() / binomial) if binomial > 0 else float(n)
    z2, p = stats.norm.ppf((1 + level) / 2) ** 2, shares[0]
    middle, half = p + z2 / (2 * effective), sqrt(z2 * (p * (1 - p) + z2 / (4 * effective)) / effective)
    low, high = ((middle + sign * half) / (1 + z2 / effective) for sign in (-1, 1))
    return max(0.0, float(low)), min(1.0, float(high))


def _ratio(slow, others) -> tuple[float, float, float]:
    """The ratio with its interval, combined on the log scale; open above if the other seconds have no pause."""
    if not others[0]:
        return (inf, slow[1] / others[2], inf) if slow[0] and others[2] else (nan, nan, nan)
    if not slow[0]:
        return 0.0, 0.0, slow[2] / others[1] if others[1] else inf

    def logs(ends):
        return tuple(log(end) if end > 0 else -inf for end in ends)

    return tuple(exp(end) for end in difference(logs(others), logs(slow)))


def _named(seconds: pd.DataFrame, trials) -> pd.DataFrame:
    """The seconds with their longest pause."""
    longest = np.full(len(seconds), -1)
    every = pd.concat([part for _, _, part, _ in trials], ignore_index=True)
    first = 0
    for rows, second, part, zero in trials:
        begin = part.at_s.to_numpy() - zero
        end = begin + part.duration_ms.to_numpy() / 1_000
        for place in np.argsort(part.duration_ms.to_numpy()):  # a longer one replaces a shorter one
            longest[rows[(second < end[place]) & (second + 1 > begin[place])]] = first + place
        first += len(part)
    columns = ["node_id", "kind", "duration_ms", "text"]
    # -1 is no place of `every`, so its cells stay null
    return seconds.join(every[columns].reindex(longest).set_axis(seconds.index))
