"""Bytes across regions that consumers cause: against simulated tables with a known answer."""

import pytest
from geo_trials import READING, reading

from wanbench import stats
from wanbench.errors import MissingDataError
from wanbench.studies.geo_kafka import curves


def client_rack(made_rates, tables):
    return stats.client_rack(curves(made_rates).trials("consumers"), made_rates, tables)


@pytest.mark.parametrize("far", [0.0, 0.5])
def test_what_producers_and_replicas_cause_is_taken_off(far):
    found = client_rack(*reading(far=far))
    assert found.ratio.estimate == pytest.approx(far, abs=0.02) and found.ratio.low < far < found.ratio.high
    assert found.ratio.n == 12 and "client.rack" in str(found)
    assert len(found.figure().data) == 4 and len(found.shown()) == 3


def test_fiellers_interval_holds_the_ratio_as_often_as_it_says():
    inside = []
    for seed in range(16):
        made_rates, tables = reading(3, far=0.3, noise=0.01, seed=seed)
        one = client_rack(made_rates, tables).ratio
        inside.append(one.low < 0.3 < one.high)
    # 95 % intervals hold fewer than 13 of 16 in one of 140 simulations
    assert sum(inside) >= 13


def test_consumers_that_cause_nothing_measurable_leave_the_ratio_open():
    found = client_rack(*reading(2, noise=0.3))
    assert "no measurable bytes" in str(found) and not found.ratio.written_interval


def test_without_one_of_the_three_ways_there_is_no_answer():
    some = {name: READING[name] for name in ("baseline", "leaders")}
    with pytest.raises(MissingDataError, match="no consumers"):
        client_rack(*reading(ways=some))


def test_without_all_links_there_is_no_answer():
    made_rates, tables = reading()
    pair = tables["link_samples"].link_from == "gcp:a"
    with pytest.raises(MissingDataError, match="counters of all links"):
        client_rack(made_rates, tables | {"link_samples": tables["link_samples"][pair]})
