"""Robust variances of least squares against statsmodels and Welch, and how often their intervals cover."""

from itertools import product

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats

from wanbench.methods.factorial.inference import robust_variance


def test_the_variance_is_hc2():
    rng = np.random.default_rng(1)
    design = sm.add_constant(rng.normal(size=(20, 3)))
    fit = sm.OLS(design @ [1, 2, 3, 4] + rng.normal(size=20) * np.exp(design[:, 1]), design).fit()
    found = robust_variance(design, fit.resid, np.arange(20))
    np.testing.assert_allclose(found.covariance, fit.get_robustcov_results("HC2").cov_params(), rtol=1e-8)


def test_two_groups_give_the_interval_of_welch():
    rng = np.random.default_rng(2)
    few, many = rng.normal(0, 5, 4), rng.normal(1, 1, 9)
    group = np.repeat([0, 1], [4, 9])
    design = np.column_stack([group == 0, group == 1]).astype(float)
    residual = np.concatenate([few - few.mean(), many - many.mean()])
    found, apart = robust_variance(design, residual, group), np.array([-1.0, 1.0])
    half = stats.t.ppf(0.975, found.freedom(apart)) * np.sqrt(apart @ found.covariance @ apart)
    welch = stats.ttest_ind(many, few, equal_var=False).confidence_interval(0.95)
    assert half == pytest.approx((welch.high - welch.low) / 2, rel=1e-9)


def test_a_run_that_fits_itself_has_the_variance_of_the_others():
    design = np.array([[1.0, 0], [1, 0], [1, 0], [1, 1]])
    found = robust_variance(design, np.array([-1.0, 0, 1, 0]), np.arange(4))
    assert np.isfinite(found.covariance).all() and 1 <= found.freedom(np.array([0.0, 1.0])) <= 2


@pytest.mark.parametrize(
    ("noisy", "replicates", "minimum"), [(1.0, 2, 0.93), (1.0, 4, 0.93), (5.0, 2, 0.90), (5.0, 4, 0.93)]
)
def test_one_noisy_combination_leaves_the_intervals_their_coverage(noisy, replicates, minimum):
    levels = np.array(list(product([-0.5, 0.5], repeat=2)) * replicates)
    design = np.column_stack([np.ones(len(levels)), levels])
    combination = np.tile(np.arange(4), replicates)
    rng, unit, inside = np.random.default_rng(3), np.array([0.0, 1.0, 0.0]), 0
    for _ in range(1000):
        error = rng.normal(size=len(levels)) * np.where(combination == 0, noisy, 1.0)
        params, *_ = np.linalg.lstsq(design, error)
        found = robust_variance(design, error - design @ params, combination)
        reach = stats.t.ppf(0.975, found.freedom(unit)) * np.sqrt(found.covariance[1, 1])
        inside += abs(params[1]) <= reach
    assert inside >= 1000 * minimum
