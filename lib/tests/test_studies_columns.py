"""Studies of table `pairs` name a column that it lacks."""

import pytest
from simulations import simulated_surveys

from wanbench.errors import ParameterError
from wanbench.pages.grids_and_predictions import half_distances
from wanbench.pages.intercloud_2022 import nearest_region


@pytest.mark.parametrize("study", [half_distances, nearest_region])
def test_a_missing_cloud_is_named(study):
    pairs = simulated_surveys.survey(5, seed=1).drop(columns="from_cloud")
    with pytest.raises(ParameterError, match="table pairs lacks column from_cloud"):
        study(pairs)


def test_no_pairs_have_no_half_distances():
    with pytest.raises(ParameterError, match="table pairs has no rows"):
        half_distances(simulated_surveys.survey(5, seed=1).iloc[:0])
