"""
A record with a checksum, and output lines; shared by the programs of loads and faults.

A record is its head (kind, sequence, intended send time in Unix ns, CRC-32 of all the rest, big-endian) and padding.
"""

from __future__ import annotations

import json
import os
import struct
import zlib

HEAD = struct.Struct(">4sQQI")
PROBE, WARM_UP = b"wbP1", b"wbW1"


def record(kind: bytes, sequence: int, intended_ns: int, padding: bytes) -> bytes:
    """
    A record, as long as its head and the padding.

    >>> made = record(PROBE, 7, 1_000, b"..")
    >>> len(made) == HEAD.size + 2, opened(made)
    (True, (b'wbP1', 7, 1000, True))
    """
    return HEAD.pack(kind, sequence, intended_ns, _sum(kind, sequence, intended_ns, padding)) + padding


def opened(value: bytes | None) -> tuple[bytes | None, int | None, int | None, bool]:
    """
    Kind, sequence and intended send time of a record, and True; None and False if its checksum is wrong.

    >>> opened(b"?"), opened(record(PROBE, 7, 1_000, b"..") + b"!")
    ((None, None, None, False), (None, None, None, False))
    """
    if value is not None and len(value) >= HEAD.size:
        kind, sequence, intended_ns, checksum = HEAD.unpack_from(value)
        is_intact = checksum == _sum(kind, sequence, intended_ns, value[HEAD.size :])
        if is_intact and kind in (PROBE, WARM_UP):
            return kind, sequence, intended_ns, True
    return None, None, None, False


def _sum(kind, sequence, intended_ns, padding):
    return zlib.crc32(padding, zlib.crc32(HEAD.pack(kind, sequence, intended_ns, 0)))


def line(value) -> str:
    """A value as one line of JSON."""
    return json.dumps(value, separators=(",", ":")) + "\n"


def put(text: str) -> None:
    """Write to stdout at once, bypassing Python's buffers, so that a signal handler may interrupt."""
    left = text.encode()
    while left:
        left = left[os.write(1, left) :]
