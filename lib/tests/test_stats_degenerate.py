"""Degenerate input gives a clear error or says what is missing: no wrong number, no warning of another library."""

from math import inf, isnan, nan

import numpy as np
import pandas as pd
import pytest
from simulations import simulated_surveys
from simulations.latency_samples import of_values
from simulations.models import transfers

from wanbench import methods
from wanbench.change_detection import Detector
from wanbench.errors import ParameterError
from wanbench.methods.regions.places import Units, skew_of_effects
from wanbench.methods.result.means import geometric_mean, ratio_of_differences
from wanbench.pages import grids_and_predictions, intercloud_2022, intercloud_throughput
from wanbench.pages.tail_latency.step_curves import step_curve
from wanbench.pages.tail_latency.trials import TailTrials
from wanbench.pages.tail_latency.verdicts import verdict

pytestmark = pytest.mark.filterwarnings("error")
PAIRS = simulated_surveys.survey(8, seed=3, region_ms=6, pair_ms=4)
FEW = {"resamples": 40}


def test_equal_values_have_no_correlation():
    found = methods.fit_rtt(PAIRS.assign(rtt_ms=50.0), **FEW)
    assert isnan(found.pearson.estimate) and found.slope.estimate == pytest.approx(0)


def test_sizes_that_no_measurement_has_are_refused_by_row():
    one = PAIRS.assign(rtt_ms=PAIRS.rtt_ms.where(PAIRS.index != 3, 1e300))
    with pytest.raises(ParameterError, match=r"rtt_ms in row 3 of table pairs .* is 1e\+300; allowed: 0, or a number"):
        methods.fit_rtt(one, **FEW)
    with pytest.raises(ParameterError, match="latency of the sample in row 0"):
        of_values([np.full(3, 1e300)])
    with pytest.raises(ParameterError, match="throughput_bps in row 0"):
        intercloud_throughput.estimate_loss(transfers("cubic", 0.01, 2, seed=1).assign(throughput_bps=1e300))


def test_an_infinite_throughput_is_left_out_of_a_prediction():
    finite = PAIRS.assign(throughput_bps=PAIRS.throughput_bps.where(PAIRS.index > 2))
    endless = PAIRS.assign(throughput_bps=PAIRS.throughput_bps.where(PAIRS.index > 2, inf))
    ends = PAIRS.from_region[20], PAIRS.to_region[20]
    both = [grids_and_predictions.fit_predictor(pairs).predict(*ends).throughput for pairs in (finite, endless)]
    assert both[0].high == both[1].high < inf


def test_clouds_at_one_distance_are_not_compared():
    with pytest.raises(ParameterError, match="pairs of different distance"):
        intercloud_2022.compare_clouds(PAIRS.assign(distance_km=0.0))


def test_effects_that_are_equal_but_for_rounding_are_not_skewed():
    first, second = np.triu_indices(9, 1)
    grouped = Units(tuple("abcdefghi"), np.arange(9), first, second)
    assert skew_of_effects(0.1 + 1e-13 * np.sin(first + 7.0 * second), 1.0 * first, grouped) is None


def test_latencies_of_zero_have_no_ratio_and_no_knee():
    none, some = (TailTrials(name, [of_values([np.full(99, ms)])] * 3) for name, ms in (("a", 0.0), ("b", 9.0)))
    found = verdict(none, some, 0.5)
    assert found.rows.verdict[0] == "not enough data" and "clocks may differ" in str(found)
    steps = [
        {"block": block, "rate_records_per_s": rate, "tail": none.tails[0]} for block in (0, 1) for rate in range(1, 5)
    ]
    with pytest.raises(ParameterError, match="p50 of 8 trials is not above 0 ms"):
        step_curve(pd.DataFrame(steps), 0.5)


def test_means_of_logarithms_take_positive_numbers():
    about = {"quantity": "the rate", "claim": "It is {}", "method": "m", "assumption": "a"}
    for bad in (0.0, -1.0, inf, nan):
        with pytest.raises(ParameterError, match="a value of the rate is"):
            geometric_mean([1.0, bad], 0.95, **about)
    assert all(map(isnan, ratio_of_differences([3.0], [1.0], [1.0], 0.95)))


def test_a_detector_refuses_what_is_not_a_number():
    with pytest.raises(ParameterError, match="value_ms is nan"):
        Detector().update(0.0, 1, nan)
