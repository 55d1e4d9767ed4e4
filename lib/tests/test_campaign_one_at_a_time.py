"""One factor at a time: which trials, in which order, and what buffers come to."""

import re
from dataclasses import replace
from itertools import pairwise

import pytest

from wanbench.errors import ParameterError
from wanbench.measure.experiments import KafkaLoad, KafkaTrial
from wanbench.measure.labs import matrix_links
from wanbench.measure.links import LinkSettings
from wanbench.measure.plan import make_trials
from wanbench.pages.geo_kafka.design import at_level, bandwidth_delay_bytes, one_at_a_time

LINKS = matrix_links({("a", "b"): 70, ("a", "c"): 40, ("b", "c"): 40}, rate_bps=1e8)
BASELINE = KafkaTrial(
    KafkaLoad(replication=3, client_rack="region", topic_settings={"min.insync.replicas": 2}),
    client_regions=("a", "b", "c"),
)
FACTORS = {
    "buffers": ["default", "bdp", "2 bdp"],
    "batch_bytes": [16_384, 65_536],
    "client_rack": [None, "region"],
    "security": ["tls"],
}


def planned(**changes):
    return one_at_a_time(**{"baseline": BASELINE, "factors": FACTORS, "replicates": 4, "links": LINKS} | changes)


def test_each_level_is_tried_once_in_each_block_and_the_baselines_own_is_not_repeated():
    settings = {"baseline", "buffers default", "buffers bdp", "buffers 2 bdp", "batch_bytes 65536", "client_rack none"}
    trials = planned()
    for block in (1, 2, 3, 4):
        names = [trial.setting for trial in trials if trial.block == block]
        assert sorted(names) == sorted(settings | {"security tls"})
    assert [trial.block for trial in trials] == sorted(trial.block for trial in trials)
    (no_rack,) = {trial.experiments[0] for trial in trials if trial.setting == "client_rack none"}
    assert no_rack == replace(BASELINE, load=replace(BASELINE.load, client_rack=None))


def test_trials_of_equal_brokers_stand_together_and_no_restart_falls_between_two_blocks_of_a_pair():
    for seed in range(5):
        trials = planned(seed=seed)
        of = [(trial.block, trial.experiments[0].cluster_settings) for trial in trials]
        assert of[0][1] == (None,) * 3, "the cluster begins with its own settings"
        for block in (1, 2, 3, 4):
            in_block = [settings for number, settings in of if number == block]
            changes = sum(one != other for one, other in pairwise(in_block))
            assert changes == len(set(in_block)) - 1
        last, first = ([settings for number, settings in of if number == block] for block in (1, 2))
        assert last[-1] == first[0]


def test_the_order_follows_from_the_seed():
    order = [trial.setting for trial in planned(seed=3)]
    assert order == [trial.setting for trial in planned(seed=3)] != [trial.setting for trial in planned(seed=4)]


def test_restarts_are_part_of_the_time_that_a_plan_expects():
    trials = planned(factors={"buffers": ["bdp"]}, replicates=2)
    plan = make_trials(trials, from_region="a", to_region="b", more_regions=["c"])
    restart_s = plan.expected_s() - sum(plan.slots_s())
    assert restart_s == pytest.approx(2 * trials[0].experiments[0].set_up_s(trials[1].experiments[0]))


def test_buffers_are_the_product_of_the_longest_rtt_and_the_lowest_rate():
    assert bandwidth_delay_bytes(LINKS) == 875_000
    slow = {**LINKS, ("c", "b"): LinkSettings(20, rate_bps=4e7)}
    assert bandwidth_delay_bytes(slow) == 350_000
    twice = at_level(BASELINE, "buffers", "2 bdp", links=LINKS)
    assert dict(twice.broker_settings) == {
        "socket.send.buffer.bytes": "1750000",
        "socket.receive.buffer.bytes": "1750000",
        "replica.socket.receive.buffer.bytes": "1750000",
    }
    clients = {"send.buffer.bytes": "1750000", "receive.buffer.bytes": "1750000"}
    assert dict(twice.load.producer_settings) == dict(twice.load.consumer_settings) == clients
    by_kernel = at_level(twice, "buffers", "kernel")
    assert {value for _, value in (*by_kernel.broker_settings, *by_kernel.load.producer_settings)} == {"-1"}
    back = at_level(twice, "buffers", "default")
    assert back.broker_settings is None and back.load.producer_settings == ()
    assert dict(back.load.consumer_settings) == {"receive.buffer.bytes": "65536"}, "not the tool's own default"


def test_settings_of_brokers_and_topics_are_factors_by_kafkas_names():
    tuned = at_level(at_level(BASELINE, "buffers", "bdp", links=LINKS), "num.replica.fetchers", 4)
    assert dict(tuned.broker_settings)["num.replica.fetchers"] == "4" and len(tuned.broker_settings) == 4
    assert len(at_level(tuned, "num.replica.fetchers", None).broker_settings) == 3
    strict = at_level(BASELINE, "min.insync.replicas", 3)
    assert dict(strict.load.topic_settings) == {"min.insync.replicas": "3"} and strict.broker_settings is None


def test_factors_can_be_varied_together():
    [trial] = [
        trial
        for trial in planned(factors={"payload, compression": [["random", "lz4"]]}, replicates=1)
        if trial.setting != "baseline"
    ]
    load = trial.experiments[0].load
    assert (trial.setting, load.payload, load.compression) == ("payload random, compression lz4", "random", "lz4")


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"factors": {"batches": [1]}}, "factor is 'batches'; allowed: buffers, a field of KafkaLoad"),
        ({"factors": {"acks": "all"}}, "factor acks is 'all'; allowed: a list of levels"),
        ({"factors": ["acks"]}, "factors is ['acks']; allowed: a mapping"),
        (
            {"factors": {"buffers": ["3 bdp"]}},
            "level of buffers is '3 bdp'; allowed: 'default', 'bdp', '2 bdp', 'kernel'",
        ),
        ({"factors": {"buffers": ["bdp"]}, "links": None}, "need links that have a rate; none has"),
        ({"factors": {"acks, linger_ms": ["all"]}}, "level of acks, linger_ms is 'all'; allowed: a list of 2"),
        ({"factors": {"compression": ["lzo"]}}, "compression is 'lzo'; allowed: 'none'"),
        ({"factors": {"security": ["ssl"]}}, "security is 'ssl'; allowed: 'plain', 'tls', 'mtls' or None"),
        ({"factors": {"gateway_bps": [10]}}, "gateway_bps is 10; allowed: a number from 1000"),
        ({"factors": {"broker.rack": ["x"]}}, "the cluster sets broker.rack itself"),
        ({"factors": {"client_regions": [["a", "a"]]}}, "client_regions is ('a', 'a'); allowed: names of regions"),
        ({"replicates": 0}, "replicates is 0"),
    ],
)
def test_what_cannot_be_planned_is_refused(changes, message):
    with pytest.raises(ParameterError, match=re.escape(message)):
        planned(**changes)


def test_further_settings_are_part_of_every_block():
    tuned = at_level(BASELINE, "batch_bytes, compression", [131_072, "lz4"])
    trials = planned(others={"tuned": tuned})
    own = [trial for trial in trials if trial.setting == "tuned"]
    assert [trial.block for trial in own] == [1, 2, 3, 4] and all(each.experiments == (tuned,) for each in own)
    assert len(trials) == len(planned()) + 4
