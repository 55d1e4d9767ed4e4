"""The dependence in a series: its autoregression, and its effective number of values."""

import numpy as np
import pytest
from statsmodels.tsa.ar_model import AutoReg

from wanbench.methods.time import series


def autoregressive(phi, n, seed, mean=100.0):
    rng = np.random.default_rng(seed)
    noise = rng.normal(0, 10 * np.sqrt(1 - phi**2), n + 200)
    values = np.empty(n + 200)
    values[0] = noise[0]
    for k in range(1, n + 200):
        values[k] = phi * values[k - 1] + noise[k]
    return mean + values[200:]


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
        found = series.fit_autoregression(values, np.random.default_rng(0))
        assert np.isfinite(found).all() and 1 <= series.effective_n(len(values), found) <= len(values)
    flat = series.least_squares(np.full((2, 50), 3.0), 4)
    np.testing.assert_array_equal(flat, np.zeros((2, 4)))


@pytest.mark.parametrize(("phi", "worth"), [(0.0, 1.0), (0.6, 0.25), (0.9, 1 / 19)])
def test_effective_number_of_values(phi, worth):
    drawn = [autoregressive(phi, 2_000, seed) for seed in range(8)]
    found = [series.effective_n(2_000, series.fit_autoregression(each, np.random.default_rng(0))) for each in drawn]
    assert np.median(found) == pytest.approx(2_000 * worth, rel=0.25)


def test_the_bias_of_short_persistent_series_is_taken_off():
    plain, corrected = [], []
    for seed in range(60):
        values = autoregressive(0.8, 60, seed)
        centred = values - values.mean()
        plain.append(centred[1:] @ centred[:-1] / (centred @ centred))
        corrected.append(series.fit_autoregression(values, np.random.default_rng(seed)).sum())
    assert np.mean(plain) < 0.75 and abs(np.mean(corrected) - 0.8) < 0.035


def test_the_bias_of_a_single_coefficient_is_taken_off_as_it_is_known():
    kept = []
    for seed in range(1_500):
        found = series.fit_autoregression(autoregressive(0.7, 60, seed), np.random.default_rng(0))
        kept += found.tolist() if len(found) == 1 else []
    assert len(kept) > 800 and abs(np.mean(kept) - 0.7) < 0.008
