"""Prediction of pairs that were not measured, against simulated surveys and closed forms."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from simulations import simulated_surveys

from wanbench import regions
from wanbench.errors import ParameterError
from wanbench.pages.grids_and_predictions import prediction, prediction_fits, region_effects

PAIRS = simulated_surveys.survey(18, seed=3, region_ms=6, pair_ms=3, region_log_sd=0.2)
NAMES = sorted(set(PAIRS.from_region))
FEW = PAIRS[PAIRS.from_region.isin(NAMES[:10]) & PAIRS.to_region.isin(NAMES[:10])]


def fitted(seed=0, n=9):
    rng = np.random.default_rng(seed)
    first, second = np.triu_indices(n, 1)
    x = rng.uniform(0, 12, len(first))
    u = rng.normal(0, 5, n)
    y = 10 + 12 * x + u[first] + u[second] + rng.normal(0, 2, len(first))
    return region_effects.fit_effects(np.column_stack([np.ones_like(x), x]), first, second, n, y), first, second


def again(fit, kept):
    """The ridge regression on some of the pairs, solved afresh."""
    design, y, weights = fit.design[kept], fit.y[kept], fit.weights[kept]
    penalty = np.diag([0.0] * fit.n_fixed + [fit.ratio] * (design.shape[1] - fit.n_fixed))
    return np.linalg.solve((design.T * weights) @ design + penalty, (design.T * weights) @ y)


def test_leaving_out_equals_fitting_anew():
    fit, first, second = fitted()
    pairs, regional, both = fit.without_pairs(), fit.without_regions(), fit.without_ends()
    everything = np.ones(len(fit.y), dtype=bool)
    np.testing.assert_allclose(fit.coefficients, again(fit, everything), rtol=1e-8)
    for k in (0, 7, 30):
        np.testing.assert_allclose(pairs[k], again(fit, np.arange(len(fit.y)) != k), rtol=1e-7, atol=1e-9)
        ends = np.isin(first, [first[k], second[k]]) | np.isin(second, [first[k], second[k]])
        np.testing.assert_allclose(both[k], again(fit, ~ends), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(regional[4], again(fit, (first != 4) & (second != 4)), rtol=1e-7, atol=1e-9)
    assert regional[4][2 + 4] == pytest.approx(0, abs=1e-12)


def test_variances_are_those_of_restricted_maximum_likelihood():
    """Without odd pairs to weigh down, the criterion is smallest where a fine grid of dense likelihoods says."""
    fit = fitted(seed=2, n=14)[0]
    fixed = fit.design[:, :2]
    effect = fit.design[:, 2:]

    def minus_twice(log_ratio):
        cover = np.diag(1 / fit.weights) + effect @ effect.T / np.exp(log_ratio)
        inverse = np.linalg.inv(cover)
        bread = fixed.T @ inverse @ fixed
        residual = fit.y - fixed @ np.linalg.solve(bread, fixed.T @ inverse @ fit.y)
        rest = residual @ inverse @ residual
        return (len(fit.y) - 2) * np.log(rest) + np.linalg.slogdet(cover)[1] + np.linalg.slogdet(bread)[1]

    grid = np.linspace(-6, 4, 201)
    minimum = grid[np.argmin([minus_twice(each) for each in grid])]
    assert np.log(fit.ratio) == pytest.approx(minimum, abs=0.1)


def test_without_effects_it_is_hubers_line():
    rng = np.random.default_rng(5)
    first, second = np.triu_indices(16, 1)
    x = rng.uniform(0, 12, len(first))
    y = 10 + 12 * x + rng.standard_t(3, len(first))
    y[:4] += 200
    fit = region_effects.fit_effects(np.column_stack([np.ones_like(x), x]), first, second, 16, y)
    peer = sm.RLM(y, sm.add_constant(x), M=sm.robust.norms.HuberT(1.345)).fit()
    np.testing.assert_allclose(fit.coefficients[:2], peer.params, rtol=0.03)


def test_weighted_ends_count_the_unit_at_infinity():
    values = np.arange(1.0, 20.0)[None, :]
    weights = prediction_fits.unit_weights(np.arange(19))
    assert prediction_fits.upper_end(values, weights, 0.9)[0] == 18
    assert prediction_fits.lower_end(values, weights, 0.9)[0] == 2
    assert prediction_fits.upper_end(values, weights, 0.96)[0] == np.inf
    shared = prediction_fits.unit_weights(np.array([0, 0, 0, 1]))
    np.testing.assert_allclose(shared, [1 / 9, 1 / 9, 1 / 9, 1 / 3])
    with_gap = np.array([[1.0, np.nan, 3.0, 4.0]])
    assert prediction_fits.upper_end(with_gap, np.full(4, 0.2), 0.5)[0] == 3.0


def test_jackknife_plus_without_a_model_is_the_order_statistic():
    """With the same fit everywhere and one scale the interval is centre plus the 90 % score."""
    deviation = np.linspace(-1, 1, 40)
    scale = prediction_fits.spread(deviation, np.zeros(40))
    assert scale.up == pytest.approx(scale.down)
    scores = scale.scores(deviation, np.zeros(40))
    ends = prediction_fits.upper_end(5 + scores[None, :] * scale.up * scale.of([0.0]), np.full(40, 1 / 41), 0.9)
    assert ends[0] == pytest.approx(5 + np.sort(np.abs(deviation))[36])


@pytest.mark.parametrize("situation", ["both", "one", "none"])
def test_each_situation_knows_what_it_knows(situation):
    one, other = NAMES[1], NAMES[7]
    gone = {"both": [], "one": [one], "none": [one, other]}[situation]
    pairs = PAIRS[~PAIRS.from_region.isin(gone) & ~PAIRS.to_region.isin(gone)]
    truth = PAIRS[(PAIRS.from_region == one) & (PAIRS.to_region == other)].iloc[0]
    apart = ~(pairs.from_region.isin([one, other]) & pairs.to_region.isin([one, other]))
    found = prediction.fit_predictor(pairs[apart]).predict(one, other, distance_km=truth.distance_km)
    assert found.situation == situation
    assert found.rtt.low <= truth.rtt_ms <= found.rtt.high
    assert found.throughput.low <= truth.throughput_bps <= found.throughput.high
    assert found.rtt.low >= truth.light_rtt_ms
    assert prediction.SITUATIONS[situation] in str(found)


def test_a_measured_pair_is_left_out_of_its_own_prediction():
    one, other = NAMES[2], NAMES[5]
    spoiled = PAIRS.copy()
    own = spoiled.from_region.isin([one, other]) & spoiled.to_region.isin([one, other])
    spoiled.loc[own, "rtt_ms"] = 9_000.0
    found, clean = (prediction.what_if(pairs, one, other) for pairs in (spoiled, PAIRS))
    assert found.rtt.estimate == clean.rtt.estimate and found.rtt.high == clean.rtt.high
    assert found.measured["rtt_ms"] == 9_000.0 and "9,000 ms" in str(found)


def test_catalogue_regions_can_be_asked_for():
    names = regions.select(clouds=["aws", "gcp"])["name"].tolist()[:14]
    pairs = pd.DataFrame(permutations(names, 2), columns=["from_region", "to_region"])
    pairs["distance_km"] = [regions.distance_km(*ends) for ends in pairs.itertuples(index=False)]
    noise = np.random.default_rng(1).normal(0, 1, len(pairs)) ** 2
    pairs["rtt_ms"] = 3 + 1.6 * regions.light_rtt_ms(pairs.distance_km) + noise
    found = prediction.what_if(pairs, names[0], "azure:westeurope")
    assert found.situation == "one" and found.throughput is None
    assert found.distance_km == pytest.approx(regions.distance_km(names[0], "azure:westeurope"))
    assert found.rtt.estimate == pytest.approx(3 + 1.6 * found.light_rtt_ms, rel=0.1)


def test_unknown_regions_are_named_with_what_is_allowed():
    with pytest.raises(ParameterError, match=r"aws:nowhere.*Also allowed: the regions of the pairs: aws:region-000"):
        prediction.what_if(PAIRS, "aws:nowhere", NAMES[0])
    with pytest.raises(ParameterError, match=r"to_region is '.*'; allowed: a region other"):
        prediction.what_if(PAIRS, NAMES[0], NAMES[0])
    sparse = PAIRS[~(PAIRS.from_region.isin(NAMES[:2]) & PAIRS.to_region.isin(NAMES[:2]))]
    with pytest.raises(ParameterError, match="give distance_km"):
        prediction.what_if(sparse, NAMES[0], NAMES[1])
    with pytest.raises(ParameterError, match="distance_km is -1; allowed: a number from 0 to"):
        prediction.fit_predictor(sparse).predict(NAMES[0], NAMES[1], distance_km=-1)
    few = PAIRS[PAIRS.from_region.isin(NAMES[:4]) & PAIRS.to_region.isin(NAMES[:4])]
    with pytest.raises(ParameterError, match="at least 5 regions"):
        prediction.fit_predictor(few)
    with pytest.raises(ParameterError, match="lacks column rtt_ms"):
        prediction.fit_predictor(PAIRS.drop(columns="rtt_ms"))


def test_too_few_regions_leave_the_interval_open_and_say_so():
    few = simulated_surveys.survey(8, seed=1, region_ms=4)
    found = prediction.fit_predictor(few).predict("aws:new", few.from_region[0], distance_km=4_000)
    assert found.rtt.high == np.inf and found.rtt.low >= found.light_rtt_ms
    assert "90 % needs 9 regions; there are 8" in str(found)


def test_never_below_light():
    pairs = PAIRS.assign(rtt_ms=PAIRS.light_rtt_ms + 0.5)
    predictor = prediction.fit_predictor(pairs)
    found = predictor.predict(NAMES[0], "aws:far", distance_km=30_000)
    assert found.rtt.low >= found.light_rtt_ms and found.rtt.estimate >= found.light_rtt_ms


def test_throughput_takes_the_base_that_errs_less():
    assert prediction.fit_predictor(simulated_surveys.survey(18, seed=3)).fits.base == "window"
    rng = np.random.default_rng(0)
    straight = PAIRS.assign(throughput_bps=10 ** (9 - PAIRS.distance_km / 6_000 + rng.normal(0, 0.02, len(PAIRS))))
    assert prediction.fit_predictor(straight).fits.base == "distance"


@pytest.mark.filterwarnings("error")
def test_columns_that_do_not_vary_are_refused_or_predicted_without_a_warning():
    with pytest.raises(ParameterError, match="all have the same"):
        prediction.fit_predictor(PAIRS.assign(distance_km=1_000.0))
    found = prediction.what_if(PAIRS.assign(throughput_bps=1e8), *NAMES[:2])
    assert found.throughput.estimate == pytest.approx(1e8)
