"""Slow seconds and pauses: a planted cause is found and named, and without one there are few false alarms."""

import numpy as np
import pandas as pd
import pytest
from hdrh.histogram import HdrHistogram

from wanbench.errors import MissingDataError, ParameterError
from wanbench.pages import tail_latency
from wanbench.pages.tail_latency.pauses import per_second, with_pause

START_S = 1_795_378_700.25


def bursts(random, n, share=0.1, stay=0.7):
    """A series of flags that come in bursts: seconds in a row."""
    on, flags = False, np.zeros(n, bool)
    for k in range(n):
        on = random.random() < (stay if on else share * (1 - stay) / (1 - share))
        flags[k] = on
    return flags


def made(seed, cause, trials=3, n=60):
    """Seconds of several trials in bursts, and pauses in bursts, which are the cause of slow seconds or not."""
    random = np.random.default_rng(seed)
    seconds, pauses = [], []
    for trial in range(trials):
        zero = START_S + 1_000 * trial
        paused = bursts(random, n)
        slow = paused & (random.random(n) < 0.8) if cause else bursts(random, n)
        latency = 20 * random.lognormal(0, 0.2, n) + 200 * slow
        about = {"run_id": "r", "test_id": f"{trial:04d}", "attempt": 1, "length_s": 1.0}
        seconds.append(pd.DataFrame({"start_s": zero + np.arange(n), "p99_ms": latency}).assign(**about))
        at = zero + np.flatnonzero(paused) + random.uniform(0, 0.7, paused.sum())
        pauses.append(pd.DataFrame({"run_id": "r", "at_s": at, "duration_ms": 150.0}))
    return pd.concat(seconds, ignore_index=True), pd.concat(pauses, ignore_index=True)


def test_brokers_without_logs_are_missing_data():
    with pytest.raises(MissingDataError, match="run outside the lab"):
        tail_latency.causes(made(1, cause=True)[0], None)


def test_a_planted_cause_is_found():
    seconds, pauses = made(1, cause=True, n=120)
    found = tail_latency.causes(seconds, pauses)
    assert found.beyond_chance and found.p <= 0.01 and found.slow.estimate > 0.6
    assert found.slow.low > found.others.high and found.others.high < 0.3
    assert "more often than by chance (p = 0.00" in str(found) and "not shown" not in str(found)
    # what else happened, too short to count or in another run, is no cause
    for other in (pauses.assign(duration_ms=5.0), pauses.assign(run_id="other")):
        none = tail_latency.causes(seconds, other)
        assert none.p == 1 and not none.beyond_chance and "no second contains a pause of at least 20 ms" in str(none)


def test_without_a_cause_false_alarms_are_few():
    """Two minutes each: where few seconds are slow, most excesses are ties, and any p-value gives few alarms."""
    p = []
    for seed in range(100):
        seconds, pauses = made(1_000 + seed, cause=False, trials=2, n=120)
        p.append(tail_latency.causes(seconds, pauses, shifts=99, seed=seed).p)
    # each band leaves out a right test in one of a hundred simulations
    assert np.sum(np.array(p) <= 0.05) <= 10 and 10 <= np.sum(np.array(p) <= 0.2) <= 31


def test_shifted_pauses_keep_their_distances_and_come_back_at_the_start():
    random = np.random.default_rng(4)
    at, length = np.sort(random.uniform(0, 30, 6)), random.uniform(0.01, 2.5, 6)
    for shift in (0.0, 0.4, 7.0, 29.9):
        got = with_pause(np.arange(30), at, length, np.array([shift]))[0]
        fine = np.zeros(30, bool)
        for start, size in zip(at, np.minimum(length, 30 - at), strict=True):
            inside = np.arange(start + shift, start + shift + size, 1e-4)
            fine[np.unique(np.floor(inside).astype(int) % 30)] = True
        assert (got == fine).all()
    assert with_pause(np.array([0, 3]), np.array([2.5]), np.array([0.9]), np.zeros(1)).tolist() == [[False, True]]


def histograms(values_ms, **more):
    rows = []
    for window, values in enumerate(values_ms):
        made = HdrHistogram(1, 3_600_000_000, 3)
        for value in values:
            made.record_value(round(value * 1_000))
        rows.append({"window": window, "start_s": START_S + window, "histogram": made.encode().decode()})
    about = {"what": "end to end", "group": 0, "length_s": 1.0, "warm_up": False, "n_lost": 0} | more
    about |= {"run_id": "r", "test_id": "0001", "attempt": 1}
    return pd.DataFrame(rows).assign(**about)


def test_seconds_of_an_open_loop_load():
    frame = histograms([[10] * 99 + [500], [20] * 200, [10] * 100])
    frame.loc[0, "warm_up"] = True
    frame.loc[2, "n_lost"] = 2
    found = per_second(frame)
    assert found.p99_ms.round(1).tolist() == [20.0, np.inf] and found.start_s.tolist() == [START_S + 1, START_S + 2]
    with pytest.raises(MissingDataError, match="no second has an end-to-end latency"):
        per_second(frame.assign(what="publish"))


def test_what_is_refused():
    seconds, pauses = made(3, cause=True)
    with pytest.raises(ParameterError, match="shifts is 3"):
        tail_latency.causes(seconds, pauses, shifts=3)
    with pytest.raises(MissingDataError, match="a single second"):
        tail_latency.causes(seconds.drop_duplicates("test_id"), pauses)
