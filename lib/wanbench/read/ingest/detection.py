"""Read output of `wanbench.pages.rolling_and_degraded.design`: tables detection_runs, detections and detection_latencies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from .json_values import Members, read_json
from .kafka_fault.files import LATEST_NS, LONGEST_US, Program, is_count, programs, text
from .rows import fitting

_LATEST_S = LATEST_NS / 1e9
_EXPECTED = "partition, time and latency of a record"


def read(path) -> dict[str, pd.DataFrame]:
    """
    The tables of <stem>.detection.json and the file that it names, without context.

    RawDataError if a file is missing, damaged, or not of a detection.
    """
    path = Path(path)
    top = Members(path, None, read_json(path, dict, "a detection in JSON"))
    if top.count("format") != 1:
        top.refuse(f"format {top.values.get('format')!r}", "format 1")
    nodes = top.values.get("nodes")
    if not isinstance(nodes, list) or not all(map(is_count, nodes)):
        top.refuse(f"nodes = {str(nodes)[:80]}", "a list of node_ids")
    latencies, client, n_due = pd.DataFrame(), None, 0
    for program in programs(top, path):
        latencies, client, n_due = _latencies(program, nodes, top)
    limit_ms = top.members("settings").members("detector").number("limit_ms")
    fitted = fitting(path, "detection_latencies", latencies)
    run = _run(top, nodes, limit_ms) | {
        "client": client,
        "n_due": n_due,
        "n_late": int(fitted.late.sum()),
        "n_failed": int(fitted.latency_ms.isna().sum()),
    }
    return {
        "detection_runs": fitting(path, "detection_runs", [run]),
        "detections": fitting(path, "detections", [_alarm(one) for one in top.list("alarms")]),
        "detection_latencies": fitted,
    }


def _run(top: Members, nodes: list[int], limit_ms: float | None) -> dict:
    settings = top.members("settings")
    detector = settings.members("detector")
    faults = top.values.get("faults") or []
    if not isinstance(faults, list) or not all(isinstance(each, str) for each in faults):
        top.refuse(f"faults = {str(faults)[:80]}", "a list of text")
    numbers = ("learn_s", "window_s", "shift", "false_alarms_per_h", "weight")
    return {
        "brokers": ",".join(map(str, nodes)),
        "interval_s": settings.number("interval_s"),
        "record_bytes": settings.count("record_bytes"),
        "method": detector.text("method"),
        **{name: detector.number(name) for name in numbers},
        "limit_ms": limit_ms,
        "least_windows": detector.count("least_windows"),
        "demote_on_alarm": settings.flag("demote_on_alarm"),
        "began_at_s": top.number("began_at_s", most=_LATEST_S),
        "ended_at_s": top.number("ended_at_s", most=_LATEST_S),
        "error": text("; ".join(faults)) or None,
    }


def _alarm(one: Members) -> dict:
    baseline = one.members("baseline")
    centre = baseline.values.get("centre")
    if isinstance(centre, bool) or not isinstance(centre, int | float) or not abs(centre) < 50:
        baseline.refuse(f"baseline.centre = {str(centre)[:40]}", "the logarithm of a latency in ms")
    times = ("at_s", "named_at_s", "since_s", "demoted_at_s")
    return {
        "node_id": one.count("broker"),
        **{name: one.number(name, most=_LATEST_S) for name in times},
        **{name: one.number(name) for name in ("ratio", "statistic", "limit")},
        "n_alarmed": one.count("n_alarmed"),
        "baseline_ms": float(np.exp(centre)),
        "baseline_spread": baseline.number("spread"),
        "baseline_phi": baseline.number("phi"),
        "leaders_moved": one.count("leaders_moved"),
        "error": one.text("error"),
    }


def _latencies(program: Program, nodes: list[int], top: Members) -> tuple[dict, str | None, int]:
    """Columns of detection_latencies, the client's version, and the number of due records."""
    limit_ms = top.members("settings").members("detector").number("limit_ms") or 0.0
    origin_ns, lines = program.events("detection probe")
    names = ("node_id", "due_at_s", "known_at_s", "latency_ms", "late", "error")
    columns: dict[str, list] = {name: [] for name in names}
    place: dict[tuple[int, int], int] = {}
    client, n_due, last_s = None, 0, 0.0
    for number, line in lines:
        if isinstance(line, dict):
            n_due = line["due"] if is_count(line.get("due")) else n_due
            continue
        program.check(number, line, isinstance(line, list) and len(line) >= 3, _EXPECTED)
        if isinstance(line[0], str):  # what librdkafka logged
            continue
        partition, due, latency, *why = line
        well = is_count(partition) and partition < len(nodes) and is_count(due) and due < LONGEST_US
        well = well and (latency is None or (is_count(latency) and latency < LONGEST_US))
        well = well and len(why) <= 1 and all(isinstance(each, str) for each in why)
        program.check(number, line, well and (latency is not None or bool(why)), _EXPECTED)
        key = partition, due
        if key in place:  # late: it has been read by the detector as such
            at = place[key]
            columns["latency_ms"][at] = None if latency is None else latency / 1e3
            columns["error"][at] = text(why[0]) if latency is None else None
            continue
        place[key] = len(columns["late"])
        late = why == ["late"]
        known = due + (limit_ms * 1e3 if latency is None else latency)
        if latency is None and not late:
            known = max(due, round(last_s * 1e6))
        due_s, known_s = (round(origin_ns / 1e9 + at / 1e6, 6) for at in (due, known))
        last_s = known / 1e6
        value_ms = None if latency is None else latency / 1e3
        row = nodes[partition], due_s, known_s, value_ms, late, (text(why[0]) if why and not late else None)
        for name, value in zip(names, row, strict=True):
            columns[name].append(value)
    if columns["late"]:
        columns["error"] = [
            "no answer" if late and latency is None and error is None else error
            for late, latency, error in zip(columns["late"], columns["latency_ms"], columns["error"], strict=True)
        ]
    first = program.lines()[0][1]
    client = first.get("client") if isinstance(first.get("client"), list | str) else None
    client = str(client[0]) if isinstance(client, list) and client else client
    return columns, client, n_due
