"""The share of their limit that trials reached, against how busy the processors were."""

import numpy as np
import pandas as pd
import pytest
from trial_tables import together, trial

from wanbench.errors import ParameterError
from wanbench.methods.result.means import ratio_estimate
from wanbench.methods.trials.limits import limits
from wanbench.methods.trials.processors import processor_effect
from wanbench.methods.trials.rates import trial_rates

RTTS_MS = {"internet": 130.0, "private": 60.0}


def trials(busy_percent, per_ten=0.9, noise=0.0, seed=0, settings=tuple(RTTS_MS)):
    """Interleaved trials, whose window is reached by 0.95 where the processors are half busy; and these processors."""
    rng, rows, busy = np.random.default_rng(seed), [], []
    for k, percent in enumerate(busy_percent, 1):
        setting = settings[k % len(settings)]
        allowed = 30 / (RTTS_MS[setting] / 1000)
        level = allowed * 0.95 * per_ten ** ((percent - 50) / 10) * np.exp(rng.normal(0, noise))
        each = trial(k, setting, round(level), rtt_ms=RTTS_MS[setting], rate_bps=1e11, seconds=4)
        key = {name: each["tests"][0][name] for name in ("run_id", "test_id", "attempt")}
        rows.append(each)
        busy += [key | {"host": host, "busy_percent": percent - less} for host, less in (("a", 0), ("b", 30))]
    found = limits(trial_rates(together(rows)), brokers=1, connection_window_bytes=np.inf)
    return found, pd.DataFrame(busy)


@pytest.mark.parametrize("per_ten", [0.8, 0.95, 1.0])
def test_what_ten_per_cent_cost_is_found_within_settings(per_ten):
    found = processor_effect(*trials([45, 50, 80, 85, 60, 70, 90, 55], per_ten, noise=0.02))
    assert found.slope.low < per_ten < found.slope.high and found.slope.n == 8
    assert found.slope.estimate == pytest.approx(per_ten, rel=0.02)
    assert found.trials.busy_percent.tolist() == [45, 50, 80, 85, 60, 70, 90, 55]


def test_a_machine_below_any_threshold_can_slow_trials_down():
    found = processor_effect(*trials([45, 48, 50, 75, 78, 82, 46, 80], per_ten=0.97, noise=0.004))
    assert found.slope.high < 1
    message = str(found)
    assert (
        "reached a share of its limit that is 0.9" in message and "10 percentage points more processor use" in message
    )
    assert (
        "“internet” reached 0.89 of its limit" in message
        and "with the processors 71 % busy" in message
        and "full" not in message
    )
    assert found.finding("machine").sentence == message and found._repr_html_()


def test_full_processors_open_the_interval_of_a_ratio_and_are_said():
    """Odd trials are of the private path."""
    found = processor_effect(*trials([95, 86, 96, 84, 94, 88, 95, 86]))
    assert found.full == ("private",)
    (caution,) = found.cautions
    assert caution.startswith("processors were full (95 % busy) with “private”") and "internet" not in caution
    ratio = ratio_estimate(0.62, 0.07, quantity="q", claim="It is {}", n=4, method="m", assumption="a")
    lowered, limit = (found.bounding(ratio, "private", "internet"), found.bounding(ratio, "internet", "private"))
    assert (lowered.low, lowered.high) == (ratio.low, np.inf) and caution in lowered.warnings
    assert (limit.low, limit.high) == (-np.inf, ratio.high)
    calm = processor_effect(*trials([60, 85, 62, 84]))
    assert calm.full == calm.cautions == () and calm.bounding(ratio, "private", "internet") == ratio


def test_settings_that_differ_in_both_are_not_compared_with_each_other():
    """One path carries more, keeps processors busier and reaches less; within a path nothing goes with the other."""
    found, busy = trials([50, 80] * 4, per_ten=0.8)
    busy["busy_percent"] += np.repeat([0, 1, 2, 3, 1, 0, 3, 2], 2)
    assert processor_effect(found, busy).slope.estimate == pytest.approx(1, rel=0.02)


def test_single_trials_say_nothing():
    found = processor_effect(*trials([50, 80]))
    assert np.isnan(found.slope.estimate) and "too few trials of one setting" in str(found)
    measured, busy = trials([50, 80])
    with pytest.raises(ParameterError, match="no trial of 2 has samples"):
        processor_effect(measured, busy[:0])


def test_processors_that_are_equally_busy_say_nothing_and_that_is_the_reason():
    assert "equally busy in all trials" in str(processor_effect(*trials([100, 100, 100, 100])))
