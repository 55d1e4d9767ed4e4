"""
Read pauses of a broker or controller from its logs into table broker_pauses.

- The JVM's log, written with `-Xlog:gc,safepoint:file=...:utctime,tags`, has garbage collections and safepoints. A
  collection that stops all threads is logged as a collection and as a safepoint; concurrent phases of G1 are logged as
  neither.
- Kafka's own log has the durations of rolling a segment and of writing a producer snapshot. It lacks the durations of
  flushes; table metrics has the count, mean and 99th percentile of flushes (kafka_log_flush_mean_ms and others).

A JVM log is rejected at the first line of another format, a Kafka log only if its first line has another format. A
truncated last line, which a killed process leaves, is dropped.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pandas as pd

from wanbench.errors import RawDataError

from .content import File, decoded, read_bytes
from .rows import Row, fitting

LARGEST_BYTES = 2**29
"""Size of several weeks of a broker's log."""
SHOWN = 100
_LARGEST_MS = 1e10
"""Maximum duration of a pause: four months."""

_NODE = re.compile(r"(?:broker|controller)-(\d{1,9})\.")
_JVM_LINE = re.compile(r"\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.,]\d{3}[+-]\d{4})\]\[(gc|safepoint) *\] (.*)")
_COLLECTION = re.compile(r"GC\(\d+\) (Pause .+?)(?: \d+[KMG]->\d+[KMG]\(\d+[KMG]\))? (\d+[.,]\d+)ms")
_SAFEPOINT = re.compile(r'Safepoint "(\w+)", Time since last: .*, Total: +(\d+) ns')
_KAFKA_LINE = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3})Z [A-Z]+ (.*)")
_KAFKA = {  # "++" gives nothing back, so the work grows with the length of a line, not with its square
    "roll": re.compile(r"\[LocalLog partition=([^,\]]++).*\] Rolled new log segment at offset \d+ in (\d+) ms\."),
    "snapshot": re.compile(
        r"\[ProducerStateManager partition=([^,\]]+)\] Wrote producer snapshot at offset \d+ .* in (\d+) ms\."
    ),
}
_FIRST_OF_JVM = "a line of a JVM log with the tag gc or safepoint (-Xlog:gc,safepoint:...:utctime,tags)"
_FIRST = f"a line of a Kafka node's log with a time in UTC, or {_FIRST_OF_JVM}"


def read(path: str | Path) -> dict[str, pd.DataFrame]:
    """Read the pauses in a log of Kafka or its JVM; a RawDataError names the first invalid line."""
    path, data = read_bytes(Path(path), most_bytes=LARGEST_BYTES)
    lines = decoded(path, data[: data.rfind(b"\n") + 1]).split("\n")[:-1]
    if data and not lines:
        raise RawDataError(path, 1, data[:SHOWN].decode("utf-8", "replace"), _FIRST)
    rows = []
    if lines and _JVM_LINE.fullmatch(lines[0]):
        rows = list(_of_jvm(path, lines))
    elif lines and _KAFKA_LINE.fullmatch(lines[0]):
        rows = list(_of_kafka(path, lines))
    elif lines:
        raise RawDataError(path, 1, lines[0][:SHOWN], _FIRST)
    named = _NODE.search(Path(path).name)
    node_id = int(named[1]) if named else None
    return {"broker_pauses": fitting(path, "broker_pauses", [row | {"node_id": node_id} for row in rows])}


def _of_jvm(path: File, lines: list[str]) -> Iterator[Row]:
    for number, line in enumerate(lines, 1):
        match = _JVM_LINE.fullmatch(line)
        if not match:
            raise RawDataError(path, number, line[:SHOWN], _FIRST_OF_JVM)
        time, tag, message = match.groups()
        if tag == "safepoint":
            if not (found := _SAFEPOINT.fullmatch(message)):
                raise RawDataError(path, number, line[:SHOWN], "a safepoint with its cause and its total time in ns")
            duration_ms = float(found[2]) / 1e6
        elif found := _COLLECTION.fullmatch(message):
            duration_ms = float(found[2].replace(",", "."))
        elif message.startswith("GC(") and " Pause " in message:
            raise RawDataError(path, number, line[:SHOWN], "a collection with its duration in ms")
        else:
            continue
        yield _row(path, number, line, time.replace(",", "."), duration_ms, tag, found[1])


def _of_kafka(path: File, lines: list[str]) -> Iterator[Row]:
    for number, line in enumerate(lines, 1):
        # settings and stack traces have lines without a time
        if not (match := _KAFKA_LINE.fullmatch(line)):
            continue
        for kind, pattern in _KAFKA.items():
            if found := pattern.match(match[2]):
                yield _row(path, number, line, f"{match[1]}+0000", float(found[2]), kind, found[1])


def _row(path: File, number: int, line: str, time: str, duration_ms: float, kind: str, text: str) -> Row:
    try:
        ended_s = datetime.fromisoformat(time).timestamp()
    except ValueError:
        raise RawDataError(path, number, line[:SHOWN], "a time") from None
    if not duration_ms <= min(_LARGEST_MS, ended_s * 1_000):
        raise RawDataError(path, number, line[:SHOWN], f"a duration of at most {_LARGEST_MS:g} ms")
    return {"at_s": ended_s - duration_ms / 1_000, "duration_ms": duration_ms, "kind": kind, "text": text}
