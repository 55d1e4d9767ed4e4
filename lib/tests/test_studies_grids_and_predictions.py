"""Predictions checked with pairs that others measured."""

import pytest
from simulations import simulated_surveys

from wanbench.errors import ParameterError
from wanbench.pages import grids_and_predictions


def test_predictions_are_checked_with_pairs_that_others_measured():
    pairs = simulated_surveys.survey(20, seed=3, pair_ms=4.0)
    ends = pairs[["from_region", "to_region"]].min(axis=1) + pairs[["from_region", "to_region"]].max(axis=1)
    lacking = ends.isin(ends.drop_duplicates().sample(40, random_state=1))
    found = grids_and_predictions.check_predictions(pairs[~lacking], pairs)
    assert len(found.pairs) == 40 and 0.75 <= found.coverage.estimate <= 1
    assert found.ratio.low < 1 < found.ratio.high
    twice = grids_and_predictions.check_predictions(pairs[~lacking], pairs.assign(rtt_ms=3 * pairs.rtt_ms))
    assert twice.coverage.estimate < 0.1 and twice.ratio.estimate == pytest.approx(3 * found.ratio.estimate)
    assert len(found.figure().data[0].x) + len(found.figure().data[1].x) == 40
    with pytest.raises(ParameterError, match="others has no pair that is not in pairs"):
        grids_and_predictions.check_predictions(pairs, pairs)


def test_predictions_that_are_too_high_are_said_before_the_share_of_intervals_that_hold():
    pairs = simulated_surveys.survey(20, seed=3, pair_ms=4.0)
    ends = pairs[["from_region", "to_region"]].min(axis=1) + pairs[["from_region", "to_region"]].max(axis=1)
    lacking = ends.isin(ends.drop_duplicates().sample(40, random_state=1))
    found = grids_and_predictions.check_predictions(pairs[~lacking], pairs.assign(rtt_ms=0.8 * pairs.rtt_ms))
    rows = found.pairs
    assert found.estimates[0] is found.ratio and found.sentence.startswith(found.ratio.sentence)
    below, above = int((rows.measured_ms < rows.low_ms).sum()), int((rows.measured_ms > rows.high_ms).sum())
    assert below and below + above == int((~rows.covered).sum())
    assert f"Of the RTTs outside their interval, {below} lie below and {above} above" in found.sentence
    assert f"{100 * (rows.predicted_ms > rows.measured_ms).mean():.0f}" in found.sentence.rpartition("too high")[0]
