"""Events in the nodes' logs: table controller_events."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

from wanbench.errors import RawDataError
from wanbench.read.ingest.json_values import Members

from .files import named_file, whole_lines

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
"""The replicas in sync after the event, in a line about a partition."""
_CONTROLLER = "Becoming the active controller"
SHOWN = 300


def controller_events(top: Members, path: Path) -> list[dict]:
    """
    Rows of table controller_events.

    "elected": the node that logged it became the active controller or, with a partition, that partition's
    leader. Only partitions of the episode's topic count. A leader logs changes of in-sync replicas once the
    controller has agreed; "isr-grown" if they increase.
    """
    topic, rows = top.text("topic"), []
    for one in top.list("logs"):
        file, sha256 = named_file(one, path)
        if (node_id := one.count("node_id")) is None:
            one.refuse(str(one.values)[:80], "the node_id of a log")
        in_sync: dict[int, int] = {}
        for number, content in enumerate(whole_lines(file, sha256), 1):
            text = content.decode("utf-8", "replace")
            if not (match := _LINE.fullmatch(text)):
                raise RawDataError(file, number, text[:100], "a line of a node's log")
            event = _event(match[2], topic, node_id)
            if event is not None:
                kind, broker, partition = event
                if partition is not None and (isr := _ISR.search(match[2])):
                    before, in_sync[partition] = in_sync.get(partition, 0), isr[1].count(",") + 1
                    if kind == "isr-grown" and in_sync[partition] <= before:
                        continue
                try:
                    at_s = datetime.fromisoformat(f"{match[1]}+00:00").timestamp()
                except ValueError as error:
                    raise RawDataError(file, number, text[:100], "a time") from error
                rows.append(
                    {
                        "at_s": at_s,
                        "node_id": node_id,
                        "kind": kind,
                        "broker": broker,
                        "partition": partition,
                        "text": match[2][:SHOWN],
                    }
                )
    return sorted(rows, key=lambda row: row["at_s"])


def _event(text: str, topic: str | None, node_id: int) -> tuple[str, int | None, int | None] | None:
    """Kind, broker and partition of a message; None if it is about another topic, or irrelevant."""
    for kind, pattern in _OF_BROKERS.items():
        if match := pattern.search(text):
            return kind, int(match[1]), None
    for kind, pattern in _OF_PARTITIONS.items():
        if match := pattern.search(text):
            return (kind, node_id if kind == "elected" else None, int(match[2])) if match[1] == topic else None
    return ("elected", node_id, None) if _CONTROLLER in text else None
