"""
Convert a ping log to events, in chunks.

Nearly all lines of a long log differ only in time, sequence and round-trip time. With `fast`, numpy finds such plain
lines in a whole chunk and parses their numbers, eight bytes at a time; the `LineReader` reads only the other lines.
Without `fast`, the reader reads all lines, with the same result.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from wanbench.errors import RawDataError
from wanbench.read.ingest.content import Content, Transcoded

from .echoes import NO_ROWS, Texts, as_events, joined
from .lines import LONGEST_LINE, REPLY, REPLY_LINE, SILENCE, SILENCE_LINE, Event, LineReader, Ping

MOST_KINDS = 8
"""
Maximum number of kinds per chunk: a log has two (replies, and "no answer yet"), and more only if hosts or TTLs change.
"""

MIN_LINES = 16
"""Fewer lines are read faster one at a time."""

SHORT_BYTES = 24
"""Lines of at most this many bytes are never plain: "no answer yet for icmp_seq=1" is longer."""

PLACES = np.arange(25) * (5**0.5 - 1) / 2 % 1
"""Positions of sample lines in a chunk, from 0 to 1: multiples of the golden ratio avoid any period of the lines."""
LARGEST_EXACT = 2**53
"""Largest number up to which floats represent all whole numbers."""

PADDING = b" " * 1024
"""What follows the lines of a chunk, longer than a plain line: bytes after any position of a line can be read."""
POWERS = 10 ** np.arange(9)
ZEROS, PAST_NINE, HIGH_BITS = (np.uint64(int.from_bytes(bytes([byte] * 8), "little")) for byte in (0x30, 0x76, 0x80))
ONE = np.uint64(1)
LINE_END = np.uint64(int.from_bytes(b" ms\n", "little") << 32)


class Kind(NamedTuple):
    """
    A kind of plain line, described by its constant parts.

    `seconds` and `decimals` are the numbers of digits of the time stamp (0 without one), `before` is the text from the
    stamp's last digit to the sequence, and `between` the text from the sequence to the round-trip time ("" if the line
    ends after the sequence).
    """

    seconds: int
    decimals: int
    before: bytes
    between: bytes
    kind: int
    ttl: int
    reply_bytes: int
    responder: str | None
    error: str | None

    @classmethod
    def of(cls, text: str) -> Kind | None:
        """Return the kind of a line, ignoring marks such as (DUP!); None if the line is not plain."""
        silence = SILENCE_LINE.fullmatch(text)
        line = silence or REPLY_LINE.fullmatch(text)
        if line is None or line["clock"]:
            return None
        between, about = b"", (SILENCE, -1, -1, None, line.groupdict().get("message"))
        if not silence:
            if line["ttl"] is None or line["time"] is None or int(line["ttl"]) > 255:
                return None
            between = text[line.end("seq") : line.start("time")].encode()
            about = (REPLY, int(line["ttl"]), int(line["size"]), line["who"] or line["bare"], None)
        seconds, _, decimals = (line["at"] or "").partition(".")
        before = text[max(line.end("at"), 0) : line.start("seq")].encode()
        return cls(len(seconds), len(decimals), before, between, *about)


class Plain(NamedTuple):
    """
    The lines of a chunk, and the plain lines among them.

    `starts` has the start of each line, and the end of the last. `places` has the indices of the plain lines, and
    `received_at_s`, `rtt_ms`, `sequence` and `kind` (an index into `kinds`) have a value per plain line.
    """

    starts: np.ndarray
    places: np.ndarray
    received_at_s: np.ndarray
    rtt_ms: np.ndarray
    sequence: np.ndarray
    kind: np.ndarray
    kinds: list[Kind]

    def take(self, which: slice) -> Plain:
        return self._replace(**{name: getattr(self, name)[which] for name in self._fields[1:-1]})


def find_plain(chunk: bytes, *, recognise: bool = True) -> Plain:
    """Find all lines of a chunk and, with `recognise`, parse the plain ones. The chunk must end with `PADDING`."""
    ends, size = np.flatnonzero(np.frombuffer(chunk, np.uint8) == ord("\n")) + 1, len(chunk) - len(PADDING)
    if not len(ends) or ends[-1] != size:
        ends = np.append(ends, size)
    starts = np.concatenate(([0], ends))
    fit = np.diff(starts) > SHORT_BYTES if recognise and chunk.isascii() else []
    lines, text = np.flatnonzero(fit), _Text(chunk)
    n = len(lines)
    at, rtt, sequence, which = np.full(n, np.nan), np.full(n, np.nan), np.zeros(n, "i8"), np.full(n, -1, "i1")
    kinds: list[Kind] = []
    left = np.arange(n)
    while len(left) >= MIN_LINES and len(kinds) < MOST_KINDS:
        trials = lines[left[(PLACES * len(left)).astype(int)]]
        tried = (chunk[starts[place] : starts[place + 1]].removesuffix(b"\n").decode() for place in trials)
        kind = next((kind for line in tried if (kind := Kind.of(line)) and kind not in kinds), None)
        if kind is None:
            break
        found, numbers = text.read(kind, starts[lines[left]])
        places = left[found]
        at[places], rtt[places], sequence[places] = numbers
        which[places] = len(kinds)
        kinds.append(kind)
        left = left[~found]
    plain = np.flatnonzero(which >= 0)
    return Plain(starts, lines[plain], at[plain], rtt[plain], sequence[plain], which[plain], kinds)


class _Text:
    """ASCII text in which eight bytes at any position can be read as one little-endian number."""

    def __init__(self, text: bytes):
        self.byte = np.frombuffer(text, np.uint8)
        self.eight = np.ndarray((len(text) - 7,), "<u8", text, strides=(1,))

    def read(self, kind: Kind, begins: np.ndarray) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """Return which lines are of this kind, and the received_at_s, rtt_ms and sequence of those lines."""
        stamp = kind.seconds + kind.decimals + 2 if kind.seconds else 0
        found = self.holds(begins + stamp, kind.before)
        begins = begins[found]
        received, sound = np.full(len(begins), np.nan), np.ones(len(begins), bool)
        if stamp:
            seconds, whole = self.number_of(begins + 1, kind.seconds)
            decimals, parts = self.number_of(begins + 2 + kind.seconds, kind.decimals)
            power = 10**kind.decimals
            sound = whole & parts & (seconds < LARGEST_EXACT // power)
            sound &= (self.byte[begins] == ord("[")) & (self.byte[begins + 1 + kind.seconds] == ord("."))
            # both numbers are exact, so their quotient is rounded like float(text)
            received = (seconds * power + decimals) / power
        at = begins + stamp + len(kind.before)
        sequence, digits = self.number(at)
        at += digits
        sound &= (digits >= 1) & (digits <= 5) & (sequence <= 65535)
        if kind.between:
            sound &= self.holds(at, kind.between)
            rtt, whole = self.milliseconds(at + len(kind.between))
            sound &= whole
        else:
            rtt = np.full(len(begins), np.nan)
            sound &= self.byte[at] == ord("\n")
        found[found] = sound
        return found, (received[sound], rtt[sound], sequence[sound])

    def holds(self, at: np.ndarray, text: bytes) -> np.ndarray:
        same = np.ones(len(at), bool)
        for offset in {*range(0, len(text) - 8, 8), len(text) - 8}:
            same &= self.eight[at + offset] == np.uint64(int.from_bytes(text[offset : offset + 8], "little"))
        return same

    def number(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the number at each position, and its length in digits: 0 to 8."""
        digits = self.eight[at] ^ ZEROS  # the byte of a digit is now its value; any other byte is more than nine
        others = (digits + PAST_NINE | digits) & HIGH_BITS
        count = np.bitwise_count((others & -others) - ONE).astype("i8") >> 3
        return _joined(digits << (8 * (8 - count)).astype("u8")), count

    def number_of(self, at: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the number with `count` digits at each position, and where it is valid."""
        if count <= 8:
            digits = self.eight[at] ^ ZEROS
            others = (digits + PAST_NINE | digits) & (HIGH_BITS >> np.uint64(8 * (8 - count)))
            return _joined(digits << np.uint64(8 * (8 - count))), others == 0
        high, whole = self.number_of(at, count - 8)
        low, sound = self.number_of(at + count - 8, 8)
        return high * 10**8 + low, whole & sound

    def milliseconds(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the round-trip time at each position, and where it is valid and ends the line."""
        whole, digits = self.number(at)
        pointed = self.byte[at + digits] == ord(".")
        parts, decimals = self.number(at + digits + 1)
        decimals = np.where(pointed, decimals, 0)
        power = POWERS[decimals]
        time = (whole * power + np.where(pointed, parts, 0)) / power  # at most 14 digits, so exact as above
        ends = (self.eight[at + digits + pointed + decimals] << np.uint64(32)) == LINE_END
        ends &= (decimals < 2) | (parts * 10 != power)  # .10 and .100 lack a carry
        return time, ends & (digits >= 1) & (pointed == (decimals >= 1)) & (decimals <= 6) & (time > 0)


def _joined(digits: np.ndarray) -> np.ndarray:
    """Combine the eight digits in each word into a number: pairs first, then fours, then all eight."""
    digits = digits * np.uint64(10) + (digits >> np.uint64(8)) & np.uint64(0x00FF00FF00FF00FF)
    digits = digits * np.uint64(100) + (digits >> np.uint64(16)) & np.uint64(0x0000FFFF0000FFFF)
    return (digits * np.uint64(10000) + (digits >> np.uint64(32)) & np.uint64(0xFFFFFFFF)).astype("i8")


CHUNK_BYTES = 2 << 20
"""Size of a chunk, about 24,000 lines: threads seldom wait for the interpreter's lock, and memory stays small."""

WORKERS = 2
"""Number of chunks that threads process ahead; numpy releases the interpreter lock."""

NOT_SPACE = bytes(byte not in b" \t\r\n" for byte in range(256))
"""For each byte, whether it is not white space; blank lines are skipped."""


def events_of(
    stream: Content | Transcoded, reader: LineReader, texts: Texts, *, fast: bool
) -> Iterator[tuple[Ping, np.ndarray, bool]]:
    """
    Yield events in batches: the ping, its events in order, and whether another ping begins after this batch.

    A RawDataError for an invalid line is raised after the events before it were yielded.
    """
    lines = 0
    for chunk, plain in _recognised(stream, fast):
        lines = yield from _events(chunk, plain, lines, reader, texts)
    reader.end()


def _recognised(stream: Content | Transcoded, fast: bool) -> Iterator[tuple[bytes, Plain]]:
    """Yield each chunk with its plain lines; with `fast`, threads process the next chunks ahead."""
    if not fast:
        for chunk in _chunks(stream):
            yield chunk, find_plain(chunk, recognise=False)
        return
    waiting: deque[tuple[bytes, Future[Plain]]] = deque()
    with ThreadPoolExecutor(WORKERS) as workers:
        fault = None
        try:
            for chunk in _chunks(stream):
                waiting.append((chunk, workers.submit(find_plain, chunk)))
                if len(waiting) > WORKERS:
                    chunk, plain = waiting.popleft()
                    yield chunk, plain.result()
        except RawDataError as error:  # raised after the chunks before it were yielded
            fault = error
        while waiting:
            chunk, plain = waiting.popleft()
            yield chunk, plain.result()
        if fault:
            raise fault


def _chunks(stream: Content | Transcoded) -> Iterator[bytes]:
    """
    Yield chunks of whole lines, each with `PADDING`; only the last line of the last chunk may lack its line break.
    """
    rest = b""
    while piece := stream.read(CHUNK_BYTES):
        cut = piece.rfind(b"\n") + 1
        if cut:
            yield b"".join((rest, memoryview(piece)[:cut], PADDING))
            rest = piece[cut:]
        else:
            rest += piece
        if len(rest) > 4 * LONGEST_LINE:
            break
    if rest:
        yield rest + PADDING


def _events(chunk: bytes, plain: Plain, lines_before: int, reader: LineReader, texts: Texts):
    """Yield the events of a chunk, by ping and in order, and return the number of lines read so far."""
    n = len(plain.starts) - 1
    wanted, byte = np.ones(n, bool), np.frombuffer(chunk, np.uint8)
    if (byte[plain.starts[:-1]] <= ord(" ")).any():  # seldom, and the search for blank lines takes time
        wanted = np.logical_or.reduceat(np.frombuffer(chunk.translate(NOT_SPACE), bool), plain.starts[:-1])
        wanted |= np.diff(plain.starts) > LONGEST_LINE
    not_blank = np.append(np.flatnonzero(wanted), n)
    wanted[plain.places] = False
    others = np.append(np.flatnonzero(wanted), n)
    events, pings, fault, place = [], [reader.ping], None, 0
    try:
        while place < n:
            # a plain line is a reply only within a ping
            in_ping = reader.phase == "body" and reader.ping.dialect not in ("windows", "fping")
            places = others if in_ping else not_blank
            place = int(places[places.searchsorted(place)])
            if place == n:
                break
            if b"wrong" in chunk[plain.starts[place] : plain.starts[place + 1]]:
                _set_last_reply(reader, plain, place, lines_before)
            events.append(_feed(reader, chunk, plain.starts, place, lines_before))
            if reader.ping is not pings[-1]:
                pings.append(reader.ping)
            place += 1
    except RawDataError as error:
        fault = error
    if reader.ping:
        _set_last_reply(reader, plain, place, lines_before)
    before = plain.take(slice(0, np.searchsorted(plain.places, place)))
    found = _merged(before, [event for event in events if event], lines_before, texts)
    begins = np.searchsorted(found["line_number"], [ping.line_number for ping in pings[1:]])
    for ping, start, end in zip(pings, [0, *begins], [*begins, None], strict=True):
        if ping:
            yield ping, found[start:end], ping is not pings[-1]
    if fault:
        raise fault
    return lines_before + n


def _set_last_reply(reader: LineReader, plain: Plain, place: int, lines_before: int) -> None:
    """Give the reader the last plain reply, because a line about damage refers to the reply before it."""
    is_reply = np.array([kind.kind == REPLY for kind in plain.kinds] or [False])[plain.kind]
    before = np.flatnonzero((plain.places < place) & is_reply)
    if len(before):
        last = (lines_before + int(plain.places[before[-1]]) + 1, int(plain.sequence[before[-1]]))
        if last[0] > reader.ping.line_number:
            reader.last_reply = max(reader.last_reply, last)


def _feed(reader: LineReader, chunk: bytes, starts: np.ndarray, place: int, lines_before: int) -> Event | None:
    line = chunk[starts[place] : starts[place + 1]]
    try:
        text = line.removesuffix(b"\n").decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError:
        text = line[: LONGEST_LINE + 1].removesuffix(b"\n").decode("latin-1")
        if reader.phase in ("body", "footer"):  # elsewhere the line may come from a script
            reader.refuse(lines_before + place + 1, text, "text in UTF-8")
    return reader.feed(lines_before + place + 1, text, whole=line.endswith(b"\n"))


def _merged(plain: Plain, others: list[Event], lines_before: int, texts: Texts) -> np.ndarray:
    kinds = [
        Event(0, kind.kind, 0, ttl=kind.ttl, reply_bytes=kind.reply_bytes, responder=kind.responder, error=kind.error)
        for kind in plain.kinds
    ]
    events = as_events(kinds, texts).take(plain.kind) if kinds else NO_ROWS.copy()
    events["line_number"] = plain.places + lines_before + 1
    for name in ("sequence", "received_at_s", "rtt_ms"):
        events[name] = getattr(plain, name)
    if not others:
        return events
    events = joined(events, as_events(others, texts))
    return events.take(np.argsort(events["line_number"], kind="stable"))
