"""Watchers' samples of the cluster and of the group."""

from __future__ import annotations

from .files import Program, is_count, is_number, text

_COLUMNS = ("region", "at_s", "took_s", "node_id", "partition", "leader", "isr", "n_isr", "error")


def cluster_samples(program: Program, partitions: int) -> dict[str, list]:
    """
    Columns of table cluster_samples of one watcher: a line is [at_s, took_s, node_id, state], with state null if
    unchanged from the line before, or [at_s, took_s, kind of the error, message].
    """
    columns = {name: [] for name in _COLUMNS}
    state: list | None = None

    def add(*values):
        for name, value in zip(_COLUMNS, values, strict=True):
            columns[name].append(value)

    for number, line in program.lines():
        well = isinstance(line, list) and len(line) == 4 and is_number(line[0]) and is_number(line[1])
        program.check(number, line, well, "a sample of a watch")
        at_s, took_s, node_id, seen = line
        if isinstance(node_id, str):
            program.check(number, line, isinstance(seen, str), "the message of an error")
            add(program.region, at_s, took_s, None, None, None, None, None, text(f"{node_id}: {seen}"))
            continue
        program.check(number, line, is_count(node_id), "the node that answered")
        if seen is not None:
            well = isinstance(seen, list) and len(seen) <= partitions and all(map(_is_state, seen))
            program.check(number, line, well, "leader and in-sync replicas of each partition")
            state = [(leader, ",".join(map(str, isr)), len(isr)) for leader, isr in seen]
        program.check(number, line, state is not None, "a state, in the first sample")
        if not state:
            add(program.region, at_s, took_s, node_id, None, None, None, None, None)
        for partition, (leader, isr, n_isr) in enumerate(state):
            add(program.region, at_s, took_s, node_id, partition, leader, isr, n_isr, None)
    return columns


def _is_state(value) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and (value[0] is None or is_count(value[0]))
        and isinstance(value[1], list)
        and all(map(is_count, value[1]))
    )


def group_samples(program: Program, regions: dict[int, str]) -> list[dict]:
    """
    Rows of table group_samples of one watcher: a line is [at_s, group, state, [[consumer, partitions] ...]], or
    [at_s, group, kind of the error, message]. `regions` are those of the consumers.
    """
    rows = []
    for number, line in program.lines():
        well = isinstance(line, list) and len(line) == 4 and is_number(line[0])
        well = well and all(isinstance(word, str) for word in line[1:3])
        program.check(number, line, well, "a sample of a group")
        at_s, group, state, members = line
        row = {"region": program.region, "at_s": at_s, "group": text(group)}
        if isinstance(members, str):
            rows.append(row | {"error": text(f"{state}: {members}")})
            continue
        well = isinstance(members, list) and all(
            isinstance(member, list) and len(member) == 2 and all(map(is_count, member)) for member in members
        )
        program.check(number, line, well, "the number and the partitions of each member")
        row |= {"state": text(state)}
        rows += [
            row | {"member": member, "client_region": regions.get(member), "n_partitions": n} for member, n in members
        ] or [row]
    return rows
