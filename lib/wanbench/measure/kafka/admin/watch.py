"""
Watch a cluster: topics, leaders, in-sync replicas and groups, several times a second.

Imports the standard library and kafka-python only: `wanbench.measure.kafka.admin.program` starts with it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from kafka import errors
from kafka.admin import KafkaAdminClient
from kafka.protocol.metadata import MetadataRequest

from .connection import connected, message
from .groups import list_groups, members_of
from .queries import topic_row

CONNECT_S = 2.0
"""Timeout of a sample's search for a broker: a dead cluster must not delay the next samples for long."""
MEMBERS_INTERVAL_S = 1.0
"""Interval of samples of groups: each finds the coordinator and then asks it."""


def watch(
    settings: dict,
    write: Callable[[dict], None],
    duration_s: float,
    interval_s: float,
    topics: list[str] | None = None,
    groups: bool = False,
    request_s: float = 1.0,
    members: list[str] | None = None,
    internal: bool = False,
) -> None:
    """
    Write the cluster's state every `interval_s` seconds for `duration_s` seconds, whatever happens to it.

    Parameters
    ----------
    settings : dict
        Keywords of kafka-python.
    write : callable
        Takes one sample: "at_s" (Unix s, when it was asked), "took_s", and either "node_id" (the broker that answered),
        "topics" (as in `wanbench.measure.kafka.admin.queries.topics`), "brokers" (node_ids that it knew) and, if asked for,
        "groups" and "silent" (node_ids of brokers that did not list theirs); or "error" (kind and message) if nobody
        answered.
    interval_s : float
        From one sample to the next. If a sample takes longer, the samples that it covers are left out.
    topics : list of str, optional
        Their names; None: all that are not Kafka's own.
    request_s : float
        How long a broker may take to answer, before the sample is an error and another broker is asked.
    members : list of str, optional
        Groups whose members are looked at every `MEMBERS_INTERVAL_S`, apart from the samples above and without delaying
        them: "at_s", "took_s", "group", and either "state" and "members" (client_id and partitions) or "error".
    internal : bool
        Without `topics`, Kafka's own as well.
    """
    write = _one_at_a_time(write)
    start = time.monotonic()
    end = start + duration_s
    admin, tick = None, 0
    while (now := time.monotonic()) < end:
        sample: dict = {"at_s": time.time()}
        try:
            if admin is None:
                admin = connected(settings, connect_s=min(CONNECT_S, duration_s), request_s=request_s)
                for group in members or ():
                    threading.Thread(target=_look_at_members, args=(admin, group, write, end), daemon=True).start()
            sample |= admin._manager.run(_look, admin, topics, groups, internal)
        except (errors.KafkaError, OSError) as error:
            sample["error"] = {"kind": type(error).__name__, "message": message(error)}
        sample["took_s"] = round(time.monotonic() - now, 4)
        write(sample)
        tick = max(tick + 1, int((time.monotonic() - start) / interval_s))
        time.sleep(max(0.0, min(start + tick * interval_s, end) - time.monotonic()))


def _one_at_a_time(write: Callable[[dict], None]) -> Callable[[dict], None]:
    lock = threading.Lock()

    def locked(sample: dict) -> None:
        with lock:
            write(sample)

    return locked


def _look_at_members(admin: KafkaAdminClient, group: str, write, end: float) -> None:
    """Write the state and members of a group until the end; its requests run concurrently with those of the samples."""
    while (now := time.monotonic()) < end:
        sample: dict = {"at_s": time.time(), "group": group}
        try:
            sample |= admin._manager.run(members_of, admin, group)
        except (errors.KafkaError, OSError) as error:
            sample["error"] = {"kind": type(error).__name__, "message": message(error)}
        sample["took_s"] = round(time.monotonic() - now, 4)
        write(sample)
        time.sleep(max(0.05, now + MEMBERS_INTERVAL_S - time.monotonic()))


async def _look(admin: KafkaAdminClient, names, with_groups, internal) -> dict:
    node_id = admin._manager.least_loaded_node()
    request_topic = MetadataRequest.MetadataRequestTopic
    asked = None if names is None else [request_topic(name=name) for name in names]
    request = MetadataRequest(topics=asked, allow_auto_topic_creation=False)
    metadata = (await admin._manager.send(request, node_id=node_id)).to_dict()
    sample = {
        "node_id": node_id,
        "brokers": sorted(broker["node_id"] for broker in metadata["brokers"]),
        "topics": [
            topic_row(topic)
            for topic in metadata["topics"]
            if not topic["error_code"] and (names is not None or internal or not topic["is_internal"])
        ],
    }
    return sample | await list_groups(admin) if with_groups else sample
