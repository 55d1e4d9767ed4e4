"""
Watch a cluster's topics, leaders, in-sync replicas and group members, several times a second.

`python -m wanbench.measure.kafka.programs.watch <settings file> <arguments of watch in JSON>` prints one JSON object
per sample. The settings file holds keyword arguments for kafka-python in JSON.
"""

import os
import sys
import threading
import time
from collections.abc import Callable

from kafka import errors
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.metadata import FindCoordinatorRequest  # pyright: ignore[reportAttributeAccessIssue]

from .admin import metadata_request, print_line, read_arguments, topic_row
from .admin_client import Admin, message, refuse

CONNECT_S = 2.0  # timeout of a sample for reaching a broker, short because a dead cluster would delay the next samples
MEMBERS_INTERVAL_S = 1.0  # interval of samples of groups; each looks up the coordinator and then queries it
# The type checker knows kafka-python 2 only, whose messages have no descriptions in JSON.
_SCHEMAS = "wanbench.measure.kafka.programs"


class ConsumerGroupDescribeRequest(ApiMessage, load_json=_SCHEMAS):  # pyright: ignore[reportGeneralTypeIssues, reportCallIssue]
    """
    A request that describes groups of the new protocol (KIP-848); kafka-python's `describe_groups` reports them as
    dead.
    """


class ConsumerGroupDescribeResponse(ApiMessage, load_json=_SCHEMAS):  # pyright: ignore[reportGeneralTypeIssues, reportCallIssue]
    """The response to `ConsumerGroupDescribeRequest`."""


def watch(
    settings: dict[str, object],
    write: Callable[[dict[str, object]], None],
    duration_s: float,
    interval_s: float,
    topics: list[str] | None = None,
    request_s: float = 1.0,
    members: list[str] | None = None,
    internal: bool = False,
) -> None:
    """
    Write the cluster's state every `interval_s` seconds for `duration_s` seconds, even if the cluster is down.

    `write` is called with each sample, a dict. A sample has "at_s" (Unix s of the request), "took_s", and either
    "node_id" (the broker that answered), "topics" (as the verb `topics` returns them) and "brokers" (the node_ids that
    this broker knows), or "error" (kind and message) if no broker answered within `request_s`. A sample is left out if
    it falls due while an earlier one is still being taken. If `topics` is None, all topics are sampled, but Kafka's
    internal ones only with `internal`.

    Members of the groups in `members` are sampled separately, every `MEMBERS_INTERVAL_S`. Such a sample has "at_s",
    "took_s", "group", and either "state" and "members" (client_id and partitions) or "error".
    """
    lock = threading.Lock()

    def sample(look: Callable[[], dict[str, object]], **about: object) -> None:
        began, row = time.monotonic(), {"at_s": time.time(), **about}
        try:
            row |= look()
        except (errors.KafkaError, OSError) as error:
            row["error"] = {"kind": type(error).__name__, "message": message(error)}
        row["took_s"] = round(time.monotonic() - began, 4)
        with lock:
            write(row)

    def look_at_members(group: str) -> None:
        while (now := time.monotonic()) < end:
            sample(lambda: members_of(admin, group), group=group)
            time.sleep(max(0.05, now + MEMBERS_INTERVAL_S - time.monotonic()))

    def look() -> dict[str, object]:
        nonlocal admin
        if admin is None:
            admin = Admin(settings, connect_s=min(CONNECT_S, duration_s), request_s=request_s)
            for group in members or ():
                threading.Thread(target=look_at_members, args=(group,), daemon=True).start()
        return state(admin, topics, internal)

    start, admin, tick = time.monotonic(), None, 0
    end = start + duration_s
    while time.monotonic() < end:
        sample(look)
        tick = max(tick + 1, int((time.monotonic() - start) / interval_s))
        time.sleep(max(0.0, min(start + tick * interval_s, end) - time.monotonic()))


def state(admin: Admin, names: list[str] | None, internal: bool) -> dict[str, object]:
    """Return what one broker knows of the brokers and of the topics `names` (all topics if that is None)."""
    node_id = admin.connections.least_loaded_node()
    metadata = admin.request(metadata_request(names), node_id)
    return {
        "node_id": node_id,
        "brokers": sorted(broker["node_id"] for broker in metadata["brokers"]),
        "topics": [
            topic_row(topic)
            for topic in metadata["topics"]
            if not topic["error_code"] and (names is not None or internal or not topic["is_internal"])
        ],
    }


def members_of(admin: Admin, group: str) -> dict[str, object]:
    """
    Return a group's "state" and "members" (client_id, partitions) from its coordinator, which is looked up each time.
    """
    find = FindCoordinatorRequest(key_type=0, coordinator_keys=[group], min_version=4)
    (coordinator,) = admin.request(find)["coordinators"]
    refuse(coordinator["error_code"], coordinator["error_message"])
    node_id = coordinator["node_id"]
    described = admin.describe_groups([group], node_id)[group]
    if not described["error"]:
        members = [(member["client_id"], _classic_topics(member)) for member in described["members"]]
    else:  # the group uses the new protocol
        asked = ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=False)
        (described,) = admin.request(asked, node_id)["groups"]
        refuse(described["error_code"], described["error_message"])
        members = [
            (
                member["client_id"],
                [(topic["topic_name"], topic["partitions"]) for topic in member["assignment"]["topic_partitions"]],
            )
            for member in described["members"]
        ]
    return {
        "state": described["group_state"],
        "members": [
            {"client_id": client, "partitions": sorted([name, n] for name, numbers in topics for n in numbers)}
            for client, topics in members
        ],
    }


def _classic_topics(member: dict[str, object]) -> list[tuple[str, list[int]]]:
    assigned = member["member_assignment"]
    topics = assigned.get("assigned_partitions", ()) if isinstance(assigned, dict) else ()
    return [(topic["topic"], topic["partitions"]) for topic in topics]


def main(path: str, question: str) -> int:
    settings, asked = read_arguments(path, question)
    watch(settings, lambda sample: print_line(sample, settings.get("sasl_plain_password")), **asked)
    return 0


if __name__ == "__main__":
    os._exit(main(*sys.argv[1:]))
