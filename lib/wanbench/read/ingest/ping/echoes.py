"""
Combine events, which are single lines of ping, into one row per echo, in bounded memory.

Sequence numbers have 16 bits on the wire and are unwrapped here; a reply may be up to `WINDOW` echoes late. An echo
without a line between the first and the newest echo is lost, and so is an echo that only the footer counts.
"""

import numpy as np

from wanbench.errors import RawDataError
from wanbench.read.ingest.content import File

from .lines import REPLY, REPORT, SILENCE, Event, Footer

WRAP = 65536
"""Number of 16-bit sequence numbers."""

WINDOW = 32768
"""Half of `WRAP`; if a reply came later than this, it would be unclear which echo it answers."""

AT_ONCE = 4
"""
Rows are made once `AT_ONCE` x `WINDOW` events are open: few are then sorted twice, and processor caches hold them.
"""

SILENT_ECHOES = 100_000
"""Number of lost echoes without a line that is allowed in any file; a corrupt number could make billions of rows."""

SILENT_PER_LINE = 10
"""Number of further such echoes per line: a long log may lose 10 of 11 echoes."""

EVENT = np.dtype(
    [
        ("line_number", "i8"), ("kind", "i1"), ("sequence", "i8"), ("received_at_s", "f8"), ("rtt_ms", "f8"),
        ("ttl", "i2"), ("reply_bytes", "i4"), ("responder", "i4"), ("error", "i4"), ("duplicate", "?"),
        ("ping", "i8"), ("target", "i4"),
    ]
)  # fmt: skip
"""
The numpy type of an event and of a row of table echoes. A row's echo is lost unless its kind is REPLY. Texts are stored
as numbers from `code`. The values -1, 0 and NaN mean that nothing was printed.
"""


Texts = dict[str | None, int]
"""Numbers of texts; None has 0."""


def code(texts: Texts, text: str | None) -> int:
    """Return the number of a string in `texts`; a new string gets the next number."""
    return texts.setdefault(text, len(texts))


def joined(*parts: np.ndarray) -> np.ndarray:
    """Concatenate events or rows as bytes, because numpy would copy each field separately, ten times slower."""
    full = [part.view(f"V{EVENT.itemsize}") for part in parts if len(part)]
    return (full[0] if len(full) == 1 else np.concatenate(full or [parts[0]])).view(EVENT)


def as_events(events: list[Event], texts: Texts) -> np.ndarray:
    """Convert single events to an array."""
    coded = (event._replace(responder=code(texts, event.responder), error=code(texts, event.error)) for event in events)
    return np.array([(*event, 0, 0) for event in coded], EVENT)


class Echoes:
    """
    Collect events in the order of lines, and return rows, sorted by sequence, as soon as they are final.

    Neither the rows nor the first error depend on how the events are split into batches.
    """

    def __init__(self, path: File, first_sequence: int, *, wraps: bool, silent: int = 0):
        self.path, self.first, self.wraps = path, first_sequence, wraps
        self._silent = SILENT_ECHOES - silent  # without those in earlier pings of the file
        self._raw = self._unwrapped = self._next = first_sequence
        self._newest = first_sequence - 1
        self._open: list[np.ndarray] = []
        self._replies = self._duplicates = 0
        self._in_order = True  # so far: only first replies, none of them late

    def add(self, events: np.ndarray) -> np.ndarray:
        """Process the next events, and return rows that are now final; raise RawDataError for an impossible event."""
        events, fault = self._unwrapped_up_to_fault(events)
        self._open.append(events)
        if fault:
            self.check()
            raise RawDataError(self.path, *fault)
        if sum(map(len, self._open)) < AT_ONCE * WINDOW:
            return NO_ROWS
        events = self.check()
        final = int(np.searchsorted(events["sequence"], self._newest - WINDOW))
        self._open = [events[final:]]
        return self._rows(events[:final])

    def check(self) -> np.ndarray:
        """
        Sort the events that are not yet rows by sequence; raise RawDataError for a duplicate without a first reply.
        """
        events = self._open[0] if len(self._open) == 1 else joined(NO_ROWS, *self._open)
        if not self._in_order:
            if (np.diff(events["sequence"]) < 0).any():
                events = events.take(np.argsort(events["sequence"], kind="stable"))
            self._refuse_duplicates_of_nothing(events)
        self._open = [events]
        return events

    def finish(self, footer: Footer | None, lines: int, reported: int = 0) -> np.ndarray:
        """Return the remaining rows; raise RawDataError if the footer's counts contradict the lines."""
        rows = self._rows(self.check())
        if footer is None:
            return rows
        sent = self._newest - self.first + 1
        replies, duplicates = self._replies - self._duplicates, self._duplicates
        faults = []
        if sent > footer.transmitted:
            faults.append(f"at least {sent} transmitted")
        if footer.received not in (replies, replies + reported):
            faults.append(f"{replies} received" + ("" if self._replies else " (a line per reply: ping without -q)"))
        if footer.duplicates != duplicates:
            faults.append(f"{duplicates} duplicates")
        if footer.transmitted > self._silent + SILENT_PER_LINE * lines:
            faults.append(f"at most {SILENT_ECHOES:,} echoes without a line")
        if faults:
            expected = "counts that fit the lines: " + ", ".join(faults)
            raise RawDataError(self.path, footer.line_number, footer.text, expected)
        return joined(rows, _lost(np.arange(self._newest + 1, self.first + footer.transmitted)))

    def _unwrapped_up_to_fault(self, events: np.ndarray) -> tuple[np.ndarray, tuple[int, str, str] | None]:
        """
        Return the events up to the first impossible one, with unwrapped sequences, and the error for the impossible
        one.
        """
        printed = events["sequence"]
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
        far = sequence - self.first > self._silent + SILENT_PER_LINE * events["line_number"]
        wrong, fault, n = np.flatnonzero(late | far), None, len(events)
        if len(wrong):
            n = wrong[0]
            expected = (
                f"an echo numbered {self.first} or higher, and at most {WINDOW} older than the newest"
                if late[n]
                else f"at most {SILENT_ECHOES:,} echoes without a line"
            )
            fault = (int(events["line_number"][n]), f"echo {printed[n]}", expected)
        if n:
            self._raw, self._unwrapped, self._newest = int(raw[n - 1]), int(sequence[n - 1]), int(newest[n - 1])
        events = events[:n]
        events["sequence"] = sequence[:n]
        return events, fault

    def _continued(self, events: np.ndarray):
        if events["kind"].any() or events["duplicate"].any() or not len(events):
            return not len(events)
        sequence = events["sequence"]
        steps, last = np.diff(sequence), int(sequence[-1])
        return (
            self._newest < sequence[0] < self._newest + WRAP // 2
            and last - self.first <= self._silent + SILENT_PER_LINE * events["line_number"][0]
            and bool(((steps > 0) & (steps < WRAP // 2)).all())
        )

    def _refuse_duplicates_of_nothing(self, events: np.ndarray) -> None:
        marked = np.flatnonzero(events["duplicate"])
        if not len(marked):
            return
        replies = np.cumsum(events["kind"] == REPLY)
        groups = np.searchsorted(events["sequence"], events["sequence"][marked])
        before = np.where(groups > 0, replies[groups - 1], 0)
        lines = events["line_number"][marked[replies[marked] - before == 1]]
        if len(lines):
            expected = "a first reply to the echo before its duplicate"
            raise RawDataError(self.path, int(lines.min()), "(DUP!)", expected)

    def _rows(self, events: np.ndarray) -> np.ndarray:
        """Return the rows of final events, sorted by sequence, and of missing echoes before them."""
        if not len(events):
            return NO_ROWS
        sequence = events["sequence"]
        if self._in_order:
            self._replies += len(events)
            return self._with_missing(events, sequence)
        new = np.diff(sequence, prepend=-1) != 0
        keep = events["kind"] == REPLY
        rows = events
        rows["duplicate"] = False
        several = np.flatnonzero(~(new & np.append(new[1:], True) & keep))
        if len(several):
            self._settle(rows, several, keep)
        self._replies += int((keep & (rows["kind"] == REPLY)).sum())
        self._duplicates += int(rows["duplicate"].sum())
        rows["rtt_ms"][rows["kind"] != REPLY] = np.nan
        return self._with_missing(rows.take(np.flatnonzero(keep)), sequence[new])

    def _with_missing(self, rows: np.ndarray, shown: np.ndarray) -> np.ndarray:
        """Add rows for the missing echoes between and before these rows."""
        first, self._next = self._next, int(shown[-1]) + 1
        if self._next - first > len(shown):
            missing = np.ones(self._next - first, bool)
            missing[shown - first] = False
            rows = joined(rows, _lost(np.flatnonzero(missing) + first))
            rows = rows.take(np.argsort(rows["sequence"], kind="stable"))
        return rows

    @staticmethod
    def _settle(rows: np.ndarray, places: np.ndarray, keep: np.ndarray) -> None:
        """Decide, for echoes with several lines or without a reply, which events become rows, and with which remark."""
        n = len(places)
        kind, new = rows["kind"][places], np.diff(rows["sequence"][places], prepend=-1) != 0
        starts, group = np.flatnonzero(new), np.cumsum(new) - 1
        reply, report, silence = (_first_of(kind == what, starts) for what in (REPLY, REPORT, SILENCE))
        remark = np.where(report < n, report, silence)  # the line about the echo that is not a reply
        rows["duplicate"][places] = (kind == REPLY) & (np.arange(n) != reply[group])
        error = rows["error"]
        noted = (reply < n) & (remark < n)
        noted[noted] = error[places[reply[noted]]] == 0
        error[places[reply[noted]]] = error[places[remark[noted]]]
        keep[places[remark[reply == n]]] = True


def _first_of(mask: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return the index of each group's first event in the mask; the number of events if there is none."""
    n = len(mask)
    return np.minimum.reduceat(np.where(mask, np.arange(n), n), starts)


def _lost(sequence: np.ndarray) -> np.ndarray:
    """Return rows of lost echoes without a line."""
    row = np.array([(0, SILENCE, 0, np.nan, np.nan, -1, -1, 0, 0, False, 0, 0)], EVENT)
    rows = row.take(np.zeros(len(sequence), int))
    rows["sequence"] = sequence
    return rows


NO_ROWS = np.empty(0, EVENT)
