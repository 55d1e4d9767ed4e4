"""Plans of fault episodes: every setting in every block, in random order, brokers restarted as seldom as possible."""

from itertools import pairwise

import pytest

from wanbench.errors import ParameterError
from wanbench.measure.experiments import KafkaFault
from wanbench.pages.region_loss.design import fault_trials

BASE = KafkaFault("none", client_settings={"session.timeout.ms": 3000})
FAULTS = [("cut", "a"), ("kill", "b"), ("cut", "a+b")]


def test_every_block_has_every_setting_once_in_another_order():
    trials = fault_trials(BASE, FAULTS, factors=[{"acks": "1"}], repeats=5, seed=3)
    orders = [[t.setting for t in trials if t.block == block] for block in range(1, 6)]
    assert all(sorted(order) == sorted(orders[0]) for order in orders) and len({*map(tuple, orders)}) > 1
    assert {len(order) for order in orders} == {4}
    assert trials == fault_trials(BASE, FAULTS, factors=[{"acks": "1"}], repeats=5, seed=3)


def test_a_factor_changes_what_it_names_and_nothing_else():
    factors = [
        {"topic_settings.min.insync.replicas": "1"},
        {"client_settings.group.protocol": "consumer", "client_settings.session.timeout.ms": ""},
    ]
    trials = {t.setting: t.experiments[0] for t in fault_trials(BASE, FAULTS, factors=factors, repeats=1)}
    one = trials["cut a, min.insync.replicas 1"]
    assert dict(one.topic_settings) == {"min.insync.replicas": "1"}
    assert dict(one.client_settings) == {"session.timeout.ms": "3000"}
    assert dict(trials["cut a, group.protocol consumer"].client_settings) == {"group.protocol": "consumer"}


def test_episodes_with_the_same_brokers_stand_together():
    factors = [{"broker_settings.replica.lag.time.max.ms": str(1000 * k)} for k in (1, 2)]
    for seed in range(5):
        trials = fault_trials(BASE, FAULTS, factors=factors, repeats=1, seed=seed)
        brokers = [repr(t.experiments[0].broker_settings) for t in trials]
        assert sum(a != b for a, b in pairwise(brokers)) == 2


def test_damage_is_planted_first_and_without_a_fault():
    planted = fault_trials(BASE, FAULTS, repeats=2, damage=["drop", "alter"])[:2]
    assert [t.experiments[0].damage for t in planted] == ["drop", "alter"]
    assert {t.experiments[0].fault for t in planted} == {"none"} and {t.block for t in planted} == {0}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"faults": []}, "at least one pair"),
        ({"faults": [("cut",)]}, "at least one pair"),
        ({"factors": [{"ack": "1"}]}, "factor is 'ack'"),
        ({"factors": [{"topics.a": "1"}]}, "factor is 'topics'"),
        ({"repeats": 0}, "repeats is 0"),
    ],
)
def test_bad_plans_are_refused(wrong, said):
    with pytest.raises(ParameterError, match=said):
        fault_trials(BASE, **{"faults": FAULTS} | wrong)
