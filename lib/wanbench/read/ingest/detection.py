"""
Read output of the detector of slow brokers (`wanbench.pages.rolling_and_degraded.design`) into tables detection_runs,
detections and detection_latencies.
"""

from pathlib import Path

import pandas as pd

from .json_values import Members, is_count, is_text, is_us, text
from .programs import LATEST_S, Program, open_document, programs
from .rows import Row, fitting

_EXPECTED = "partition, time and latency of a record"
_LATENCY = ("node_id", "due_at_s", "known_at_s", "latency_ms", "late", "error")


def read(path: str | Path) -> dict[str, pd.DataFrame]:
    """
    Read <stem>.detection.json and the file that it names.

    Raise RawDataError if one of them is missing, damaged or in another format.
    """
    path = Path(path)
    top = open_document(path, "a detection in JSON")
    nodes, faults = top.values.get("nodes", ""), top.values.get("faults") or []
    for name, values, kind, fits in (("nodes", nodes, "node_ids", is_count), ("faults", faults, "text", is_text)):
        if not isinstance(values, list) or not all(map(fits, values)):
            top.refuse(f"{name} = {str(values)[:80]}", f"a list of {kind}")
    settings = top.members("settings")
    detector = settings.members("detector")
    limit_ms = detector.number("limit_ms")
    rows = [row for program in programs(top, path) for row in _latencies(program, nodes, limit_ms or 0.0)]
    numbers = ("learn_s", "window_s", "shift", "false_alarms_per_h")
    run = {
        "brokers": ",".join(map(str, nodes)),
        "interval_s": settings.number("interval_s"),
        "record_bytes": settings.count("record_bytes"),
        **{name: detector.number(name) for name in numbers},
        "limit_ms": limit_ms,
        "least_windows": detector.count("least_windows"),
        "demote_on_alarm": settings.flag("demote_on_alarm"),
        **{name: top.number(name, most=LATEST_S) for name in ("began_at_s", "ended_at_s")},
        "error": text("; ".join(faults)) or None,
    }
    return {
        "detection_runs": fitting(path, "detection_runs", [run]),
        "detections": fitting(path, "detections", [_alarm(one) for one in top.list("alarms")]),
        "detection_latencies": fitting(path, "detection_latencies", pd.DataFrame(rows, columns=_LATENCY, dtype=object)),
    }


def _alarm(one: Members) -> Row:
    return {
        "node_id": one.count("broker"),
        **{name: one.number(name, most=LATEST_S) for name in ("at_s", "named_at_s", "since_s", "demoted_at_s")},
        **{name: one.number(name) for name in ("ratio", "statistic", "limit")},
        **{name: one.count(name) for name in ("n_alarmed", "leaders_moved")},
        "error": one.text("error"),
    }


def _latencies(program: Program, nodes: list[int], limit_ms: float) -> list[list[object]]:
    """Return rows of `_LATENCY` in the detector's order."""
    origin_ns, lines = program.events("detection probe")
    rows: dict[tuple[int, int], list[object]] = {}
    last_us = 0
    for number, line in lines:
        if isinstance(line, dict):
            continue
        program.check(number, line, isinstance(line, list) and len(line) >= 3, _EXPECTED)
        if isinstance(line[0], str):  # what librdkafka logged
            continue
        partition, due, latency, *why = line
        valid = is_count(partition) and partition < len(nodes) and is_us(due) and (latency is None or is_us(latency))
        valid = valid and len(why) <= 1 and all(map(is_text, why))
        program.check(number, line, valid and (latency is not None or bool(why)), _EXPECTED)
        latency_ms = None if latency is None else latency / 1e3
        if row := rows.get((partition, due)):  # it was late, and the detector has processed it as late
            row[3], row[5] = latency_ms, text(why[0]) if latency is None else None
            continue
        late = why == ["late"]
        known = due + (limit_ms * 1e3 if latency is None else latency)
        if latency is None and not late:
            known = max(due, last_us)
        last_us = round(known)
        due_s, known_s = (round(origin_ns / 1e9 + at / 1e6, 6) for at in (due, known))
        error = text(why[0]) if why and not late else None
        rows[partition, due] = [nodes[partition], due_s, known_s, latency_ms, late, error]
    for row in rows.values():
        if row[4] and row[3] is None and row[5] is None:
            row[5] = "no answer"
    return list(rows.values())
