"""Histograms of latencies, which merge as their records would."""

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from latency_samples import encoded

from wanbench.errors import ParameterError
from wanbench.methods.tails import distribution
from wanbench.read.ingest.kafka_open_loop import HIGHEST_US, encoded_counts


def test_merged_histograms_are_the_histogram_of_all():
    values = np.round(1_000 * np.random.default_rng(5).lognormal(3, 1, 4_000))
    parts = [distribution.decoded(encoded(part)) for part in np.split(values, 8)]
    whole = distribution.decoded(encoded(values))
    assert [each.tolist() for each in distribution.summed(parts)] == [each.tolist() for each in whole]
    assert whole[1].sum() == 4_000


@pytest.mark.parametrize(
    "values", [[], [0], [1, 2_047, 2_048, 2_049, 4_095, 4_096, 1_000_003], [HIGHEST_US - 1, HIGHEST_US, 2**62]], ids=str
)
def test_counts_are_encoded_and_decoded_as_by_hdrhistogram(values):
    counts = {value: 3 + k for k, value in enumerate(values)}
    by_library = HdrHistogram(1, HIGHEST_US, 3)
    for value, n in counts.items():
        by_library.record_value(min(value, HIGHEST_US), n)
    encoded_by_us = encoded_counts(counts)
    assert encoded_by_us == by_library.encode().decode()
    steps = [(step.value_iterated_to, step.count_at_value_iterated_to) for step in by_library.get_recorded_iterator()]
    assert list(zip(*map(np.ndarray.tolist, distribution.decoded(encoded_by_us)), strict=True)) == steps


def test_a_text_that_is_no_histogram_is_refused():
    with pytest.raises(ParameterError, match="allowed: an HdrHistogram"):
        distribution.decoded("nonsense")
