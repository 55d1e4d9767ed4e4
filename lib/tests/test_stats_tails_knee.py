"""Stepped trials: the knee of a curve, and the highest rate within an objective."""

from math import inf, isnan

import numpy as np
import pandas as pd
import pytest
from simulations.latency_samples import of_values

from wanbench.errors import ParameterError
from wanbench.pages.tail_latency.best_rates import best_rate
from wanbench.pages.tail_latency.knees import knee_of
from wanbench.pages.tail_latency.step_curves import StepCurve, step_curve

RATES = (250.0, 500.0, 1_000.0, 2_000.0, 4_000.0)


def stepped(middle, blocks=4, rates=RATES, noise=0.02, seed=0):
    """One trial per block and step, whose median is `middle(rate)` ms, times its block's factor."""
    rng = np.random.default_rng(seed)
    rows = []
    for block in range(blocks):
        own = np.exp(0.1 * rng.normal())
        for rate in rng.permutation(rates):
            values = own * np.exp(noise * rng.normal()) * middle(rate) * rng.lognormal(0, 0.1, 400)
            rows.append({"block": block, "rate_records_per_s": rate, "tail": of_values([values])})
    return pd.DataFrame(rows)


def knee(trials, q=0.99):
    return knee_of(step_curve(trials, q))


def bent(rate):
    """Level at 20 ms to 1,400 records/s, and then with the third power of the rate."""
    return 20 * max(rate / 1_400, 1.0) ** 3


def test_the_knee_lies_between_steps_and_a_second_runs_in_its_interval():
    found = knee(stepped(bent), 0.5)
    assert found.where == "inside" and found.knee.estimate == pytest.approx(1_400, rel=0.05)
    assert found.knee.low < 1_400 < found.knee.high
    wider = (found.second_run.low <= found.knee.low, found.second_run.high >= found.knee.high)
    again = knee(stepped(bent, seed=1), 0.5).knee.estimate
    assert all(wider) and found.second_run.low < again < found.second_run.high
    assert "p50 of latency begins to rise at 1," in found.sentence


def test_a_knee_is_only_known_to_lie_between_the_step_below_it_and_the_first_that_is_twice_the_level():
    rates, logs = np.array([50.0, 90.0, 100.0, 140.0, 200.0]), np.log([60.0, 51.0, 98.0, 955.0, 4049.0])
    curve = StepCurve(0.99, rates, (1, 2, 3), np.stack([logs, logs - 0.01, logs + 0.01]), 15)
    found = knee_of(curve)
    assert found.knee.estimate == pytest.approx(90, rel=0.01)
    assert (found.knee.low, found.knee.high) == (50, 140)


def test_a_level_curve_has_no_knee():
    found = knee(stepped(lambda rate: 20), 0.5)
    assert found.where == "none" and isnan(found.knee.estimate) and "p50 has no knee" in found.sentence


def test_a_curve_that_falls_before_it_rises_is_not_said_to_stay_level():
    rates, logs = np.array([40.0, 70, 100, 130, 190]), np.log([106.0, 75, 63, 70, 192])
    found = knee_of(StepCurve(0.99, rates, (1, 2, 3), np.stack([logs - 0.03, logs, logs + 0.03]), 15))
    assert found.where == "none" and "does not rise" not in found.sentence
    assert (
        "is 1.8 times that at the first step, and 3.0 times the lowest p99, which is at 100 records/s" in found.sentence
    )


def test_a_knee_at_an_end_is_said_to_be_there():
    last = knee(stepped(lambda rate: 20 if rate < 4_000 else 200), 0.5)
    assert last.where == "between the last two steps" and last.knee.low <= 2_000 and last.knee.high >= 4_000
    assert "steps above 2,000 records/s would narrow it" in str(last)
    rising = knee(stepped(lambda rate: rate / 10), 0.5)
    assert rising.where == "before the first step" and "rises from the first step on" in rising.sentence


def test_a_missing_trial_does_not_take_its_block_along():
    frame = stepped(bent, noise=1e-4)
    slow = frame.block == 0
    curve, less = step_curve(frame, 0.5), step_curve(frame.drop(frame.index[slow][:1]), 0.5)
    assert less.mean == pytest.approx(curve.mean, abs=0.03) and "1 trial missing" in less.notes[0]


def test_few_steps_or_blocks_are_refused():
    with pytest.raises(ParameterError, match="3 steps and 4 blocks; allowed: at least 4 steps"):
        knee(stepped(bent, rates=RATES[:3]))
    with pytest.raises(ParameterError, match="lacks column tail"):
        knee(stepped(bent).drop(columns="tail"))


def with_lost(rate):
    frame = stepped(bent)
    frame.at[frame.index[frame.rate_records_per_s == rate][0], "tail"] = of_values([np.array([inf] * 400)])
    return frame


def test_a_knee_rests_on_no_step_with_a_lost_quantile():
    found = knee(with_lost(4_000), 0.5)
    assert found.curve.rates.tolist() == list(RATES[:4]) and found.knee.low < 1_400 < found.knee.high
    assert "steps from 4,000 records/s on are left out, because p50 of a trial falls on a lost record" in str(
        found.knee
    )


@pytest.mark.parametrize("rate", [2_000, 250])
def test_without_enough_known_steps_there_is_no_knee(rate):
    found = knee(with_lost(rate), 0.5)
    assert found.where == "unknown" and isnan(found.knee.estimate) and isnan(found.second_run.estimate)
    assert "p50 has no knee, because p50 is known only at" in found.sentence


def test_a_lost_quantile_is_no_number_of_its_step():
    found = best_rate(step_curve(with_lost(4_000), 0.5), 40.0)
    assert found.bracket[1] <= 4_000
    assert "p50 of a trial at 4,000 records/s falls on a lost record" in str(found.rate)


# The highest rate within an objective


def test_the_best_rate_lies_between_the_steps_that_meet_and_fail():
    found = best_rate(step_curve(stepped(bent), 0.5), 40.0)
    assert found.rate.estimate == pytest.approx(1_400 * 2 ** (1 / 3), rel=0.12)  # between steps
    assert found.rate.low <= 1_000 and found.rate.high >= 2_000
    assert found.bracket == (1_000, 2_000)


@pytest.mark.parametrize(("objective", "text"), [(1e4, "at least 4,000"), (1.0, "below 250")])
def test_an_objective_that_all_or_none_meet_bounds_the_rate(objective, text):
    found = best_rate(step_curve(stepped(bent), 0.5), objective)
    assert isnan(found.rate.estimate) and text in str(found.rate)


def test_a_rate_that_no_step_is_shown_to_meet_is_not_established():
    rates, logs = np.array([60.0, 100.0, 160.0, 250.0]), np.log([128.0, 75.0, 2_700.0, 5_200.0])
    curve = StepCurve(0.99, rates, (1, 2, 3), np.stack([logs - 0.05, logs, logs + 0.1]), 12)
    rate = best_rate(curve, 100.0).rate
    assert isnan(rate.estimate) and (rate.low, rate.high) == (0, 160)
    assert "cannot be estimated" in rate.sentence and "below 160 records/s" in rate.warnings[-1]


def test_a_rate_below_which_a_step_exceeds_the_objective_is_not_established():
    rates, logs = np.array([40.0, 70, 100, 130, 190]), np.log([106.0, 75, 63, 70, 192])
    curve = StepCurve(0.99, rates, (1, 2, 3), np.stack([logs - 0.01, logs, logs + 0.01]), 15)
    rate = best_rate(curve, 100.0).rate
    assert isnan(rate.estimate) and (rate.low, rate.high) == (0, 190)
    assert "at 40 records/s p99 exceeds the objective, though not at a higher rate" in rate.warnings[-1]
    second = StepCurve(0.99, rates, (1, 2, 3), curve.logs[:, [1, 0, 2, 3, 4]], 15)
    rate = best_rate(second, 100.0).rate
    assert isnan(rate.estimate) and (rate.low, rate.high) == (40, 190)


def test_a_bound_by_the_first_or_last_step_allows_for_the_scatter_of_blocks():
    rng, rates, covered = np.random.default_rng(0), np.array([1e3, 2e3, 3e3, 4e3]), 0
    for _ in range(200):  # the truth, 1,030 records/s, is just above the first step
        logs = np.log(20 + rates / 1_000) + rng.normal(0, 0.1, (3, 1)) + rng.normal(0, 0.05, (3, 4))
        rate = best_rate(StepCurve(0.99, rates, (0, 1, 2), logs, 12), 21.03).rate
        covered += rate.low <= 1_030 <= rate.high
    assert covered >= 185  # 90 before: the first step itself was the bound


def test_a_knee_with_a_single_step_beyond_it_is_not_placed_by_the_scatter_of_the_step_before():
    x, knees = np.log(RATES), []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        level = np.log(20) + 6 * np.maximum(x - np.log(3_000), 0)
        logs = level + 0.1 * rng.normal(size=(4, 1)) + 0.05 * rng.normal(size=(4, len(x)))
        knees.append(knee_of(StepCurve(0.99, np.array(RATES), (1, 2, 3, 4), logs, 20)))
    said = [one for one in knees if "only the last step lies clearly above" in str(one.knee)]
    assert len(said) >= 19 and all(one.knee.low <= 2_000 and one.knee.high >= 4_000 for one in said)
    # the fitted knee is that of the step before, a third below the truth, and lies on either side of it
    assert {one.knee.estimate < 2_000 for one in said} == {True, False}
    assert np.median([one.knee.estimate for one in said]) < 2_100
