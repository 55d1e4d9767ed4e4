"""Permutation p-values: against a plain loop, statsmodels, and simulated tables without any effect."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats

from wanbench import regions
from wanbench.errors import ParameterError
from wanbench.pages.intercloud_2022 import permutation


def square(rng, n, symmetric=True):
    values = rng.normal(size=(n, n))
    values = values + values.T if symmetric else values
    np.fill_diagonal(values, 0.0)
    return values


def with_gaps(rng, matrix, share):
    gaps = np.triu(rng.random(matrix.shape) < share, 1)
    return np.where(gaps | gaps.T, np.nan, matrix)


def test_p_value_counts_ties_and_has_the_interval_of_a_binomial_share():
    p, low, high = permutation.p_value(30, 999)
    assert p == 31 / 1000
    ends = stats.beta.ppf([0.025, 0.975], [30, 31], [970, 969])
    assert (low, high) == pytest.approx(tuple(ends))
    assert permutation.as_extreme(np.array([0.5, -0.5, 0.4999, np.nan]), 0.5) == 3


@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_mrqap_equals_regressions_one_by_one(gaps):
    rng = np.random.default_rng(8)
    covariate, other = square(rng, 10), square(rng, 10)
    covariate = covariate + 0.5 * other
    y = with_gaps(rng, 0.3 * covariate + other + square(rng, 10), gaps / 2)
    cells, orders = np.triu_indices(10, 1), permutation.relabellings(10, 40, seed=9)
    observed, drawn = permutation.t_statistics(y, covariate, [other], cells, orders)

    def t(left):
        known = np.isfinite(y[cells]) & np.isfinite(left[cells])
        design = np.column_stack([left[cells], np.ones(len(cells[0])), other[cells]])[known]
        return sm.OLS(y[cells][known], design).fit().tvalues[0]

    assert observed == pytest.approx(t(covariate))
    known = np.isfinite(y[cells]) & np.isfinite(covariate[cells])
    weights = sm.OLS(covariate[cells][known], sm.add_constant(other[cells][known])).fit().params
    rest = covariate - weights[0] - weights[1] * other
    plain = []
    for order in orders:
        moved = rest[np.ix_(order, order)]
        fits = np.isfinite(y[cells]) & np.isfinite(covariate[cells])
        masked = np.where(np.isfinite(y) & np.isfinite(covariate), moved, np.nan)
        assert fits.any()
        plain.append(t(masked))
    np.testing.assert_allclose(drawn, plain, rtol=1e-8)


def test_mrqap_keeps_its_level_where_permuting_pairs_does_not():
    """Region effects in outcome and covariate, no link between them beside a common confounder."""
    rng = np.random.default_rng(10)
    n, trials = 12, 300
    cells, refused, naive = np.triu_indices(n, 1), 0, 0
    for trial in range(trials):
        other = square(rng, n)
        effects = [rng.normal(0, 1.5, n) for _ in range(2)]
        x, y = (other + square(rng, n) + e[:, None] + e for e in effects)
        observed, drawn = permutation.t_statistics(y, x, [other], cells, permutation.relabellings(n, 199, trial))
        refused += permutation.p_value(permutation.as_extreme(drawn, observed), 199)[0] <= 0.05
        naive += 2 * stats.t.sf(abs(observed), len(cells[0]) - 3) <= 0.05
    assert 0.02 * trials <= refused <= 0.085 * trials
    assert naive > 0.2 * trials


def test_covariates_that_depend_on_each_other_are_refused():
    rng = np.random.default_rng(11)
    x = square(rng, 8)
    with pytest.raises(ParameterError, match="are linearly dependent"):
        permutation.t_statistics(
            square(rng, 8), x, [2 * x + 1], np.triu_indices(8, 1), permutation.relabellings(8, 5, 0)
        )


def test_the_catalogue_knows_distances_that_no_row_has():
    names = ["aws:eu-west-1", "aws:us-east-1", "gcp:us-west1"]
    row = {"from_region": [names[0]], "to_region": [names[1]], "distance_km": [5000.0]}
    found = permutation.distances(pd.DataFrame(row), names)
    assert found[0, 1] == found[1, 0] == 5000 and found[0, 2] == regions.distance_km(names[0], names[2])
