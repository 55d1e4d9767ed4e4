"""Read output of `wanbench.measure.experiments.broker_actions`: tables broker_actions and cluster_samples."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from .json_values import Members, read_json
from .kafka_fault.files import LATEST_NS, Program, is_count, is_number, programs, text
from .rows import fitting

_TIMES = ("asked_at_s", "began_at_s", "in_force_at_s", "done_at_s", "healthy_at_s")
_LASTING = ("kill", "slow", "link")
_COLUMNS = ("region", "at_s", "took_s", "node_id", "topic", "partition", "leader", "isr", "n_isr", "error")


def read(path) -> dict[str, pd.DataFrame]:
    """
    The tables of <stem>.actions.json and the file that it names, without context.

    RawDataError if a file is missing, damaged, or not of such a run.
    """
    path = Path(path)
    top = Members(path, None, read_json(path, dict, "broker actions in JSON"))
    if top.count("format") != 1:
        top.refuse(f"format {top.values.get('format')!r}", "format 1")
    rolling = top.members("settings").flag("rolling") or False
    rows = [_row(one, rolling) for one in top.list("actions")]
    columns: dict[str, list] = {name: [] for name in _COLUMNS}
    for program in programs(top, path):
        for name, values in samples(program).items():
            columns[name] += values
    return {
        "broker_actions": fitting(path, "broker_actions", rows),
        "cluster_samples": fitting(path, "cluster_samples", columns),
    }


def _row(one: Members, rolling: bool) -> dict:
    kind = one.text("kind")
    return {
        "number": one.count("number"),
        "node_id": one.count("node_id"),
        "kind": kind,
        "rolling": rolling,
        "for_s": one.number("for_s") if kind in _LASTING else None,
        "detail": json.dumps(one.members("how").values, sort_keys=True),
        **{name: one.number(name, most=LATEST_NS / 1e9) for name in _TIMES},
        "leaders_moved": one.count("leaders_moved"),
        "error": one.text("error"),
    }


def samples(program: Program) -> dict[str, list]:
    """
    Columns of table cluster_samples of a watcher: a line is [at_s, took_s, node_id, brokers, state], with null for
    values unchanged from the line before, or [at_s, took_s, kind of the error, message].
    """
    columns: dict[str, list] = {name: [] for name in _COLUMNS}
    state: list | None = None

    def add(*values):
        for name, value in zip(_COLUMNS, values, strict=True):
            columns[name].append(value)

    for number, line in program.lines():
        well = isinstance(line, list) and len(line) in (4, 5) and is_number(line[0]) and is_number(line[1])
        program.check(number, line, well, "a sample of a watch")
        at_s, took_s, node_id, *seen = line
        if len(line) == 4:
            well = isinstance(node_id, str) and isinstance(seen[0], str)
            program.check(number, line, well, "kind and message of an error")
            add(program.region, at_s, took_s, *[None] * 6, text(f"{node_id}: {seen[0]}"))
            continue
        program.check(number, line, is_count(node_id), "the node that answered")
        if seen[1] is not None:
            program.check(number, line, _is_state(seen[1]), "leader and in-sync replicas of each partition")
            state = [
                (text(topic), partition, leader, ",".join(map(str, isr)), len(isr))
                for topic, rows in seen[1].items()
                for partition, (leader, isr) in enumerate(rows)
            ]
        program.check(number, line, state is not None, "a state, in the first sample")
        if not state:
            add(program.region, at_s, took_s, node_id, *[None] * 6)
        for row in state:
            add(program.region, at_s, took_s, node_id, *row, None)
    return columns


def _is_state(value) -> bool:
    return isinstance(value, dict) and all(
        isinstance(rows, list)
        and all(
            isinstance(row, list)
            and len(row) == 2
            and (row[0] is None or is_count(row[0]))
            and isinstance(row[1], list)
            and all(map(is_count, row[1]))
            for row in rows
        )
        for rows in value.values()
    )
