"""Histograms of latencies, which merge as their records would."""

import numpy as np
import pytest
from latency_samples import histogram_table

from wanbench.errors import ParameterError
from wanbench.ingest.kafka_probe.histograms import encoded
from wanbench.stats.tails import histograms
from wanbench.stats.tails import latencies as tails


def test_merged_histograms_are_the_histogram_of_all():
    values = np.round(np.random.default_rng(5).lognormal(3, 1, 4_000), 3)
    frame = histogram_table([values])
    tail = tails.of_histograms(frame)
    assert [each.tolist() for each in histograms.summed(map(histograms.decoded, frame.histogram))] == [
        each.tolist() for each in histograms.decoded(encoded(values * 1_000))
    ]
    exact = tails.of_values([values])
    assert tail.n == exact.n == 4_000
    for q in (0.5, 0.9, 0.99, 0.999):
        assert tail.quantile(q) == pytest.approx(exact.quantile(q), rel=2e-3)
    middle = np.mean([tails.of_histograms(frame[frame.window == k]).quantile(0.99) for k in range(8)])
    assert middle != pytest.approx(exact.quantile(0.99), rel=1e-3)  # what an average of percentiles would say


def test_histograms_of_runs_have_runs_as_units():
    rng = np.random.default_rng(6)
    runs = [rng.lognormal(shift, 0.5, 1_000) for shift in (2.0, 2.5, 3.0, 3.5)]
    tail = tails.of_histograms(histogram_table(runs))
    assert tail.parts.kind == "runs" and tail.effective_n(0.5) < 40
    assert tails.of_values(runs).effective_n(0.5) == pytest.approx(tail.effective_n(0.5), rel=0.05)


def test_a_text_that_is_no_histogram_is_refused():
    with pytest.raises(ParameterError, match="allowed: an HdrHistogram"):
        histograms.decoded("nonsense")
