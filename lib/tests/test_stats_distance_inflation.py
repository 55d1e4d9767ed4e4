import math

import numpy as np
import pandas as pd
import pytest
from simulations import simulated_surveys

from wanbench.errors import ParameterError
from wanbench.methods.distance.inflation import order_interval, path_inflation, physics_check
from wanbench.methods.regions import dyadic


def inflated(n_regions, seed, factors=(1.5, 1.5), spread=0.0):
    """A survey whose RTT is light times a factor within clouds, and another across them."""
    pairs = simulated_surveys.survey(n_regions, seed=seed)
    same = pairs.from_cloud == pairs.to_cloud
    ends = np.sort(pairs[["from_region", "to_region"]].to_numpy(), axis=1)
    names = sorted(set(pairs.from_region))
    effect = dict(zip(names, np.random.default_rng(seed).normal(0, spread, len(names)), strict=True))
    region = np.array([effect[a] + effect[b] for a, b in ends])
    return pairs.assign(rtt_ms=pairs.light_rtt_ms * np.where(same, *factors) * np.exp(region))


def test_known_inflation_is_recovered_per_cloud_pair():
    result = path_inflation(inflated(24, 1, factors=(1.4, 1.9)), resamples=200)
    medians = result.medians
    assert set(medians) == {"aws-aws", "aws-azure", "aws-gcp", "azure-azure", "azure-gcp", "gcp-gcp", "all"}
    assert medians["aws-aws"].estimate == pytest.approx(1.4)
    assert medians["aws-gcp"].estimate == pytest.approx(1.9)
    assert medians["all"].n == len(result.pairs)
    assert "1.90 times the round trip of light in fibre" in str(result.medians["aws-gcp"])


def test_the_interval_covers_with_effects_of_regions():
    covered = naive = 0
    for seed in range(25):
        median = path_inflation(inflated(15, seed, spread=0.2), resamples=200).medians["all"]
        covered += median.low <= 1.5 <= median.high
        naive += median.naive.low <= 1.5 <= median.naive.high
    assert covered >= 21  # 95 % intervals cover fewer of 25 in one of 140 simulations, 75 % intervals in four of five
    assert naive <= 18


def test_weighted_median_equals_the_median_of_the_drawn_pairs():
    rng = np.random.default_rng(2)
    first, second = np.triu_indices(6, 1)
    values = rng.normal(size=len(first))
    weights = dyadic.region_weights(6, 40, seed=1)
    for row, found in zip(weights, dyadic.weighted_median(values, weights, first, second), strict=True):
        drawn = np.repeat(values, (row[first] * row[second]).astype(int))
        assert found == pytest.approx(np.median(drawn) if len(drawn) else math.nan, nan_ok=True)


def test_a_resample_without_pairs_has_no_median():
    weights = np.array([[3.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    found = dyadic.weighted_median(np.array([1.0, 2.0, 9.0]), weights, *np.triu_indices(3, 1))
    assert math.isnan(found[0]) and found[1] == 2.0


def test_near_pairs_are_left_out_and_counted():
    pairs = inflated(12, 3)
    one, other = pairs.from_region[0], pairs.to_region[0]
    near = pairs.from_region.isin([one, other]) & pairs.to_region.isin([one, other])
    pairs.loc[near, "distance_km"] = 99.0
    result = path_inflation(pairs, resamples=50)
    assert len(result.pairs) == 65
    assert "1 pair nearer than 100 km left out" in str(result.medians["all"])
    with pytest.raises(ParameterError, match="no pair with rtt_ms is 100 km apart"):
        path_inflation(pairs.assign(distance_km=50.0))


def test_few_regions_of_a_cloud_give_no_interval_and_say_so():
    result = path_inflation(inflated(8, 4), resamples=50)
    assert math.isnan(result.medians["gcp-gcp"].low)
    assert "no interval for gcp-gcp" in str(result.medians["gcp-gcp"])
    assert math.isfinite(result.medians["all"].low)


def test_light_rtt_is_needed():
    with pytest.raises(ParameterError, match="light_rtt_ms"):
        path_inflation(inflated(5, 5).drop(columns="light_rtt_ms"))


def test_order_interval_equals_the_binomial_tables():
    low, high = order_interval(np.arange(1, 11), 0.95)
    assert (low, high) == (2, 9)
    assert all(math.isnan(end) for end in order_interval([1, 2, 3], 0.95))


def test_order_interval_covers_the_median():
    rng = np.random.default_rng(6)
    covered = 0
    for _ in range(400):
        low, high = order_interval(rng.exponential(size=25), 0.95)
        covered += low <= math.log(2) <= high
    assert 0.93 * 400 <= covered <= 400


def test_too_fast_pairs_are_named_worst_first():
    pairs = inflated(8, 7)
    pairs.loc[3, "rtt_ms"] = pairs.light_rtt_ms[3] - 1.0
    pairs.loc[10, "rtt_ms"] = pairs.light_rtt_ms[10] - 5.0
    pairs.loc[11, "rtt_ms"] = np.nan
    check = physics_check(pairs)
    assert list(check.offenders.below_by_ms) == pytest.approx([5.0, 1.0])
    assert check.offenders.from_region[0] == pairs.from_region[10]
    assert check.offenders.farthest_possible_km[0] < pairs.distance_km[10]
    message = str(check)
    assert message.startswith("2 of 55 ordered pairs are faster than light in fibre")
    assert pairs.to_region[10] in message and "1 pair without" in message
    assert check.finding("physics").estimate == 2
    assert pairs.to_region[10] in check._repr_html_()


def test_pairs_in_one_place_are_checked_and_never_too_fast():
    pairs = inflated(6, 8)
    pairs.loc[0, ["distance_km", "light_rtt_ms", "rtt_ms"]] = [0.0, 0.0, 0.2]
    assert str(physics_check(pairs)) == "None of 30 ordered pairs is faster than light in fibre."


def test_no_offender_is_a_statement():
    check = physics_check(inflated(6, 8))
    assert check.offenders.empty
    assert str(check) == "None of 30 ordered pairs is faster than light in fibre."


def test_region_names_never_reach_html_unescaped():
    pairs = pd.DataFrame(
        {"from_region": ["<b>x"], "to_region": ["y"], "distance_km": [1000.0], "light_rtt_ms": [9.8], "rtt_ms": [1.0]}
    )
    assert "<b>" not in physics_check(pairs)._repr_html_()
