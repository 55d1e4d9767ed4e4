"""What is said of detections, on made-up latencies with planted episodes."""

from math import exp, log

import numpy as np
import pandas as pd
import pytest

from wanbench import tables
from wanbench.change_detection import DetectorSettings
from wanbench.pages.rolling_and_degraded.detection import detection, rate_per_h, replay, undisturbed

KEY = {"run_id": "r", "test_id": "0001", "attempt": 1, "source_file": "f"}
BEGAN = 1_000_000.0
DETECTOR = DetectorSettings(learn_s=30)


def latencies(seconds, episodes, seed=0, late_ms=None):
    """10 a second of two brokers with a median of 10 ms; in an episode (node, start, end) three times as long."""
    rng, rows = np.random.default_rng(seed), []
    for n in range(seconds * 10):
        for node in (1, 2):
            due = BEGAN + n / 10
            slow = any(node == which and start <= n / 10 < end for which, start, end in episodes)
            value = exp(log(10) + 0.2 * rng.normal()) * (3 if slow else 1)
            rows.append(KEY | {
                "node_id": node, "due_at_s": due, "known_at_s": due + value / 1e3, "latency_ms": value,
                "late": False, "error": None,
            })  # fmt: skip
    return tables.from_rows("detection_latencies", sorted(rows, key=lambda row: row["known_at_s"]))


def made_up(seconds, episodes, seed=0):
    kept = latencies(seconds, episodes, seed)
    settings = DETECTOR
    run = KEY | {
        "brokers": "1,2", "interval_s": 0.1, "record_bytes": 100,
        "learn_s": settings.learn_s, "window_s": settings.window_s, "shift": settings.shift,
        "false_alarms_per_h": settings.false_alarms_per_h, "limit_ms": settings.limit_ms,
        "least_windows": settings.least_windows, "demote_on_alarm": False, "began_at_s": BEGAN,
        "ended_at_s": BEGAN + seconds, "error": None,
    }  # fmt: skip
    alarms = [
        KEY | {
            "node_id": one.broker, "at_s": one.at_s, "named_at_s": one.at_s, "since_s": one.since_s,
            "ratio": one.ratio, "statistic": one.statistic, "limit": one.limit, "n_alarmed": one.n_alarmed,
        }
        for one in replay(kept, settings, BEGAN)
    ]  # fmt: skip
    actions = [
        KEY | {
            "number": n + 1, "node_id": node, "kind": "slow", "rolling": False, "detail": "{}",
            "asked_at_s": BEGAN + start, "began_at_s": BEGAN + start, "in_force_at_s": BEGAN + start,
            "done_at_s": BEGAN + end, "healthy_at_s": BEGAN + end,
        }
        for n, (node, start, end) in enumerate(episodes)
    ]  # fmt: skip
    return {
        "detection_latencies": kept,
        "detection_runs": tables.from_rows("detection_runs", [run]),
        "detections": tables.from_rows("detections", alarms),
        "broker_actions": tables.from_rows("broker_actions", actions),
    }


EPISODES = [(1 + n % 2, 60 + 60 * n, 80 + 60 * n) for n in range(6)]


def test_every_planted_episode_is_found_in_seconds_and_the_replay_agrees():
    found = detection(made_up(460, EPISODES))
    assert found.delay.n == 6 and 3 <= found.delay.estimate <= 7 and not found.delay.at_least
    assert found.share.estimate == 1 and found.agrees is True
    assert found.false_alarms.estimate == 0 and found.false_alarms.low == 0 < found.false_alarms.high
    assert (found.alarms.what == "episode").all() and "gives the same alarms" in str(found)


def test_an_episode_that_nobody_noticed_is_a_lower_limit():
    given = made_up(460, EPISODES)
    found = detection(given | {"detections": given["detections"].iloc[:0]})
    assert found.delay.at_least and found.delay.estimate == 20 and found.share.estimate == 0
    assert found.agrees is False


def test_alarms_that_were_not_those_of_the_kept_latencies_are_told():
    given = made_up(200, EPISODES[:2])
    given["detections"] = given["detections"].assign(at_s=given["detections"].at_s + 1)
    assert detection(given).agrees is False


def test_what_nothing_explains_is_a_false_alarm():
    given = made_up(300, EPISODES[:3])
    given["broker_actions"] = given["broker_actions"][:2]
    found = detection(given)
    assert found.alarms.what.tolist() == ["episode", "episode", "false"]
    assert found.false_alarms.estimate > 0 and found.false_alarms.low > 0
    assert found.misnamed.estimate == 0
    given["broker_actions"] = given["broker_actions"].assign(node_id=lambda rows: 3 - rows.node_id)
    found = detection(given)
    assert (found.share.estimate, found.misnamed.estimate, found.misnamed.n) == (0, 1, 2)


def test_without_actions_the_rate_is_estimated_once_an_hour_was_watched():
    given = made_up(200, [])
    del given["broker_actions"]
    found = detection(given)
    assert found.false_alarms.basis.startswith("0 alarms in 336 broker-seconds") and found.estimates == ()
    assert [rate_per_h(0, hours).n for hours in (0.99, 1.0)] == [0, 1]


def test_an_episode_before_the_baseline_is_left_out_with_a_caution():
    found = detection(made_up(200, [(1, 10, 20), *EPISODES[:2]]))
    assert found.delay.n == 2 and any("left out" in each for each in found.cautions)


def test_undisturbed_time_ends_with_an_action_that_never_came_right():
    one = pd.DataFrame({"began_at_s": [10.0], "done_at_s": [20.0], "healthy_at_s": [np.nan]})
    assert undisturbed(one, 0, 100, 5) == [(0, 10.0)]
    assert undisturbed(one[:0], 0, 100, 5, [40.0]) == [(0, 40.0)]


def test_the_rate_has_the_exact_interval():
    found = rate_per_h(10, 5.0)
    assert (found.estimate, found.low, found.high) == pytest.approx((2.0, 0.959, 3.678), abs=1e-3)
