"""Placement of leaders and replicas: against simulated tables with a known answer."""

import pandas as pd
import pytest
from geo_trials import reading

from wanbench.errors import MissingDataError
from wanbench.pages import geo_kafka


def test_placement_is_judged_over_all_topics():
    made_rates, tables = reading()
    found = geo_kafka.placement(made_rates, tables)
    assert found.balanced.estimate == found.spread.estimate == 1 and found.balanced.n == 12
    assert len(found.formatted_table()) == 3
    placed = tables["placements"]
    first = placed.test_id == placed.test_id.iloc[0]
    one = placed.assign(leads=placed.leads & ~first | (first & (placed.broker == 1)), region="gcp:a")
    moved = geo_kafka.placement(made_rates, {"placements": one})
    assert moved.balanced.estimate == pytest.approx(11 / 12) and moved.topics.moved.tolist() == [6] + [0] * 11
    few = placed[~first | (placed.partition < 8)]  # leaders of 3, 3 and 2
    assert geo_kafka.placement(made_rates, {"placements": few}).balanced.estimate == 1
    other = first & (placed.partition == 1)  # of 4, 2 and 3
    leads = placed.leads & ~other | (other & (placed.replica == 2))
    off = geo_kafka.placement(made_rates, {"placements": placed.assign(leads=leads)})
    assert off.balanced.estimate == pytest.approx(11 / 12) and off.topics.moved.tolist() == [1] + [0] * 11
    with pytest.raises(MissingDataError):
        geo_kafka.placement(made_rates, {"placements": pd.DataFrame()})


def test_replicas_that_lie_everywhere_but_lag_are_not_in_sync():
    made_rates, tables = reading()
    placed = tables["placements"]
    behind = (placed.test_id == placed.test_id.iloc[0]) & (placed.partition == 3) & (placed.replica == 2)
    found = geo_kafka.placement(made_rates, {"placements": placed.assign(in_sync=~behind)})
    assert found.spread.estimate == 1 and found.in_sync.estimate == pytest.approx(11 / 12)
