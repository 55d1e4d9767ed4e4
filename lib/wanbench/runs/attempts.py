"""Derive the attempts at each test, and their outcomes, from the events of a journal."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wanbench.errors import RawDataError

from . import journal
from .raw import inside

_ERRORS = ("EDQUOT", "EIO", "EMFILE", "ENFILE", "ENOMEM", "ENOSPC", "EROFS")
_OF_MACHINE = re.compile(
    "|".join(re.escape(os.strerror(getattr(errno, one))) for one in _ERRORS) + r"|\bstatus 12[67]\b"
)
"""
Error messages that blame the machine, such as "No space left on device". A shell returns status 126 or 127 if a program
cannot be started.
"""


@dataclass(frozen=True)
class Attempt:
    """
    One attempt at a test.

    `outcome` is "done", "failed", or "interrupted" if the journal does not record its end. `last_sign_at_utc` is the
    time of the last event before the attempt ended or its session broke off: the attempt was still running then.
    """

    test_id: str
    attempt: int
    round: int
    from_region: str
    to_region: str
    outcome: str
    failed_experiment: str | None
    reason: str | None
    started_at_utc: str
    ended_at_utc: str | None
    last_sign_at_utc: str
    files: tuple[dict[str, Any], ...]

    @property
    def by_machine(self) -> bool:
        """Return whether the attempt failed because of the machine: a full disk, a program that does not start."""
        return self.reason is not None and _OF_MACHINE.search(self.reason) is not None


def attempts_of(folder: Path, events: tuple[dict[str, Any], ...]) -> Iterator[Attempt]:
    """
    Yield all attempts of a journal in the order of their starts; raise RawDataError if events are contradictory.
    """
    path = folder / journal.NAME
    started: dict[tuple[str | None, int | None], dict[str, Any]] = {}
    ends: dict[tuple[str | None, int | None], dict[str, Any]] = {}
    last_sign: dict[tuple[str | None, int | None], str] = {}
    session: list[tuple[str | None, int | None]] = []
    for event in events:
        kind = event["event"]
        key = (event.get("test_id"), event.get("attempt"))
        if kind == "resumed":
            session = []
        if kind == "test-started":
            if key in started:
                raise RawDataError(path, event["line_number"], key, "an attempt that did not start before")
            started[key] = event
            session.append(key)
        elif kind in ("test-finished", "test-failed"):
            if key not in started or key in ends:
                raise RawDataError(path, event["line_number"], key, "the end of an attempt that started and has none")
            ends[key] = event
            session.remove(key)
        for unfinished in session:
            last_sign[unfinished] = event["at_utc"]
    for key, start in started.items():
        end = ends.get(key, {})
        failed = end.get("event") == "test-failed"
        yield Attempt(
            **{name: start[name] for name in ("test_id", "attempt", "round", "from_region", "to_region")},
            outcome="failed" if failed else "done" if end else "interrupted",
            failed_experiment=end["experiment"] if failed else None,
            reason=end["reason"] if failed else None,
            started_at_utc=start["at_utc"],
            ended_at_utc=end.get("at_utc"),
            last_sign_at_utc=last_sign.get(key) or start["at_utc"],
            files=files_of(folder, end) if end else (),
        )


def files_of(folder: Path, event: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """
    Return the raw files that a journal event lists; raise RawDataError for an invalid entry or a path outside `folder`.
    """
    path, line = folder / journal.NAME, event["line_number"]
    for file in event["files"]:
        if not isinstance(file, dict):
            raise RawDataError(path, line, file, "a file as a JSON object")
        for key, kind in (("path", str), ("experiment", str), ("sha256", str), ("bytes", int)):
            if not isinstance(file.get(key), kind):
                raise RawDataError(path, line, file.get(key), f"a file with {key!r} of type {kind.__name__}")
        inside(folder, file["path"], path, line)
    return tuple(event["files"])
