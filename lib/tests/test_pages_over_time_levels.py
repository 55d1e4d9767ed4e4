"""Changes of level in a series: found where they are, and not where there are none."""

import numpy as np
import pandas as pd
import pytest

from wanbench.errors import ParameterError
from wanbench.pages.over_time import levels
from wanbench.pages.over_time.levels import find_changes, medians_per_step

START = pd.Timestamp("2025-01-06", tz="UTC")


def series(logs, step="1D", kept=None, level=30.0):
    index = START + pd.Timedelta(step) * np.arange(len(logs))
    whole = pd.Series(level * np.exp(logs), index=index)
    return whole if kept is None else whole[kept]


def noise(n, decay=0.5, sd=0.005, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.normal(0, sd, n)
    for k in range(1, n):
        values[k] += decay * values[k - 1]
    return values


@pytest.mark.parametrize("shift", [1.05, 1 / 1.05, 1.3])
def test_a_change_is_dated_and_its_ratio_lies_in_the_interval(shift):
    logs = noise(365)
    logs[200:] += np.log(shift)
    found = find_changes(series(logs))
    (one,) = found.estimates
    assert abs((found.valid_since - START).days - 200) <= 1
    assert one.low < shift < one.high and one.high / one.low < 1.03
    assert one.basis == f"{found.rows.n[0]} values before and {found.rows.n[1]} after" and one.n == found.rows.n[1]
    assert f"{found.valid_since:%Y-%m-%d}" in found.sentence


def test_noise_bursts_and_weekends_are_no_change():
    rng = np.random.default_rng(1)
    logs = noise(365, seed=1)
    for start in rng.integers(365, size=12):
        logs[start : start + rng.integers(1, 6)] += rng.exponential(0.3)
    logs -= 0.03 * (np.arange(365) % 7 >= 5)
    found = find_changes(series(logs))
    assert len(found.rows) == 1 and found.valid_since == START
    assert found.sentence == "No change of level in 365 values since 2025-01-06."


def test_a_step_of_half_a_year_of_slow_noise_costs_more_than_one_of_fast_noise():
    fast, slow = (levels.variances(noise(4_000, decay), np.arange(4_000)) for decay in (0.0, 0.9))
    assert fast[1] == pytest.approx(fast[0], rel=0.15)
    assert slow[1] / slow[0] == pytest.approx(19, rel=0.35)  # (1 + 0.9) / (1 - 0.9)


def test_missing_days_move_no_date():
    logs, rng = noise(365, seed=2), np.random.default_rng(2)
    logs[150:] += 0.1
    kept = rng.random(365) > 0.1
    kept[145:155], kept[[144, 155]] = False, True
    found = find_changes(series(logs, kept=kept))
    assert found.valid_since == START + pd.Timedelta(days=155) and found.rows.until[0] == START + pd.Timedelta(days=144)


def test_two_changes_that_cancel_are_two_levels_between_one():
    logs = noise(365, seed=3)
    logs[100:140] += 0.08
    found = find_changes(series(logs))
    assert [(at - START).days for at in found.rows.since] == pytest.approx([0, 100, 140], abs=1)
    assert found.rows.ratio[1] * found.rows.ratio[2] == pytest.approx(1, abs=0.01)


def test_hours_are_compared_without_their_course_over_the_day():
    hours = np.arange(24 * 14)
    logs = noise(len(hours), sd=0.003, seed=4) + 0.05 * np.sin(2 * np.pi * hours / 24)
    logs[200:] += 0.06
    found = find_changes(series(logs, "1h"), step="1h")
    assert len(found.rows) == 2 and abs((found.valid_since - START) / pd.Timedelta("1h") - 200) <= 2


def test_a_constant_series_has_one_level_and_a_step_in_it_two():
    assert len(find_changes(series(np.zeros(100))).rows) == 1
    assert len(find_changes(series(np.repeat([0.0, 0.02], 50))).rows) == 2


def test_a_short_series_is_said_to_be_too_short():
    found = find_changes(series(np.repeat([0.0, 1.0], 20)))
    assert found.too_short and len(found.rows) == 1 and not find_changes(series(noise(80))).too_short


def test_bad_series_are_refused():
    with pytest.raises(ParameterError, match=r"a value of the series is 0.0; allowed: positive and finite"):
        find_changes(pd.Series([1.0, 0.0], index=START + pd.to_timedelta([0, 1], unit="D")))
    with pytest.raises(ParameterError, match="at most one in each 1D"):
        find_changes(pd.Series([1.0, 1.0], index=START + pd.to_timedelta([1, 0], unit="D")))


def test_the_median_of_a_step_ignores_steps_without_values():
    at = START + pd.to_timedelta([0, 1, 2, 50], unit="h")
    assert medians_per_step(pd.Series(at), pd.Series([1.0, 5.0, 2.0, 4.0])).to_dict() == {
        START: 2.0,
        START + pd.Timedelta(days=2): 4.0,
    }
