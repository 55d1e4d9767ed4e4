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
        seconds.append(
            pd.DataFrame(
                {
                    "run_id": "r",
                    "test_id": f"{trial:04d}",
                    "attempt": 1,
                    "start_s": zero + np.arange(n),
                    "length_s": 1.0,
                    "n": 100,
                    "p50_ms": 10.0,
                    "p99_ms": latency,
                    "max_ms": 2 * latency,
                }
            )
        )
        at = zero + np.flatnonzero(paused) + random.uniform(0, 0.7, paused.sum())
        pauses.append(pd.DataFrame({"run_id": "r", "node_id": 2, "at_s": at, "duration_ms": 150.0, "kind": "gc"}))
    return pd.concat(seconds, ignore_index=True), pd.concat(pauses, ignore_index=True).assign(text="Pause Full")


def test_brokers_without_logs_are_missing_data():
    with pytest.raises(MissingDataError, match="run outside the lab"):
        tail_latency.causes(made(1, cause=True)[0], None)


def test_a_planted_cause_is_found_and_named():
    seconds, pauses = made(1, cause=True)
    found = tail_latency.causes(seconds, pauses, over_ms=120, kinds=("gc", "roll"))
    assert found.beyond_chance and found.p <= 0.01 and found.slow.estimate == 1.0
    assert found.excess.low > 0.3 and found.ratio.low > 2 and found.others.high < 0.3
    assert set(found.pauses.text) == {"Pause Full"} and set(found.pauses.node_id) == {2}
    assert "100 % of the" in str(found) and "more often than by chance (p = 0.00" in str(found)
    # what else happened, too short to count or in another run, is no cause
    for other in (pauses.assign(duration_ms=5.0), pauses.assign(run_id="other")):
        none = tail_latency.causes(seconds, other, over_ms=120)
        assert none.p == 1 and not none.beyond_chance and "no pause of at least 20 ms" in str(none)


def test_without_a_cause_false_alarms_are_few_and_intervals_hold_none():
    """Two minutes each: where few seconds are slow, most excesses are ties, and any p-value gives few alarms."""
    p, within = [], 0
    for seed in range(100):
        seconds, pauses = made(1_000 + seed, cause=False, trials=2, n=120)
        found = tail_latency.causes(seconds, pauses, shifts=99, kinds=("gc",), seed=seed)
        p.append(found.p)
        within += found.excess.low <= 0 <= found.excess.high
    # each band leaves out a right test or interval in one of a hundred simulations
    assert np.sum(np.array(p) <= 0.05) <= 10 and 10 <= np.sum(np.array(p) <= 0.2) <= 31
    assert within >= 89


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
    return pd.DataFrame(rows).assign(**about)


def test_seconds_of_an_open_loop_load():
    frame = histograms([[10] * 99 + [500], [20] * 200, [10] * 100])
    frame.loc[0, "warm_up"] = True
    frame.loc[2, "n_lost"] = 2
    found = per_second(frame)
    assert found.n.tolist() == [200, 102] and found.p50_ms.round(1).tolist() == [20.0, 10.0]
    assert found.max_ms.tolist()[1] == found.p99_ms.tolist()[1] == np.inf
    with pytest.raises(MissingDataError, match="no second has an end-to-end latency"):
        per_second(frame.assign(what="publish"))


def test_the_figure_has_lines_of_seconds_and_marks_of_pauses():
    seconds, pauses = made(5, cause=True, trials=2)
    result = tail_latency.causes(seconds, pauses, kinds=("gc",))
    figure = result.figure()
    assert [trace.name for trace in figure.data[:3]] == ["median", "p99", "maximum"]
    n_first = int((pauses.at_s < START_S + 500).sum())
    assert len(figure.data[4].x) == n_first and list(figure.layout.yaxis2.ticktext) == ["gc, node 2"]
    assert figure.layout.xaxis.matches == "x2"
    meta = figure.layout.meta
    assert f"{n_first} pauses of brokers" in meta["alt"] and meta["csv"].count("gc, node 2") == n_first
    none = tail_latency.causes(seconds[seconds.test_id == "0000"], pauses.iloc[:0]).figure()
    assert "No pause of a broker" in none.layout.meta["caption"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"over_ms": 1e9}, "0 of 180 seconds are slow"),
        ({"kinds": ["flush"]}, "kinds is 'flush'"),
        ({"shifts": 3}, "shifts is 3"),
    ],
)
def test_what_is_refused(change, message):
    with pytest.raises(ParameterError, match=message):
        tail_latency.causes(*made(3, cause=True), **change)
