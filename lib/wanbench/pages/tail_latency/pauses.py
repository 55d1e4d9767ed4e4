"""
Test whether the slowest seconds coincide with pauses of brokers, such as garbage collections, more often than others.

The slowest seconds are those of each trial, so that a slow trial with many pauses does not by itself suggest a cause.
To see what chance would give, all pauses of a trial are shifted together by a random time, and those that leave it at
the end re-enter at the start. This keeps the autocorrelation of pauses and latencies, and breaks only their association
(random toroidal shifts: Lotwick & Silverman 1982, J. R. Stat. Soc. B 44, 406).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
import pandas as pd
from statsmodels.stats.proportion import proportion_confint

from wanbench.checks import check_columns, check_number
from wanbench.errors import MissingDataError, ParameterError
from wanbench.formatting import count, number, p_value
from wanbench.methods.result import Estimate, Fields, Interval, Result, exact_binomial
from wanbench.methods.tails.distribution import Tail, decoded

SLOWEST = 0.1
"""Share of each trial's seconds that count as slow: those with the highest latencies."""
MIN_PAUSE_MS = 20.0
"""
Shorter pauses do not count: if the short garbage collections of an idle broker counted, most seconds would have a
pause.
"""
FEW = 5
"""With fewer slow seconds than this there is a caution: the exact interval for 0 of 5 seconds reaches 52 %."""
ALPHA, LEVEL = 0.05, 0.95
TRIAL = ["run_id", "test_id", "attempt"]
METHOD = (
    "Wilson's interval with the effective number of seconds (Korn & Graubard 1998): n over the ratio of the share's "
    "variance under shifts of the pauses to the binomial one"
)
ASSUMPTION = (
    "Brokers' and clients' clocks agree to well within a second; seconds of a trial are stationary; "
    "coincidence is not cause, as a burst of load may cause both"
)


@dataclass(frozen=True, repr=False)
class Causes(Result):
    """
    The shares of slow seconds (`slow`) and of other seconds (`others`) that contain a pause.

    `p` is the p-value of their difference: of the `n_shifts` random shifts of the pauses and the observed arrangement,
    the share in which the difference is at least as large as observed.
    """

    slow: Estimate
    others: Estimate
    p: float
    n_shifts: int

    TITLE = "Seconds with a pause of a broker in them"

    @property
    def beyond_chance(self) -> bool:
        """Whether slow seconds contain pauses significantly more often than other seconds, at the 5 % level."""
        return self.p <= ALPHA

    @property
    def sentence(self) -> str:
        verdict = f"{'' if self.beyond_chance else 'not shown to be '}more often than by chance"
        return (
            f"{self.slow.formatted} of the {count(self.slow.n, 'slowest second')} contain a pause of at least "
            f"{number(MIN_PAUSE_MS)} ms, against {self.others.formatted} of the "
            f"{count(self.others.n, 'other second')}. This is {verdict} ({p_value(self.p)}, "
            f"{count(self.n_shifts, 'shift')} of the pauses)."
        )


def per_second(frame: pd.DataFrame) -> pd.DataFrame:
    """
    Return p99 of the end-to-end latency of the records due in each second, for the first consumer group.

    `frame` is table open_loop_histograms; seconds of the warm-up and a shorter last second are left out. Columns of the
    result: run_id, test_id, attempt, start_s, length_s, and p99_ms, which is infinite if it falls on a lost record.
    Raises MissingDataError: there is no second.
    """
    check_columns("open_loop_histograms", frame, (*TRIAL, "what", "group", "warm_up", "n_lost", "histogram"))
    kept = (frame.what == "end to end") & ~frame.warm_up.astype(bool) & (frame.group == 0).fillna(False).astype(bool)
    names, rows = [*TRIAL, "start_s", "length_s"], []
    for row in frame[kept].to_dict("records"):
        tail = Tail("", *decoded(row["histogram"]), row["n_lost"])
        if tail.n:
            rows.append({name: row[name] for name in names} | {"p99_ms": tail.quantile(0.99) / 1_000})
    if not rows:
        raise MissingDataError("no second has an end-to-end latency of group 0.")
    seconds = pd.DataFrame(rows).sort_values(names[:-1], ignore_index=True)
    return seconds[seconds.length_s == seconds.length_s.max()].reset_index(drop=True)


def with_pause(second: np.ndarray, at: np.ndarray, length: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """
    Return whether each second overlaps a pause, after each shift of the pauses: (shifts, seconds).

    `second` has the numbers of the observed seconds, from 0. `at` has the start of each pause, since the start of
    second 0, and `length` its length, both in s. Each of `shifts` moves all pauses by so many s; a pause that leaves
    the trial at the end re-enters at the start.

    >>> with_pause(np.arange(4), np.array([0.9, 3.5]), np.array([0.2, 0.1]), np.array([0.0, 1.0])).astype(int)
    array([[1, 1, 0, 1],
           [1, 1, 1, 0]])
    """
    size = int(second.max()) + 1
    ends = np.minimum(at + length, size)
    at = np.maximum(at, 0.0)
    at, length = at[ends > at], (ends - at)[ends > at]
    starts = (at + shifts[:, None]) % size
    first = np.minimum(np.floor(starts).astype(int), size - 1)
    last = np.maximum(np.ceil(starts + length).astype(int) - 1, first)
    # +1 where a pause begins to cover seconds and -1 after, over two turns of the circle
    steps, rows = np.zeros((len(shifts), 2 * size + 1), dtype=int), np.arange(len(shifts))[:, None]
    np.add.at(steps, (rows, first), 1)
    np.add.at(steps, (rows, last + 1), -1)
    covered = steps.cumsum(axis=1) > 0
    return (covered[:, :size] | covered[:, size : 2 * size])[:, second]


def causes(seconds: pd.DataFrame, pauses: pd.DataFrame | None, *, shifts: int = 999, seed: int = 0) -> Causes:
    """
    Compare the slowest tenth of each trial's seconds (by p99) with all other seconds: what share contains a pause?

    `seconds` is the result of `per_second`, `pauses` table broker_pauses; pauses under `MIN_PAUSE_MS` do not count. The
    p-value comes from `shifts` random shifts in time of each trial's pauses. Raises MissingDataError: `pauses` is None,
    as for brokers outside the lab, or every second counts as slow.
    """
    if pauses is None:
        raise MissingDataError("the brokers' logs are not known: they run outside the lab.")
    check_number("shifts", shifts, 99, 100_000, whole=True)
    check_columns("broker_pauses", pauses, ("run_id", "at_s", "duration_ms"))
    counted = pauses[pauses.duration_ms >= MIN_PAUSE_MS]
    slow, trials, latency = np.zeros(len(seconds), bool), _trials(seconds, counted), seconds.p99_ms.to_numpy()
    for rows, *_ in trials:
        slow[rows[np.argsort(-latency[rows], kind="stable")[: ceil(SLOWEST * len(rows) - 1e-9)]]] = True
    if slow.all():
        raise MissingDataError("every trial has a single second, so none is slower than others.")
    random = np.random.default_rng(check_number("seed", seed, 0, whole=True))
    flags = np.zeros((shifts + 1, len(seconds)), bool)
    for rows, second, part, zero in trials:
        moved = np.r_[0.0, random.uniform(0, second.max() + 1, shifts)]
        if len(part):
            at, length = part.at_s.to_numpy() - zero, part.duration_ms.to_numpy() / 1_000
            flags[:, rows] = with_pause(second, at, length, moved)
    shares = [flags[:, slow].mean(axis=1), flags[:, ~slow].mean(axis=1)]
    excess, n_slow = shares[0] - shares[1], int(slow.sum())
    basis = f"{count(n_slow, 'slow second')} and {count(int((~slow).sum()), 'other')} of {count(len(trials), 'trial')}"
    warnings = (f"{count(n_slow, 'slow second')} are too few; {FEW} are needed",) if n_slow < FEW else ()
    warnings += () if flags[0].any() else (f"no second contains a pause of at least {number(MIN_PAUSE_MS)} ms",)
    estimates = (
        _share("slow", shares[0], n_slow, basis, warnings),
        _share("other", shares[1], len(slow) - n_slow, basis),
    )
    # the observed arrangement, the first, counts as one of the shifts, so p is never 0
    return Causes(*estimates, float((excess >= excess[0] - 1e-12).mean()), shifts)


def _trials(seconds: pd.DataFrame, pauses: pd.DataFrame) -> list[tuple[np.ndarray, np.ndarray, pd.DataFrame, float]]:
    """Return for each trial: its rows in `seconds`, the numbers of its seconds, its pauses, and its start in Unix s."""
    trials = []
    for rows in seconds.groupby(TRIAL, sort=False).indices.values():
        part = seconds.iloc[rows]
        zero, length = part.start_s.min(), float(part.length_s.iloc[0])
        if not np.isclose(length, 1.0) or not (part.length_s == length).all():
            raise ParameterError(f"length_s is {length:g}; allowed: windows of 1 s.")
        second = np.round(part.start_s.to_numpy() - zero).astype(int)
        near = pauses[(pauses.at_s < zero + second.max() + 1) & (pauses.at_s + pauses.duration_ms / 1_000 > zero)]
        trials.append((rows, second, near[near.run_id == part.run_id.iloc[0]], zero))
    return trials


def _share(name: str, shares: np.ndarray, n: int, basis: str, warnings: tuple[str, ...] = ()) -> Estimate:
    """Estimate the share of seconds with a pause; `shares` are the observed share, then those with shifted pauses."""
    observed = float(shares[0])
    naive = Interval("seconds taken as independent", *exact_binomial(round(observed * n), n, LEVEL))
    what = f"{name} seconds with a pause"
    about: Fields = {"quantity": what, "claim": f"the share of {what} is {{}}"}
    about |= {"method": METHOD, "assumption": ASSUMPTION, "basis": basis, "level": LEVEL, "warnings": warnings}
    low, high = _wilson(shares, n)
    return Estimate(estimate=observed, low=float(low), high=float(high), unit="fraction", n=n, naive=naive, **about)


def _wilson(shares: np.ndarray, n: int) -> tuple[float, float]:
    """
    Return Wilson's interval (1927) of the first of `shares`.

    n is divided by the design effect: the variance of the other shares, from shifted pauses, over the binomial
    variance.
    """
    mean = shares[1:].mean()
    binomial = mean * (1 - mean) / n
    effective = n / max(1.0, shares[1:].var() / binomial) if binomial > 0 else float(n)
    return proportion_confint(shares[0] * effective, effective, 1 - LEVEL, "wilson")
