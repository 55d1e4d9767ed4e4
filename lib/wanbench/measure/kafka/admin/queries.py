"""
Answers to administrative questions about topics, partitions, brokers and settings, by an admin client.

Imports the standard library and kafka-python only: `wanbench.measure.kafka.admin.program` starts with it.
"""

from __future__ import annotations

import time

from kafka import errors
from kafka.admin import KafkaAdminClient
from kafka.protocol.metadata import MetadataRequest
from kafka.structs import TopicPartition

from .connection import message

_PAUSE_S = 0.05
"""Interval of polling the brokers' metadata."""


class Refused(errors.KafkaError):
    """Kafka refused something; `kind` is Kafka's name of the error."""

    def __init__(self, error: type[errors.KafkaError] | errors.KafkaError, reason: str | None = None):
        is_class = isinstance(error, type)
        self.kind = error.__name__ if is_class else type(error).__name__
        super().__init__(reason or (_description(error) if is_class else message(error)))


def refuse(code: int, reason: str | None = None) -> None:
    """Raise `Refused` for an error code, with the given reason; nothing for code 0."""
    if code:
        raise Refused(errors.for_code(code), reason)


def cluster(admin: KafkaAdminClient) -> dict:
    """
    Brokers and controller.

    Returns
    -------
    dict
        "cluster_id"; "version", the brokers' or an older one that they support; "controller", the node that leads the
        controllers (None where the client may not ask); "voters", the controllers; "brokers": node_id, host, port,
        rack, is_fenced.
    """
    description = admin.describe_cluster()
    answer = {
        "cluster_id": description.get("cluster_id"),
        "version": ".".join(map(str, admin._manager.broker_version or ())),
        "controller": None,
        "voters": [],
        "brokers": [
            {
                "node_id": broker["broker_id"],
                "host": broker["host"],
                "port": broker["port"],
                "rack": broker.get("rack"),
                "is_fenced": bool(broker.get("is_fenced", False)),
            }
            for broker in sorted(description["brokers"], key=lambda broker: broker["broker_id"])
        ],
    }
    try:
        (quorum,) = admin.describe_metadata_quorum()["topics"][0]["partitions"]
        answer["controller"] = quorum["leader_id"] if quorum["leader_id"] >= 0 else None
        answer["voters"] = sorted(voter["replica_id"] for voter in quorum["current_voters"])
    except errors.KafkaError:
        pass
    return answer


def topics(admin: KafkaAdminClient, names: list[str] | None = None, internal: bool = False) -> list[dict]:
    """
    Topics with their partitions: partition, leader (None: none), leader_epoch, replicas, isr, offline.

    Without names, all topics; Kafka's own only with `internal`.
    """
    rows = []
    for topic in admin.describe_topics(names):
        if names is not None:
            refuse(topic["error_code"], f"topic {topic['name']!r}: {_error_text(topic['error_code'])}")
        if topic["error_code"] or (topic["is_internal"] and names is None and not internal):
            continue
        rows.append(topic_row(topic))
    return sorted(rows, key=lambda topic: topic["name"])


def topic_row(topic: dict) -> dict:
    """A topic in kafka-python's metadata, in the form that `topics` returns."""
    partitions = [
        {
            "partition": row["partition_index"],
            "leader": row["leader_id"] if row["leader_id"] >= 0 else None,
            "leader_epoch": row.get("leader_epoch"),
            "replicas": list(row["replica_nodes"]),
            "isr": sorted(row["isr_nodes"]),
            "offline": sorted(row.get("offline_replicas") or ()),
        }
        for row in sorted(topic["partitions"], key=lambda row: row["partition_index"])
    ]
    return {"name": topic["name"], "internal": bool(topic["is_internal"]), "partitions": partitions}


def create_topic(
    admin: KafkaAdminClient,
    name: str,
    partitions: int = 1,
    replication: int = 1,
    settings: dict | None = None,
    placement: list[list[int]] | None = None,
    wait_s: float = 30.0,
) -> dict:
    """
    Make a topic and wait until every answering broker knows a leader of every partition.

    Parameters
    ----------
    placement : list of list of int, optional
        Replicas of each partition, the preferred leader first; in place of `partitions` and `replication`.

    Returns
    -------
    dict
        The topic, as in `topics`.
    """
    wanted: dict = {"configs": {key: str(value) for key, value in (settings or {}).items()}}
    if placement is None:
        wanted |= {"num_partitions": partitions, "replication_factor": replication}
    else:
        wanted["assignments"] = dict(enumerate(placement))
    (answer,) = admin.create_topics({name: wanted}, raise_errors=False, timeout_ms=int(wait_s * 1000))["topics"]
    refuse(answer["error_code"], answer.get("error_message"))
    count = partitions if placement is None else len(placement)

    def is_ready(topic):
        leaders = [partition["leader_id"] for partition in topic["partitions"]]
        return not topic["error_code"] and len(leaders) == count and all(leader >= 0 for leader in leaders)

    return topic_row(_everywhere(admin, name, is_ready, wait_s, "has no leaders yet"))


def delete_topic(admin: KafkaAdminClient, name: str, wait_s: float = 30.0) -> None:
    """Delete a topic and wait until no answering broker knows it."""
    (answer,) = admin.delete_topics([name], raise_errors=False, timeout_ms=int(wait_s * 1000))["topics"]
    refuse(answer["error_code"], answer.get("error_message") or _error_text(answer["error_code"]))
    gone = errors.UnknownTopicOrPartitionError.errno
    _everywhere(admin, name, lambda topic: topic["error_code"] == gone, wait_s, "is still known")


def _everywhere(admin, name, is_done, wait_s, problem):
    """A topic's metadata, once `is_done` holds for that of each answering broker."""
    end = time.monotonic() + wait_s
    while True:
        views = admin._manager.run(_views, admin, name)
        answers = [view for view in views.values() if view is not None]
        if answers and all(is_done(view) for view in answers):
            return answers[0]
        if time.monotonic() > end:
            late = [node for node, view in views.items() if view is None or not is_done(view)]
            raise Refused(
                errors.KafkaTimeoutError, f"topic {name!r} {problem} at the brokers {late} after {wait_s:g} s"
            )
        time.sleep(_PAUSE_S)


async def _views(admin, name):
    """What each broker knows of a topic; None of a broker that does not answer."""
    request, views = MetadataRequest.MetadataRequestTopic, {}
    for broker in admin._manager.cluster.brokers():
        asked = MetadataRequest(topics=[request(name=name)], allow_auto_topic_creation=False)
        try:
            views[broker.node_id] = admin._manager.send(asked, node_id=broker.node_id)
        except errors.KafkaError:
            views[broker.node_id] = None
    for node_id, answer in views.items():
        try:
            views[node_id] = (await answer).to_dict()["topics"][0] if answer is not None else None
        except errors.KafkaError:
            views[node_id] = None
    return views


def reassign(admin: KafkaAdminClient, topic: str, replicas: dict[str, list[int] | None]) -> dict:
    """
    Start moving partitions.

    Parameters
    ----------
    replicas : dict
        The brokers that are to hold each partition, by its number; None cancels its move.
    """
    wanted = {TopicPartition(topic, int(number)): brokers for number, brokers in replicas.items()}
    for partition, error in admin.alter_partition_reassignments(wanted).items():
        if error is not None:
            raise Refused(error, f"partition {partition.partition} of {topic!r}: {_error_text(error.errno)}")
    return {"moving": len(wanted)}


def reassignments(admin: KafkaAdminClient) -> list[dict]:
    """Moves in progress: topic, partition, replicas, adding, removing."""
    return [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "replicas": move["replicas"],
            "adding": move["adding_replicas"],
            "removing": move["removing_replicas"],
        }
        for partition, move in sorted(admin.list_partition_reassignments().items())
    ]


def elect(admin: KafkaAdminClient, topic: str | None = None, unclean: bool = False) -> dict:
    """
    Elect the preferred leaders (or, unclean, any live replica) in one topic or all; returns the number of changes.
    """
    if topic is not None:
        topics(admin, [topic])
    answer = admin.elect_leaders(1 if unclean else 0, topic and [topic], raise_errors=False).to_dict()
    refuse(answer.get("error_code", 0))
    changed = 0
    for result in answer["replica_election_results"]:
        for row in result["partition_result"]:
            if row["error_code"] != errors.ElectionNotNeededError.errno:
                reason = f"partition {row['partition_id']} of {result['topic']!r}: {row['error_message']}"
                refuse(row["error_code"], reason)
                changed += 1
    return {"changed": changed}


def lead(
    admin: KafkaAdminClient, replicas: dict[str, dict[str, list[int]]], wait_s: float = 30.0, others: bool = False
) -> dict:
    """
    Reorder the replicas of partitions and elect the first in-sync replica of each; no data move.

    With `others` the replicas may change: new ones are copied first, which is awaited.

    Parameters
    ----------
    replicas : dict
        By topic and number of partition, its replicas in the new order. A topic or partition that is not there is left
        out, and one whose replicas are others by now is refused.

    Returns
    -------
    dict
        "ordered": partitions that now have the order; "led": of these, led by the first; "missing": those left out.
    """
    there = _partitions(admin, replicas)
    wanted = {each: replicas[each.topic][str(each.partition)] for each in there}
    for each, order in wanted.items():
        if not others and sorted(order) != sorted(there[each]["replicas"]):
            reason = f"partition {each.partition} of {each.topic!r} has replicas {there[each]['replicas']}, not {order}"
            raise Refused(errors.InvalidReplicaAssignmentError, reason)
    copied = {each for each, order in wanted.items() if set(order) - set(there[each]["replicas"])}
    if changed := {each: order for each, order in wanted.items() if order != there[each]["replicas"]}:
        for each, error in admin.alter_partition_reassignments(changed).items():
            if error is not None:
                raise Refused(error, f"partition {each.partition} of {each.topic!r}: {_error_text(error.errno)}")
    end = time.monotonic() + wait_s
    while wanted:
        there = _partitions(admin, replicas)
        ordered = [each for each in wanted if there.get(each, {}).get("replicas") == wanted[each]]
        led = [each for each in ordered if there[each]["leader"] == wanted[each][0]]
        if len(led) == len(wanted) or time.monotonic() > end:
            break
        if len(ordered) == len(wanted):  # those whose first replica is not in sync stay as they are
            able = [each for each in ordered if wanted[each][0] in there[each]["isr"] and each not in led]
            if not able and not copied - set(led):
                break
            by_topic: dict[str, list[int]] = {}
            for each in able:
                by_topic.setdefault(each.topic, []).append(each.partition)
            if by_topic:
                admin.elect_leaders(0, by_topic, raise_errors=False)
        time.sleep(_PAUSE_S)
    n = sum(len(partitions) for partitions in replicas.values())
    if not wanted:
        return {"ordered": 0, "led": 0, "missing": n}
    return {"ordered": len(ordered), "led": len(led), "missing": n - len(wanted)}


def _partitions(admin, replicas) -> dict:
    """State of these partitions, by TopicPartition, without missing ones."""
    return {
        TopicPartition(topic["name"], row["partition"]): row
        for topic in topics(admin, internal=True)
        if topic["name"] in replicas
        for row in topic["partitions"]
        if str(row["partition"]) in replicas[topic["name"]]
    }


def settings(admin: KafkaAdminClient, of: str, name: str | int, everything: bool = False) -> dict:
    """
    Changed or all settings of a topic or broker, by name: value, source and whether read-only.

    Parameters
    ----------
    of : "topic" or "broker"
    name : str or int
        Name of the topic, or node_id of the broker.
    """
    resource = _resource(of, name)
    (response,) = admin._manager.run(_describe_settings, admin, resource)
    for result in response.results:
        refuse(result.error_code, result.error_message)
    described = admin._describe_configs_process_responses([response], "all" if everything else "modified")
    return {
        key: {"value": row["value"], "source": row["config_source"].lower(), "read_only": bool(row["read_only"])}
        for key, row in sorted(described[of][str(name)].items())
    }


async def _describe_settings(admin, resource):
    request = admin._describe_configs_request([resource])
    node_id = int(resource.name) if resource.resource_type.name == "BROKER" else None
    return [await admin._manager.send(request, node_id=node_id)]


def change(admin: KafkaAdminClient, of: str, name: str | int, settings: dict) -> None:
    """Change settings of a topic or broker at run time; None restores the default."""
    resource = _resource(of, name)
    resource.configs = {
        key: ("SET", str(value)) if value is not None else ("DELETE", None) for key, value in settings.items()
    }
    result = admin.alter_configs([resource], raise_on_unknown=False)[of][str(name)]
    if result != "OK":
        kind, _, reason = result.partition(": ")
        raise Refused(getattr(errors, kind.split("]")[-1].strip(), errors.KafkaError), reason or result)


def _resource(of, name):
    from kafka.admin import ConfigResource

    if of not in ("topic", "broker"):
        raise ValueError(f"settings belong to a topic or a broker, not to {of!r}")
    return ConfigResource(of, str(name))


def _error_text(code):
    return _description(errors.for_code(code))


def _description(error: type[errors.KafkaError]):
    return getattr(error, "description", "") or error.__name__
