"""Orders of replicas that move leadership."""

from collections import Counter

from wanbench.measure.kafka import leadership


def view(replicas, leaders=None, isr=None):
    rows = [
        {"partition": n, "leader": (leaders or [each[0] for each in replicas])[n], "replicas": each,
         "isr": sorted(isr[n] if isr else each)}
        for n, each in enumerate(replicas)
    ]  # fmt: skip
    return [{"name": "t", "partitions": rows}]


def test_without_leader_concerns_what_a_broker_leads_or_is_preferred_for_and_keeps_all_replicas():
    seen = view([[1, 2, 3], [2, 3, 1], [3, 1, 2], [1]], leaders=[2, 2, 1, 1])
    assert leadership.without_leader(seen, 1) == {"t": {"0": [2, 3, 1], "2": [3, 2, 1]}}


def test_a_replica_out_of_sync_is_not_chosen_first():
    assert leadership.without_leader(view([[1, 2, 3]], isr=[[1, 3]]), 1) == {"t": {"0": [3, 2, 1]}}


def test_all_led_by_takes_what_it_has():
    assert leadership.all_led_by(view([[1, 2], [2, 3], [3]]), 3) == {"t": {"1": [3, 2]}}


def test_balanced_gives_each_as_many_and_changes_no_replica():
    seen = view([[1, 2, 3]] * 9)
    order = leadership.balanced(seen)["t"]
    assert Counter(each[0] for each in order.values()) == {1: 3, 2: 3, 3: 3}
    assert all(sorted(each) == [1, 2, 3] for each in order.values())


def test_present_is_the_order_of_now_for_the_same_partitions():
    seen = view([[1, 2], [2, 1]])
    assert leadership.current_order(seen, {"t": {"1": [1, 2]}, "gone": {"0": [1]}}) == {"t": {"1": [2, 1]}}


def test_under_replicated_counts_missing_replicas_and_leaders():
    assert leadership.under_replicated(view([[1, 2], [2, 1], [1, 2]], [1, 2, None], [[1], [1, 2], [1, 2]])) == 2


def test_spread_empties_a_broker_and_fills_it_again_and_moves_no_more_than_it_must():
    seen = view([[1, 2], [2, 3], [3, 1], [1, 2], [2, 3], [3, 1], [3, 2, 1]])
    emptied = leadership.spread(seen, [1, 2])["t"]
    assert all(sorted(replicas) == [1, 2] for replicas in emptied.values()) and "6" not in emptied
    assert Counter(replicas[0] for replicas in emptied.values()) == {1: 3, 2: 3}
    filled = leadership.spread(view([emptied[n] for n in sorted(emptied)]), [1, 2, 3])["t"]
    assert Counter(node for replicas in filled.values() for node in replicas) == {1: 4, 2: 4, 3: 4}
    assert Counter(replicas[0] for replicas in filled.values()) == {1: 2, 2: 2, 3: 2}
    assert sum(3 in replicas for replicas in filled.values()) == 4
