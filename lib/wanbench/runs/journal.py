"""Read and append to the journal of a run, which has one event per line, as a JSON object."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from wanbench.errors import ParameterError, RawDataError
from wanbench.files import naming

NAME = "journal.jsonl"

_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(?:Z|[+-][0-9]{2}:[0-9]{2})")

_CONTEXT = {"test_id": str, "attempt": int}
_DESCRIPTIONS = {"plan": dict, "parameters": dict, "lab": dict}
EVENTS: dict[str, dict[str, type]] = {
    "run-started": {"schema_version": int, **dict.fromkeys(("campaign", "run_id"), str), **_DESCRIPTIONS},
    "round-started": {"round": int},
    "test-started": {**_CONTEXT, "round": int, "from_region": str, "to_region": str},
    "test-finished": {**_CONTEXT, "files": list},
    "test-failed": {**_CONTEXT, "experiment": str, "reason": str, "files": list},
    "lab-closed": {"files": list},
    "resumed": {"lab": dict},
    "interrupted": {"reason": str},
    "run-finished": {},
}
"""
The known events, and the fields that each must have besides `event` and `at_utc`. Readers ignore unknown events;
`Journal.append` rejects them.
"""


def now_utc() -> str:
    """Return the current time in UTC, in ISO 8601 with microseconds."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


@dataclass(frozen=True)
class Lines:
    """
    The content of a journal.

    `events` are in order, each with its "line_number". `torn` is a truncated last line, which a killed process left
    (b"" if there is none); `whole_bytes` is the length of the file without `torn`.
    """

    events: tuple[dict[str, Any], ...]
    torn: bytes
    whole_bytes: int


def read(path: Path) -> Lines:
    """Read a journal; a RawDataError names the first invalid line."""
    content = Path(path).read_bytes()
    whole_bytes = content.rfind(b"\n") + 1
    lines = content[:whole_bytes].split(b"\n")[:-1]
    events = tuple(_event(path, number, line) for number, line in enumerate(lines, start=1))
    return Lines(events, content[whole_bytes:], whole_bytes)


def _event(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        raise RawDataError(path, number, line.decode("utf-8", "replace"), "a JSON object") from None
    if not isinstance(event, dict) or not isinstance(event.get("event"), str):
        raise RawDataError(path, number, line.decode("utf-8", "replace"), "a JSON object with an 'event'")
    needed = {"at_utc": str, **EVENTS.get(event["event"], {})}
    for key, kind in needed.items():
        value: Any = event.get(key)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise RawDataError(path, number, value, f"event {event['event']!r} with {key!r} of type {kind.__name__}")
        if kind is int and not 0 <= value < 2**53:
            raise RawDataError(path, number, value, f"event {event['event']!r} with {key!r} from 0 to 2**53")
        if kind is str and value != value.encode("utf-8", "replace").decode():
            raise RawDataError(path, number, ascii(value), f"event {event['event']!r} with {key!r} in UTF-8")
    if not _is_time(event["at_utc"]):
        raise RawDataError(path, number, event["at_utc"], "a time in UTC, ISO 8601")
    event["line_number"] = number
    return event


def _is_time(text: str) -> bool:
    try:
        return _TIME.fullmatch(text) is not None and datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


class Journal:
    """
    Append events to a journal. Several threads may call `append`.
    """

    def __init__(self, path: Path):
        self._path, self._lock = path, threading.Lock()
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def append(self, *events: Mapping[str, object]) -> None:
        """
        Write events with the current time, one line each, and return when they are on the disk.

        Raise RawDataError if the file was removed or moved, because the events would be lost.
        """
        if not (self._path.exists() and os.path.samestat(os.fstat(self._file), self._path.stat())):
            raise RawDataError(self._path, None, "no journal", "the journal, which was removed while it was in use")
        at_utc, data = now_utc(), b""
        for event in events:
            if event.get("event") not in EVENTS:
                raise ParameterError(f"Event {event.get('event')!r} is not one of {', '.join(EVENTS)}.")
            line = {"event": event["event"], "at_utc": at_utc, **event}
            data += json.dumps(line, allow_nan=False).encode() + b"\n"
        with self._lock, naming(self._path):
            before = os.fstat(self._file).st_size
            try:
                while data:
                    data = data[os.write(self._file, data) :]
                os.fsync(self._file)
            except OSError:  # half a line may have been written to a full disk; the next one must not continue it
                os.ftruncate(self._file, before)
                raise

    def close(self) -> None:
        with self._lock:
            if self._file >= 0:
                os.close(self._file)
                self._file = -1
