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
from .ping_lines import LONGEST_LINE, REPLY, LineReader

CHUNK_BYTES = 8 << 20
WORKERS = 2
# The part of ping_lines.REPLY_LINE that is a plain reply, without host name and marks, in Rust's syntax.
PLAIN_REPLY = (
    r"[0-9]{1,6} bytes from [0-9A-Za-z.:%_-]{1,128}: (?:icmp_)?seq=[0-9]{1,5} ttl=[0-9]{1,3}"
    r" time=[0-9]{1,9}(?:\.[0-9]{1,6})? ms\n$"
)
STAMP = r"\[[0-9]{1,12}\.[0-9]{1,6}\] "


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
    if not fast or not chunk.isascii():
        none = np.arange(0)
        return Plain(starts, none, none, none, none, none, none, none, [])
    stamped = chunk[starts[len(ends) // 2]] == ord("[")
    lines = pa.LargeStringArray.from_buffers(len(ends), pa.py_buffer(starts), pa.py_buffer(chunk))
    lines = pl.Series(pl.from_arrow(lines))
    plain = lines.str.contains("^" + STAMP * stamped + PLAIN_REPLY)
    words = lines.filter(plain).str.split_exact(" ", 7 + stamped).struct.unnest().get_columns()
    at = words.pop(0).str.slice(1).str.strip_suffix("]").cast(pl.Float64).to_numpy() if stamped else None
    size, _, _, who, sequence, ttl, rtt, _ = words
    who = who.str.strip_suffix(":").to_arrow().dictionary_encode()
    replies = Plain(
        starts,
        np.flatnonzero(plain.to_numpy()),
        np.full(len(who), np.nan) if at is None else at,
        rtt.str.slice(len("time=")).cast(pl.Float64).to_numpy(),
        sequence.str.strip_prefix("icmp_").str.slice(len("seq=")).cast(pl.Int64).to_numpy(),
        ttl.str.slice(len("ttl=")).cast(pl.Int16).to_numpy(),
        size.cast(pl.Int32).to_numpy(),
        who.indices.to_numpy(),
        who.dictionary.to_pylist(),
    )
    sound = (replies.sequence <= 65535) & (replies.ttl <= 255) & (replies.rtt_ms > 0)
    return replies if sound.all() else replies.take(sound)


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
