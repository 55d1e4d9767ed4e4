"""Systems side by side: what a preset may say, which trials come of it, and in which order."""

import re
from collections import Counter
from itertools import groupby, pairwise

import pytest

from wanbench.errors import ParameterError
from wanbench.measure.experiments import BrokerMetrics, HostMetrics, KafkaLoad
from wanbench.measure.links import LinkSettings
from wanbench.measure.plan import make_trials
from wanbench.pages.tail_latency.design.systems import System, read_systems, systems_by_steps

LOAD = KafkaLoad(target_records_per_s=1000, duration_s=5)
STEPS = {"target_records_per_s": [500, 1000, 2000]}
PLAIN = [{"name": "a", "load": {"linger_ms": 0}}, {"name": "b"}]
RESTARTED = [*PLAIN, {"name": "c", "security": "tls"}, {"name": "d", "cluster": "far"}]


def by_block(trials):
    return [[trial.experiments[0] for trial in block] for _, block in groupby(trials, lambda trial: trial.block)]


def cells(block):
    return Counter((trial.system, trial.load.target_records_per_s) for trial in block)


def test_every_system_is_at_every_step_once_in_each_block_with_what_differs():
    trials = systems_by_steps(read_systems(PLAIN), LOAD, STEPS, replicates=2)
    blocks = by_block(trials)
    wanted = {(name, rate): 1 for name in "ab" for rate in STEPS["target_records_per_s"]}
    assert [cells(block) for block in blocks] == [wanted] * 2
    assert {(trial.system, trial.load.linger_ms) for trial in blocks[0]} == {("a", 0), ("b", LOAD.linger_ms)}
    names = Counter(trial.setting for trial in trials)
    assert names["a, target_records_per_s 500"] == 2 and len(names) == 6


def test_systems_take_turns_at_each_step_where_nothing_is_restarted():
    for seed in range(5):
        for block in by_block(systems_by_steps(read_systems(PLAIN), LOAD, STEPS, seed=seed)):
            rates = [rate for rate, _ in groupby(trial.load.target_records_per_s for trial in block)]
            assert sorted(rates) == [500, 1000, 2000], "both systems at one step before the next"


def test_the_order_is_random_and_follows_from_the_seed():
    def order(seed):
        return [trial.setting for trial in systems_by_steps(PLAIN, LOAD, STEPS, replicates=10, seed=seed)]

    assert order(1) == order(1) != order(2)
    firsts = [block[0] for block in by_block(systems_by_steps(PLAIN, LOAD, STEPS, replicates=40))]
    assert len({(one.system, one.load.target_records_per_s) for one in firsts}) == 6, "any may come first"


def test_a_restart_comes_once_in_a_block_and_none_between_two_blocks_of_a_pair():
    for seed in range(5):
        blocks = by_block(systems_by_steps(RESTARTED, LOAD, STEPS, replicates=4, seed=seed))
        own = [[trial.cluster_settings for trial in block if trial.cluster is None] for block in blocks]
        assert own[0][0] == (None,) * 3, "the cluster begins with its own settings"
        for block in own:
            assert sum(one != other for one, other in pairwise(block)) == 1
        assert own[0][-1] == own[1][0] and own[2][-1] == own[3][0]
        assert all(set(cells(block).values()) == {1} and len(cells(block)) == 12 for block in blocks)


def test_steps_of_an_external_cluster_are_spread_over_the_groups():
    [block] = by_block(systems_by_steps(RESTARTED, LOAD, STEPS, replicates=1))
    restart = next(at for at, trial in enumerate(block) if trial.security == "tls")
    far = [at for at, trial in enumerate(block) if trial.cluster == "far"]
    assert min(far) < restart < max(far)
    plan = make_trials(systems_by_steps(RESTARTED, LOAD, STEPS, replicates=1), from_region="x", to_region="y")
    assert block[-1].set_up_s(block[0]) == 0 or block[-1].cluster is None
    assert plan.expected_s() > sum(plan.slots_s()), "the restart is part of the time"


def test_two_external_clusters_need_none_of_the_labs():
    far = [{"name": "x", "cluster": "one"}, {"name": "y", "cluster": "two"}]
    trials = systems_by_steps(far, LOAD, STEPS, replicates=1, alongside=(HostMetrics(), BrokerMetrics()))
    assert {trial.experiments[0].cluster for trial in trials} == {"one", "two"} and len(trials) == 6
    assert {trial.experiments[0].alongside for trial in trials} == {(HostMetrics(),)}
    assert not any(trial.experiments[0].set_up_s(None) for trial in trials)


def test_each_field_is_stepped_alone_and_what_two_lead_to_is_measured_once():
    trials = systems_by_steps(PLAIN[1:], LOAD, {**STEPS, "partitions": [1, 3]}, replicates=1)
    assert sorted(trial.setting for trial in trials) == [
        "b, partitions 1",
        "b, target_records_per_s 1000",
        "b, target_records_per_s 2000",
        "b, target_records_per_s 500",
    ]


def test_a_system_may_have_its_own_link_and_settings_from_plain_data():
    slow, fast = read_systems(
        [
            {"name": "slow", "link": {"delay_ms": 40}},
            {
                "name": "fast",
                "link": {"delay_ms": 1},
                "broker_settings": {"num.io.threads": 4},
                "load": {"placement": [[1], [2]]},
            },
        ]
    )
    assert slow.link == LinkSettings(40) and fast.broker_settings == (("num.io.threads", "4"),)
    assert read_systems([slow, fast]) == (slow, fast) and hash(fast)
    load = KafkaLoad(partitions=2)
    trials = systems_by_steps([slow, fast], load, {"linger_ms": [5, 10.0]}, replicates=1)
    of = {trial.setting: trial.experiments[0] for trial in trials}
    assert of["slow, linger_ms 5"].link == LinkSettings(40)
    assert of["fast, linger_ms 10"].link == LinkSettings(1)
    assert of["fast, linger_ms 10"].load.placement == ((1,), (2,))


@pytest.mark.parametrize(
    "given, message",
    [
        ({"name": "a"}, "systems is {'name': 'a'}; allowed: a list of systems"),
        ([], "systems is []; allowed: a list of systems"),
        (["a"], "systems[0] is of type str; allowed: System or a mapping of name, broker_settings"),
        (
            [{"name": "a"}, {"name": "b", "linger_ms": 0}],
            "systems[1] has linger_ms; allowed: name, broker_settings, security, kafka_version, link, load, cluster.",
        ),
        ([{"load": {}}], "systems[0] has no name; it has load."),
        ([{"name": "a"}, {"name": "b"}, {"name": "a"}], "systems has 'a' twice; allowed: each name once."),
        ([{"name": " a"}], "System name is ' a'; allowed: one line of text"),
        ([{"name": "a", "load": ["linger_ms"]}], "system 'a': load is of type list; allowed: a mapping"),
        ([{"name": "a", "security": "ssl"}], "system 'a': security is 'ssl'; allowed: 'plain'"),
        ([{"name": "a", "link": {"rtt_ms": 1}}], "system 'a': link has rtt_ms; allowed: delay_ms, jitter_ms"),
        ([{"name": "a", "link": {"delay_ms": -1}}], "system 'a': link: delay_ms is -1; allowed"),
        ([{"name": "a", "link": {}}], "system 'a': link has no delay_ms"),
        ([{"name": "a", "broker_settings": {"node.id": 1}}], "sets node.id itself"),
        (
            [{"name": "a", "cluster": "far", "security": "tls"}],
            "system 'a' is on the external cluster 'far' and has broker_settings, security or kafka_version; allowed:",
        ),
    ],
)
def test_what_no_system_can_be_is_refused(given, message):
    with pytest.raises(ParameterError, match=re.escape(message)):
        read_systems(given)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"systems": [*PLAIN, {"name": "a"}]}, "systems has 'a' twice"),
        ({"steps": {"rate": [1]}}, "steps has rate; allowed: fields of KafkaLoad: "),
        ({"steps": {}}, "steps is {}; allowed: a mapping of fields of the load to their levels"),
        ({"steps": {"acks": "all"}}, "steps of acks is 'all'; allowed: a list of levels, at least one"),
        ({"steps": {"linger_ms": [5, 5]}, "systems": [System("x")]}, "linger_ms have 5 twice"),
        ({"steps": {"acks": ["2"]}}, "a, acks 2: KafkaLoad acks is '2'"),
        ({"systems": [System("x", load={"rate": 1})]}, "system 'x': load has rate; allowed: fields of KafkaLoad"),
        (
            {"steps": {"linger_ms": [5]}},
            "system 'a' has its own linger_ms, which steps vary; allowed: one or the other.",
        ),
        ({"replicates": 0}, "replicates is 0"),
        ({"load": {"linger_ms": 0}}, "load is {'linger_ms': 0}; allowed: a load of Kafka"),
        (
            {"systems": [*PLAIN, {"name": "c", "link": {"delay_ms": 1}}]},
            "1 of 3 systems have a link, and the others",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_planned_is_refused(changes, message):
    given = {"systems": PLAIN, "load": LOAD, "steps": STEPS} | changes
    with pytest.raises(ParameterError, match=re.escape(message)):
        systems_by_steps(**given)
