"""
Send one administrative request to a cluster.

    python -m wanbench.measure.kafka.programs.admin <settings file> <verb> [<arguments in JSON>]

The settings file holds keyword arguments for kafka-python in JSON. The answer is one line of JSON on stdout: {"answer":
...} with exit status 0, or {"error": {"kind": ..., "message": ...}} with exit status 3, where the kind is Kafka's name
for the error. Settings are never printed.

The program uses kafka-python for two reasons: librdkafka can neither reassign partitions nor report which broker
answered or where a leader's log ends; Kafka's own tools take one to two seconds to start, which would delay a schedule.
"""

import json
import logging
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from kafka import errors
from kafka.protocol.admin import DescribeConfigsRequest, DescribeLogDirsRequest
from kafka.protocol.consumer import ListOffsetsRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.structs import TopicPartition

from .admin_client import CONNECT_S, Admin, Refused, message, refuse

REFUSED = 3  # exit status after an error
WAIT_S = 30.0  # timeout until a change is visible at all brokers
PAUSE_S = 0.1  # pause before a request is retried
POLL_S = 0.05  # interval of polling the brokers' metadata
# Replica ids in requests: for CONSUMER, a leader's latest offset is the high watermark; for DEBUGGER, the log's end.
CONSUMER, DEBUGGER = -1, -2
BROKER = 4  # Kafka's resource type for the settings of a broker
# Sources of settings that do not change at run time: cluster defaults, server.properties, and Kafka's defaults.
GIVEN_AT_START = (3, 4, 5)


def cluster(admin: Admin) -> dict[str, Any]:
    """
    Describe the brokers and the controller.

    "version" is the brokers' version, or an older one that they support; "controller" is the node that leads the
    controllers (None if the client may not ask); "brokers" is a list of node_id, host, port, rack and is_fenced.
    """
    brokers = [
        {
            "node_id": broker["broker_id"],
            **{name: broker.get(name) for name in ("host", "port", "rack")},
            "is_fenced": bool(broker.get("is_fenced")),
        }
        for broker in admin.describe_cluster()["brokers"]
    ]
    try:
        leader = admin.describe_metadata_quorum()["topics"][0]["partitions"][0]["leader_id"]
    except errors.KafkaError:
        leader = -1
    return {
        "version": ".".join(map(str, admin.connections.broker_version or ())),
        "controller": leader if leader >= 0 else None,
        "brokers": sorted(brokers, key=lambda broker: broker["node_id"]),
    }


def topics(admin: Admin, names: list[str] | None = None, internal: bool = False) -> list[dict[str, Any]]:
    """
    List topics with their partitions: partition, leader (None if there is none), replicas, isr.

    Without `names`, list all topics, but Kafka's internal ones only with `internal`.
    """
    rows = []
    for topic in admin.describe_topics(names):
        if names is not None and topic["error_code"]:
            error = errors.for_code(topic["error_code"])
            raise Refused(error, f"topic {topic['name']!r}: {error.description}")
        if not topic["error_code"] and (names is not None or internal or not topic["is_internal"]):
            rows.append(topic_row(topic))
    return sorted(rows, key=lambda topic: topic["name"])


def topic_row(topic: dict[str, Any]) -> dict[str, Any]:
    """Convert a topic from kafka-python's metadata to the form that `topics` returns."""
    partitions = [
        {
            "partition": row["partition_index"],
            "leader": row["leader_id"] if row["leader_id"] >= 0 else None,
            "replicas": list(row["replica_nodes"]),
            "isr": sorted(row["isr_nodes"]),
        }
        for row in sorted(topic["partitions"], key=lambda row: row["partition_index"])
    ]
    return {"name": topic["name"], "partitions": partitions}


def create_topic(
    admin: Admin,
    name: str,
    partitions: int = 1,
    replication: int = 1,
    settings: dict[str, object] | None = None,
    placement: list[list[int]] | None = None,
) -> dict[str, Any]:
    """
    Create a topic, wait until every broker that answers knows the leader of every partition and holds its replicas, and
    return the topic in the form that `topics` returns.

    `placement` lists the replicas (node numbers) of each partition, the preferred leader first; it replaces
    `partitions` and `replication`.
    """
    wanted: dict[str, Any] = {"configs": {key: str(value) for key, value in (settings or {}).items()}}
    if placement is None:
        wanted |= {"num_partitions": partitions, "replication_factor": replication}
    else:
        wanted["assignments"] = dict(enumerate(placement))
    (answer,) = admin.create_topics({name: wanted}, raise_errors=False, timeout_ms=int(WAIT_S * 1000))["topics"]
    refuse(answer["error_code"], answer.get("error_message"))
    count = partitions if placement is None else len(placement)

    def is_ready(topic: dict[str, Any]) -> bool:
        leaders = [partition["leader_id"] for partition in topic["partitions"]]
        return not topic["error_code"] and len(leaders) == count and min(leaders) >= 0

    made = topic_row(_await_everywhere(admin, name, is_ready, "has no leaders yet"))
    _await_replicas(admin, made)
    return made


def delete_topic(admin: Admin, name: str) -> None:
    """Delete a topic, and wait until no broker that answers knows it."""
    (answer,) = admin.delete_topics([name], raise_errors=False, timeout_ms=int(WAIT_S * 1000))["topics"]
    refuse(answer["error_code"], answer.get("error_message"))
    gone = errors.UnknownTopicOrPartitionError.errno
    _await_everywhere(admin, name, lambda topic: topic["error_code"] == gone, "is still known")


def metadata_request(names: list[str] | None) -> MetadataRequest:
    """Return a request for the metadata of the topics `names`, or of all topics if that is None."""
    asked = None if names is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=asked, allow_auto_topic_creation=False)


def _await_everywhere(
    admin: Admin, name: str, is_done: Callable[[dict[str, Any]], bool], problem: str
) -> dict[str, Any]:
    """Wait until `is_done` is true for a topic's metadata at every broker that answers; return the metadata of one."""
    end = time.monotonic() + WAIT_S
    while True:
        nodes = admin.nodes()
        answers = admin.requests([(node, metadata_request([name])) for node in nodes])
        views = [None if isinstance(answer, errors.KafkaError) else answer["topics"][0] for answer in answers]
        seen = [view for view in views if view is not None]
        if seen and all(map(is_done, seen)):
            return seen[0]
        if time.monotonic() > end:
            late = [node for node, view in zip(nodes, views, strict=True) if view is None or not is_done(view)]
            problem = f"topic {name!r} {problem} at the brokers {late} after {WAIT_S:g} s"
            raise Refused(errors.KafkaTimeoutError, problem)
        time.sleep(POLL_S)


def _await_replicas(admin: Admin, topic: dict[str, Any]) -> None:
    """
    Wait until every broker that answers holds its replicas of a new topic, of which it knows the leaders before.

    Clients that start earlier take the processors that the brokers need to make thousands of logs.
    """
    wanted = Counter(node for row in topic["partitions"] for node in row["replicas"])
    numbers = [row["partition"] for row in topic["partitions"]]
    asked = DescribeLogDirsRequest([DescribeLogDirsRequest.DescribableLogDirTopic(topic["name"], numbers)])
    seen, end = None, 0.0
    while True:
        answers = admin.requests([(node, asked) for node in wanted])
        held = {
            node: sum(len(of["partitions"]) for folder in answer["results"] for of in folder["topics"])
            for node, answer in zip(wanted, answers, strict=True)
            if not isinstance(answer, errors.KafkaError) and answer["results"]  # none: not allowed to see them
        }
        late = [f"{n} of {wanted[node]} at broker {node}" for node, n in held.items() if n < wanted[node]]
        if not late:
            return
        seen, end = held, end if held == seen else time.monotonic() + WAIT_S
        if time.monotonic() > end:
            problem = f"topic {topic['name']!r} gets no more replicas: {', '.join(late)} after {WAIT_S:g} s"
            raise Refused(errors.KafkaTimeoutError, problem)
        time.sleep(POLL_S)


def elect(admin: Admin) -> dict[str, int]:
    """Elect the preferred leaders of all topics; return {"changed": number of leaders that changed}."""
    answer = admin.elect_leaders(0, None, raise_errors=False).to_dict()
    refuse(answer.get("error_code", 0))
    changed = 0
    for result in answer["replica_election_results"]:
        for row in result["partition_result"]:
            if row["error_code"] != errors.ElectionNotNeededError.errno:
                reason = f"partition {row['partition_id']} of {result['topic']!r}: {row['error_message']}"
                refuse(row["error_code"], reason)
                changed += 1
    return {"changed": changed}


def lead(admin: Admin, replicas: dict[str, dict[str, list[int]]], others: bool = False) -> dict[str, int]:
    """
    Reorder the replicas of partitions, and elect the first replica of each, if it is in sync, as leader.

    `replicas` maps topic and partition number to the new order. A missing topic or partition is skipped; a partition
    whose replicas are a different set is refused, so no data is moved. With `others`, a different set is allowed: new
    replicas are then copied and awaited. Return numbers of partitions: "ordered" (they have the new order), "led" (they
    also are led by their first replica) and "missing" (they were skipped).
    """
    there = _partitions(admin, replicas)
    wanted = {at: replicas[at.topic][str(at.partition)] for at in there}
    for at, order in wanted.items():
        if not others and sorted(order) != sorted(there[at]["replicas"]):
            reason = f"partition {at.partition} of {at.topic!r} has replicas {there[at]['replicas']}, not {order}"
            raise Refused(errors.InvalidReplicationAssignmentError, reason)
    copied = {at for at, order in wanted.items() if set(order) - set(there[at]["replicas"])}
    if changed := {at: order for at, order in wanted.items() if order != there[at]["replicas"]}:
        for at, error in admin.alter_partition_reassignments(changed).items():
            if error is not None:
                raise Refused(error, f"partition {at.partition} of {at.topic!r}: {error.description}")
    ordered, led, end = [], [], time.monotonic() + WAIT_S
    while wanted:
        there = _partitions(admin, replicas)
        ordered = [at for at in wanted if there.get(at, {}).get("replicas") == wanted[at]]
        led = [at for at in ordered if there[at]["leader"] == wanted[at][0]]
        if len(led) == len(wanted) or time.monotonic() > end:
            break
        if len(ordered) == len(wanted):  # partitions whose first replica is not in sync keep their leader
            able = defaultdict(list)
            for at in ordered:
                if wanted[at][0] in there[at]["isr"] and at not in led:
                    able[at.topic].append(at.partition)
            if not able and not copied - set(led):
                break
            if able:
                admin.elect_leaders(0, dict(able), raise_errors=False)
        time.sleep(POLL_S)
    return {"ordered": len(ordered), "led": len(led), "missing": sum(map(len, replicas.values())) - len(wanted)}


def _partitions(admin: Admin, replicas: dict[str, dict[str, list[int]]]) -> dict[TopicPartition, dict[str, Any]]:
    return {
        TopicPartition(topic["name"], row["partition"]): row
        for topic in topics(admin, internal=True)
        if topic["name"] in replicas
        for row in topic["partitions"]
        if str(row["partition"]) in replicas[topic["name"]]
    }


def settings(admin: Admin, broker: int, everything: bool = False) -> dict[str, str | None]:
    """Return the settings of a broker that were changed while it was running, or all its settings with `everything`."""
    asked = DescribeConfigsRequest(resources=[(BROKER, str(broker), None)], include_synonyms=False)
    (result,) = admin.request(asked, broker)["results"]
    refuse(result["error_code"], result["error_message"])
    return {
        row["name"]: row["value"]
        for row in sorted(result["configs"], key=lambda row: row["name"])
        if everything or row["config_source"] not in GIVEN_AT_START
    }


def log_ends(admin: Admin, topic: str) -> list[dict[str, int]]:
    """
    Return the ends of each partition's log as rows of "partition", "high_watermark" and "end".

    "high_watermark" is the offset after the last record that consumers can read, "end" the offset after the last record
    of the leader's log.
    """
    numbers_of = defaultdict(list)
    for row in topics(admin, [topic])[0]["partitions"]:
        if row["leader"] is None:
            raise errors.LeaderNotAvailableError(f"partition {row['partition']} has no leader")
        numbers_of[row["leader"]].append(row["partition"])
    rows = []
    for leader, numbers in numbers_of.items():
        marks, ends = (_latest(admin, leader, topic, numbers, replica_id) for replica_id in (CONSUMER, DEBUGGER))
        rows += [{"partition": number, "high_watermark": marks[number], "end": ends[number]} for number in numbers]
    return sorted(rows, key=lambda row: row["partition"])


def _latest(admin: Admin, leader: int, topic: str, numbers: Iterable[int], replica_id: int) -> dict[int, int]:
    """
    Return the latest offset of each partition that `leader` leads, as reported to the replica `replica_id`.
    """
    kind = ListOffsetsRequest.ListOffsetsTopic
    asked = [kind.ListOffsetsPartition(partition_index=number, timestamp=-1) for number in numbers]
    request = ListOffsetsRequest(
        replica_id=replica_id, isolation_level=0, topics=[kind(name=topic, partitions=asked)], min_version=2
    )
    rows = admin.request(request, leader)["topics"][0]["partitions"]
    for row in rows:
        if row["error_code"]:
            raise errors.for_code(row["error_code"])(f"partition {row['partition_index']}")
    return {row["partition_index"]: row["offset"] for row in rows}


def delete_records(admin: Admin, topic: str) -> None:
    """Delete all records of a topic, as its retention would."""
    partitions = [TopicPartition(topic, row["partition"]) for row in log_ends(admin, topic)]
    admin.delete_records(dict.fromkeys(partitions, -1))  # -1: up to the high watermark


VERBS = {
    verb.__name__: verb
    for verb in (cluster, topics, create_topic, delete_topic, elect, lead, settings, log_ends, delete_records)
}
# Verbs that are retried on another broker if one does not answer.
READ_ONLY = {"cluster", "topics", "settings", "log_ends"}


def respond(settings: dict[str, Any], verb: str, question: dict[str, Any]) -> dict[str, Any]:
    """
    Run a verb with the arguments `question`; return the object to print, an answer or an error. Requests are retried
    while connections fail.
    """
    waits = {name: question.pop(name) for name in ("connect_s", "request_s") if name in question}
    end, asked_before = time.monotonic() + waits.get("connect_s", CONNECT_S), False
    try:
        admin = Admin(settings, **waits)
        while True:
            try:
                return {"answer": VERBS[verb](admin, **question)}
            # The client does not know the controller yet, and has sent nothing.
            except errors.UnknownBrokerIdError:  # pyright: ignore[reportAttributeAccessIssue]  # its types are older
                if time.monotonic() > end:
                    raise
                admin = Admin(settings, **waits)
            except errors.UnknownTopicOrPartitionError:
                if verb == "delete_topic" and asked_before:  # an earlier request was carried out, its answer lost
                    return {"answer": None}
                if verb not in READ_ONLY or time.monotonic() > end:
                    raise
            except errors.KafkaError as error:
                # Deleting twice is harmless, and the broker may have failed to answer because it is restarting.
                if verb not in {*READ_ONLY, "delete_topic"} or not error.retriable or time.monotonic() > end:
                    raise
                asked_before = True
            time.sleep(PAUSE_S)
    except errors.KafkaError as error:
        return _error(getattr(error, "kind", type(error).__name__), message(error))
    except (OSError, ValueError, KeyError, TypeError) as error:
        return _error(type(error).__name__, " ".join(str(error).split()))


def _error(kind: str, message: str) -> dict[str, Any]:
    return {"error": {"kind": kind, "message": message}}


def read_arguments(path: str, question: str = "{}") -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the client's settings from a file and the verb's arguments from JSON; silence kafka-python's log."""
    logging.disable(logging.CRITICAL)
    return json.loads(Path(path).read_text()), json.loads(question)


def print_line(line: dict[str, Any], secret: str | None) -> None:
    """Print a line of JSON; hide `secret` in an error, but not in an answer, because a topic may have the same name."""
    text = json.dumps(line)
    if secret and "error" in line:
        text = text.replace(json.dumps(secret)[1:-1], "(hidden)")
    print(text, flush=True)


def main(path: str, verb: str, *question: str) -> int:
    settings, asked = read_arguments(path, *question)
    printed = respond(settings, verb, asked)
    print_line(printed, settings.get("sasl_plain_password"))
    return REFUSED if "error" in printed else 0


if __name__ == "__main__":
    os._exit(main(*sys.argv[1:]))
