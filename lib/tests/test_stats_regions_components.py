"""Variance components and the jackknife they scale, against the dense formulas and against known answers."""

import numpy as np
import pytest
from simulations import simulated_surveys

from wanbench.methods.regions import jackknife
from wanbench.methods.regions.jackknife import Components, Sums


def table(n_regions=9, seed=0, **effects):
    """Design (standardised), y, ends, and U of a simulated survey with some pairs missing."""
    pairs = simulated_surveys.sample(n_regions, seed=seed, places="continents", missing=0.2, **effects)
    x, y = pairs.frame.distance_km.to_numpy(), pairs.frame.value.to_numpy()
    design = np.column_stack([np.ones_like(x), (x - x.mean()) / x.std()])
    one = np.zeros((len(x), n_regions))
    one[np.arange(len(x)), pairs.first] = one[np.arange(len(x)), pairs.second] = 1
    return design, (y - y.mean()) / y.std(), pairs.first, pairs.second, one


EFFECTS = {"region_ms": 12.0, "region_slope": 1.0, "pair_ms": 15.0, "intercept_ms": 400.0}
WORKING = Components(0.5, np.array([[0.2, 0.1], [0.1, 0.3]]))


def covariance(design, one):
    """Of y under `WORKING`, written out."""
    total = WORKING.pair * np.eye(len(design))
    for a in range(2):
        for b in range(2):
            total += WORKING.region[a, b] * (one * design[:, [a]]) @ (one * design[:, [b]]).T
    return total


def test_the_equations_equal_the_dense_ones():
    design, y, first, second, one = table(**EFFECTS)
    forms = np.array([[[1, 0], [0, 0]], [[0, 1], [1, 0]], [[0, 0], [0, 1]]], dtype=float)
    sums = Sums.of(design, y, first, second, 9)
    matrix, right = jackknife._equations(sums, WORKING.pair, WORKING.region, forms)
    inverse = np.linalg.inv(covariance(design, one))
    p = inverse - inverse @ design @ np.linalg.inv(design.T @ inverse @ design) @ design.T @ inverse
    spread = [one * design[:, [k]] for k in range(2)]
    kernels = [np.eye(len(y))] + [
        sum(form[a, b] * spread[a] @ spread[b].T for a in range(2) for b in range(2)) for form in forms
    ]
    np.testing.assert_allclose(matrix, [[np.trace(p @ a @ p @ b) for b in kernels] for a in kernels])
    np.testing.assert_allclose(right, [y @ p @ kernel @ p @ y for kernel in kernels])


def test_leaving_out_equals_the_dense_formulas():
    design, y, first, second, one = table(**EFFECTS)
    left = jackknife.leave_out(Sums.of(design, y, first, second, 9), WORKING)
    rows = []
    for region in range(9):
        keep = np.where(one[:, region] == 0)[0]
        row = np.zeros((2, len(y)))
        row[:, keep] = np.linalg.pinv(design[keep])
        rows.append(row)
        np.testing.assert_allclose(left.without_region[region], row @ y)
    rows, omega = np.array(rows), covariance(design, one)
    rows = rows - rows.mean(axis=0)
    np.testing.assert_allclose(left.model_without, np.einsum("gap,pq,hbq->gahb", rows, omega, rows), atol=1e-12)
    pseudo = np.linalg.pinv(design)
    np.testing.assert_allclose(left.model, pseudo @ omega @ pseudo.T)


def test_scale_makes_the_jackknife_unbiased_and_its_freedom_is_that_of_its_scatter():
    design, _, first, second, one = table(n_regions=10, seed=3, **EFFECTS)
    root = np.linalg.cholesky(covariance(design, one))
    rng, slope, found = np.random.default_rng(0), (0.0, 1.0), []
    for _ in range(1500):
        sums = Sums.of(design, root @ rng.normal(size=len(design)), first, second, 10)
        found.append(jackknife.leave_out(sums, WORKING))
    variances = np.array([each.spread(slope)[0] for each in found])
    slopes = np.array([each.coefficients[1] for each in found])
    freedom = found[0].spread(slope)[1]
    assert variances.mean() == pytest.approx(found[0].model[1, 1], rel=0.08)
    assert slopes.var() == pytest.approx(found[0].model[1, 1], rel=0.1)
    assert 2 * variances.mean() ** 2 / variances.var() == pytest.approx(freedom, rel=0.25)


def test_known_components_are_recovered():
    design, y, first, second, one = table(n_regions=60, seed=5, **EFFECTS)
    rng = np.random.default_rng(1)
    effects = rng.multivariate_normal([0, 0], [[4.0, 1.0], [1.0, 2.0]], 60)
    y = design @ [3.0, 5.0] + rng.normal(0, 1.5, len(y))
    y = y + ((one[:, :, None] * design[:, None, :]) * effects).sum(axis=(1, 2))
    found = jackknife.reml(Sums.of(design, y, first, second, 60))
    assert found.pair == pytest.approx(1.5**2, rel=0.1)
    np.testing.assert_allclose(found.region, np.cov(effects.T), rtol=0.35, atol=0.3)


def test_no_scatter_and_no_regions_are_no_components():
    design, y, first, second, _ = table(**EFFECTS)
    assert (jackknife.reml(Sums.of(design, design @ [1.0, 2.0], first, second, 9)).region == 0).all()
    noise = np.random.default_rng(2).normal(size=len(y))
    found = jackknife.reml(Sums.of(design, noise, first, second, 9))
    assert np.trace(found.region) < 0.2 and found.pair == pytest.approx(1.0, abs=0.4)
    assert np.linalg.eigvalsh(found.region)[0] >= -1e-12


def test_share_and_freedom_of_a_mean():
    first, second = np.triu_indices(30, 1)
    rng, shares, freedoms = np.random.default_rng(4), [], []
    for spread in (0.0, 1.0):
        found = [
            jackknife.share_and_freedom(
                (spread * (u := rng.normal(size=30)))[first] + spread * u[second] + rng.normal(size=len(first)),
                first + 7,
                second + 7,
            )
            for _ in range(20)
        ]
        shares.append(np.mean([share for share, _ in found]))
        freedoms.append(np.median([freedom for _, freedom in found]))
    assert shares[0] > 0.95 and shares[1] == pytest.approx(1 / 3, abs=0.08)
    assert freedoms == pytest.approx([29, 29], abs=2)
    assert jackknife.share_and_freedom(np.zeros(3), np.array([0, 0, 1]), np.array([1, 2, 2]))[0] == 1.0
    assert np.isnan(jackknife.share_and_freedom(np.ones(2), np.array([0, 0]), np.array([1, 1]))[1])
