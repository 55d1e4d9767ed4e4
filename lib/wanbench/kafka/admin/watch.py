"""
Watches a cluster for a time: topics, leaders, in-sync replicas and groups, a few times a second.

Imports the standard library and kafka-python only: `wanbench.kafka.admin.program` starts with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from kafka import errors
from kafka.admin import KafkaAdminClient
from kafka.protocol.metadata import MetadataRequest

from .connection import connected, words
from .groups import list_everywhere
from .queries import topic_words

LEAST_INTERVAL_S = 0.25


def watch(
    settings: dict,
    say: Callable[[dict], None],
    for_s: float,
    every_s: float = LEAST_INTERVAL_S,
    topics: list[str] | None = None,
    groups: bool = False,
    request_s: float = 1.0,
) -> None:
    """
    Say what a cluster looks like, every `every_s` seconds for `for_s` seconds, whatever becomes of the cluster.

    Parameters
    ----------
    say : callable
        Takes one sample: "at_s" (Unix s, when it was asked), "took_s", and either "node_id" (who answered), "topics"
        (as in `wanbench.kafka.admin.queries.topics`), "brokers" (node_ids that it knew) and, if asked for, "groups" and
        "blind_groups" (brokers that did not list theirs, with the reason); or "blind": why nobody answered.
    every_s : float
        At least 0.25. A sample that takes longer leaves out what it overslept.
    topics : list of str, optional
        Their names; None: all that are not Kafka's own.
    request_s : float
        How long a broker may take to answer before the sample is blind and another broker is asked.
    """
    every_s = max(every_s, LEAST_INTERVAL_S)
    began = time.monotonic()
    admin, turn = None, 0
    while (now := time.monotonic()) < began + for_s:
        sample = {"at_s": time.time()}
        try:
            if admin is None:
                admin = connected(settings, connect_s=min(2.0, for_s), request_s=request_s)
            sample |= admin._manager.run(_look, admin, topics, groups)
        except (errors.KafkaError, OSError) as error:
            sample["blind"] = f"{type(error).__name__}: {words(error)}"
        sample["took_s"] = round(time.monotonic() - now, 4)
        say(sample)
        turn = max(turn + 1, int((time.monotonic() - began) / every_s))
        time.sleep(max(0.0, min(began + turn * every_s, began + for_s) - time.monotonic()))


async def _look(admin: KafkaAdminClient, names, with_groups) -> dict:
    node_id = admin._manager.least_loaded_node()
    of = MetadataRequest.MetadataRequestTopic
    asked = None if names is None else [of(name=name) for name in names]
    request = MetadataRequest(topics=asked, allow_auto_topic_creation=False)
    told = (await admin._manager.send(request, node_id=node_id)).to_dict()
    seen = {
        "node_id": node_id,
        "brokers": sorted(broker["node_id"] for broker in told["brokers"]),
        "topics": [
            topic_words(topic)
            for topic in told["topics"]
            if not topic["error_code"] and (names is not None or not topic["is_internal"])
        ],
    }
    if with_groups:
        listed = await list_everywhere(admin)
        seen |= {"groups": listed["groups"], "blind_groups": listed["blind"]}
    return seen
