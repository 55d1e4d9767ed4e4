"""Histograms of latencies, which merge as their records would."""

import numpy as np
import pytest
from latency_samples import encoded

from wanbench.errors import ParameterError
from wanbench.methods.tails import distribution


def test_merged_histograms_are_the_histogram_of_all():
    values = np.round(1_000 * np.random.default_rng(5).lognormal(3, 1, 4_000))
    parts = [distribution.decoded(encoded(part)) for part in np.split(values, 8)]
    whole = distribution.decoded(encoded(values))
    assert [each.tolist() for each in distribution.summed(parts)] == [each.tolist() for each in whole]
    assert whole[1].sum() == 4_000


def test_a_text_that_is_no_histogram_is_refused():
    with pytest.raises(ParameterError, match="allowed: an HdrHistogram"):
        distribution.decoded("nonsense")
