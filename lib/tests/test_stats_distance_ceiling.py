"""Throughput with a ceiling: the likelihood against scipy's optimiser, and simulations where least squares is wrong."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm
from simulations import simulated_surveys

from wanbench.errors import ParameterError
from wanbench.pages.grids_and_predictions import ceiling
from wanbench.pages.grids_and_predictions.ceiling import tobit

HALF_KM = 3000.0
CAP_BPS = 1e9


def survey(n=20, *, seed=0, cap=CAP_BPS, region=0.0, top=4e9, spread=0.25, capped=("aws", "azure", "gcp")):
    """Throughput that halves every 3,000 km, cut at a ceiling of the cloud that sends."""
    pairs = simulated_surveys.survey(n, seed=seed)
    rng = np.random.default_rng(seed)
    effect = dict(zip(sorted(set(pairs.from_region)), rng.normal(0, region, n), strict=True))
    log = np.log(top) - np.log(2) * pairs.distance_km / HALF_KM + rng.normal(0, spread, len(pairs))
    log = log + pairs.from_region.map(effect) + pairs.to_region.map(effect)
    jitter = rng.uniform(0.97, 1.0, len(pairs))
    limit = np.where(pairs.from_cloud.isin(capped), cap * jitter, np.inf)
    return pairs.assign(throughput_bps=np.minimum(np.exp(log), limit))


def test_the_likelihood_is_that_of_scipys_optimiser_for_every_weighting():
    rng = np.random.default_rng(1)
    design = np.column_stack([np.ones(200), rng.uniform(0, 10, 200)])
    y = 3 - 0.4 * design[:, 1] + 0.5 * rng.normal(size=200)
    limit = rng.uniform(1.5, 2.5, 200)
    censored = y >= limit
    held = np.minimum(y, limit)
    weights = np.vstack([np.ones(200), rng.integers(0, 3, (3, 200))]).astype(float)
    values, spreads = tobit(design, held, censored, weights)

    def loss(theta, weight):
        z = (held - design @ theta[:2]) / np.exp(theta[2])
        return -(weight * np.where(censored, norm.logsf(z), norm.logpdf(z) - theta[2])).sum()

    for row, value, spread in zip(weights, values, spreads, strict=True):
        peer = minimize(loss, [3, -0.4, -0.7], args=(row,), method="BFGS").x
        np.testing.assert_allclose([*value, np.log(spread)], peer, atol=2e-5)


def test_without_censored_rows_it_is_least_squares():
    rng = np.random.default_rng(2)
    design = np.column_stack([np.ones(50), rng.normal(size=50)])
    y = design @ [1, 2] + rng.normal(size=50)
    values, spread = tobit(design, y, np.zeros(50, bool))
    plain = np.linalg.lstsq(design, y, rcond=None)[0]
    np.testing.assert_allclose(values[0], plain, atol=1e-8)
    assert spread[0] == pytest.approx(np.sqrt(((y - design @ plain) ** 2).mean()))


def test_a_start_far_away_ends_in_the_same_maximum():
    rng = np.random.default_rng(3)
    design = np.column_stack([np.ones(80), rng.normal(size=80)])
    y = np.minimum(design @ [1, 2] + rng.normal(size=80), 1.5)
    near = tobit(design, y, y >= 1.5)
    far = tobit(design, y, y >= 1.5, start=(np.array([-80.0, 50.0]), 0.01))
    np.testing.assert_allclose(near[0], far[0], atol=1e-6)


def test_weightings_without_a_maximum_are_nan():
    design = np.column_stack([np.ones(6), np.arange(6.0)])
    y, censored = np.array([5.0, 5, 5, 3, 2, 1.5]), np.array([True, True, True, False, False, False])
    values, spread = tobit(design, y, censored, np.array([[1.0] * 6, [1, 1, 1, 1, 0, 0]]))
    assert np.isfinite(values[0]).all() and np.isnan(spread[1]) and np.isnan(values[1]).all()
    with pytest.raises(ParameterError, match="too few"):
        tobit(design, y, np.ones(6, bool))


def test_least_squares_is_biased_and_the_ceiling_mends_it():
    found = [ceiling.fit_with_ceiling(survey(seed=seed)) for seed in range(8)]
    half = np.array([each.half_distance.estimate for each in found])
    plain = np.array([each.plain_half_distance.estimate for each in found])
    assert abs(half.mean() / HALF_KM - 1) < 0.02
    assert plain.min() > 1.15 * HALF_KM
    assert all(each.plain_half_distance.low > HALF_KM for each in found)
    assert sum(each.half_distance.low < HALF_KM < each.half_distance.high for each in found) >= 7


def test_the_interval_by_region_covers_where_the_naive_one_fails():
    hits, naive = 0, 0
    for seed in range(25):
        slope = ceiling.fit_with_ceiling(survey(12, seed=100 + seed, region=0.3, spread=0.15)).slope
        truth = -np.log10(2) * 1000 / HALF_KM
        hits += slope.low <= truth <= slope.high
        naive += slope.naive.low <= truth <= slope.naive.high
    assert hits >= 21 and naive < hits


def test_a_ceiling_is_found_per_sending_cloud_and_only_there():
    found = ceiling.fit_with_ceiling(survey(seed=4, capped=("gcp",)))
    held = found.rows[found.rows.censored]
    assert held.from_region.str.startswith("gcp").all() and len(held) > 20
    sent = found.rows[found.rows.from_cloud == "gcp"]
    assert ceiling.find_ceiling(sent.value, sent.from_region) == pytest.approx(1e9, rel=0.01)


def test_smooth_throughput_has_no_ceiling():
    alarms = 0
    for seed in range(30):
        pairs = survey(seed=seed, cap=np.inf)
        for _, part in pairs.groupby("from_cloud"):
            alarms += np.isfinite(ceiling.find_ceiling(part.throughput_bps, part.from_region))
    assert alarms <= 1
    found = ceiling.fit_with_ceiling(survey(seed=1, cap=np.inf))
    assert not found.rows.censored.any() and "no value is at a ceiling" in str(found)
    assert found.half_distance.estimate == pytest.approx(found.plain_half_distance.estimate, rel=1e-6)


def test_rows_left_out_and_few_regions_are_said():
    pairs = survey(6, seed=7, cap=np.inf)
    found = ceiling.fit_with_ceiling(pairs.assign(throughput_bps=pairs.throughput_bps.mask(pairs.index == 0)))
    assert "1 row of the table of pairs left out" in str(found.slope) and "the interval itself is rough" in str(
        found.slope
    )
    assert len(found.rows) == 29
    lone = ceiling.fit_with_ceiling(survey(4, seed=7, cap=np.inf))
    assert np.isnan(lone.slope.low) and "no interval from 4 regions" in str(lone.slope)


def test_three_regions_have_an_open_naive_interval_rather_than_an_error():
    found = ceiling.fit_with_ceiling(simulated_surveys.survey(3, seed=3))
    assert np.isnan(found.slope.low) and found.slope.naive.low < found.slope.naive.high


@pytest.mark.parametrize("outliers", [1, 2])
def test_a_few_values_above_a_ceiling_do_not_hide_it(outliers):
    pairs = survey(seed=4, capped=("aws", "gcp"))
    sent = pairs.index[pairs.from_cloud == "aws"]
    assert outliers <= 0.02 * len(sent)
    plain = ceiling.fit_with_ceiling(pairs)
    pairs.loc[sent[:outliers], "throughput_bps"] = 1.3e9 + 1e8 * np.arange(outliers)
    found = ceiling.fit_with_ceiling(pairs)
    part = pairs.loc[sent]
    assert ceiling.find_ceiling(part.throughput_bps, part.from_region) == pytest.approx(1e9, rel=0.01)
    n = [int(each.rows.censored[each.rows.from_cloud == "aws"].sum()) for each in (found, plain)]
    assert n[0] >= n[1] - outliers
