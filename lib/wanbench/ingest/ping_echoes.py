"""
From what the lines of ping say to one row per echo, in bounded memory. `ping` uses it; imports `ping_lines`.

Sequences are 16 bits on the wire and are carried on past 65,535; a reply may be `WINDOW` echoes late. Echoes
between the first and the newest that no line shows are lost; so are those that only the footer counts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..errors import RawDataError
from .ping_lines import REPLY, REPORT, SILENCE, Event, Footer

WINDOW = 32768
SILENT_ECHOES, SILENT_PER_LINE = 100_000, 10


class Events(NamedTuple):
    """Events as arrays, in line order. Texts are codes of a `Words`; -1, 0 or NaN stand for "not said"."""

    line_number: np.ndarray
    kind: np.ndarray
    sequence: np.ndarray
    received_at_s: np.ndarray
    rtt_ms: np.ndarray
    ttl: np.ndarray
    reply_bytes: np.ndarray
    responder: np.ndarray
    error: np.ndarray
    duplicate: np.ndarray

    def take(self, which) -> Events:
        """The events at these places (indices, mask or slice)."""
        return Events(*(column[which] for column in self))


DTYPES = Events("i8", "i1", "i8", "f8", "f8", "i2", "i4", "i4", "i4", "?")


class Rows(NamedTuple):
    """Rows of the core of table echoes, as arrays, coded like `Events`."""

    sequence: np.ndarray
    received_at_s: np.ndarray
    rtt_ms: np.ndarray
    lost: np.ndarray
    duplicate: np.ndarray
    ttl: np.ndarray
    reply_bytes: np.ndarray
    responder: np.ndarray
    error: np.ndarray

    def take(self, which) -> Rows:
        """The rows at these places."""
        return Rows(*(column[which] for column in self))


class Words:
    """Texts and their codes; 0 is no text."""

    def __init__(self):
        self.texts: list[str | None] = [None]
        self._codes: dict[str | None, int] = {None: 0}

    def code(self, text: str | None) -> int:
        """The code of a text, a new one if it was never seen."""
        if text not in self._codes:
            self._codes[text] = len(self.texts)
            self.texts.append(text)
        return self._codes[text]


def as_events(events: list[Event], words: Words) -> Events:
    """Single events as arrays."""
    nan = float("nan")
    rows = [
        event._replace(
            received_at_s=nan if event.received_at_s is None else event.received_at_s,
            rtt_ms=nan if event.rtt_ms is None else event.rtt_ms,
            responder=words.code(event.responder),
            error=words.code(event.error),
        )
        for event in events
    ]
    columns = zip(*rows, strict=True) if rows else ((),) * len(DTYPES)
    return Events(*(np.array(column, dtype) for column, dtype in zip(columns, DTYPES, strict=True)))


class Echoes:
    """
    Collects events in line order and gives rows back, sorted by sequence, as soon as nothing can change them.

    The result and the first fault found do not depend on how the events are cut into batches.
    """

    def __init__(self, path, first_sequence: int, *, wraps: bool):
        self.path, self.first, self.wraps = path, first_sequence, wraps
        self._raw = self._unwrapped = self._next = first_sequence
        self._newest = first_sequence - 1
        self._open = as_events([], Words())
        self._replies = self._duplicates = 0

    def add(self, events: Events) -> Rows:
        """Take the next events; give the rows that are final. RawDataError for an impossible sequence."""
        events, fault = self._carried_on(events)
        merged = Events(*(np.concatenate(both) for both in zip(self._open, events, strict=True)))
        if len(merged.sequence) > 1 and (np.diff(merged.sequence) < 0).any():
            merged = merged.take(np.argsort(merged.sequence, kind="stable"))
        self._refuse_duplicates_of_nothing(merged)
        if fault:
            raise RawDataError(self.path, *fault)
        final = int(np.searchsorted(merged.sequence, self._newest - WINDOW))
        self._open = merged.take(slice(final, None))
        return self._rows(merged.take(slice(0, final)))

    def finish(self, footer: Footer | None, lines: int, reported: int = 0) -> Rows:
        """The remaining rows. RawDataError if the footer's counts contradict the lines."""
        rows = self._rows(self._open)
        if footer is None:
            return rows
        sent = self._newest - self.first + 1
        replies, duplicates = self._replies - self._duplicates, self._duplicates
        faults = []
        if sent > footer.transmitted:
            faults.append(f"at least {sent} transmitted")
        if footer.received not in (replies, replies + reported):
            faults.append(f"{replies} received")
            if not self._replies:
                faults[-1] += " (a line per reply: ping without -q)"
        if footer.duplicates != duplicates:
            faults.append(f"{duplicates} duplicates")
        if footer.transmitted > SILENT_ECHOES + SILENT_PER_LINE * lines:
            faults.append(f"at most {SILENT_ECHOES:,} echoes that no line shows")
        if faults:
            expected = "counts that fit the lines: " + ", ".join(faults)
            raise RawDataError(self.path, footer.line_number, footer.text, expected)
        tail = _lost(np.arange(self._newest + 1, self.first + footer.transmitted))
        return Rows(*(np.concatenate(both) for both in zip(rows, tail, strict=True)))

    def _carried_on(self, events):
        """The events, sequences carried on, up to the first impossible one, and what is wrong with that."""
        printed = events.sequence
        if self.wraps and len(printed):
            raw = printed % 65536
            steps = (np.diff(raw, prepend=self._raw) + 32768) % 65536 - 32768
            sequence = self._unwrapped + np.cumsum(steps)
        else:
            raw = sequence = printed
        newest = np.maximum.accumulate(np.maximum(sequence, self._newest))
        late = (sequence < self.first) | (sequence < newest - WINDOW)
        far = sequence - self.first > SILENT_ECHOES + SILENT_PER_LINE * events.line_number
        wrong = np.flatnonzero(late | far)
        fault = None
        if len(wrong):
            at = wrong[0]
            expected = (
                f"an echo from {self.first} on, at most {WINDOW} older than the newest"
                if late[at]
                else f"at most {SILENT_ECHOES:,} echoes that no line shows"
            )
            fault = (int(events.line_number[at]), f"echo {printed[at]}", expected)
            events, raw, sequence, newest = events.take(slice(0, at)), raw[:at], sequence[:at], newest[:at]
        if len(sequence):
            self._raw, self._unwrapped, self._newest = int(raw[-1]), int(sequence[-1]), int(newest[-1])
        return events._replace(sequence=sequence), fault

    def _refuse_duplicates_of_nothing(self, events):
        if not events.duplicate.any():
            return
        replies = events.take(events.kind == REPLY)
        first = np.diff(replies.sequence, prepend=-1) != 0
        lines = replies.line_number[first & replies.duplicate]
        if len(lines):
            expected = "a first reply to the echo before its duplicate"
            raise RawDataError(self.path, int(lines.min()), "(DUP!)", expected)

    def _rows(self, events):
        """Rows of final events, sorted by sequence, and of the echoes before them that no line shows."""
        n = len(events.sequence)
        if not n:
            return _lost(np.arange(0))
        if (events.kind == REPLY).all() and (np.diff(events.sequence, prepend=self._next - 1) == 1).all():
            self._replies += n
            self._next = int(events.sequence[-1]) + 1
            return _replies(events, np.zeros(n, bool))
        starts = np.flatnonzero(np.diff(events.sequence, prepend=-1))
        group = np.cumsum(np.diff(events.sequence, prepend=-1) != 0) - 1
        reply, report, silence = (_first_of(events.kind == kind, starts) for kind in (REPLY, REPORT, SILENCE))
        said = np.where(report < n, report, silence)  # what ping said of the echo beside a reply
        keep = events.kind == REPLY
        again = keep & (np.arange(n) != reply[group])
        self._replies += int(keep.sum())
        self._duplicates += int(again.sum())
        error = events.error.copy()
        noted = np.flatnonzero((reply < n) & (said < n))
        noted = noted[error[reply[noted]] == 0]
        error[reply[noted]] = error[said[noted]]
        keep[said[reply == n]] = True
        kept = events._replace(error=error).take(keep)
        rows = _replies(kept, again[keep])
        shown = events.sequence[starts]
        first, self._next = self._next, int(shown[-1]) + 1
        if self._next - first > len(shown):
            missing = np.setdiff1d(np.arange(first, self._next), shown, assume_unique=True)
            rows = Rows(*(np.concatenate(both) for both in zip(rows, _lost(missing), strict=True)))
            rows = rows.take(np.argsort(rows.sequence, kind="stable"))
        return rows


def _first_of(mask, starts):
    """For each group, the place of its first event in the mask; the number of events where there is none."""
    n = len(mask)
    return np.minimum.reduceat(np.where(mask, np.arange(n), n), starts)


def _replies(events, duplicate):
    return Rows(
        events.sequence,
        events.received_at_s,
        np.where(events.kind == REPLY, events.rtt_ms, np.nan),
        events.kind != REPLY,
        duplicate,
        events.ttl,
        events.reply_bytes,
        events.responder,
        events.error,
    )


def _lost(sequence):
    n = len(sequence)
    nan, none, zero = np.full(n, np.nan), np.full(n, -1), np.zeros(n, "i4")
    return Rows(
        sequence.astype("i8"),
        nan,
        nan,
        np.ones(n, bool),
        np.zeros(n, bool),
        none.astype("i2"),
        none.astype("i4"),
        zero,
        zero,
    )
