"""
The lines of a ping log, in chunks, as events. `ping` uses it; imports `ping_lines` and `ping_echoes`.

Nearly all lines of a long log are plain replies. `fast` recognises those a chunk at a time (polars) and
leaves every other line to the `LineReader`, which else reads all lines: the events are the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from ..errors import RawDataError
from .ping_echoes import Events, Words, as_events
from .ping_lines import LONGEST_LINE, REPLY, REPLY_LINE, LineReader

CHUNK_BYTES = 4 << 20
WORKERS = 2
MOST_KINDS, LEAST_LINES, TRIALS = 8, 100, 5
LARGEST_EXACT = 2**53


class Plain(NamedTuple):
    """
    The lines of a chunk, and the plain replies among them.

    `starts` holds where each line begins, and where the last one ends; `places` which lines are plain
    replies. The other arrays are theirs; `responders` are the texts behind `responder`.
    """

    starts: np.ndarray
    places: np.ndarray
    received_at_s: np.ndarray
    rtt_ms: np.ndarray
    sequence: np.ndarray
    ttl: np.ndarray
    reply_bytes: np.ndarray
    responder: np.ndarray
    responders: list[str]

    def take(self, which) -> Plain:
        """The plain replies at these places."""
        return self._replace(**{name: getattr(self, name)[which] for name in self._fields[1:-1]})


def scan(stream: BinaryIO, reader: LineReader, words: Words, *, fast: bool) -> Iterator[Events]:
    """
    Events of all lines in order, in batches; the reader is at the end afterwards.

    A faulty line raises RawDataError after the events before it have been given.
    """
    lines = 0
    for chunk, plain in _recognised(stream, reader, fast):
        lines = yield from _events(chunk, plain, lines, reader, words)
    reader.end()


def _recognised(stream, reader, fast):
    """Each chunk with its plain replies, which `fast` looks for in chunks to come while one is worked on."""
    if not fast:
        for chunk in _chunks(stream):
            yield chunk, _plain_replies(chunk, fast)
        return
    waiting: deque = deque()
    with ThreadPoolExecutor(WORKERS) as workers:
        for chunk in _chunks(stream):
            waiting.append((chunk, workers.submit(_plain_replies, chunk, fast)))
            if len(waiting) > WORKERS:
                chunk, plain = waiting.popleft()
                yield chunk, plain.result()
        while waiting:
            chunk, plain = waiting.popleft()
            yield chunk, plain.result()


def _chunks(stream):
    """Pieces of whole lines; only the very last may lack its newline."""
    rest = b""
    while piece := stream.read(CHUNK_BYTES):
        cut = piece.rfind(b"\n") + 1
        if cut:
            yield rest + piece[:cut]
            rest = piece[cut:]
        else:
            rest += piece
        if len(rest) > 4 * LONGEST_LINE:
            yield rest
            return
    if rest:
        yield rest


def _plain_replies(chunk, fast):
    ends = np.flatnonzero(np.frombuffer(chunk, np.uint8) == ord("\n")) + 1
    if not len(ends) or ends[-1] != len(chunk):
        ends = np.append(ends, len(chunk))
    starts = np.concatenate(([0], ends))
    kinds = list(_kinds(chunk, starts)) if fast and chunk.isascii() else []
    if not kinds:
        none = np.arange(0)
        return Plain(starts, none, none, none, none, none, none, none, [])
    responders = [who for *_, who in kinds]
    columns = [np.concatenate(parts) for parts in zip(*(kind[:-1] for kind in kinds), strict=True)]
    who = np.repeat(np.arange(len(kinds)), [len(kind[0]) for kind in kinds])
    plain = Plain(starts, *columns, who, responders)
    return plain if len(kinds) == 1 else plain.take(np.argsort(plain.places, kind="stable"))


def _kinds(chunk, starts):
    """
    Plain replies of one kind after the other: they differ in time, sequence and round-trip time only.

    Each is what a `Plain` holds of them, from `places` on, with a single responder.
    """
    lines = pa.LargeStringArray.from_buffers(len(starts) - 1, pa.py_buffer(starts), pa.py_buffer(chunk))
    lines, places = pl.Series(pl.from_arrow(lines)), np.arange(len(starts) - 1)
    buffer = np.frombuffer(chunk, np.uint8)
    for _ in range(MOST_KINDS):
        if len(lines) < LEAST_LINES:
            return
        trials = lines.gather(np.linspace(0, len(lines) - 1, TRIALS).astype(int))
        kind = next(filter(None, map(_Kind.of, trials)), None)
        if kind is None:
            return
        alike = (_part(lines, kind.before) == kind.text[kind.before]).to_numpy()
        some, where = lines.filter(alike), places[alike]
        at, rtt, sequence, sound = kind.numbers(some)
        if kind.seconds.stop:
            sound &= buffer[starts[where]] == ord("[")
            sound &= buffer[starts[where] + kind.seconds.stop] == ord(".")
        if not sound.all():
            at, rtt, sequence, where = at[sound], rtt[sound], sequence[sound], where[sound]
        ttl, size = (
            np.full(len(where), value, dtype) for value, dtype in ((kind.ttl, "i2"), (kind.size, "i4"))
        )
        yield where, at, rtt, sequence, ttl, size, kind.responder
        lines, places = lines.filter(~alike), places[~alike]


class _Kind(NamedTuple):
    """What plain replies of a kind have in common: where their numbers stand, and the text around them."""

    seconds: slice
    """Of the stamp, and of its decimals; both empty where there is none."""
    decimals: slice
    before: slice
    sequence: slice
    between: str
    text: str
    ttl: int
    size: int
    responder: str

    @classmethod
    def of(cls, text: str) -> _Kind | None:
        """The kind of a line; None if it is no plain reply."""
        line = REPLY_LINE.fullmatch(text.removesuffix("\n"))
        if not line or line["ttl"] is None or line["time"] is None or int(line["ttl"]) > 255:
            return None
        point = line["at"].index(".") + 1 if line["at"] else 0
        stamp = line.end("at") if line["at"] else 0
        return cls(
            slice(1, point) if stamp else slice(0, 0),
            slice(point + 1, stamp) if stamp else slice(0, 0),
            slice(stamp, line.start("seq")),
            slice(*line.span("seq")),
            text[line.end("seq") : line.start("time")],
            text,
            int(line["ttl"]),
            int(line["size"]),
            line["who"] or line["bare"],
        )

    def numbers(self, lines: pl.Series) -> tuple[np.ndarray, ...]:
        """
        received_at_s, rtt_ms and sequence of lines that have this kind's `before` where it has it, and which
        lines have nothing else than these in the other places.
        """
        at, sound = np.full(len(lines), np.nan), np.ones(len(lines), bool)
        if self.seconds.stop:
            seconds, whole = _whole_numbers(_part(lines, self.seconds))
            decimals, parts = _whole_numbers(_part(lines, self.decimals))
            power = 10 ** (self.decimals.stop - self.decimals.start)
            sound = whole & parts & (seconds < LARGEST_EXACT // power)
            at = (seconds * power + decimals) / power  # both exact, so this rounds as reading the text does
        sequence, rtt = np.full(len(lines), -1), np.zeros(len(lines))
        left = np.arange(len(lines))
        for digits in sorted(range(1, 6), key=lambda n: n != self.sequence.stop - self.sequence.start):
            if not len(left):
                break
            stop = self.sequence.start + digits
            here = (_part(lines, slice(stop, stop + len(self.between))) == self.between).to_numpy()
            if here.any():
                some = lines if here.all() else lines.filter(here)
                numbers, whole = _whole_numbers(_part(some, slice(self.sequence.start, stop)))
                rest = some.str.slice(stop + len(self.between))
                whole &= rest.str.contains(r"^[0-9]{1,9}(?:\.[0-9]{1,6})? ms\n$").to_numpy()
                times = rest.str.strip_suffix(" ms\n").cast(pl.Float64, strict=False).fill_null(0).to_numpy()
                where = left[here]
                sequence[where], rtt[where] = np.where(whole, numbers, -1), times
                left, lines = left[~here], lines.filter(~here)
        return at, rtt, sequence, sound & (sequence >= 0) & (sequence <= 65535) & (rtt > 0)


def _part(lines, part):
    return lines.str.slice(part.start, part.stop - part.start)


def _whole_numbers(texts):
    """Numbers of texts, and which of these are nothing but digits: a cast alone takes signs as well."""
    numbers = texts.cast(pl.Int64, strict=False)
    digits = (texts >= "0").to_numpy() & numbers.is_not_null().to_numpy()
    return numbers.fill_null(-1).to_numpy(), digits


def _events(chunk, plain, lines_before, reader, words):
    """Yield the chunk's events in line order; return how many lines have been read by its end."""
    n = len(plain.starts) - 1
    other = np.ones(n, bool)
    other[plain.places] = False
    events: list = []
    fault = None
    first, end = 0, 0  # plain replies count from the header to the footer, or to a fault
    try:
        while first < n and reader.phase != "body":
            _feed(reader, chunk, plain.starts, first, lines_before)
            first = end = first + 1
        if reader.dialect == "windows":  # has no such line
            plain, other = plain.take(slice(0, 0)), np.ones(n, bool)
        for place in np.flatnonzero(other[first:]) + first:
            end = place
            before = int(np.searchsorted(plain.places, place)) - 1
            if before >= 0 and lines_before + plain.places[before] + 1 > reader.last_reply[0]:
                reader.last_reply = (
                    lines_before + int(plain.places[before]) + 1,
                    int(plain.sequence[before]),
                )
            events.append(_feed(reader, chunk, plain.starts, int(place), lines_before))
            if reader.phase != "body":
                break
        else:
            end = n
        for place in range(end + 1, n):
            _feed(reader, chunk, plain.starts, place, lines_before)
    except RawDataError as error:
        fault = error
    within = slice(*np.searchsorted(plain.places, (first, end)))
    yield _merged(plain.take(within), [event for event in events if event], lines_before, words)
    if fault:
        raise fault
    return lines_before + n


def _feed(reader, chunk, starts, place, lines_before):
    line = chunk[starts[place] : starts[place + 1]]
    try:
        text = line.removesuffix(b"\n").decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError:
        text = line[: LONGEST_LINE + 1].removesuffix(b"\n").decode("latin-1")
        if reader.phase != "before":  # before, what matters is that it is not ping's English
            reader.refuse(lines_before + place + 1, text, "text in UTF-8")
    return reader.feed(lines_before + place + 1, text, whole=line.endswith(b"\n"))


def _merged(plain, others, lines_before, words):
    codes = np.array([words.code(text) for text in plain.responders] or [0], "i4")
    n = len(plain.places)
    replies = Events(
        plain.places + lines_before + 1,
        np.full(n, REPLY, "i1"),
        plain.sequence,
        plain.received_at_s,
        plain.rtt_ms,
        plain.ttl,
        plain.reply_bytes,
        codes[plain.responder],
        np.zeros(n, "i4"),
        np.zeros(n, bool),
    )
    if not others:
        return replies
    merged = Events(*(np.concatenate(both) for both in zip(replies, as_events(others, words), strict=True)))
    return merged.take(np.argsort(merged.line_number, kind="stable"))
