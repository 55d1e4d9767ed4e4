"""
One fault episode as tables: the fault, its clients, records, receipts, log, errors and watchers' samples.

- Every due record is a row, whatever happened to it. A record neither acknowledged nor rejected when its
  producer ended has the error 'no answer'.
- A receipt or a record of the log whose checksum is wrong has no producer and no sequence; its partition and offset
identify it.
- A record's partition is its sequence modulo the partitions, as the producer has it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from wanbench.read.ingest.json_values import Members
from wanbench.read.ingest.rows import fitting

from .clients import receipts, records
from .files import LATEST_NS, Program, is_count, open_episode
from .node_logs import controller_events
from .watchers import cluster_samples, group_samples

TIMES = (
    "started_at_s", "fault_at_s", "fault_done_at_s", "heal_at_s", "heal_done_at_s", "ended_at_s", "healthy_at_s",
    "leaders_back_at_s",
)  # fmt: skip


def read(path) -> dict[str, pd.DataFrame]:
    """The tables of one episode, by name, without context; RawDataError for invalid files."""
    path = Path(path)
    top, programs = open_episode(path)
    settings = top.members("settings")
    partitions = settings.count("partitions", minimum=1) or settings.refuse("settings without partitions", "a number")
    rows = {
        "faults": [_fault(top, settings)],
        "fault_clients": [
            {
                "role": program.role,
                "client": program.number,
                "region": program.region,
                "host": program.host,
                "started_at_s": program.started_at_s,
                "ended_at_s": program.ended_at_s,
                "killed": program.killed,
            }
            for program in programs
            if program.role in ("producer", "consumer")
        ],
    }
    of_role = {
        role: [program for program in programs if program.role == role]
        for role in ("producer", "consumer", "log", "watch", "groups")
    }
    parsed = {program.path: records(program, partitions) for program in of_role["producer"]}
    received = {program.path: receipts(program, partitions) for program in of_role["consumer"]}
    columns = {
        "fault_records": _joined([part for part, _ in parsed.values()]),
        "fault_receipts": _joined([part for part, *_ in received.values()]),
        "fault_log": _joined([_log(program, partitions) for program in of_role["log"]]),
        "cluster_samples": _joined([cluster_samples(program, partitions) for program in of_role["watch"]]),
    }
    clients = {program.number: program.region for program in of_role["consumer"]}
    rows["fault_assignments"] = [row for _, changes, _ in received.values() for row in changes]
    rows["fault_errors"] = [row for _, found in parsed.values() for row in found]
    rows["fault_errors"] += [row for *_, found in received.values() for row in found]
    rows["group_samples"] = [row for program in of_role["groups"] for row in group_samples(program, clients)]
    rows["controller_events"] = controller_events(top, path)
    return {name: fitting(path, name, data) for name, data in {**rows, **columns}.items()}


def _fault(top: Members, settings: Members) -> dict:
    times = top.members("times")
    topic, client = _pairs(settings, "topic_settings"), _pairs(settings, "client_settings")
    broker, planted = _pairs(settings, "broker_settings"), top.members("damage")
    hit = top.values.get("hit")
    if not isinstance(hit, list) or not all(isinstance(region, str) for region in hit):
        top.refuse(f"hit = {str(hit)[:80]}", "a list of regions")
    row = {name: times.number(name, most=LATEST_NS / 1e9) for name in TIMES}
    row |= {name: settings.text(name) for name in ("fault", "at", "acks", "damage")}
    row |= {name: settings.count(name) for name in ("replication", "partitions", "record_bytes")}
    unclean = topic.get("unclean.leader.election.enable")
    return row | {
        "damaged_producer": planted.count("producer"),
        "damaged_sequence": planted.count("sequence"),
        "regions": ",".join(hit),
        "records_per_s": settings.number("records_per_s"),
        "min_insync": _number(settings, topic, "min.insync.replicas"),
        "unclean": None if unclean is None else unclean == "true",
        "group_protocol": client.get("group.protocol", "classic"),
        "session_timeout_ms": _number(settings, client, "session.timeout.ms"),
        "broker_settings": _as_text(broker),
        "client_settings": _as_text(client),
        "topic_settings": _as_text(topic),
        "error": top.text("error"),
        "incomplete": top.text("incomplete"),
    }


def _pairs(settings: Members, name: str) -> dict[str, str]:
    """Kafka settings kept as a list of pairs; empty if missing."""
    value = settings.values.get(name)
    well = value is None or (
        isinstance(value, list)
        and all(isinstance(pair, list) and len(pair) == 2 and all(isinstance(x, str) for x in pair) for pair in value)
    )
    if not well:
        settings.refuse(f"settings.{name} = {str(value)[:80]}", "a list of pairs of text")
    return dict(value or ())


def _number(settings: Members, pairs: dict[str, str], name: str) -> int | None:
    if name in pairs and not pairs[name].isdecimal():
        settings.refuse(f"{name} = {pairs[name][:40]!r}", "a whole number")
    return int(pairs[name]) if name in pairs else None


def _as_text(pairs: dict[str, str]) -> str:
    return json.dumps(pairs, sort_keys=True) if pairs else ""


def _log(program: Program, partitions: int) -> dict[str, list]:
    """Columns of table fault_log."""
    _, lines = program.events("log reader")
    columns = {name: [] for name in ("partition", "offset", "producer", "sequence", "damaged")}
    for number, line in lines:
        if isinstance(line, dict):
            continue
        well = isinstance(line, list) and len(line) == 5 and isinstance(line[4], bool)
        well = well and is_count(line[0]) and line[0] < partitions and is_count(line[1])
        well = well and (line[2:4] == [None, None] if line[4] else all(map(is_count, line[2:4])))
        program.check(number, line, well, "partition, offset, producer, sequence and whether it is damaged")
        for name, value in zip(columns, line, strict=True):
            columns[name].append(value)
    return columns


def _joined(parts: list[dict[str, list]]) -> dict[str, list] | list:
    """The columns of several files, one after the other; no rows if there is no file."""
    return {name: [value for part in parts for value in part[name]] for name in parts[0]} if parts else []
