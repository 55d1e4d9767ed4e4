"""Read the output of an episode's producers and consumers."""

from __future__ import annotations

from .files import LATEST_NS, MOST_RECORDS, Program, is_count, is_time, text

_ANSWERS = {"sent": 3, "acknowledged": 5, "failed": 4}
_CHANGES = ("assigned", "revoked", "lost")


def records(program: Program, partitions: int) -> tuple[dict[str, list], list[dict]]:
    """Columns of table fault_records, and rows of fault_errors, of one producer."""
    origin_ns, lines = program.events("fault producer")
    start_ns = interval_ns = None
    due, errors = 0, []
    happened: dict[str, dict[int, list]] = {what: {} for what in _ANSWERS}
    for number, line in lines:
        if isinstance(line, dict):
            if "start_ns" in line:
                start_ns, interval_ns = line["start_ns"], line.get("interval_ns")
                well = is_count(start_ns) and start_ns < LATEST_NS and is_count(interval_ns) and interval_ns > 0
                program.check(number, line, well, "start_ns and interval_ns")
            if "due" in line:
                due = line["due"]
                well = is_count(due) and due <= MOST_RECORDS and (start_ns is not None or not due)
                program.check(number, line, well, "how many records came due")
            continue
        if _is_error(line):
            errors.append(_error(program, origin_ns, number, line))
            continue
        well = isinstance(line, list) and bool(line) and isinstance(line[0], str) and len(line) == _ANSWERS.get(line[0])
        well = well and start_ns is not None and is_count(line[1]) and line[1] < MOST_RECORDS and is_time(line[2])
        program.check(number, line, well, "a line of a fault producer")
        what, sequence, at, *more = line
        if what == "acknowledged":
            well = is_count(more[0]) and more[0] < partitions and isinstance(more[1], int) and more[1] < 2**63
            program.check(number, line, well, "partition and offset")
        elif what == "failed":
            program.check(number, line, isinstance(more[0], str), "a reason in text")
        happened[what].setdefault(sequence, [origin_ns / 1e9 + at / 1e6, *more])
    due = max([due, *(1 + sequence for answers in happened.values() for sequence in answers)])
    sent, acknowledged, failed = happened.values()
    numbers = range(due)
    offsets = [acknowledged[n][2] if n in acknowledged else None for n in numbers]
    return {
        "producer": [program.number] * due,
        "sequence": list(numbers),
        "partition": [n % partitions for n in numbers],
        "intended_at_s": [(start_ns + n * interval_ns) / 1e9 for n in numbers],
        "sent_at_s": [sent[n][0] if n in sent else None for n in numbers],
        "acknowledged_at_s": [acknowledged[n][0] if n in acknowledged else None for n in numbers],
        "offset": [None if offset is None or offset < 0 else offset for offset in offsets],
        "error": [text(failed[n][1]) if n in failed else None for n in numbers],
    }, errors


def receipts(program: Program, partitions: int) -> tuple[dict[str, list], list[dict], list[dict]]:
    """Columns of table fault_receipts, rows of fault_assignments and of fault_errors, of one consumer."""
    origin_ns, lines = program.events("fault consumer")
    columns = {
        name: [] for name in ("consumer", "producer", "sequence", "partition", "offset", "received_at_s", "damaged")
    }
    changes, errors = [], []
    for number, line in lines:
        if isinstance(line, dict):
            continue
        if _is_error(line):
            errors.append(_error(program, origin_ns, number, line))
        elif isinstance(line, list) and line and line[0] in _CHANGES:
            well = len(line) == 3 and is_time(line[1]) and isinstance(line[2], list)
            well = well and all(is_count(partition) and partition < partitions for partition in line[2])
            program.check(number, line, well, "a time and partitions")
            changes.append(
                {
                    "consumer": program.number,
                    "at_s": origin_ns / 1e9 + line[1] / 1e6,
                    "kind": line[0],
                    "partitions": ",".join(map(str, line[2])),
                }
            )
        else:
            well = isinstance(line, list) and len(line) == 7 and line[0] == "received" and isinstance(line[6], bool)
            well = well and all(map(is_count, line[3:5])) and line[3] < partitions and is_time(line[5])
            well = well and (line[1:3] == [None, None] if line[6] else all(map(is_count, line[1:3])))
            program.check(number, line, well, "a line of a fault consumer")
            _, producer, sequence, partition, offset, at, damaged = line
            row = (program.number, producer, sequence, partition, offset, origin_ns / 1e9 + at / 1e6, damaged)
            for name, value in zip(columns, row, strict=True):
                columns[name].append(value)
    return columns, changes, errors


def _is_error(line) -> bool:
    return isinstance(line, list) and bool(line) and line[0] == "error"


def _error(program: Program, origin_ns: int, number: int, line: list) -> dict:
    well = len(line) == 4 and is_time(line[1]) and all(isinstance(word, str) for word in line[2:])
    program.check(number, line, well, "time, name and text of an error")
    return {
        "role": program.role,
        "client": program.number,
        "at_s": origin_ns / 1e9 + line[1] / 1e6,
        "kind": text(line[2]),
        "message": text(line[3]),
    }
