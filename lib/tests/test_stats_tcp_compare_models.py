"""Models compared on left-out regions: planted truths win, ties are ties, odd pairs are named."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import least_squares
from simulations import simulated_surveys

from wanbench.errors import ParameterError
from wanbench.methods.tcp import knee
from wanbench.methods.tcp.models import Paths, bytes_sent, cubic_bps, throughput_models
from wanbench.pages.intercloud_2022 import robust_fit
from wanbench.pages.intercloud_2022.compare_models import compare_models


def survey(seed=1, n=16, bps=None, **settings):
    """A survey whose throughput follows `bps` of (rtt_ms, distance_km), if that is given."""
    pairs = simulated_surveys.survey(n, seed=seed, **settings)
    if bps is not None:
        noise = np.random.default_rng(seed).normal(0, 0.05, len(pairs))
        pairs["throughput_bps"] = bps(pairs.rtt_ms, pairs.distance_km) * np.exp(noise)
    return pairs


def verdicts(comparison) -> dict:
    return dict(zip(comparison.scores.model, comparison.scores.verdict, strict=True))


def model_named(name, **settings):
    return next(model for model in throughput_models(**settings) if model.name == name)


def points(n=60, seed=0, noise=0.2):
    rng = np.random.default_rng(seed)
    paths = Paths(rng.uniform(2, 300, n), rng.uniform(10, 15_000, n))
    y = np.log(np.minimum(300e6, 8 * 3e6 / (paths.rtt_ms / 1000))) + rng.normal(0, noise, n)
    return paths, y


@pytest.mark.parametrize("seed", range(4))
def test_the_fit_of_the_window_is_that_of_the_exact_solver(seed):
    paths, y = points(seed=seed)
    numbers, scale = robust_fit.fit(model_named("window-limited"), paths, y)
    order = np.argsort(paths.rtt_ms)
    exact = knee.fit(np.log(paths.rtt_ms)[order], y[order])
    assert_allclose(numbers, [exact.falling - np.log(8000), exact.level], rtol=0, atol=2e-3)
    assert scale == pytest.approx(exact.scale, rel=0.01)


@pytest.mark.parametrize("name", ["log-log RTT", "log-distance"])
def test_the_fit_of_a_line_is_scipys(name):
    paths, y = points(noise=0.5)
    y[:4] -= 4
    model = model_named(name)
    numbers, scale = robust_fit.fit(model, paths, y)
    peer = least_squares(
        lambda n: (y - model.curve(n[None], paths)[0]) / scale, numbers + 0.3, loss="huber", f_scale=1.345
    )
    assert_allclose(numbers, peer.x, atol=1e-3)


@pytest.mark.parametrize("name", ["window-limited", "PFTK", "CUBIC", "finite transfer", "log-log RTT"])
def test_fits_without_a_region_are_fits_of_the_others(name):
    paths, y = points(40)
    model = model_named(name, transfer_s=10.0)
    numbers, scale = robust_fit.fit(model, paths, y)
    weights = np.ones((3, 40))
    for row in range(3):
        weights[row, row * 8 : row * 8 + 8] = 0
    together, cost = robust_fit.refit(model, paths, y, weights, numbers, scale)
    for row in range(3):
        kept = weights[row] > 0
        part = Paths(paths.rtt_ms[kept], paths.distance_km[kept])
        alone, smallest = robust_fit.refit(model, part, y[kept], np.ones((1, kept.sum())), numbers, scale)
        assert cost[row] == pytest.approx(smallest[0], rel=1e-4)
        assert_allclose(model.curve(together[[row]], part), model.curve(alone, part), atol=5e-3)


@pytest.mark.parametrize(
    ("best", "bps"),
    [
        ("CUBIC", lambda rtt, km: np.minimum(400e6, cubic_bps(1e-5, rtt))),
        ("log-distance", lambda rtt, km: 400e6 * 10 ** (-km / 6000)),
        ("log-log RTT", lambda rtt, km: 2e9 * rtt**-0.6),
        ("finite transfer", lambda rtt, km: 8 / 2 * bytes_sent(2, rtt, window_bytes=np.minimum(8e6, 5e4 * rtt))),
    ],
)
def test_the_model_that_made_the_data_predicts_left_out_regions_best(best, bps):
    found = compare_models(survey(bps=bps, n=20, region_ms=8), transfer_s=2)
    assert found.scores.model[0] == best
    assert verdicts(found)["constant"] == "worse"
    assert found.scores.error_factor.iloc[0] == pytest.approx(1.04, abs=0.02)


def test_one_curve_by_two_names_is_a_tie_and_is_said_to_be_one():
    found = compare_models(survey(n=20, region_log_sd=0.1))
    assert found.scores.model[0] == "window-limited"
    assert found.scores.same_curve_as.iloc[0].split(", ")[0] == "Mathis"
    assert verdicts(found)["Mathis"] == "tied with the best"
    assert "Mathis" in found.sentence.split("same curve")[0]
    assert "finite transfer was not fitted" in str(found)


def test_worse_models_that_are_one_curve_are_named_once():
    found = compare_models(survey(bps=lambda rtt, km: 400e6 * 10 ** (-km / 6000), n=20, region_ms=8))
    alike = found.scores.set_index("model").same_curve_as
    assert verdicts(found)["Mathis"] == "worse" and "window-limited" in alike["Mathis"]
    worse = found.sentence.partition("Worse")[2]
    assert worse.count("same curve") == 1 and worse.count("Mathis") == worse.count("window-limited") == 1


def test_noise_alone_makes_no_model_worse_than_the_constant():
    pairs = survey(n=12, bps=lambda rtt, km: 1e8)
    rng = np.random.default_rng(3)
    pairs["throughput_bps"] = 1e8 * np.exp(rng.normal(0, 0.5, len(pairs)))
    assert verdicts(compare_models(pairs))["constant"] != "worse"


@pytest.mark.parametrize("name", ["window-limited", "log-log RTT"])
def test_a_left_out_region_tells_nothing_to_its_own_prediction(name):
    pairs = survey(n=8, region_log_sd=0.3)
    found = compare_models(pairs).pairs
    paths, y = (Paths(found.rtt_ms.to_numpy(), found.distance_km.to_numpy()), np.log(found.throughput_bps.to_numpy()))
    model = model_named(name)
    numbers, scale = robust_fit.fit(model, paths, y)
    row = found.iloc[5]
    predicted = []
    for region in (row.region_a, row.region_b):
        rest = ((found.region_a != region) & (found.region_b != region)).to_numpy()
        others = Paths(paths.rtt_ms[rest], paths.distance_km[rest])
        alone, _ = robust_fit.refit(model, others, y[rest], np.ones((1, rest.sum())), numbers, scale)
        predicted.append(model.curve(alone, Paths(paths.rtt_ms[[5]], paths.distance_km[[5]]))[0, 0])
    whole = model.curve(numbers[None], paths)[0, 5]
    assert abs(np.mean(predicted) - whole) > 0.01, "the two regions matter, or this shows nothing"
    assert np.log(row[f"{name}: ratio"]) == pytest.approx(y[5] - np.mean(predicted), abs=2e-3)


def test_planted_pairs_are_explained_by_none_and_named():
    pairs = survey(n=16, region_log_sd=0.05)
    assert compare_models(pairs).unexplained.empty
    ends = {pairs.from_region[3], pairs.to_region[3]}
    planted = pairs.from_region.isin(ends) & pairs.to_region.isin(ends)
    pairs.loc[planted, "throughput_bps"] /= 8
    found = compare_models(pairs).unexplained
    assert [set(row) for row in found[["region_a", "region_b"]].to_numpy()] == [ends]


def test_ordered_rows_count_twice_and_keep_their_direction():
    pairs = survey(n=10)
    one, two = (compare_models(pairs, ordered=ordered) for ordered in (False, True))
    assert len(two.pairs) == 2 * len(one.pairs) == len(pairs)
    key = ["region_a", "region_b"]
    merged = two.pairs.merge(pairs, left_on=key, right_on=["from_region", "to_region"])
    assert_allclose(merged.throughput_bps_x, merged.throughput_bps_y)
    assert two.scores.error_factor[0] == pytest.approx(one.scores.error_factor[0], rel=0.1)


def test_the_interval_counts_regions_not_pairs():
    pairs = survey(n=20, region_log_sd=0.4, pair_log_sd=0.05)
    scores = compare_models(pairs).scores
    best = scores.iloc[0]
    ratios = compare_models(pairs).pairs["window-limited: ratio"]
    naive = 2 * 1.96 * np.abs(np.log(ratios)).std() / np.sqrt(len(ratios))
    assert best.low < best.error_factor < best.high
    assert np.log(best.high / best.low) > 1.5 * naive


def test_what_cannot_be_compared_is_refused():
    pairs = survey(n=8)
    with pytest.raises(ParameterError, match="transfer_s is -1; allowed: a number above 0"):
        compare_models(pairs, transfer_s=-1)
    with pytest.raises(ParameterError, match="at least 5 regions"):
        compare_models(survey(n=4))


def test_rows_left_out_are_counted():
    pairs = survey(n=8)
    pairs.loc[0, "throughput_bps"] = np.nan
    found = compare_models(pairs)
    assert "1 row of the table of pairs left out" in str(found)


def test_numbers_per_receiving_cloud_explain_directions_that_differ():
    pairs = survey(n=15)
    to = pairs.to_region.str.partition(":")[0]
    window = to.map({"aws": 0.8e6, "azure": 2e6, "gcp": 3e6})
    noise = np.random.default_rng(0).normal(0, 0.03, len(pairs))
    pairs["throughput_bps"] = 8 * window / (pairs.rtt_ms / 1000) * np.exp(noise)
    one = compare_models(pairs, ordered=True)
    each = compare_models(pairs, ordered=True, by_receiver=True)
    assert one.scores.error_factor[0] > 1.3
    assert one.estimates[0].n == 105 and "210 ordered pairs of 15 regions" in one.sentence
    assert each.scores.error_factor[0] == pytest.approx(1.025, abs=0.01)
    fitted = each.scores.set_index("model").fitted["window-limited"]
    assert "aws: W = 80" in fitted and "gcp: W = 3.0" in fitted
    assert "separately for each receiving cloud" in str(each)


def test_a_pair_counted_in_both_directions_says_no_more_than_once():
    pairs = survey(n=12)
    both = pairs.assign(throughput_bps=1e9 / pairs.rtt_ms**0.7 * (1 + pairs.distance_km % 7 / 10))
    once, twice = (compare_models(both, ordered=each).scores for each in (False, True))
    columns = ["error_factor", "low", "high"]
    np.testing.assert_allclose(once[columns], twice[columns], rtol=1e-4)
