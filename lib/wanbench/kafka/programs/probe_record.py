"""
Shared by both programs of a probe: record format, clocks, retries.

A record is its head (kind, sequence, intended send time in Unix ns, CRC-32 of all the rest, big-endian) and padding.
"""

from __future__ import annotations

import json
import os
import struct
import time
import zlib

HEAD = struct.Struct(">4sQQI")
PROBE, WARM_UP, END = b"wbP1", b"wbW1", b"wbE1"
RETRY_S = 0.5
"""Interval between attempts of `insist`."""


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
        if is_intact and kind in (PROBE, WARM_UP, END):
            return kind, sequence, intended_ns, True
    return None, None, None, False


def _sum(kind, sequence, intended_ns, padding):
    return zlib.crc32(padding, zlib.crc32(HEAD.pack(kind, sequence, intended_ns, 0)))


def clocks_ns(shift_ns: int = 0) -> dict:
    """Wall clock and monotonic clock at once: their difference changes when the time of day is set."""
    return {"realtime_ns": time.time_ns() + shift_ns, "monotonic_ns": time.monotonic_ns()}


def client_settings(path: str) -> dict:
    """Keywords of kafka-python, bootstrap_servers and security among them, from a JSON file."""
    with open(path, "rb") as file:
        return json.load(file)


def insist(attempt, what: str):
    """
    Call `attempt` until it succeeds; print what is awaited, and why each attempt failed.

    Only errors that Kafka calls retriable are retried. The caller decides when to give up.
    """
    put(line({"waits_for": what}))
    while True:
        try:
            return attempt()
        except Exception as error:
            if not getattr(error, "retriable", False):
                raise
            put(line({"waits_for": f"{what} ({type(error).__name__}: {str(error)[:200]})"}))
            time.sleep(RETRY_S)


def line(value) -> str:
    """A value as one line of JSON."""
    return json.dumps(value, separators=(",", ":")) + "\n"


def put(text: str) -> None:
    """Write to stdout at once, bypassing Python's buffers, so that a signal handler may interrupt."""
    left = text.encode()
    while left:
        left = left[os.write(1, left) :]
