"""
Recognise plain lines of ping, a chunk at a time.

Nearly all lines of a long log differ in time, sequence and round-trip time only. Such lines are found, and their
numbers parsed, with numpy, eight bytes at a time. `LineReader` gives the same result; it gets all other lines.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .events import REPLY, SILENCE
from .lines import REPLY_LINE, SILENCE_LINE

MOST_KINDS = 8
"""
Maximum kinds sought per chunk: a log has two (replies, and "no answer yet"), and more only if hosts or TTLs change.
"""

MIN_LINES = 100
"""Below this number lines are read faster one at a time."""

SHORT_BYTES = 24
"""Lines of at most this many bytes are never plain: "no answer yet for icmp_seq=1" has more."""

PLACES = np.arange(25) * (5**0.5 - 1) / 2 % 1
"""Where in a chunk lines are tried, from 0 to 1: multiples of the golden ratio avoid any period of the lines."""
LARGEST_EXACT = 2**53
"""Whole numbers up to it are exact in floats."""

PADDING = bytes(1024)  # more than a plain line is long
POWERS = 10 ** np.arange(9)
ZEROS, PAST_NINE, HIGH_BITS = (np.uint64(int.from_bytes(bytes([byte] * 8), "little")) for byte in (0x30, 0x76, 0x80))
ONE = np.uint64(1)
LINE_END = np.uint64(int.from_bytes(b" ms\n", "little") << 32)


class Kind(NamedTuple):
    """
    The constant parts of plain lines of one kind.

    `seconds` and `decimals` are the digits of the stamp (0 where there is none), `before` the text from the stamp's
    last digit to the sequence, `between` from the sequence to the round-trip time ("" if the line ends there).
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
        """The kind of a line, ignoring its marks; None if the line is not plain."""
        if line := SILENCE_LINE.fullmatch(text):
            if line["clock"]:
                return None
            return cls._of(text, line, b"", SILENCE, -1, -1, None, line["message"])
        line = REPLY_LINE.fullmatch(text)
        if line is None or line["clock"] or line["ttl"] is None or line["time"] is None or int(line["ttl"]) > 255:
            return None
        between = text[line.end("seq") : line.start("time")].encode()
        who = line["who"] or line["bare"]
        return cls._of(text, line, between, REPLY, int(line["ttl"]), int(line["size"]), who, None)

    @classmethod
    def _of(cls, text, line, between, *others):
        seconds, _, decimals = (line["at"] or "").partition(".")
        before = text[max(line.end("at"), 0) : line.start("seq")].encode()
        return cls(len(seconds), len(decimals), before, between, *others)


class Plain(NamedTuple):
    """
    The lines of a chunk, and the plain ones among them.

    `starts` holds where each line begins, and where the last one ends; `places` holds the indices of the
    plain lines. The arrays after `places` have one value per plain line; `kind` is an index into `kinds`.
    """

    starts: np.ndarray
    places: np.ndarray
    received_at_s: np.ndarray
    rtt_ms: np.ndarray
    sequence: np.ndarray
    kind: np.ndarray
    kinds: list[Kind]

    def take(self, which) -> Plain:
        """The plain lines at these places."""
        return self._replace(**{name: getattr(self, name)[which] for name in self._fields[1:-1]})


def find(chunk: bytes, *, recognise: bool = True) -> Plain:
    """The lines of a chunk, and which are plain (none without `recognise`)."""
    ends = np.flatnonzero(np.frombuffer(chunk, np.uint8) == ord("\n")) + 1
    if not len(ends) or ends[-1] != len(chunk):
        ends = np.append(ends, len(chunk))
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
    """ASCII text, from which any eight bytes can be read as a little-endian number."""

    def __init__(self, text: bytes):
        self.padded = text + PADDING
        self.byte = np.frombuffer(self.padded, np.uint8)
        self.eight = np.ndarray((len(self.padded) - 7,), "<u8", self.padded, strides=(1,))

    def read(self, kind: Kind, begins: np.ndarray):
        """Which of the lines are of the kind, and their received_at_s, rtt_ms and sequence."""
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
            # both are exact, so the quotient rounds as float(text) does
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

    def holds(self, at, text: bytes) -> np.ndarray:
        """The position of a text of at least eight bytes."""
        same = np.ones(len(at), bool)
        for offset in {*range(0, len(text) - 8, 8), len(text) - 8}:
            same &= self.eight[at + offset] == np.uint64(int.from_bytes(text[offset : offset + 8], "little"))
        return same

    def number(self, at) -> tuple[np.ndarray, np.ndarray]:
        """The number at this position, and its length in digits: 0 to 8."""
        digits = self.eight[at] ^ ZEROS  # a digit's byte is its value now, any other byte more than nine
        others = (digits + PAST_NINE | digits) & HIGH_BITS
        count = np.bitwise_count((others & -others) - ONE).astype("i8") >> 3
        return _joined(digits << (8 * (8 - count)).astype("u8")), count

    def number_of(self, at, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The number with this many digits at this position, and where valid."""
        if count <= 8:
            number, digits = self.number(at)
            return number // POWERS[np.maximum(digits - count, 0)], digits >= count
        high, whole = self.number_of(at, count - 8)
        low, digits = self.number(at + count - 8)
        return high * 10**8 + low, whole & (digits == 8)

    def milliseconds(self, at) -> tuple[np.ndarray, np.ndarray]:
        """The round-trip time at this position that ends the line, and where valid."""
        whole, digits = self.number(at)
        pointed = self.byte[at + digits] == ord(".")
        parts, decimals = self.number(at + digits + 1)
        decimals = np.where(pointed, decimals, 0)
        power = POWERS[decimals]
        time = (whole * power + np.where(pointed, parts, 0)) / power  # at most 14 digits, so exact as above
        ends = (self.eight[at + digits + pointed + decimals] << np.uint64(32)) == LINE_END
        ends &= (decimals < 2) | (parts * 10 != power)  # `footer_times` asks whether .10 and .100 lack a carry
        return time, ends & (digits >= 1) & (pointed == (decimals >= 1)) & (decimals <= 6) & (time > 0)


def _joined(digits):
    """Parse eight ASCII digits in a word: pairs, then fours, then all eight are joined."""
    digits = digits * np.uint64(10) + (digits >> np.uint64(8)) & np.uint64(0x00FF00FF00FF00FF)
    digits = digits * np.uint64(100) + (digits >> np.uint64(16)) & np.uint64(0x0000FFFF0000FFFF)
    return (digits * np.uint64(10000) + (digits >> np.uint64(32)) & np.uint64(0xFFFFFFFF)).astype("i8")
