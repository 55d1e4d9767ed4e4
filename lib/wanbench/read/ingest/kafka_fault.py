"""
Read output of the experiment `kafka_fault`: one fault episode, as tables of the fault, its clients, records, receipts,
log, errors and the observers' samples.

- Table fault_records has a row for every record that was due. A record that was neither acknowledged nor rejected when
  its producer ended has the error 'no answer'.
- A record with a wrong checksum, received by a consumer or found in the log, has no producer and no sequence. Its
  partition and offset identify it.
- The partition of a record is its sequence modulo the number of partitions, as in the producer.
"""

import json
import re
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd

from wanbench.errors import RawDataError

from .json_values import Members, are_counts, fits, is_count, is_text, is_time, is_us, text
from .programs import LATEST_NS, LATEST_S, ROLES, SAMPLED, Program, named_file, open_document, programs, whole_lines
from .rows import Row, fitting

MOST_RECORDS = 10_000_000
"""Maximum number of records per producer: more than a day at 100 records/s."""
TIMES = (
    "started_at_s", "fault_at_s", "fault_done_at_s", "heal_at_s", "heal_done_at_s", "ended_at_s", "healthy_at_s",
    "leaders_back_at_s", "failover_at_s", "failback_at_s",
)  # fmt: skip
COLUMNS = {
    "fault_records": (
        "producer", "sequence", "partition", "intended_at_s", "sent_at_s", "acknowledged_at_s", "offset", "error",
    ),
    "fault_receipts": ("consumer", "producer", "sequence", "partition", "offset", "received_at_s", "damaged"),
    "fault_log": ("log", "partition", "offset", "producer", "sequence", "damaged"),
    "cluster_samples": SAMPLED,
    "controller_events": ("at_s", "node_id", "kind", "broker", "partition", "text"),
}  # fmt: skip
"""Columns of the tables whose rows are built as tuples."""
SHOWN = 300

_EVENTS = {
    "sent": (is_count, is_us),
    "acknowledged": (is_count, is_us, is_count, lambda offset: offset == -1 or is_count(offset)),
    "failed": (is_count, is_us, is_text),
}
"""
Checks of what follows an event's name in a producer's line: sequence, time, then partition and offset, or an error.
"""
_CHANGES = ("assigned", "revoked", "lost")
_LINE = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3})Z [A-Z]+ (.*)")
_OF_BROKERS = {
    "fenced": re.compile(r"Fencing broker (\d+) "),
    "unfenced": re.compile(r"request from broker (\d+) to unfence has been granted"),
}
_OF_PARTITIONS = {
    "elected": re.compile(r"\] Leader (\S+)-(\d+) .*starts at leader epoch"),
    "isr-shrunk": re.compile(r"\[Partition (\S+)-(\d+) .*Shrinking ISR"),
    "isr-grown": re.compile(r"\[Partition (\S+)-(\d+) .*ISR updated to"),
}
_ISR = re.compile(r"ISR (?:\[|from [\d,]+ to |updated to )([\d,]+)")
"""Matches the in-sync replicas after the event, in a log line about a partition."""
_CONTROLLER = "Becoming the active controller"


def read(path: str | Path) -> dict[str, pd.DataFrame]:
    """Read a fault episode's tables, without context (run, test, regions, file); RawDataError for invalid files."""
    path = Path(path)
    top = open_document(path, "a fault episode in JSON")
    settings = top.members("settings")
    named = programs(top, path)
    of_role = {role: [program for program in named if program.role == role] for role in ROLES}
    consumers = of_role["consumer"]
    partitions = settings.count("partitions", minimum=1) or settings.refuse("settings without partitions", "a number")
    rows = {"faults": [_fault(top, settings)], "fault_clients": [], "fault_errors": []}
    rows |= {name: [] for name in COLUMNS} | {"group_samples": []}
    for program in named:
        if program.role in ("producer", "consumer"):
            rows["fault_clients"].append(asdict(program) | {"client": program.number})
    for program in of_role["producer"]:
        _read_producer(program, partitions, rows)
    for program in consumers:
        _read_consumer(program, partitions, rows)
    rows["fault_log"] = [row for program in of_role["log"] for row in _log(program, partitions)]
    rows["cluster_samples"] = [row for program in of_role["watch"] for row in program.cluster_samples(partitions)]
    regions = {program.number: program.region for program in consumers}
    rows["group_samples"] = [row for program in of_role["groups"] for row in _group_samples(program, regions)]
    rows["controller_events"] = _controller_events(top, path)
    rows |= {name: pd.DataFrame(rows[name], columns=columns, dtype=object) for name, columns in COLUMNS.items()}
    return {name: fitting(path, name, data) for name, data in rows.items()}


def _fault(top: Members, settings: Members) -> Row:
    times, planted = top.members("times"), top.members("damage")
    topic, client, broker = (_pairs(settings, f"{kind}_settings") for kind in ("topic", "client", "broker"))
    hit = top.values.get("hit")
    if not isinstance(hit, list) or not all(map(is_text, hit)):
        top.refuse(f"hit = {str(hit)[:80]}", "a list of regions")
    unclean = topic.get("unclean.leader.election.enable")
    return {
        **{name: times.number(name, most=LATEST_S) for name in TIMES},
        **{name: settings.text(name) for name in ("fault", "at", "acks", "damage", "gap")},
        **{name: settings.count(name) for name in ("replication", "partitions", "record_bytes")},
        **{name: top.text(name) for name in ("error", "incomplete")},
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
    }


def _pairs(settings: Members, name: str) -> dict[str, str]:
    value = settings.values.get(name)
    pairs = [] if value is None else value
    if not isinstance(pairs, list) or not all(fits(pair, is_text, is_text) for pair in pairs):
        settings.refuse(f"settings.{name} = {str(value)[:80]}", "a list of pairs of text")
    return dict(pairs)


def _number(settings: Members, pairs: dict[str, str], name: str) -> int | None:
    if name in pairs and not pairs[name].isdecimal():
        settings.refuse(f"{name} = {pairs[name][:40]!r}", "a whole number")
    return int(pairs[name]) if name in pairs else None


def _as_text(pairs: dict[str, str]) -> str:
    return json.dumps(pairs, sort_keys=True) if pairs else ""


def _is_error(line: object) -> bool:
    return isinstance(line, list) and bool(line) and line[0] == "error"


def _read_producer(program: Program, partitions: int, rows: dict[str, list[Any]]) -> None:
    """Add one producer's rows of fault_records and fault_errors."""
    origin_ns, lines = program.events("fault producer")
    start_ns, interval_ns = -1, 0
    due, happened = 0, {what: {} for what in _EVENTS}
    for number, line in lines:
        if isinstance(line, dict):
            if "start_ns" in line:
                start_ns, interval_ns = line["start_ns"], line.get("interval_ns", 0)
                valid = is_count(start_ns) and start_ns < LATEST_NS and is_count(interval_ns) and interval_ns > 0
                program.check(number, line, valid, "start_ns and interval_ns")
            if "due" in line:
                due = line["due"]
                valid = is_count(due) and due <= MOST_RECORDS and (start_ns >= 0 or not due)
                program.check(number, line, valid, "how many records came due")
            continue
        if _is_error(line):
            rows["fault_errors"].append(program.error(origin_ns, number, line))
            continue
        shapes = [(what, *shape) for what, shape in _EVENTS.items()]
        valid = start_ns >= 0 and any(fits(line, *shape) for shape in shapes) and line[1] < MOST_RECORDS
        program.check(number, line, valid, "an event of a fault producer")
        what, sequence, at, *more = line
        if what == "acknowledged":
            program.check(number, line, more[0] < partitions, "partition and offset")
        happened[what].setdefault(sequence, [origin_ns / 1e9 + at / 1e6, *more])
    due = max([due, *(1 + sequence for answers in happened.values() for sequence in answers)])
    sent, acknowledged, failed = happened.values()
    for n in range(due):
        at_s, _, offset = acknowledged.get(n, (None, None, -1))
        row = (program.number, n, n % partitions, (start_ns + n * interval_ns) / 1e9, sent.get(n, [None])[0], at_s)
        error = text(failed[n][1]) if n in failed else None
        rows["fault_records"].append((*row, offset if offset >= 0 else None, error))


def _read_consumer(program: Program, partitions: int, rows: dict[str, list[Any]]) -> None:
    """Add one consumer's rows of fault_receipts and fault_errors."""
    origin_ns, lines = program.events("fault consumer")
    for number, line in lines:
        if isinstance(line, dict):
            continue
        if _is_error(line):
            rows["fault_errors"].append(program.error(origin_ns, number, line))
        elif isinstance(line, list) and line and line[0] in _CHANGES:
            valid = fits(line, line[0], is_us, are_counts) and all(partition < partitions for partition in line[2])
            program.check(number, line, valid, "a time and partitions")
        else:
            valid = isinstance(line, list) and len(line) == 7 and line[0] == "received" and is_us(line[5])
            valid = valid and _is_record(line[3:5], line[1:3], line[6], partitions)
            program.check(number, line, valid, "an event of a fault consumer")
            *where, at, damaged = line[1:]
            rows["fault_receipts"].append((program.number, *where, origin_ns / 1e9 + at / 1e6, damaged))


def _is_record(place: list[Any], source: list[Any], damaged: object, partitions: int) -> bool:
    """Return whether a record has partition and offset and, unless it is damaged, producer and sequence."""
    valid = isinstance(damaged, bool) and all(map(is_count, place)) and place[0] < partitions
    return valid and (source == [None, None] if damaged else all(map(is_count, source)))


def _log(program: Program, partitions: int) -> list[tuple[Any, ...]]:
    rows = []
    for number, line in program.events("log reader")[1]:
        if isinstance(line, dict):
            continue
        valid = isinstance(line, list) and len(line) == 5 and _is_record(line[:2], line[2:4], line[4], partitions)
        program.check(number, line, valid, "partition, offset, producer, sequence and whether it is damaged")
        rows.append((program.number, *line))
    return rows


def _group_samples(program: Program, regions: dict[int, str]) -> list[Row]:
    """
    Return one observer's rows of table group_samples; `regions` maps consumers to regions.

    A line is [at_s, group, state, [[consumer, partitions], ...]], or [at_s, group, kind of error, message].
    """
    rows = []
    for number, line in program.lines():
        valid = isinstance(line, list) and fits(line[:3], is_time, is_text, is_text) and len(line) == 4
        program.check(number, line, valid, "a sample of a group")
        at_s, group, state, members = line
        row = {"region": program.region, "at_s": at_s, "group": text(group)}
        if isinstance(members, str):
            rows.append(row | {"error": text(f"{state}: {members}")})
            continue
        valid = isinstance(members, list) and all(fits(member, is_count, is_count) for member in members)
        program.check(number, line, valid, "the number and the partitions of each member")
        row |= {"state": text(state)}
        rows += [
            row | {"member": member, "client_region": regions.get(member), "n_partitions": n} for member, n in members
        ] or [row]
    return rows


def _controller_events(top: Members, path: Path) -> list[tuple[Any, ...]]:
    """
    Return the rows of table controller_events.

    "elected" means that the node that logged the line became the active controller or, if the line names a partition,
    the leader of that partition. Topics other than the episode's are ignored. A leader logs a change of the in-sync
    replicas when the controller has accepted it; only an increase is "isr-grown".
    """
    topic, rows = top.text("topic"), []
    for one in top.list("logs"):
        file, sha256 = named_file(one, path)
        if (node_id := one.count("node_id")) is None:
            one.refuse(str(one.values)[:80], "the node_id of a log")
        in_sync: dict[int, int] = {}
        for number, content in enumerate(whole_lines(file, sha256), 1):
            line = content.decode("utf-8", "replace")
            if not (match := _LINE.fullmatch(line)):
                raise RawDataError(file, number, line[:100], "a line of a node's log")
            event = _log_event(match[2], topic, node_id)
            if event is None:
                continue
            kind, broker, partition = event
            if partition is not None and (isr := _ISR.search(match[2])):
                before, in_sync[partition] = in_sync.get(partition, 0), isr[1].count(",") + 1
                if kind == "isr-grown" and in_sync[partition] <= before:
                    continue
            try:
                at_s = datetime.fromisoformat(f"{match[1]}+00:00").timestamp()
            except ValueError as error:
                raise RawDataError(file, number, line[:100], "a time") from error
            rows.append((at_s, node_id, kind, broker, partition, match[2][:SHOWN]))
    return sorted(rows, key=lambda row: row[0])


def _log_event(message: str, topic: str | None, node_id: int) -> tuple[str, int | None, int | None] | None:
    """Return kind, broker and partition of a log message; None if it is irrelevant or about another topic."""
    for kind, pattern in _OF_BROKERS.items():
        if match := pattern.search(message):
            return kind, int(match[1]), None
    for kind, pattern in _OF_PARTITIONS.items():
        if match := pattern.search(message):
            return (kind, node_id if kind == "elected" else None, int(match[2])) if match[1] == topic else None
    return ("elected", node_id, None) if _CONTROLLER in message else None
