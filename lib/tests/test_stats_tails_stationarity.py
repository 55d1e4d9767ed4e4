"""Warm-up that is cut, and drift that is said."""

from math import inf

import numpy as np
import pytest

from wanbench.errors import ParameterError
from wanbench.stats.tails import stationarity


def test_a_slow_start_is_cut_and_a_steady_one_is_not():
    rng = np.random.default_rng(2)
    steady_part = rng.lognormal(3, 0.1, 2_000)
    slow = np.concatenate([np.linspace(400, 22, 200) * rng.lognormal(0, 0.05, 200), steady_part])
    assert 150 <= stationarity.warm_up(slow) <= 320
    cuts = [stationarity.warm_up(rng.lognormal(3, 0.1, 2_000)) for _ in range(20)]
    assert np.median(cuts) < 400


def test_slow_records_at_the_end_do_not_decide_over_the_start():
    values = np.random.default_rng(2).lognormal(3, 0.1, 2_000)
    values[1_500::100] = 5_000
    assert stationarity.warm_up(values) < 700


@pytest.mark.parametrize(
    ("values", "is_steady"),
    [
        (np.random.default_rng(0).lognormal(3, 0.2, 4_000), True),
        (np.random.default_rng(0).lognormal(3, 0.2, 4_000) * np.linspace(1, 1.5, 4_000), False),
        (np.full(100, 20.0), True),
        (np.arange(30.0), True),
    ],
    ids=["steady", "growing", "constant", "too short"],
)
def test_stationarity(values, is_steady):
    cautions = stationarity.drift_cautions([values])
    assert ("not stationary" in "".join(cautions)) is not is_steady


@pytest.mark.parametrize("wrong", ["never", -1, True, inf])
def test_the_rule_of_the_cut_is_checked(wrong):
    with pytest.raises(ParameterError, match="warm_up is"):
        stationarity.cut(np.ones(5), np.arange(5.0), wrong)
