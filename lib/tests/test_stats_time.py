"""Two arms: known ratios, coverage under autocorrelation, sentences."""

import re

import numpy as np
import pandas as pd
import pytest
from arch.bootstrap import StationaryBootstrap
from scipy import stats
from simulations.compare import compare_series, trial
from simulations.slow import swings
from statsmodels.tsa.ar_model import AutoReg

from wanbench.errors import ParameterError
from wanbench.methods.time import series
from wanbench.pages.private_vs_internet import arms


def autoregressive(phi, n, seed, mean=100.0):
    rng = np.random.default_rng(seed)
    noise = rng.normal(0, 10 * np.sqrt(1 - phi**2), n + 200)
    values = np.empty(n + 200)
    values[0] = noise[0]
    for k in range(1, n + 200):
        values[k] = phi * values[k - 1] + noise[k]
    return mean + values[200:]


def table(runs=4, n=30, *, seed=0, hours=0.0, ratio=2.0):
    """Runs of both arms; `hours` is how much the blocks differ."""
    rng = np.random.default_rng(seed)
    frames = []
    for block in range(runs):
        hour = rng.normal(0, hours)
        for name, factor in (("private", 1.0), ("internet", ratio)):
            values = factor * (100 + hour + rng.normal(0, 2)) + rng.normal(0, 5, n)
            rows = {"arm": name, "run": f"{name}-{block}", "block": block, "time_s": np.arange(n), "mbps": values}
            frames.append(pd.DataFrame(rows))
    return pd.concat(frames, ignore_index=True)


def test_one_series_an_arm_always_says_that_runs_may_differ():
    rng = np.random.default_rng(0)
    found = compare_series(rng.normal(20, 2, 300), rng.normal(21, 2, 300))
    assert "runs may differ" in str(found)
    frame = pd.DataFrame({"arm": ["a", "b"] * 30, "run": np.arange(60) % 6, "value": rng.normal(20, 2, 60)})
    assert "runs may differ" not in str(arms.compare_arms(frame, "value", run="run"))


def test_welch_is_that_of_scipy():
    a, b = autoregressive(0.0, 40, 1), autoregressive(0.0, 60, 2, 150)
    peer = stats.ttest_ind(b / b.mean(), a / a.mean(), equal_var=False).confidence_interval(0.95)
    middle = np.log(b.mean() / a.mean())
    assert arms.welch(a, b, 0.95)[:2] == pytest.approx((middle + peer.low, middle + peer.high))


def test_the_autoregression_is_that_of_statsmodels():
    values = autoregressive(0.7, 400, 3)
    peer = AutoReg(values - values.mean(), 3, trend="n").fit().params
    np.testing.assert_allclose(series.least_squares(values[None, :], 3)[0], peer, rtol=1e-6)


def test_a_series_of_few_bursts_has_an_autoregression():
    """A resample of its residuals may be constant, for which least squares has many answers."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        values = np.zeros(int(rng.integers(100, 400)))
        start = int(rng.integers(len(values)))
        values[start : start + int(rng.integers(1, 8))] = 1.0
        found = series.fit_series(values)
        assert np.isfinite(found.coefficients).all() and 1 <= found.effective_n <= len(values)
    flat = series.least_squares(np.full((2, 50), 3.0), 4)
    np.testing.assert_array_equal(flat, np.zeros((2, 4)))


def test_filtering_back_undoes_whitening():
    values = autoregressive(0.8, 200, 4)
    centred, found = values - values.mean(), np.array([0.5, 0.2, -0.1])
    residuals = series.whitened(centred, found)
    back = series.filtered_back(residuals[None, :], centred[None, :3], found)
    np.testing.assert_allclose(back[0], centred, atol=1e-9)


@pytest.mark.parametrize(("phi", "worth"), [(0.0, 1.0), (0.6, 0.25), (0.9, 1 / 19)])
def test_effective_number_of_values(phi, worth):
    found = [series.fit_series(autoregressive(phi, 2_000, seed)).effective_n / 2_000 for seed in range(8)]
    assert np.median(found) == pytest.approx(worth, rel=0.25)


def test_the_bias_of_short_persistent_series_is_taken_off():
    plain, corrected = [], []
    for seed in range(60):
        values = autoregressive(0.8, 60, seed)
        centred = values - values.mean()
        plain.append(centred[1:] @ centred[:-1] / (centred @ centred))
        corrected.append(series.fit_autoregression(values, np.random.default_rng(seed)).sum())
    assert np.mean(plain) < 0.75 and abs(np.mean(corrected) - 0.8) < 0.035


@pytest.mark.parametrize(("n", "block"), [(80, 6.0), (7, 1.0), (7, 2.5)])
def test_the_resampling_is_that_of_arch(n, block):
    values = autoregressive(0.5, n, 5)
    rows = values[series.bootstrap_indices(n, n, block, 4, np.random.default_rng(9))]
    sampler = StationaryBootstrap(block, values, seed=np.random.default_rng(9))
    peer = [data[0][0] for data in sampler.bootstrap(4)]
    np.testing.assert_array_equal(rows, np.array(peer))


def test_resamples_vary_as_the_mean_of_the_process_does():
    phi, n = 0.9, 1_000
    due = 10 * np.sqrt((1 + phi) / (1 - phi) / n)
    found = [
        series.resampled_means(series.fit_series(autoregressive(phi, n, s)), 300, np.random.default_rng(s))
        for s in range(12)
    ]
    assert np.median([means.std() for means, _ in found]) == pytest.approx(due, rel=0.2)
    assert np.median([plain.std() for _, plain in found]) < 0.9 * due


def test_the_interval_covers_where_welch_and_the_plain_bootstrap_do_not():
    counts = {}
    for seed in range(50):
        for each in trial(seed, "AR(1)", 0.9, 100):
            key = f"{each.quantity}, {each.method}"
            counts[key] = counts.get(key, 0) + (each.low <= each.truth <= each.high)
    assert counts["ratio of means, stationary bootstrap"] >= 44
    assert counts["ratio of means, Welch, single values"] <= 30
    assert counts["ratio of means, plain stationary bootstrap, percentiles"] <= 43


def test_without_autocorrelation_it_is_as_wide_as_welch():
    a, b = autoregressive(0.0, 500, 6), autoregressive(0.0, 500, 7, 200)
    found = compare_series(a, b)
    wide = (found.ratio.high - found.ratio.low) / (found.ratio.naive.high - found.ratio.naive.low)
    assert wide == pytest.approx(1, abs=0.25)


def test_too_few_effective_values_are_said():
    found = compare_series(autoregressive(0.97, 60, 1), autoregressive(0.97, 60, 2))
    assert any("independent ones" in note for note in found.ratio.warnings)
    none = compare_series([1.0, 2.0, 3.0], [2.0, 3.0, 4.0])
    assert np.isnan(none.ratio.low) and "fewer than 20 values" in str(none)


@pytest.mark.parametrize(
    ("kind", "n", "minimum", "maximum"),
    [
        ("independent", 300, 0, 6),
        ("AR(1) 0.6", 300, 0, 6),
        ("skewed AR(1) 0.6", 300, 0, 6),
        ("AR(1) 0.9", 1_000, 0, 4),
        ("AR(1) 0.985", 300, 34, 40),
        ("AR(1) 0.985", 1_000, 34, 40),
        ("5 regimes", 300, 30, 40),
        ("10 regimes", 1_000, 34, 40),
        ("long memory, d 0.3", 1_000, 22, 40),
        ("long memory, d 0.4", 1_000, 30, 40),
    ],
)
def test_slow_swings_are_cautioned_of_and_others_rarely(kind, n, minimum, maximum):
    n_cautioned = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        both = [100 + 10 * swings(kind, n, rng) for _ in range(2)]
        n_cautioned += series.is_long(both) or any(series.fit_series(each).at_limit for each in both)
    assert minimum <= n_cautioned <= maximum


def test_a_comparison_of_slow_series_says_to_compare_runs():
    rng = np.random.default_rng(0)
    slow = [100 + 10 * swings("10 regimes", 1_000, rng) for _ in range(2)]
    assert "compare runs" in str(compare_series(*slow, resamples=50))
    frame = pd.DataFrame({"value": np.concatenate(slow), "arm": np.repeat(["a", "b"], 1_000)})
    by_run = arms.compare_arms(frame.assign(run=np.arange(2_000) // 250), "value", run="run", resamples=50)
    assert "compare runs" not in str(by_run)


def test_a_series_that_alternates_is_not_slow():
    values = 100 + 5 * np.tile([1.0, -1.0], 100) + np.random.default_rng(0).normal(0, 0.3, 200)
    assert not series.fit_series(values).at_limit


def test_a_constant_series_has_no_memory():
    assert series.memory(np.full(100, 3.0)) == 0


def test_a_ratio_has_a_standard_error():
    found = arms.compare_arms(table(runs=5, n=40, ratio=2.25), "mbps", arms=("private", "internet"), run="run")
    other = compare_series(autoregressive(0.5, 300, 1), autoregressive(0.5, 300, 2), resamples=300).ratio
    assert other.standard_error == pytest.approx((other.high - other.low) / 4, rel=0.15)
    assert repr(found) == str(found) and len(repr(found.a)) < 300


def test_runs_are_the_unit_where_there_are_runs():
    frame = table(runs=5, n=40, ratio=2.25)
    found = arms.compare_arms(frame, "mbps", arms=("private", "internet"), run="run", unit="Mbit/s")
    a, b = (frame[frame.arm == name].groupby("run").mbps.mean() for name in ("private", "internet"))
    peer = stats.ttest_ind(b / b.mean(), a / a.mean(), equal_var=False).confidence_interval(0.95)
    ratio = b.mean() / a.mean()
    assert (found.ratio.low, found.ratio.high) == pytest.approx((ratio * np.exp(peer.low), ratio * np.exp(peer.high)))
    assert found.unit_of_replication == "runs" and found.ratio.basis == "5 runs against 5"
    assert found.ratio.low < 2.25 < found.ratio.high
    assert found.ratio.naive.high - found.ratio.naive.low < found.ratio.high - found.ratio.low


def test_blocks_take_out_what_both_arms_share():
    frame = table(runs=6, hours=20.0)
    settings = {"arms": ("private", "internet")}
    paired = arms.compare_arms(frame, "mbps", block="block", **settings)
    apart = arms.compare_arms(frame, "mbps", run="run", **settings)
    assert paired.unit_of_replication == "blocks" and "6 blocks with both arms" in str(paired)
    assert paired.ratio.low < 2 < paired.ratio.high
    assert paired.ratio.high - paired.ratio.low < 0.5 * (apart.ratio.high - apart.ratio.low)
    means = frame.pivot_table(index="block", columns="arm", values="mbps")
    peer = stats.ttest_rel(means.internet / means.internet.mean(), means.private / means.private.mean())
    ends = np.log([paired.ratio.low, paired.ratio.high]) - np.log(paired.ratio.estimate)
    assert ends == pytest.approx(peer.confidence_interval(0.95))


def test_a_single_run_per_arm_is_said():
    found = arms.compare_arms(table(runs=1, n=60), "mbps", run="run")
    assert found.unit_of_replication == "series" and "single run" in str(found)


@pytest.mark.parametrize(
    ("ratio", "times", "more"),
    [
        (2.25, "2.25 times", "125 % more"),
        (0.5, "0.5", "50 % less"),
        (1.0, "1.00 times", "the same"),
        (1.025, "1.02", "2.5"),
    ],
)
def test_ratios_in_words(ratio, times, more):
    assert arms.times(ratio).startswith(times) and arms.more_or_less(ratio).startswith(more)


def test_the_sentence_says_times_and_per_cent_of_one_ratio():
    found = arms.compare_arms(table(ratio=2.25), "mbps", arms=("private", "internet"), run="run", unit="Mbit/s")
    message = found.sentence
    ratio = float(re.search(r"is ([\d.]+) times that of “private”", message)[1])
    more = float(re.search(r"which is ([\d.]+) % more", message)[1])
    assert ratio == pytest.approx(2.25, abs=0.1) and more == pytest.approx(100 * (ratio - 1), abs=1.5)
    assert "225 %" not in message and "Mbit/s against" in message
    same = arms.compare_arms(table(ratio=1.0), "mbps", run="run").sentence
    assert "though they may be equal" in same


def test_left_out_rows_and_gaps_are_said():
    frame = table(runs=1, n=60)
    frame.loc[3, "mbps"] = np.nan
    frame.loc[frame.time_s > 40, "time_s"] += 500
    frame = pd.concat([frame, frame.head(2).assign(arm="third")])
    found = arms.compare_arms(frame, "mbps", arms=("private", "internet"), time="time_s")
    assert len(found.left_out) == 3 and "3 rows left out" in str(found) and "has gaps" in str(found)


def test_order_of_time_counts_not_order_of_rows():
    values = autoregressive(0.9, 300, 8)
    frame = pd.DataFrame({"arm": np.repeat(["a", "b"], 300), "time": np.tile(np.arange(300), 2)})
    frame["ms"] = np.concatenate([values, autoregressive(0.9, 300, 9)])
    mixed = frame.sample(frac=1, random_state=1)
    one, other = (arms.compare_arms(each, "ms", time="time") for each in (frame, mixed))
    assert one.ratio.low == other.ratio.low
    assert one.a.dependence.effective_n < 60


def test_wrong_questions_are_refused():
    frame = table()
    with pytest.raises(ParameterError, match="lacks column speed"):
        arms.compare_arms(frame, "speed")
    with pytest.raises(
        ParameterError,
        match=r"arms is .*vpn.*; allowed: two different values of column arm, which has internet, private",
    ):
        arms.compare_arms(frame, "mbps", arms=("private", "vpn"))
    with pytest.raises(ParameterError, match="no row with mbps"):
        arms.compare_arms(frame.assign(mbps=frame.mbps.where(frame.arm == "private")), "mbps")
    with pytest.raises(ParameterError, match="allowed: above 0"):
        arms.compare_arms(frame.assign(mbps=-frame.mbps), "mbps")
    with pytest.raises(ParameterError, match="allowed: 2 or more"):
        arms.compare_arms(table(runs=1), "mbps", block="block")
    with pytest.raises(ParameterError, match="level is 95"):
        arms.compare_arms(frame, "mbps", level=95)


def test_constant_series_have_no_width_and_no_error():
    found = compare_series(np.full(30, 2.0), np.full(30, 3.0))
    assert found.ratio.estimate == pytest.approx(1.5) and found.ratio.low == pytest.approx(1.5)


def test_names_are_escaped_and_rows_named():
    hostile = compare_series(autoregressive(0, 50, 1), autoregressive(0, 50, 2), names=("<b>", "b"))
    assert "<b>" not in hostile._repr_html_()
    assert hostile.table().quantity.iloc[0] == "ratio of means, value"


def test_the_bias_of_a_single_coefficient_is_taken_off_as_it_is_known():
    kept = []
    for seed in range(1_500):
        found = series.fit_autoregression(autoregressive(0.7, 60, seed), np.random.default_rng(0))
        kept += found.tolist() if len(found) == 1 else []
    assert len(kept) > 800 and abs(np.mean(kept) - 0.7) < 0.008


def with_groups(sizes, column, seed=0):
    """Arms a and b, groups of these sizes (0: none), each group at its own level."""
    rng = np.random.default_rng(seed)
    parts = []
    for arm, base in (("a", 100.0), ("b", 150.0)):
        for k, n in enumerate(sizes[arm]):
            values = base * (1 + k) + rng.normal(0, 5, n)
            parts.append(pd.DataFrame({"arm": arm, column: f"g{k}", "value": values, "second": np.arange(n)}))
    return pd.concat(parts, ignore_index=True)


def test_with_blocks_the_means_that_are_quoted_are_those_of_blocks_with_both_arms():
    rows = with_groups({"a": (30, 10, 20, 40), "b": (20, 50, 10)}, "block")
    found = arms.compare_arms(rows, "value", block="block", resamples=50)
    assert found.ratio.n == 3 and "1 block with only one arm" in str(found)
    by_block = rows[rows.block != "g3"].groupby(["arm", "block"]).value.mean().groupby("arm").mean()
    assert found.a.mean == pytest.approx(by_block["a"]) and found.b.mean == pytest.approx(by_block["b"])
    assert found.ratio.estimate == pytest.approx(found.b.mean / found.a.mean)


def test_with_a_single_run_in_an_arm_interval_and_estimate_are_of_all_values():
    rows = with_groups({"a": (200, 20), "b": (100,)}, "run")
    found = arms.compare_arms(rows, "value", run="run", time="second", resamples=200)
    assert found.unit_of_replication == "series" and "an arm has a single run" in str(found)
    plain = rows.groupby("arm").value.mean()
    assert found.ratio.estimate == pytest.approx(plain["b"] / plain["a"])
    np.testing.assert_array_equal(found.a.values, rows[rows.arm == "a"].value)


def test_an_end_of_a_ratio_beyond_the_largest_float_is_infinite():
    frame = pd.DataFrame({"arm": list("abab"), "block": [1, 1, 2, 2], "mbps": [1.0, 2.0, 1.0, 9.0]})
    found = arms.compare_arms(frame, "mbps", arm="arm", block="block", level=0.9999)
    assert found.ratio.high == np.inf and "inf" not in found.ratio.formatted and str(found)
