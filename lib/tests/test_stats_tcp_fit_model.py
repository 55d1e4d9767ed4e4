"""One model of throughput with intervals: planted parameters come back, models without a unit are refused."""

import numpy as np
import pytest
from simulations import simulated_surveys

from wanbench.errors import ParameterError
from wanbench.methods.tcp.models import bytes_sent
from wanbench.pages.intercloud_2022.fit_model import fit_model


def finite_survey(seed=5, window_bytes=2e6, capacity_bps=8e8):
    pairs = simulated_surveys.survey(14, seed=seed, clouds=("aws", "gcp"), intercept_ms=8.0, pair_ms=0.5)
    window = np.minimum(window_bytes, capacity_bps * pairs.rtt_ms / 8000)
    sent = bytes_sent(10, pairs.rtt_ms.to_numpy(), window_bytes=window.to_numpy())
    noise = np.random.default_rng(seed).normal(0, 0.01, len(pairs))
    return pairs.assign(throughput_bps=np.minimum(8 * sent / 10, capacity_bps) * np.exp(noise))


def test_slow_start_is_told_from_a_small_window():
    pairs = finite_survey()
    finite = fit_model(pairs, "finite transfer", transfer_s=10)
    assert finite.parameters["W"].estimate == pytest.approx(2e6, rel=0.01)
    assert finite.parameters["C"].estimate == pytest.approx(8e8, rel=0.03)
    assert finite.parameters["W"].low < 2e6 < finite.parameters["W"].high
    plain = fit_model(pairs, "window-limited")
    assert plain.parameters["W"].estimate < 0.97 * finite.parameters["W"].estimate
    assert "finite transfer" in finite.figure().layout.title.text


def test_a_model_without_a_number_of_its_own_is_refused():
    with pytest.raises(ParameterError, match="model is 'log-distance'; allowed: 'window-limited'"):
        fit_model(finite_survey(), "log-distance")
    with pytest.raises(ParameterError, match="model is 'finite transfer'"):
        fit_model(finite_survey(), "finite transfer")
