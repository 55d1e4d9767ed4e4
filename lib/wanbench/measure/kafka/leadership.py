"""
Reordering replicas to move leadership without moving data.

A view is what the verb topics of `wanbench.measure.kafka.programs.admin` answers. An order is {topic: {partition as
text: replicas}}, the preferred leader first, as for the verb lead.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

Order = dict[str, dict[str, list[int]]]


def partitions(view: Sequence[dict]) -> Iterator[tuple[str, dict]]:
    """(topic, partition) of each partition of a view."""
    for topic in view:
        for row in topic["partitions"]:
            yield topic["name"], row


def without_leader(view: Sequence[dict], node_id: int) -> Order:
    """
    Return the order in which a broker leads nothing: it is last wherever it leads or is preferred, in-sync replicas
    first, except for partitions without other replicas.

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


def without_replica(view: Sequence[dict], node_id: int) -> Order:
    """
    Return the replicas without those of a broker, if another is in sync: it then serves neither leaders nor
    acknowledgements.
    """
    order: Order = {}
    for topic, row in partitions(view):
        others = [each for each in row["replicas"] if each != node_id]
        if node_id in row["replicas"] and set(others) & set(row["isr"]):
            order.setdefault(topic, {})[str(row["partition"])] = sorted(others, key=lambda node: node not in row["isr"])
    return order


def all_led_by(view: Sequence[dict], node_id: int) -> Order:
    """The order in which a broker leads every partition it has a replica of."""
    order: Order = {}
    for topic, row in partitions(view):
        replicas = row["replicas"]
        if node_id in replicas and len(replicas) > 1:
            others = [node for node in replicas if node != node_id]
            order.setdefault(topic, {})[str(row["partition"])] = [node_id, *others]
    return order


def balanced(view: Sequence[dict]) -> Order:
    """
    Return the order in which brokers lead equally many partitions of each topic, as far as replicas allow: each
    partition in turn prefers the replica with the fewest preferences so far, in the topic, then overall.
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


def current_order(view: Sequence[dict], order: Order) -> Order:
    """The current order of another order's partitions."""
    now: Order = {}
    for topic, row in partitions(view):
        if str(row["partition"]) in order.get(topic, {}):
            now.setdefault(topic, {})[str(row["partition"])] = list(row["replicas"])
    return now


def save_order(first: Order, view: Sequence[dict], order: Order) -> Order:
    """
    Save in `first` the current order of partitions about to change, unless saved already; returns the saved orders.
    """
    return {
        topic: {n: first.setdefault(topic, {}).setdefault(n, replicas) for n, replicas in partitions.items()}
        for topic, partitions in current_order(view, order).items()
    }


def drop_partitions(first: Order, order: Order) -> None:
    """Remove the partitions of an order from `first`."""
    for topic, partitions in order.items():
        for n in partitions:
            first.get(topic, {}).pop(n, None)


def merge(order: Order, more: Order) -> None:
    """Add partitions of another order to an order."""
    for topic, partitions in more.items():
        order.setdefault(topic, {}).update(partitions)


def leaders(view: Sequence[dict]) -> dict[tuple[str, int], int | None]:
    """The leader of each partition."""
    return {(topic, row["partition"]): row["leader"] for topic, row in partitions(view)}


def under_replicated(view: Sequence[dict]) -> int:
    """Partitions with a replica that is not in sync, or without a leader."""
    return sum(row["leader"] is None or set(row["isr"]) != set(row["replicas"]) for _, row in partitions(view))
