"""
Simulate a year of network tests of one pair of cloud regions, with known permanent changes, and score a detector.

The simulator was written from a description of the tests and from what is known of wide-area paths, before its author
had seen the detector that it judges. It needs numpy and pandas only.

Model of the round-trip time (RTT) of a test::

    rtt_ms = base x level x (1 + slow + fast + daily + weekly + skewed) x (1 + episode), rounded to 0.01 ms

- level: 1 at first, times (1 + shift) from each planted change on. Only this factor is permanent.
- slow, fast: autocorrelated noise, two Ornstein-Uhlenbeck processes (an AR(1) process at irregular times) with time
  constants of 4 to 15 days and of 0.5 to 1.5 days: slow changes of load and of routes inside the carrier, and load of
  the day.
- daily, weekly: a sine over the hour of the day, and a step between working days and weekends.
- skewed: independent from test to test and never negative, because a queue only adds delay.
- episode: congestion or a detour of two hours to two days, about eight a year, with a heavy-tailed (Pareto) height.

The throughput has its own noise of the same form, larger; it falls when an episode raises the RTT, and at each planted
change it shifts by a factor of its own.

Some tests are missing: single tests, whole days, and in some years a whole week.

Not simulated are tests that alternate between several equal-cost paths, drift over months, clock errors, and changes of
the host's size or of the tool. A rate of false alarms found here says nothing about those.

Example::

    years = {seed: pair_year(seed) for seed in range(200)}
    counts = pd.DataFrame(score(detect(tests), planted) for tests, planted in years.values()).sum()
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

START = pd.Timestamp("2025-01-01", tz="UTC")
DAYS = 365
TEST_HOURS = (6.0, 18.0)  # the planned hours of the day, UTC
LATENESS_H = 3.0  # a test starts up to this long before or after its planned hour

SPACING_DAYS = 20  # between two planted changes, and between a change and either end of the year
SMALL_SHIFT = 0.05  # planted in SMALL_SHARE of the changes, so that its detection can be counted separately
SMALL_SHARE = 0.4
SHIFTS = (0.03, 0.30)  # the other shifts of the RTT, log-uniform between these, up or down
THROUGHPUT_SHIFTS = (0.05, 0.40)  # log-uniform, up or down, independent of the shift of the RTT

EPISODES_A_YEAR = 8.0
EPISODE_HOURS = (2.0, 48.0)  # log-uniform
LOST_TEST = 0.02  # probability that a single test is missing
LOST_DAY = 0.015  # probability that a whole day is missing
LOST_WEEK = 0.4  # probability that a year has a missing week


def pair_year(seed: int) -> tuple[pd.DataFrame, list[tuple[pd.Timestamp, float]]]:
    """
    Simulate a year of tests of one pair of regions, two a day.

    Parameters
    ----------
    seed
        The seed of all random numbers. An even seed gives a year without changes, an odd seed one with one to three, so
        any even number of consecutive seeds gives equally many years with and without changes.

    Returns
    -------
    tests, planted
        `tests` has a row per test, in order of time: time_utc (datetime, UTC), rtt_ms (median of the pings of the test)
        and throughput_bps. `planted` lists the permanent changes in order of time: the time of the first test after the
        change, and the relative shift of the RTT (0.05: 5 % longer; -0.05: 5 % shorter). The relative shifts of the
        throughput at the same times are in tests.attrs["throughput_shifts"].
    """
    rng = np.random.default_rng(seed)
    days = _times_of_tests(rng)
    at = _changes(rng, days) if seed % 2 else np.array([], dtype=int)
    rtt_shifts = np.array([_rtt_shift(rng) for _ in at])
    throughput_shifts = np.array([_signed_log_uniform(rng, *THROUGHPUT_SHIFTS) for _ in at])

    episode = _episodes(rng, days)
    base_ms = _log_uniform(rng, 8.0, 280.0)
    rtt_noise = _noise(rng, days, scale=_log_normal(rng, 0.006, 0.5))
    rtt_ms = base_ms * _level(len(days), at, rtt_shifts) * (1 + rtt_noise) * (1 + episode)

    base_bps = _log_uniform(rng, 2e8, 5e9)
    throughput_noise = _noise(rng, days, scale=_log_normal(rng, 0.04, 0.4))
    # Queues and loss of an episode cost a flow more than in proportion to the RTT: TCP takes both into account.
    slowdown = (1 + throughput_noise) * (1 + episode) ** 1.5
    throughput_bps = base_bps * _level(len(days), at, throughput_shifts) / slowdown

    time_utc = (START + pd.to_timedelta(days, unit="D")).round("s")
    tests = pd.DataFrame({"time_utc": time_utc, "rtt_ms": rtt_ms.round(2), "throughput_bps": throughput_bps.round(0)})
    tests.attrs["throughput_shifts"] = throughput_shifts.tolist()
    return tests, [(time_utc[i], float(shift)) for i, shift in zip(at, rtt_shifts, strict=True)]


def score(
    found: Iterable[pd.Timestamp | tuple[pd.Timestamp, float]],
    planted: Iterable[tuple[pd.Timestamp, float]],
    tolerance_days: float = 3,
) -> dict[str, int]:
    """
    Count false alarms and detections of one pair-year.

    A planted change is detected by the nearest found change, if it is at most `tolerance_days` away. Each found change
    detects at most one planted change; all others are false alarms, also a second one near the same planted change.

    Parameters
    ----------
    found
        The times of the changes that a detector reports, or tuples that begin with the time. A time without a zone is
        taken as UTC.
    planted
        The second result of pair_year.
    tolerance_days
        Maximum time, in days, between a planted change and the found change that detects it. Planted changes are at
        least 20 days apart, so below 10 no found change is near two planted ones.

    Returns
    -------
    Counts: false_alarms, planted_5_percent, detected_5_percent (shifts of 5 % up or down), planted_other and
    detected_other.
    """
    left = [_utc(item[0] if isinstance(item, tuple) else item) for item in found]
    counts = dict.fromkeys(
        ["false_alarms", "planted_5_percent", "detected_5_percent", "planted_other", "detected_other"], 0
    )
    for time, shift in planted:
        size = "5_percent" if np.isclose(abs(shift), SMALL_SHIFT) else "other"
        counts[f"planted_{size}"] += 1
        nearest = min(left, key=lambda other: abs(other - _utc(time)), default=None)
        if nearest is not None and abs(nearest - _utc(time)) <= pd.Timedelta(days=tolerance_days):
            left.remove(nearest)
            counts[f"detected_{size}"] += 1
    counts["false_alarms"] = len(left)
    return counts


def _times_of_tests(rng: np.random.Generator) -> np.ndarray:
    """Draw the start times of the year's tests, in days since START, without the missing tests, days and week."""
    planned = np.arange(DAYS)[:, None] + np.array(TEST_HOURS) / 24
    days = planned + rng.uniform(-LATENESS_H, LATENESS_H, planned.shape) / 24
    kept = rng.random(days.shape) >= LOST_TEST
    kept &= rng.random((DAYS, 1)) >= LOST_DAY
    if rng.random() < LOST_WEEK:
        first = rng.integers(0, DAYS - 7)
        kept[first : first + 7] = False
    return days[kept]


def _changes(rng: np.random.Generator, days: np.ndarray) -> np.ndarray:
    """
    Draw one to three changes, SPACING_DAYS or more apart; return the index in `days` of the first test after each.
    """
    count = rng.integers(1, 4)
    candidates = np.flatnonzero((days >= SPACING_DAYS) & (days <= DAYS - SPACING_DAYS))
    while True:  # at most three changes in 325 days: most draws are far enough apart
        at = np.sort(rng.choice(candidates, count, replace=False))
        if np.all(np.diff(days[at]) >= SPACING_DAYS):
            return at


def _rtt_shift(rng: np.random.Generator) -> float:
    """Draw the relative shift of the RTT at a change: SMALL_SHIFT or one of SHIFTS, up or down."""
    if rng.random() < SMALL_SHARE:
        return SMALL_SHIFT * rng.choice([-1, 1])
    return _signed_log_uniform(rng, *SHIFTS)


def _level(tests: int, at: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """Return the level at each test: the product of (1 + shift) over all changes so far, the test's own included."""
    factors = np.ones(tests)
    factors[at] = 1 + shifts
    return np.cumprod(factors)


def _noise(rng: np.random.Generator, days: np.ndarray, scale: float) -> np.ndarray:
    """Draw the relative noise of each test, of typical size `scale`, without episodes."""
    slow = scale * 0.5 * _autocorrelated(rng, days, rng.uniform(4, 15))
    fast = scale * 0.6 * _autocorrelated(rng, days, rng.uniform(0.5, 1.5))
    daily = scale * rng.uniform(0, 0.6) * np.sin(2 * np.pi * (days + rng.random()))
    weekday = (START.weekday() + np.floor(days)) % 7
    weekly = scale * rng.uniform(0, 0.6) * (weekday < 5)
    skewed = scale * rng.gamma(1.0, 0.6, len(days))
    return slow + fast + daily + weekly + skewed


def _autocorrelated(rng: np.random.Generator, days: np.ndarray, time_constant_days: float) -> np.ndarray:
    """Draw an Ornstein-Uhlenbeck process of variance 1 at given times: correlation exp(-gap / time_constant_days)."""
    correlation = np.exp(-np.diff(days, prepend=-np.inf) / time_constant_days)
    values = rng.standard_normal(len(days))
    for i in range(1, len(days)):
        values[i] = correlation[i] * values[i - 1] + np.sqrt(1 - correlation[i] ** 2) * values[i]
    return values


def _episodes(rng: np.random.Generator, days: np.ndarray) -> np.ndarray:
    """Draw the relative rise of the RTT of each test by episodes of congestion or of a detour: 0 outside them."""
    rise = np.zeros(len(days))
    for _ in range(rng.poisson(EPISODES_A_YEAR)):
        start = rng.uniform(0, DAYS)
        inside = (days >= start) & (days < start + _log_uniform(rng, *EPISODE_HOURS) / 24)
        # Pareto with tail index 1.5 from 2 % on: a median of 3 %, one in thirty above 20 %, none above 200 %.
        height = min(0.02 * (1 + rng.pareto(1.5)), 2.0)
        rise[inside] += height * rng.lognormal(0.0, 0.4, inside.sum())
    return rise


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """Draw a number whose logarithm is uniform between those of low and high."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _signed_log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """Draw a number of log-uniform size between low and high, positive or negative with equal probability."""
    return _log_uniform(rng, low, high) * rng.choice([-1, 1])


def _log_normal(rng: np.random.Generator, median: float, sigma: float) -> float:
    """Draw a log-normal number of a given median."""
    return float(median * rng.lognormal(0.0, sigma))


def _utc(time: object) -> pd.Timestamp:
    """Return a time in UTC; a time without a zone is taken as UTC."""
    stamp = pd.Timestamp(time)
    return stamp.tz_localize("UTC") if stamp.tzinfo is None else stamp.tz_convert("UTC")
