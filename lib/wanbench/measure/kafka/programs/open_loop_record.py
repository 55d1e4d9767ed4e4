"""
Shared by both programs of an open-loop load: schedule, record head, and latency counts per second.

Record n of the whole load is due n / rate seconds after the start, whichever producer sends it. A record is its head
(kind, number of the sending process, n, intended send time in Unix ns of the sender's clock, big-endian) and its body.
"""

from __future__ import annotations

import json
import os
import struct
import time
from contextlib import suppress

HEAD = struct.Struct(">4sHQQ")
RECORD, WARM_UP = b"wbO1", b"wbV1"
NS = 1_000_000_000
PRIORITY = -10
_EXACT_BITS = 11
"""
Values below 2,048 are exact, and above that their first 11 bits are kept: an error of 0.1 % at most, in the buckets of
an HdrHistogram of three digits.
"""


def elapsed_ns(sequence: int, rate: float) -> int:
    """
    When a record is due, in ns after the start.

    >>> elapsed_ns(3, 2.0)
    1500000000
    """
    return round(sequence * NS / rate)


def n_records(rate: float, length_s: float) -> int:
    """
    Records of a schedule; at least one.

    >>> n_records(0.4, 1.0), n_records(300, 1.5)
    (1, 450)
    """
    return max(1, round(rate * length_s))


def bucket(value: int) -> int:
    """
    The smallest value in the same bucket.

    >>> [bucket(value) for value in (-5, 2_047, 2_049, 100_001)]
    [0, 2047, 2048, 99968]
    """
    if value < 2_048:
        return value if value > 0 else 0
    shift = value.bit_length() - _EXACT_BITS
    return value >> shift << shift


def flat(counts: dict[int, int]) -> list[int]:
    """
    Counts by value as one list: value, count, value, count; values ascend.

    >>> flat({7: 1, 5: 2})
    [5, 2, 7, 1]
    """
    return [number for pair in sorted(counts.items()) for number in pair]


def settings_of(path: str, more: str) -> dict:
    """librdkafka's settings: addresses and security from a JSON file, others from a JSON object."""
    with open(path, "rb") as file:
        return {**json.load(file), **json.loads(more)}


def await_file(path: str, is_over, nap_s: float = 0.02) -> dict | None:
    """Wait for a file, and return its JSON object; None once `is_over()` holds."""
    while not is_over():
        if os.path.exists(path):
            with open(path, "rb") as file:
                return json.load(file)
        time.sleep(nap_s)
    return None


def put_first() -> None:
    """
    Raise this process's priority if permitted: a load generator should not wait.

    Linux may share processors among sessions first (man 7 sched, "The autogroup feature"): where this process has a
    session of its own, as on the lab's hosts, that gets priority too.
    """
    with suppress(OSError):
        os.nice(PRIORITY)  # relative: the whole measurement may have been raised
    if os.getsid(0) == os.getpid():
        with suppress(OSError), open("/proc/self/autogroup", "w") as session:
            session.write(str(PRIORITY))
