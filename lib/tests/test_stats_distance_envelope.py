"""The lower envelope: against linear programming and statsmodels, and on surveys with a known one."""

import numpy as np
import pytest
from scipy.optimize import linprog
from simulations import simulated_surveys
from statsmodels.regression.quantile_regression import QuantReg

from wanbench.errors import ParameterError
from wanbench.methods.regions.pairs import unordered
from wanbench.pages.intercloud_2022 import envelope
from wanbench.pages.intercloud_2022.envelope import check_loss, quantile_lines


def minimum_loss(x, y, weights, tau):
    """The minimum weighted check loss of any line, by linear programming."""
    used = weights > 0
    x, y, weights = x[used], y[used], weights[used]
    one = np.eye(len(x))
    equal = np.column_stack([np.ones_like(x), x, one, -one])
    cost = np.concatenate([[0, 0], tau * weights, (1 - tau) * weights])
    bounds = [(None, None)] * 2 + [(0, None)] * (2 * len(x))
    return linprog(cost, A_eq=equal, b_eq=y, bounds=bounds, method="highs").fun


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("rounded", [False, True])
def test_lines_reach_the_minimum_loss_for_every_weighting(seed, rounded):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 40))
    x = rng.normal(size=n)
    y = 2 * x + rng.standard_t(2, size=n)
    if rounded:
        x, y = np.round(x, 1), np.round(y, 1)
    weights = np.vstack([np.ones(n), rng.multinomial(n, np.full(n, 1 / n), 6)])
    tau = (0.05, 0.25, 0.5, 0.9)[seed % 4]
    lines = quantile_lines(x, y, weights, tau)
    reached = check_loss(x, y, weights, tau, lines)
    for row, line, loss in zip(weights, lines, reached, strict=True):
        if np.isfinite(line).all():
            assert loss == pytest.approx(minimum_loss(x, y, row, tau), rel=1e-6, abs=1e-6)
        else:
            assert np.ptp(x[row > 0]) == 0


def test_agrees_with_statsmodels():
    sample = unordered(simulated_surveys.survey(20, seed=1, region_ms=5, pair_ms=6), "rtt_ms")
    x, y = sample.frame.distance_km.to_numpy() / 1000, sample.frame.value.to_numpy()
    for tau in (0.05, 0.5):
        peer = QuantReg(y, np.column_stack([np.ones_like(x), x])).fit(q=tau, max_iter=5000).params
        line = quantile_lines(x, y, np.ones((1, len(x))), tau)
        np.testing.assert_allclose(line[0], peer, rtol=1e-3)
        assert check_loss(x, y, 1.0, tau, line)[0] <= check_loss(x, y, 1.0, tau, peer[None])[0] + 1e-9


def test_weights_are_copies():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=25), rng.normal(size=25)
    weights = rng.integers(0, 4, 25)
    copied = quantile_lines(np.repeat(x, weights), np.repeat(y, weights), np.ones((1, weights.sum())), 0.2)
    np.testing.assert_allclose(quantile_lines(x, y, weights[None], 0.2), copied, atol=1e-9)


def test_a_weighting_with_one_distance_has_no_line():
    lines = quantile_lines(
        np.array([1.0, 1, 2]), np.array([1.0, 2, 3]), np.array([[1.0, 1, 0], [0, 0, 0], [1, 0, 1]]), 0.5
    )
    assert np.isnan(lines[:2]).all()
    np.testing.assert_allclose(lines[2], [-1, 2])


def test_light_itself_is_its_envelope():
    pairs = simulated_surveys.survey(12, seed=3).assign(rtt_ms=lambda frame: frame.light_rtt_ms)
    found = envelope.lower_envelope(pairs, resamples=100)
    assert found.ratio.estimate == pytest.approx(1.0)
    assert found.intercept.estimate == pytest.approx(0.0, abs=1e-6)
    assert found.ratio.high - found.ratio.low < 1e-6


def test_a_known_envelope_is_recovered():
    rng = np.random.default_rng(4)
    pairs = simulated_surveys.survey(30, seed=4)
    ends = np.sort(pairs[["from_region", "to_region"]].to_numpy(dtype=object), axis=1)
    extra = {tuple(end): rng.exponential(1.0) for end in np.unique(ends.astype(str), axis=0)}
    late = np.array([extra[tuple(map(str, end))] for end in ends])
    rtt = 5 + 12 * pairs.distance_km / 1000 + late * 40
    found = envelope.lower_envelope(pairs.assign(rtt_ms=rtt), resamples=300)
    assert found.slope.low < 12 < found.slope.high
    assert found.intercept.low < 5 + 40 * -np.log(0.95) < found.intercept.high
    assert found.ratio.estimate == pytest.approx(found.slope.estimate / 9.7934, rel=1e-4)
    below = (found.sample.frame.value < found.band(found.sample.frame.distance_km).rtt_ms).mean()
    assert 0.04 <= below <= 0.05
    assert "times the slope of light in fibre" in str(found)


def test_the_interval_covers_and_is_wider_than_the_naive_one():
    widths, covered = [], 0
    for seed in range(25):
        pairs = simulated_surveys.survey(14, seed=seed, region_ms=6, pair_ms=3, intercept_ms=100)
        slope = envelope.lower_envelope(pairs, resamples=200).slope
        widths.append([slope.naive.high - slope.naive.low, slope.high - slope.low])
        covered += slope.low <= 14 <= slope.high
    naive, ours = np.mean(widths, axis=0)
    assert naive < ours
    assert covered >= 21


def test_few_pairs_and_few_regions_are_said():
    found = envelope.lower_envelope(simulated_surveys.survey(6, seed=7), resamples=50)
    assert "5 % of 15 pairs are 0.8: the envelope depends on very few" in str(found)
    lone = envelope.lower_envelope(simulated_surveys.survey(4, seed=7), resamples=50)
    assert np.isnan(lone.slope.low) and "no interval from 4 regions" in str(lone)
    same = simulated_surveys.survey(6, seed=7).assign(distance_km=100.0)
    with pytest.raises(ParameterError, match="different distance"):
        envelope.lower_envelope(same)


def test_the_figure_draws_envelope_and_light():
    found = envelope.lower_envelope(simulated_surveys.survey(10, seed=8), resamples=50)
    figure = found.figure()
    names = [trace.name for trace in figure.data]
    assert "light in fibre" in names and "5 % envelope" in names
    light = next(trace for trace in figure.data if trace.name == "light in fibre")
    assert light.y[1] / light.x[1] * 1000 == pytest.approx(9.7934, rel=1e-4)
    assert figure.layout.meta["csv"].startswith("distance_km,rtt_ms,low,high")
    assert len(found.table()) == 3 and "Lower envelope" in found._repr_html_()


def test_an_envelope_without_resamples_is_refused():
    with pytest.raises(ParameterError, match="resamples is 0; allowed: a whole number of at least 40"):
        envelope.lower_envelope(simulated_surveys.survey(8, seed=1), resamples=0)
