"""Intervals of quantiles: by order statistics, of dependent values, of runs that differ."""

import numpy as np
import pytest
from latency_samples import autocorrelated, between
from scipy.special import ndtr
from scipy.stats import norm
from simulations.latency_samples import of_values

from wanbench.errors import ParameterError
from wanbench.methods.tails import quantile_intervals


@pytest.mark.parametrize("q", [0.5, 0.9, 0.99])
def test_intervals_of_independent_values_cover(q):
    rng, tries = np.random.default_rng(int(100 * q)), 2_000
    values = np.sort(rng.exponential(size=(tries, 1_000)), axis=1)
    low, high = quantile_intervals.ranks(1_000, q, 0.95)
    inside = (values[:, low - 1] <= -np.log(1 - q)) & (-np.log(1 - q) <= values[:, high - 1])
    assert between(inside.sum(), tries, 0.95, 0.975)


def test_ranks_are_as_in_the_book():
    """Hahn & Meeker's table A.15 for the median of 100 values at 95 %: ranks 40 and 61."""
    assert quantile_intervals.ranks(100, 0.5, 0.95) == (40, 61)


@pytest.mark.parametrize("q", [0.9, 0.99, 0.999])
def test_the_fewest_values_are_the_fewest(q):
    n = quantile_intervals.min_values(q, 0.95)
    assert None not in quantile_intervals.ranks(n, q, 0.95)
    assert None in quantile_intervals.ranks(n - 1, q, 0.95)


def test_an_effective_number_that_is_the_number_changes_nothing():
    for n, q in ((100, 0.5), (1_000, 0.99), (5_000, 0.999)):
        exact, real = quantile_intervals.ranks(n, q, 0.95), quantile_intervals.ranks(n, q, 0.95, n - 1e-6)
        assert exact == pytest.approx(real, abs=1)


@pytest.mark.parametrize("wrong", [0, 1, 1.5, True, "p99", float("nan")])
def test_a_quantile_lies_between_0_and_1(wrong):
    with pytest.raises(ParameterError, match="allowed: a number between 0 and 1"):
        of_values([np.arange(10.0)]).quantile(wrong)


@pytest.mark.parametrize(("r", "q"), [(0.0, 0.5), (0.7, 0.5), (0.7, 0.99), (0.9, 0.9)])
def test_intervals_of_dependent_values_cover_where_naive_ones_do_not(r, q):
    rng, tries, truth = np.random.default_rng(7), 60, float(np.exp(norm.ppf(q)))
    inside = naive = 0
    for _ in range(tries):
        tail = of_values([autocorrelated(rng, 3_000, r)])
        low, high = tail.interval(q)
        inside += low <= truth <= high
        low, high = tail.independent_interval(q)
        naive += low <= truth <= high
    # a right interval stays below in one of 100 simulations, and one that covers 3 of 4 in nine of ten
    assert between(inside, tries, 0.92, 0.985, errors=3)
    assert (naive / tries < 0.9) == (r > 0)


def test_runs_that_differ_are_the_unit():
    rng, tries = np.random.default_rng(3), 60
    inside = naive = 0
    for _ in range(tries):
        runs = [np.exp(rng.normal(shift, 1, 400)) for shift in rng.normal(0, 0.3, 8)]
        tail = of_values(runs)
        low, high = tail.interval(0.5)
        inside += low <= 1 <= high
        low, high = tail.independent_interval(0.5)
        naive += low <= 1 <= high
    assert between(inside, tries, 0.93, 0.98, errors=3) and naive / tries < 0.8


def test_a_quantile_has_a_standard_error():
    found = of_values([np.random.default_rng(0).exponential(20, 20_000)]).estimate(0.9)
    assert found.standard_error == pytest.approx((0.9 * 0.1 / 20_000) ** 0.5 / (0.1 / 20), rel=0.15)


def test_the_truth_of_the_simulation():
    """The autocorrelated series have the distribution that the tests of coverage say."""
    values = np.log(autocorrelated(np.random.default_rng(0), 200_000, 0.7))
    assert np.quantile(ndtr(values), [0.5, 0.9, 0.99]) == pytest.approx([0.5, 0.9, 0.99], abs=0.01)
