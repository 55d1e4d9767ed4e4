"""Bytes across regions, bounds and placement: against simulated tables with a known answer."""

import numpy as np
import pandas as pd
import pytest
from geo_trials import rates, tables_of, trial

from wanbench import stats
from wanbench.errors import MissingDataError
from wanbench.studies.geo_kafka import bounds, curves

WAYS = {
    "baseline": {"client_rack": "region"},
    "leaders": {},
    "nobody": {"consumer_groups": 0, "client_rack": "region"},
}


KERNEL = {"replica.socket.receive.buffer.bytes": -1}


def made(n=4, far=0.0, noise=0.002, seed=0, ways=WAYS, brokers=KERNEL):
    """Producers and replicas cause 2.8 bytes per byte, readers from leaders 0.7, those with client.rack `far` of it."""
    rng, rows, crossing = np.random.default_rng(seed), [], []
    for block in range(1, n + 1):
        for name, changes in ways.items():
            rows.append(trial(name, 4e7, block=block, broker_settings=brokers, **changes))
            more = {"baseline": 0.7 * far, "leaders": 0.7, "nobody": 0.0}[name]
            crossing.append((2.8 + more) * (1 + rng.normal(0, noise)))
    found = rates(rows)
    return found, tables_of(found, crossing)


def crossings(made_rates, tables):
    return stats.crossings(curves(made_rates).trials("consumers"), made_rates, tables)


@pytest.mark.parametrize("far", [0.0, 0.5])
def test_what_producers_and_replicas_cause_is_taken_off(far):
    found = crossings(*made(far=far))
    assert found.ratio.estimate == pytest.approx(far, abs=0.02) and found.ratio.low < far < found.ratio.high
    assert found.ratio.n == 12 and "client.rack" in str(found)
    assert len(found.figure().data) == 4 and len(found.shown()) == 3


def test_fiellers_interval_holds_the_ratio_as_often_as_it_says():
    inside = []
    for seed in range(60):
        made_rates, tables = made(3, far=0.3, noise=0.01, seed=seed)
        one = crossings(made_rates, tables).ratio
        inside.append(one.low < 0.3 < one.high)
    assert 0.85 < np.mean(inside) <= 1


def test_consumers_that_cause_nothing_measurable_leave_the_ratio_open():
    found = crossings(*made(2, noise=0.3))
    assert "no measurable bytes" in str(found) and not found.ratio.written_interval


def test_without_one_of_the_three_ways_there_is_no_answer():
    some = {name: WAYS[name] for name in ("baseline", "leaders")}
    with pytest.raises(MissingDataError, match="no consumers"):
        crossings(*made(ways=some))


def test_without_all_links_there_is_no_answer():
    made_rates, tables = made()
    pair = tables["link_samples"].link_from == "gcp:a"
    with pytest.raises(MissingDataError, match="counters of all links"):
        crossings(made_rates, tables | {"link_samples": tables["link_samples"][pair]})


def test_the_lowest_bound_is_named_and_what_was_reached_of_it():
    made_rates, tables = made()
    found = bounds(curves(made_rates), made_rates, tables)
    assert set(found.trials.limit) == {"machine"} and found.trials.busy_percent.to_numpy() == pytest.approx(
        50
    )
    assert found.reached.estimate == pytest.approx(0.5)
    share = found.of("leaders")
    assert share.link.estimate == pytest.approx(4e7 / 1e8 * (5 / 9) * 1500 / 1448)
    assert "Processors were 50 % busy" in str(share) and share.lowest.n == 4
    assert found.trials.fullest_link.notna().all() and len(found.figure().data) == 2
    assert found.table().set_index("setting").limits["nobody"] == "machine"
    with pytest.raises(MissingDataError, match="no trial of tuned"):
        found.of("tuned")


def test_a_trial_beyond_its_bound_is_cautioned():
    """Kafka's own buffer of replica fetchers lets 29 Mbit/s pass over 70 ms, and these trials claim 40."""
    made_rates, tables = made(brokers={})
    found = bounds(curves(made_rates), made_rates, tables)
    assert set(found.trials.limit) == {"replication"} and "12 trials reached more than a bound allows" in str(
        found
    )


def test_without_metrics_the_machine_is_no_bound_and_a_caution_says_so():
    made_rates, tables = made()
    found = bounds(curves(made_rates), made_rates, {name: tables[name] for name in ("links", "placements")})
    assert "machine" not in set(found.trials.limit) and "how busy" in str(found)


def test_without_placements_there_are_no_bounds():
    made_rates, tables = made()
    with pytest.raises(MissingDataError, match="placements"):
        bounds(curves(made_rates), made_rates, {"links": tables["links"]})


def test_placement_is_judged_over_all_topics():
    made_rates, tables = made()
    found = stats.placement(made_rates, tables)
    assert found.balanced.estimate == found.spread.estimate == 1 and found.balanced.n == 12
    assert len(found.shown()) == 9 and found.shown().leader[0] == "1 (gcp:a)"
    assert len(found.figure().data) == 2 and "brokers" in found.topics
    placed = tables["placements"]
    first = placed.test_id == placed.test_id.iloc[0]
    one = placed.assign(leads=placed.leads & ~first | (first & (placed.broker == 1)), region="gcp:a")
    moved = stats.placement(made_rates, {"placements": one})
    assert moved.balanced.estimate == pytest.approx(11 / 12) and moved.topics.moved.tolist() == [6] + [0] * 11
    with pytest.raises(MissingDataError):
        stats.placement(made_rates, {"placements": pd.DataFrame()})
