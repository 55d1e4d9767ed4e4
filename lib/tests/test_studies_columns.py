"""Studies of table `pairs` name a column that it lacks."""

import pytest
from simulations import simulated_surveys

from wanbench.errors import ParameterError
from wanbench.pages.intercloud_2022 import nearest_region


def test_a_missing_cloud_is_named():
    pairs = simulated_surveys.survey(5, seed=1).drop(columns="from_cloud")
    with pytest.raises(ParameterError, match="table pairs lacks column from_cloud"):
        nearest_region(pairs)
