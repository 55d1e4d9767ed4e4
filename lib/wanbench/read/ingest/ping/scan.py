"""
Turn a ping log into events, in chunks.

If `fast`, plain lines are recognised a chunk at a time, and the `LineReader` reads only the others; otherwise it reads
all lines. The events are the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO

import numpy as np

from wanbench.errors import RawDataError

from . import plain_lines
from .echoes import Events, Texts, as_events
from .events import REPLY, Ping
from .lines import LONGEST_LINE, LineReader

CHUNK_BYTES = 1 << 20
"""About 12,000 lines: numpy works on many at once, and memory stays bounded."""

WORKERS = 2
"""Chunks processed ahead in threads, as numpy releases the interpreter lock."""

NOT_SPACE = bytes(byte not in b" \t\r\n" for byte in range(256))
"""Whether each byte is not blank; blank lines are skipped."""


def scan(stream: BinaryIO, reader: LineReader, texts: Texts, *, fast: bool) -> Iterator[tuple[Ping, Events, bool]]:
    """
    Each ping with its events in order, in batches, and whether that was its last batch because another ping began.

    The reader is at the end afterwards. A faulty line raises RawDataError after the events before it were yielded.
    """
    lines = 0
    for chunk, plain in _recognised(stream, fast):
        lines = yield from _events(chunk, plain, lines, reader, texts)
    reader.end()


def _recognised(stream, fast):
    """Each chunk with its plain replies; with `fast`, later chunks are processed ahead in threads."""
    if not fast:
        for chunk in _chunks(stream):
            yield chunk, plain_lines.find(chunk, recognise=False)
        return
    waiting: deque = deque()
    with ThreadPoolExecutor(WORKERS) as workers:
        fault = None
        try:
            for chunk in _chunks(stream):
                waiting.append((chunk, workers.submit(plain_lines.find, chunk)))
                if len(waiting) > WORKERS:
                    chunk, plain = waiting.popleft()
                    yield chunk, plain.result()
        except RawDataError as error:  # what was read before it comes first
            fault = error
        while waiting:
            chunk, plain = waiting.popleft()
            yield chunk, plain.result()
        if fault:
            raise fault


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


def _events(chunk, plain, lines_before, reader, texts):
    """Yield the chunk's events by ping, in line order; returns the number of lines read so far."""
    n = len(plain.starts) - 1
    wanted = np.logical_or.reduceat(np.frombuffer(chunk.translate(NOT_SPACE), bool), plain.starts[:-1])
    wanted |= np.diff(plain.starts) > LONGEST_LINE
    not_blank = np.append(np.flatnonzero(wanted), n)
    wanted[plain.places] = False
    others = np.append(np.flatnonzero(wanted), n)
    events, pings, fault, place = [], [reader.ping], None, 0
    try:
        while place < n:
            # only within a ping is a plain line a reply
            in_ping = reader.phase == "body" and reader.ping.dialect not in ("windows", "fping")
            places = others if in_ping else not_blank
            place = int(places[places.searchsorted(place)])
            if place == n:
                break
            if b"wrong" in chunk[plain.starts[place] : plain.starts[place + 1]]:
                _tell_last_reply(reader, plain, place, lines_before)
            events.append(_feed(reader, chunk, plain.starts, place, lines_before))
            if reader.ping is not pings[-1]:
                pings.append(reader.ping)
            place += 1
    except RawDataError as error:
        fault = error
    if reader.ping:
        _tell_last_reply(reader, plain, place, lines_before)
    before = plain.take(slice(0, np.searchsorted(plain.places, place)))
    found = _merged(before, [event for event in events if event], lines_before, texts)
    begins = np.searchsorted(found.line_number, [ping.line_number for ping in pings[1:]])
    for ping, start, end in zip(pings, [0, *begins], [*begins, None], strict=True):
        if ping:
            yield ping, found.take(slice(start, end)), ping is not pings[-1]
    if fault:
        raise fault
    return lines_before + n


def _tell_last_reply(reader, plain, place, lines_before):
    """Tell the reader the latest plain reply, as a line about damage refers to the reply before it."""
    is_reply = np.array([kind.kind == REPLY for kind in plain.kinds] or [False])[plain.kind]
    before = np.flatnonzero((plain.places < place) & is_reply)
    if len(before):
        last = (lines_before + int(plain.places[before[-1]]) + 1, int(plain.sequence[before[-1]]))
        if last[0] > reader.ping.line_number:
            reader.last_reply = max(reader.last_reply, last)


def _feed(reader, chunk, starts, place, lines_before):
    line = chunk[starts[place] : starts[place + 1]]
    try:
        text = line.removesuffix(b"\n").decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError:
        text = line[: LONGEST_LINE + 1].removesuffix(b"\n").decode("latin-1")
        if reader.phase in ("body", "footer"):  # elsewhere it may be output of a script
            reader.refuse(lines_before + place + 1, text, "text in UTF-8")
    return reader.feed(lines_before + place + 1, text, whole=line.endswith(b"\n"))


def _merged(plain, others, lines_before, texts):
    def of_kinds(name, dtype):
        return np.array([getattr(kind, name) for kind in plain.kinds] or [0], dtype)[plain.kind]

    coded = {name: [texts.code(getattr(kind, name)) for kind in plain.kinds] or [0] for name in ("responder", "error")}
    n = len(plain.places)
    events = Events(
        plain.places + lines_before + 1,
        of_kinds("kind", "i1"),
        plain.sequence,
        plain.received_at_s,
        plain.rtt_ms,
        of_kinds("ttl", "i2"),
        of_kinds("reply_bytes", "i4"),
        np.array(coded["responder"], "i4")[plain.kind],
        np.array(coded["error"], "i4")[plain.kind],
        np.zeros(n, bool),
    )
    if not others:
        return events
    merged = Events(*(np.concatenate(both) for both in zip(events, as_events(others, texts), strict=True)))
    return merged.take(np.argsort(merged.line_number, kind="stable"))
