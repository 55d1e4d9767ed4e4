"""Charts find a planted shift about when theory says, and keep quiet without one."""

from math import exp, log

import numpy as np
import pytest

from wanbench.change_detection import (
    Detector,
    DetectorSettings,
    autocorrelation,
    average_run_length,
    learned,
    limit_for,
)
from wanbench.errors import ParameterError

PER_S = 10


def alarms(values, **settings):
    detector = Detector(DetectorSettings(**settings))
    return [found for n, value in enumerate(values) if (found := detector.update(n / PER_S, 1, exp(value)))]


def series(rng, seconds, spread=0.25):
    return log(10) + spread * rng.normal(size=seconds * PER_S)


@pytest.mark.parametrize(("limit", "expected"), [(5.0, 938.0), (4.0, 335.4)])
def test_run_lengths_are_those_of_the_literature(limit, expected):
    """Brook & Evans 1972, Lucas & Crosier 1982."""
    assert average_run_length(0.5, limit) == pytest.approx(expected, rel=0.02)


def test_a_shift_shortens_the_run_as_in_the_literature():
    assert average_run_length(0.5, 5.0, shift=1.0) == pytest.approx(10.4, rel=0.02)


def test_the_limit_gives_the_run_length_that_is_asked_for():
    limit = limit_for(0.5, 500.0)
    rng, lengths = np.random.default_rng(1), []
    for _ in range(400):
        statistic, n = 0.0, 0
        while statistic <= limit:
            statistic = max(0.0, statistic + rng.normal() - 0.5)
            n += 1
        lengths.append(n)
    assert np.mean(lengths) == pytest.approx(500, rel=0.2)  # four standard errors


def test_a_planted_shift_is_found_in_seconds_and_dated():
    delays = []
    for seed in range(20):
        values = series(np.random.default_rng(seed), 180)
        values[120 * PER_S :] += log(3)
        [first, *more] = alarms(values)
        delays.append(first.at_s - 120)
        assert not more and abs(first.since_s - 120) < 10 and 1.3 < first.ratio < 4
    assert 3 <= np.median(delays) <= 6 and min(delays) > 0


def test_without_a_shift_there_are_no_more_false_alarms_than_promised():
    """20 hours at 0.5 an hour: more than 18 would have a probability of 1 %."""
    n = sum(len(alarms(series(np.random.default_rng(seed), 3660))) for seed in range(5))
    assert n <= 5


def test_a_burst_shorter_than_the_least_windows_is_no_alarm_and_a_longer_one_is():
    for lasts_s, expected in ((2, 0), (8, 1)):
        values = series(np.random.default_rng(3), 200)
        values[100 * PER_S : (100 + lasts_s) * PER_S] += log(50)
        assert len(alarms(values)) == expected


def test_a_broker_that_stands_still_is_named_while_others_are_not():
    detector, rng, found = Detector(DetectorSettings(learn_s=30)), np.random.default_rng(0), []
    for n in range(600):
        for broker in (1, 2):
            value = float("inf") if broker == 2 and n > 400 else 10 * exp(0.2 * rng.normal())
            found.append(detector.update(n / 10, broker, value))
    [alarm] = [each for each in found if each]
    assert alarm.broker == 2 and 40 < alarm.at_s < 45 and alarm.n_alarmed == 1
    assert detector.alarmed() == [2]


def test_after_the_cause_is_gone_the_next_rise_is_a_new_alarm():
    values = series(np.random.default_rng(5), 300)
    for start in (100, 200):
        values[start * PER_S : (start + 20) * PER_S] += log(4)
    assert [round(each.at_s, -1) for each in alarms(values)] == [100, 200]


def test_autocorrelation_widens_the_limit():
    rng = np.random.default_rng(0)
    white, settings = 0.4 * rng.normal(size=400), DetectorSettings(learn_s=400)
    slow = np.convolve(white, np.ones(8) / 8, "valid") * 3
    assert autocorrelation(slow) > 0.8 > 0.2 > autocorrelation(white)
    assert learned(list(slow), settings).limit > 2 * learned(list(white), settings).limit


@pytest.mark.parametrize("wrong", [{"learn_s": 5}, {"shift": 1.0}, {"false_alarms_per_h": 0}, {"least_windows": 0}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        DetectorSettings(**wrong)
