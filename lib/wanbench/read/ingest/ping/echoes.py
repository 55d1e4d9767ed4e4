"""
Combine events, single lines of ping, into one row per echo, in bounded memory.

Sequences are 16 bits on the wire and are unwrapped past 65,535; a reply may be `WINDOW` echoes late. Echoes between the
first and the newest without a line are lost; so are echoes that only the footer counts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wanbench.errors import RawDataError

from .lines import REPLY, REPORT, SILENCE, Event, Footer

WRAP = 65536
"""Sequences count modulo 16 bits."""

WINDOW = 32768
"""Half of them: with a reply later than this, one could not tell which echo it answers."""

AT_ONCE = 8
"""Rows are made after this many windows of events, so that few events are sorted twice."""

SILENT_ECHOES = 100_000
"""Lost echoes without a line that any file may have: a limit, so that a corrupt number cannot make billions of rows."""

SILENT_PER_LINE = 10
"""Further such echoes allowed per line: a long log may lose 10 echoes of 11."""


class Events(NamedTuple):
    """Events as arrays, in line order. Texts are codes of a `Texts`; -1, 0 or NaN: not printed."""

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
        """The events at these indices, or of this mask or slice."""
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
        """The rows at these indices, or of this mask or slice."""
        return Rows(*(column[which] for column in self))


class Texts:
    """Texts and their codes; 0 is no text."""

    def __init__(self):
        self.texts: list[str | None] = [None]
        self._codes: dict[str | None, int] = {None: 0}

    def code(self, text: str | None) -> int:
        """The code of a text, a new one on first use."""
        if text not in self._codes:
            self._codes[text] = len(self.texts)
            self.texts.append(text)
        return self._codes[text]


def as_events(events: list[Event], texts: Texts) -> Events:
    """Single events as arrays."""
    nan = float("nan")
    rows = [
        event._replace(
            received_at_s=nan if event.received_at_s is None else event.received_at_s,
            rtt_ms=nan if event.rtt_ms is None else event.rtt_ms,
            responder=texts.code(event.responder),
            error=texts.code(event.error),
        )
        for event in events
    ]
    columns = zip(*rows, strict=True) if rows else ((),) * len(DTYPES)
    return Events(*(np.array(column, dtype) for column, dtype in zip(columns, DTYPES, strict=True)))


class Echoes:
    """
    Collects events in line order, and yields rows, sorted by sequence, once they are final.

    The result and the first fault found do not depend on how the events are cut into batches.
    """

    def __init__(self, path, first_sequence: int, *, wraps: bool, silent: int = 0):
        self.path, self.first, self.wraps = path, first_sequence, wraps
        self._silent = SILENT_ECHOES - silent  # of the echoes that no line shows, earlier pings had some
        self._raw = self._unwrapped = self._next = first_sequence
        self._newest = first_sequence - 1
        self._open: list[Events] = []
        self._replies = self._duplicates = 0
        self._in_order = True  # so far: only first replies, none of them late

    def add(self, events: Events) -> Rows:
        """Process the next events; yields final rows from time to time. RawDataError for an impossible event."""
        events, fault = self._unwrapped_up_to_fault(events)
        self._open.append(events)
        if fault:
            self.check()
            raise RawDataError(self.path, *fault)
        if sum(len(part.sequence) for part in self._open) < AT_ONCE * WINDOW:
            return NO_ROWS
        events = self.check()
        final = int(np.searchsorted(events.sequence, self._newest - WINDOW))
        self._open = [events.take(slice(final, None))]
        return self._rows(events.take(slice(0, final)))

    def check(self) -> Events:
        """The events not yet in rows, by sequence; RawDataError for a duplicate without a first reply."""
        if len(self._open) == 1:
            events = self._open[0]
        elif self._open:
            events = Events(*(np.concatenate(parts) for parts in zip(*self._open, strict=True)))
        else:
            events = as_events([], Texts())
        if not self._in_order:
            if (np.diff(events.sequence) < 0).any():
                events = events.take(np.argsort(events.sequence, kind="stable"))
            self._refuse_duplicates_of_nothing(events)
        self._open = [events]
        return events

    def finish(self, footer: Footer | None, lines: int, reported: int = 0) -> Rows:
        """The remaining rows. RawDataError if the footer's counts contradict the lines."""
        rows = self._rows(self.check())
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
        if footer.transmitted > self._silent + SILENT_PER_LINE * lines:
            faults.append(f"at most {SILENT_ECHOES:,} echoes that no line shows")
        if faults:
            expected = "counts that fit the lines: " + ", ".join(faults)
            raise RawDataError(self.path, footer.line_number, footer.text, expected)
        if self._newest + 1 == self.first + footer.transmitted:
            return rows
        tail = _lost(np.arange(self._newest + 1, self.first + footer.transmitted))
        return Rows(*(np.concatenate(both) for both in zip(rows, tail, strict=True)))

    def _unwrapped_up_to_fault(self, events):
        """Events with unwrapped sequences, up to the first impossible one, and its fault."""
        printed = events.sequence
        self._in_order = self._in_order and self._continued(events)
        if self._in_order:
            if len(printed):
                self._raw = self._unwrapped = self._newest = int(printed[-1])
            return events, None
        if self.wraps and len(printed):
            raw = printed % WRAP
            steps = (np.diff(raw, prepend=self._raw) + WRAP // 2) % WRAP - WRAP // 2
            sequence = self._unwrapped + np.cumsum(steps)
        else:
            raw = sequence = printed
        newest = np.maximum.accumulate(np.maximum(sequence, self._newest))
        late = (sequence < self.first) | (sequence < newest - WINDOW)
        far = sequence - self.first > self._silent + SILENT_PER_LINE * events.line_number
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

    def _continued(self, events):
        """Whether all are possible first replies, in echo order."""
        if events.kind.any() or events.duplicate.any() or not len(events.sequence):
            return not len(events.sequence)
        sequence, last = events.sequence, int(events.sequence[-1])
        steps = sequence[1:] - sequence[:-1]
        return (
            self._newest < sequence[0] < self._newest + WRAP // 2
            and last - self.first <= self._silent + SILENT_PER_LINE * events.line_number[0]
            and bool(((steps > 0) & (steps < WRAP // 2)).all())
        )

    def _refuse_duplicates_of_nothing(self, events):
        marked = np.flatnonzero(events.duplicate)
        if not len(marked):
            return
        replies = np.cumsum(events.kind == REPLY)
        groups = np.searchsorted(events.sequence, events.sequence[marked])
        before = np.where(groups > 0, replies[groups - 1], 0)
        lines = events.line_number[marked[replies[marked] - before == 1]]
        if len(lines):
            expected = "a first reply to the echo before its duplicate"
            raise RawDataError(self.path, int(lines.min()), "(DUP!)", expected)

    def _rows(self, events):
        """Rows of final events, sorted by sequence, and of missing echoes before them."""
        if not len(events.sequence):
            return NO_ROWS
        if self._in_order:
            self._replies += len(events.sequence)
            return self._with_missing(_replies(events, np.zeros(len(events.sequence), bool)), events.sequence)
        new = np.diff(events.sequence, prepend=-1) != 0
        keep = events.kind == REPLY
        again = np.zeros(len(keep), bool)
        error = events.error
        several = np.flatnonzero(~(new & np.append(new[1:], True) & keep))
        if len(several):
            error = error.copy()
            self._settle(events, several, keep, again, error)
        self._replies += int((keep & (events.kind == REPLY)).sum())
        self._duplicates += int(again.sum())
        kept = events._replace(error=error)
        kept, again = (kept, again) if keep.all() else (kept.take(keep), again[keep])
        return self._with_missing(_replies(kept, again), events.sequence[new])

    def _with_missing(self, rows, shown):
        """The rows, plus those of missing echoes among and before them."""
        first, self._next = self._next, int(shown[-1]) + 1
        if self._next - first > len(shown):
            missing = np.ones(self._next - first, bool)
            missing[shown - first] = False
            lost = _lost(np.flatnonzero(missing) + first)
            rows = Rows(*(np.concatenate(both) for both in zip(rows, lost, strict=True)))
            rows = rows.take(np.argsort(rows.sequence, kind="stable"))
        return rows

    @staticmethod
    def _settle(events, places, keep, again, error):
        """For echoes with several lines, or no reply: which events become rows, with which values."""
        n = len(places)
        kind, sequence = events.kind[places], events.sequence[places]
        new = np.diff(sequence, prepend=-1) != 0
        starts, group = np.flatnonzero(new), np.cumsum(new) - 1
        reply, report, silence = (_first_of(kind == what, starts) for what in (REPLY, REPORT, SILENCE))
        remark = np.where(report < n, report, silence)  # the line about the echo that is not a reply
        again[places] = (kind == REPLY) & (np.arange(n) != reply[group])
        noted = (reply < n) & (remark < n)
        noted[noted] = error[places[reply[noted]]] == 0
        error[places[reply[noted]]] = error[places[remark[noted]]]
        keep[places[remark[reply == n]]] = True


def _first_of(mask, starts):
    """For each group, the index of its first event in the mask; the number of events if none."""
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
    nan, unknown, no_text = np.full(n, np.nan), np.full(n, -1), np.zeros(n, "i4")
    ttl, reply_bytes = unknown.astype("i2"), unknown.astype("i4")
    lost, duplicate = np.ones(n, bool), np.zeros(n, bool)
    return Rows(sequence.astype("i8"), nan, nan, lost, duplicate, ttl, reply_bytes, no_text, no_text)


NO_ROWS = _lost(np.arange(0))
