"""
Answers to questions about consumer groups, of the classic and the new protocol (KIP-848).

Imports the standard library and kafka-python only: `wanbench.measure.kafka.admin.program` starts with it.
"""

from __future__ import annotations

from kafka import errors
from kafka.admin import KafkaAdminClient, OffsetSpec
from kafka.protocol.admin import ListGroupsRequest
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.consumer import ListOffsetsRequest

from .queries import Refused, refuse

_SCHEMAS = "wanbench.measure.kafka.admin.schemas"
_Topic = ListOffsetsRequest.ListOffsetsTopic
CONSUMER, DEBUGGER = -1, -2
"""
Replica ids of the requester: the latest offset is the high watermark for CONSUMER, the log end for DEBUGGER.
"""


class ConsumerGroupDescribeRequest(ApiMessage, load_json=_SCHEMAS):
    """Describes groups of the new protocol, which kafka-python's `describe_groups` reports as dead."""


class ConsumerGroupDescribeResponse(ApiMessage, load_json=_SCHEMAS):
    """The response to `ConsumerGroupDescribeRequest`."""


def groups(admin: KafkaAdminClient, names: list[str] | None = None) -> list[dict]:
    """
    Consumer groups, by name or all.

    Returns
    -------
    list of dict
        "group"; "protocol", classic or consumer (KIP-848); "state", such as Stable, Empty or Assigning; "coordinator",
        a node_id; "assignor"; "members": member_id, client_id, host, partitions ([topic, partition] each).
    """
    listed = admin._manager.run(list_groups, admin)
    wanted = [row for row in listed["groups"] if names is None or row["group"] in names]
    if missing := sorted(set(names or ()) - {row["group"] for row in wanted}):
        reason = f"no group {', '.join(map(repr, missing))}"
        if silent := ", ".join(map(str, sorted(listed["silent"]))):
            reason += f"; but the brokers {silent} did not list theirs"
        raise Refused(errors.GroupIdNotFoundError, reason)
    return sorted(admin._manager.run(_described, admin, wanted), key=lambda row: row["group"])


async def list_groups(admin: KafkaAdminClient) -> dict:
    """
    The groups that each broker lists ("groups": group, protocol, state, coordinator), and the node_ids of brokers that
    did not answer ("silent").
    """
    answers, rows, silent = {}, [], []
    for broker in admin._manager.cluster.brokers():
        try:
            answers[broker.node_id] = admin._manager.send(ListGroupsRequest(min_version=0), node_id=broker.node_id)
        except errors.KafkaError:
            silent.append(broker.node_id)
    for node_id, answer in answers.items():
        try:
            response = await answer
            refuse(response.error_code)
        except errors.KafkaError:
            silent.append(node_id)
            continue
        for row in response.to_dict()["groups"]:
            rows.append(
                {
                    "group": row["group_id"],
                    "protocol": (row.get("group_type") or "classic").lower(),
                    "state": row.get("group_state") or "",
                    "coordinator": node_id,
                }
            )
    return {"groups": rows, "silent": silent}


async def members_of(admin: KafkaAdminClient, group: str) -> dict:
    """A group's "state" and "members" (client_id, partitions), from its coordinator, which is looked up each time."""
    admin._manager.cluster._coordinators.clear()
    row = {"group": group, "coordinator": await admin._find_coordinator_id(group)}
    try:
        described = await _classic(admin, row)
    except Refused:  # it is no classic group
        described = await _newer(admin, row)
    members = [{name: member[name] for name in ("client_id", "partitions")} for member in described["members"]]
    return {"state": described["state"], "members": members}


async def _described(admin, rows):
    described = []
    for row in rows:
        ask = _newer if row["protocol"] == "consumer" else _classic
        described.append({**row, **await ask(admin, row)})
    return described


async def _newer(admin, row):
    request = ConsumerGroupDescribeRequest(group_ids=[row["group"]], include_authorized_operations=False)
    (group,) = (await admin._manager.send(request, node_id=row["coordinator"])).to_dict()["groups"]
    refuse(group["error_code"], group["error_message"])
    members = [
        {
            "member_id": member["member_id"],
            "client_id": member["client_id"],
            "host": member["client_host"].lstrip("/"),
            "partitions": _pairs(
                (topic["topic_name"], topic["partitions"]) for topic in member["assignment"]["topic_partitions"]
            ),
        }
        for member in group["members"]
    ]
    return {"state": group["group_state"], "assignor": group["assignor_name"], "members": members}


async def _classic(admin, row):
    group = (await admin._async_describe_groups([row["group"]], row["coordinator"]))[row["group"]]
    if group["error"]:
        raise Refused(errors.KafkaError, group["error"])
    members = []
    for member in group["members"]:
        assigned = member["member_assignment"]
        topics = assigned.get("assigned_partitions", ()) if isinstance(assigned, dict) else ()
        members.append(
            {
                "member_id": member["member_id"],
                "client_id": member["client_id"],
                "host": member["client_host"].lstrip("/"),
                "partitions": _pairs((topic["topic"], topic["partitions"]) for topic in topics),
            }
        )
    return {"state": group["group_state"], "assignor": group["protocol_data"], "members": members}


def _pairs(topics):
    return sorted([name, number] for name, numbers in topics for number in numbers)


def log_ends(admin: KafkaAdminClient, topic: str) -> list[dict]:
    """
    Ends of each partition: high_watermark, up to which consumers may read, and end, of the leader's log. Both are
    offsets after the last record.
    """
    [description] = admin.describe_topics([topic])
    refuse(description["error_code"])
    numbers_of: dict[int, list[int]] = {}
    for row in description["partitions"]:
        if row["leader_id"] < 0:
            raise errors.LeaderNotAvailableError(f"partition {row['partition_index']} has no leader")
        numbers_of.setdefault(row["leader_id"], []).append(row["partition_index"])
    rows = []
    for leader, numbers in numbers_of.items():
        found = [admin._manager.run(_latest, admin, leader, topic, numbers, as_) for as_ in (CONSUMER, DEBUGGER)]
        rows += [{"partition": n, "high_watermark": found[0][n], "end": found[1][n]} for n in numbers]
    return sorted(rows, key=lambda row: row["partition"])


async def _latest(admin, leader, topic, numbers, replica_id) -> dict[int, int]:
    """The latest offset of each partition of a leader, as reported to a replica."""
    asked = [_Topic.ListOffsetsPartition(partition_index=number, timestamp=-1) for number in numbers]
    request = ListOffsetsRequest(
        replica_id=replica_id, isolation_level=0, topics=[_Topic(name=topic, partitions=asked)], min_version=2
    )
    response = await admin._manager.send(request, node_id=leader)
    found = {}
    for row in response.topics[0].partitions:
        if row.error_code:
            raise errors.for_code(row.error_code)(f"partition {row.partition_index}")
        found[row.partition_index] = row.offset
    return found


def offsets(admin: KafkaAdminClient, group: str) -> list[dict]:
    """A group's position: topic, partition, committed, end (of the log), and lag in records."""
    committed = admin.list_group_offsets([group])[group]
    if not committed:
        return []
    ends = admin.list_partition_offsets(dict.fromkeys(committed, OffsetSpec.LATEST))
    return [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "committed": at.offset,
            "end": ends[partition].offset,
            "lag": ends[partition].offset - at.offset,
        }
        for partition, at in sorted(committed.items())
    ]
