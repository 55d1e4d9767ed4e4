import math

import numpy as np
import pytest
from simulations import simulated_surveys

from wanbench.errors import ParameterError
from wanbench.methods.distance import straight_lines
from wanbench.methods.tcp import knee, window_fit


@pytest.mark.parametrize("seed", range(6))
def test_least_squares_equals_a_search_over_both_lines(seed):
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(1, 6, 25))
    y = np.minimum(20.0, 24.0 - x) + rng.normal(0, 0.5, 25)
    weights = rng.integers(0, 3, size=(3, 25)).astype(float)

    def cost(row, level, falling):
        return (row * (y - np.minimum(level, falling - x)) ** 2).sum()

    for row, level, falling in zip(weights, *knee.least_squares(x, y, weights), strict=True):
        found = cost(row, level, falling)
        grid = [
            cost(row, level + a, falling + b) for a in np.linspace(-1.5, 1.5, 61) for b in np.linspace(-1.5, 1.5, 61)
        ]
        assert found <= min(grid) + 1e-9


def test_least_squares_on_one_side_leaves_the_other_open():
    x = np.linspace(1, 5, 10)
    level, falling = knee.least_squares(x, 24.0 - x, np.ones((1, 10)))
    assert falling[0] == pytest.approx(24.0) and level[0] >= 23.0
    level, falling = knee.least_squares(x, np.full(10, 20.0), np.ones((1, 10)))
    assert level[0] == pytest.approx(20.0) and falling[0] >= 25.0


def test_each_resample_equals_a_fit_of_the_repeated_points():
    rng = np.random.default_rng(1)
    x = np.sort(rng.uniform(1, 6, 30))
    y = np.minimum(20.0, 24.0 - x) + rng.normal(0, 0.3, 30)
    weights = rng.integers(0, 3, size=(4, 30)).astype(float)
    for row, level, falling in zip(weights, *knee.least_squares(x, y, weights), strict=True):
        times = row.astype(int)
        repeated = knee.least_squares(np.repeat(x, times), np.repeat(y, times), np.ones((1, times.sum())))
        assert (level, falling) == pytest.approx((repeated[0][0], repeated[1][0]))


def test_known_window_and_capacity_are_recovered():
    pairs = simulated_surveys.survey(30, seed=1, region_log_sd=0.15)
    fit = window_fit.fit_window(pairs, resamples=200)
    assert fit.window.low < 3e6 < fit.window.high
    assert fit.capacity.low < 300e6 < fit.capacity.high
    assert fit.knee_rtt.estimate == pytest.approx(8000 * fit.window.estimate / fit.capacity.estimate)
    assert fit.window.high - fit.window.low > 1.5 * (fit.window.naive.high - fit.window.naive.low)
    assert not fit.window.warnings
    assert str(fit).startswith("The window that limits the far pairs is ")


def test_outliers_hardly_move_it():
    pairs = simulated_surveys.survey(20, seed=2)
    clean = window_fit.fit_window(pairs, resamples=50)
    bad = np.random.default_rng(0).choice(len(pairs), 20, replace=False)
    pairs.loc[bad, "throughput_bps"] /= 50
    spoiled = window_fit.fit_window(pairs, resamples=50)
    assert spoiled.window.estimate == pytest.approx(clean.window.estimate, rel=0.05)
    assert spoiled.capacity.estimate == pytest.approx(clean.capacity.estimate, rel=0.1)


def test_exact_data_give_exact_numbers_and_pairs_name_their_limit():
    pairs = simulated_surveys.survey(12, seed=3, pair_log_sd=0.0)
    fit = window_fit.fit_window(pairs, resamples=50)
    assert fit.window.estimate == pytest.approx(3e6, rel=1e-6)
    assert fit.capacity.estimate == pytest.approx(300e6, rel=1e-6)
    far = fit.pairs[fit.pairs.limit == "window"]
    assert (far.rtt_ms > 80 - 1e-6).all() and (fit.pairs.ratio - 1).abs().max() < 1e-6
    np.testing.assert_allclose(far.implied_window_bytes, 3e6, rtol=1e-6)


def test_the_interval_covers_where_the_naive_one_does_not():
    covered = naive = 0
    for seed in range(20):
        pairs = simulated_surveys.survey(16, seed=seed, region_log_sd=0.2)
        window = window_fit.fit_window(pairs, resamples=40).window
        covered += window.low <= 3e6 <= window.high
        naive += window.naive.low <= 3e6 <= window.naive.high
    assert covered >= 17  # a 95 % interval covers fewer of 20 in one of 60 simulations, one of 70 % in nine of ten
    assert naive <= 14


@pytest.mark.parametrize(
    ("limits", "lost", "known"),
    [({"capacity_bps": 1e12}, "capacity", "window"), ({"window_bytes": 1e12}, "window", "capacity")],
)
def test_a_limit_that_no_pair_reaches_is_not_identified(limits, lost, known):
    truth = {"capacity_bps": 300e6, "window_bytes": 3e6} | limits
    fit = window_fit.fit_window(simulated_surveys.survey(12, seed=4, **limits), resamples=100)
    missing, found = getattr(fit, lost), getattr(fit, known)
    assert math.isnan(missing.estimate) and missing.high == math.inf
    assert missing.low <= truth[f"{lost}_{'bps' if lost == 'capacity' else 'bytes'}"]
    letter = {"capacity": "C", "window": "W"}[lost]
    assert f"{letter} is not identified" in str(missing)
    assert "cannot be estimated (it is at least" in str(missing)
    assert found.low < truth[f"{known}_{'bps' if known == 'capacity' else 'bytes'}"] < found.high
    assert missing.finding("limit").estimate is None
    assert np.isfinite(fit.throughput_bps([1.0, 10.0, 300.0])).all()


def test_rows_without_either_value_are_left_out_and_stated():
    pairs = simulated_surveys.survey(10, seed=5)
    pairs.loc[0, "rtt_ms"] = np.nan
    pairs.loc[1, "throughput_bps"] = np.nan
    pairs.loc[2, "throughput_bps"] = 0.0
    fit = window_fit.fit_window(pairs, resamples=40)
    assert "3 rows of the table of pairs left out" in str(fit.window)


def test_the_window_over_the_buffer_that_was_requested():
    fit = window_fit.fit_window(simulated_surveys.survey(12, seed=1), resamples=40)
    ratio = fit.over_buffer(2e6)
    assert ratio.estimate == pytest.approx(fit.window.estimate / 2e6)
    assert (ratio.low, ratio.high) == pytest.approx((fit.window.low / 2e6, fit.window.high / 2e6))
    assert ratio.sentence.startswith("The window is 1.") and "the buffer of 2.00 MB" in ratio.sentence
    with pytest.raises(ParameterError, match="buffer_bytes is 0; allowed: a number above 0"):
        fit.over_buffer(0)


def test_few_regions_give_no_interval_and_too_few_fail():
    fit = window_fit.fit_window(simulated_surveys.survey(4, seed=6), resamples=40)
    assert math.isnan(fit.window.low) or fit.window.high == math.inf
    with pytest.raises(ParameterError, match="at least 3 regions"):
        window_fit.fit_window(simulated_surveys.survey(2, seed=6))
    with pytest.raises(ParameterError, match="without throughput_bps"):
        window_fit.fit_window(simulated_surveys.survey(6, seed=6).assign(throughput_bps=np.nan))


def test_html_and_table_show_all_three_numbers():
    fit = window_fit.fit_window(simulated_surveys.survey(10, seed=7), resamples=40)
    assert list(fit.table().quantity) == ["TCP window W", "capacity C", "knee RTT"]
    assert "In this fit the window limits" in fit._repr_html_()


def test_clouds_with_windows_of_their_own_are_warned_of():
    pairs = simulated_surveys.survey(24, seed=8)
    assert not window_fit.fit_window(pairs, resamples=40).window.warnings
    within = (pairs.from_cloud == "gcp") & (pairs.to_cloud == "gcp")
    pairs.loc[within, "throughput_bps"] *= 3
    message = str(window_fit.fit_window(pairs, resamples=40).window)
    assert "one W and one C do not fit all" in message and "of gcp-gcp at 2.9" in message


def test_c_is_known_where_one_region_makes_it_jump():
    pairs = simulated_surveys.survey(20, seed=9, region_log_sd=0.3)
    fit = window_fit.fit_window(pairs, resamples=300)
    assert "bootstrap" in fit.capacity.method and "jackknife over regions" in fit.window.method
    assert {other.method for other in fit.capacity.others} != {other.method for other in fit.window.others}


def test_results_draw_themselves():
    pairs = simulated_surveys.survey(8, seed=10)
    fit = window_fit.fit_window(pairs, resamples=40)
    assert fit.figure().layout.meta["name"] == "throughput-against-rtt"
    rtt, throughput = (straight_lines.fit_rtt(pairs, resamples=40), straight_lines.fit_throughput(pairs, resamples=40))
    assert rtt.figure(note="Simulated.").layout.meta["name"] == "rtt-against-distance"
    assert "Simulated." in rtt.figure(note="Simulated.").layout.meta["caption"]
    drawn = throughput.figure()
    assert drawn.layout.meta["name"] == "throughput-against-distance"
    assert sum(len(trace.x) for trace in drawn.data if trace.mode == "markers") == 28
