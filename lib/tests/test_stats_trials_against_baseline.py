"""Settings against a baseline, on trials with known ratios, and against other ways to the same numbers."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from wanbench.errors import ParameterError
from wanbench.pages.geo_kafka.against_baseline import PAIRS, SINGLE, WELCH, against_baseline

RATIOS = {"baseline": 1.0, "batch 32768": 2.0, "linger 50": 1.0, "acks 1": 1.5}


def made(seed=0, replicates=4, spread=0.05, blocks=0.0, noisy=1.0):
    rng, rows = np.random.default_rng(seed), []
    for block, drift in enumerate(rng.normal(0, blocks, replicates)):
        for name, ratio in RATIOS.items():
            own = spread * (noisy if name == "acks 1" else 1.0)
            rows.append((name, block, 100 * ratio * np.exp(drift + rng.normal(0, own))))
    return pd.DataFrame(rows, columns=["setting", "block", "rate"])


def notes(found):
    return " ".join([*found.notes, *(text for one in found.ratios.values() for text in one.warnings)])


def test_intervals_are_dunnetts():
    frame = made()
    found = against_baseline(frame, "rate", "baseline")
    logs = {name: np.log(part.rate) for name, part in frame.groupby("setting", sort=False)}
    expected = stats.dunnett(
        *(logs[name] for name in RATIOS if name != "baseline"), control=logs["baseline"], random_state=1
    ).confidence_interval(0.95)
    np.testing.assert_allclose(np.log(found.rows.low[1:]), expected.low, atol=0.003)
    np.testing.assert_allclose(np.log(found.rows.high[1:]), expected.high, atol=0.003)
    assert found.freedom == 12 and found.rows.verdict.tolist() == ["baseline", "higher", "not shown", "higher"]


def test_a_single_comparison_is_students():
    frame = made()[lambda rows: rows.setting.isin(["baseline", "acks 1"])]
    found = against_baseline(frame, "rate", "baseline").ratios["acks 1"]
    sides = [np.log(frame.rate[frame.setting == name]) for name in ("acks 1", "baseline")]
    ends = stats.ttest_ind(*sides).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx(tuple(np.exp(ends)))
    single, welch = found.others
    assert single.method == SINGLE and (single.low, single.high) == pytest.approx((found.low, found.high))
    welchs = np.exp(stats.ttest_ind(*sides, equal_var=False).confidence_interval(0.95))
    assert welch.method == WELCH and (welch.low, welch.high) == pytest.approx(tuple(welchs), rel=1e-6)


def test_what_blocks_have_in_common_is_removed():
    frame = made(spread=0.01, blocks=0.5)
    wide, narrow = (against_baseline(frame, "rate", "baseline", block=block) for block in (None, "block"))
    assert narrow.log_spread < 0.02 < 0.1 < wide.log_spread and narrow.freedom == 9
    assert narrow.rows.ratio.to_numpy() == pytest.approx(list(RATIOS.values()), rel=0.03)
    pairs = narrow.ratios["acks 1"].others[1]
    by_block = np.log(frame.pivot(index="block", columns="setting", values="rate"))
    ends = stats.ttest_rel(by_block["acks 1"], by_block.baseline).confidence_interval(0.95)
    assert pairs.method == PAIRS and (pairs.low, pairs.high) == pytest.approx(tuple(np.exp(ends)))
    assert narrow.rows["mean"][0] == pytest.approx(np.exp(np.log(frame.rate[::4]).mean()))


def test_unequal_scatter_is_cautioned_and_equal_scatter_is_not():
    assert "have unequal scatter" not in notes(against_baseline(made(), "rate", "baseline", block="block"))
    found = against_baseline(made(replicates=6, noisy=10), "rate", "baseline")
    assert (
        found.equal_spread_p < 0.01
        and "have unequal scatter" in notes(found)
        and "trials of “acks 1” scatter by" in notes(found)
    )


def test_the_check_raises_one_false_alarm_in_twenty_even_with_two_trials():
    low = [
        against_baseline(made(seed, replicates=2), "rate", "baseline", block="block").equal_spread_p < 0.05
        for seed in range(100)
    ]
    assert 0.01 <= np.mean(low) <= 0.10


def test_a_setting_measured_once_has_the_interval_of_the_others_scatter():
    frame = made().drop(index=[1, 5, 9])
    found = against_baseline(frame, "rate", "baseline")
    assert np.isfinite(found.ratios["batch 32768"].low) and "measured only once: “batch 32768”" in notes(found)
    assert [one.method for one in found.ratios["batch 32768"].others] == [SINGLE]


def test_without_any_repetition_there_is_no_interval():
    found = against_baseline(made(replicates=1), "rate", "baseline")
    assert np.isnan(found.rows.low).all() and np.isnan(found.log_spread)
    assert "no setting was measured twice" in notes(found)
    assert set(found.rows.verdict) == {"baseline", "not shown"}


def test_rows_that_cannot_count_are_named():
    frame = made()
    frame.loc[[1, 2], "rate"] = [np.nan, 0.0]
    found = against_baseline(frame, "rate", "baseline")
    assert "2 of 16 trials not used" in notes(found)


def test_levels_of_a_factor_come_in_their_order():
    frame = made().assign(level=lambda rows: rows.setting.map(dict(zip(RATIOS, [16, 64, 32, 8], strict=True))))
    assert against_baseline(frame, "rate", 16, by="level").rows.setting.tolist() == [16, 8, 32, 64]


def test_what_cannot_be_compared_is_refused():
    frame = made()
    with pytest.raises(ParameterError, match="baseline is 'none'"):
        against_baseline(frame, "rate", "none")
    with pytest.raises(ParameterError, match="lacks column speed"):
        against_baseline(frame, "speed", "baseline")
    with pytest.raises(ParameterError, match="cannot be separated"):
        apart = frame.assign(block=(frame.setting == "acks 1").astype(int))
        against_baseline(apart, "rate", "baseline", block="block")
    with pytest.raises(ParameterError, match="no trial with setting 'baseline'"):
        against_baseline(frame.assign(rate=frame.rate.where(frame.setting != "baseline")), "rate", "baseline")
