"""
Compute replica orders that move leadership between brokers without moving data.

A view is a list of topics, as returned by the verb `topics` of `wanbench.measure.kafka.programs.admin`. An order is
{topic: {partition number as text: replicas}}, where each list of replicas begins with the preferred leader, as the verb
`lead` expects it.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

View = Sequence[dict[str, Any]]
Order = dict[str, dict[str, list[int]]]


def partitions(view: View) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the topic's name and the row (partition, leader, replicas, isr) of each partition of a view."""
    for topic in view:
        for row in topic["partitions"]:
            yield topic["name"], row


def without_leader(view: View, node_id: int) -> Order:
    """
    Return a replica order with which broker `node_id` leads no partition that has other replicas.

    Wherever the broker leads or is the preferred leader, it becomes the last replica, and in-sync replicas come first.

    >>> row = {"partition": 0, "leader": 1, "replicas": [1, 2, 3], "isr": [1, 3]}
    >>> without_leader([{"name": "t", "partitions": [row]}], 1)
    {'t': {'0': [3, 2, 1]}}
    """
    order: Order = {}
    for topic, row in partitions(view):
        replicas = row["replicas"]
        if node_id in (row["leader"], replicas[0]) and node_id in replicas and len(replicas) > 1:
            others = [node for node in replicas if node != node_id]
            others.sort(key=lambda node: node not in row["isr"])
            order.setdefault(topic, {})[str(row["partition"])] = [*others, node_id]
    return order


def without_replica(view: View, node_id: int) -> Order:
    """
    Return a replica order that leaves out broker `node_id`, for partitions with another in-sync replica. With this
    order, the broker neither leads the partitions nor acknowledges records.
    """
    order: Order = {}
    for topic, row in partitions(view):
        others = [node for node in row["replicas"] if node != node_id]
        if node_id in row["replicas"] and set(others) & set(row["isr"]):
            order.setdefault(topic, {})[str(row["partition"])] = sorted(others, key=lambda node: node not in row["isr"])
    return order


def all_led_by(view: View, node_id: int) -> Order:
    """Return a replica order with which broker `node_id` leads every partition that it replicates."""
    order: Order = {}
    for topic, row in partitions(view):
        replicas = row["replicas"]
        if node_id in replicas and len(replicas) > 1:
            others = [node for node in replicas if node != node_id]
            order.setdefault(topic, {})[str(row["partition"])] = [node_id, *others]
    return order


def balanced(view: View) -> Order:
    """
    Return a replica order with which brokers lead equally many partitions of each topic, as far as replicas allow.

    Partitions are assigned in turn. The leader is the broker that so far leads the fewest partitions of the topic; in a
    tie, the one that leads the fewest partitions of all topics.
    """
    order: Order = {}
    overall: Counter[int] = Counter()
    for topic in view:
        own: Counter[int] = Counter()
        for row in topic["partitions"]:
            replicas = row["replicas"]
            first = min(replicas, key=lambda node: (own[node], overall[node], replicas.index(node)))
            own[first] += 1
            overall[first] += 1
            others = [node for node in replicas if node != first]
            order.setdefault(topic["name"], {})[str(row["partition"])] = [first, *others]
    return order


def spread(view: View, nodes: Sequence[int]) -> Order:
    """
    Return replica orders with which the brokers `nodes` hold equally many partitions, led as `balanced` chooses.

    A replica stays where it is, unless its broker is not one of `nodes` or holds at least two more than another. A
    partition with more replicas than there are `nodes` is left out.
    """
    view = [
        topic | {"partitions": [dict(row) for row in topic["partitions"] if len(row["replicas"]) <= len(nodes)]}
        for topic in view
    ]
    placed = {(topic, row["partition"]): [n for n in row["replicas"] if n in nodes] for topic, row in partitions(view)}
    held = Counter(dict.fromkeys(nodes, 0)) + Counter(node for each in placed.values() for node in each)
    for topic, row in partitions(view):
        own = placed[topic, row["partition"]]
        while len(own) < len(row["replicas"]):
            own.append(min(set(nodes) - set(own), key=lambda node: (held[node], node)))
            held[own[-1]] += 1
    while True:
        least, most = min(nodes, key=lambda node: held[node]), max(nodes, key=lambda node: held[node])
        if held[most] - held[least] < 2:
            break
        own = next(each for each in placed.values() if most in each and least not in each)
        own[own.index(most)] = least
        held.update({least: 1, most: -1})
    for topic, row in partitions(view):
        row["replicas"] = placed[topic, row["partition"]]
    return balanced(view)


def current_order(view: View, order: Order) -> Order:
    """Return the replica order that a view shows, for the partitions in `order`."""
    now: Order = {}
    for topic, row in partitions(view):
        if str(row["partition"]) in order.get(topic, {}):
            now.setdefault(topic, {})[str(row["partition"])] = list(row["replicas"])
    return now


def save_order(first: Order, view: View, order: Order) -> Order:
    """
    Add the partitions of `order` that `first` lacks to it, in place, with their replicas in `view`; return the entries
    of `first` for all partitions of `order`. So `first` keeps the original order.
    """
    return {
        topic: {n: first.setdefault(topic, {}).setdefault(n, replicas) for n, replicas in partitions.items()}
        for topic, partitions in current_order(view, order).items()
    }


def drop_partitions(first: Order, order: Order) -> None:
    """Delete from `first` (the original order of replicas), in place, every partition listed in `order`."""
    for topic, partitions in order.items():
        for n in partitions:
            first.get(topic, {}).pop(n, None)


def merge(order: Order, more: Order) -> None:
    """Add the partitions of `more` to `order`, replacing existing entries."""
    for topic, partitions in more.items():
        order.setdefault(topic, {}).update(partitions)


def leaders(view: View) -> dict[tuple[str, int], int | None]:
    """Return the leader of each (topic, partition) of a view; None for a partition without a leader."""
    return {(topic, row["partition"]): row["leader"] for topic, row in partitions(view)}


def under_replicated(view: View) -> int:
    """Count the partitions that have no leader, or that have a replica that is not in sync."""
    return sum(row["leader"] is None or set(row["isr"]) != set(row["replicas"]) for _, row in partitions(view))
