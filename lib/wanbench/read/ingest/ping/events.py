"""What the lines of a ping say."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from .footer_times import Tally, Times

REPLY = 0
SILENCE = 1
"""No answer yet."""
REPORT = 2
"""An error that names its echo."""

AT = r"(?:\[(?P<at>[0-9]{1,12}\.[0-9]{1,6})\] |(?P<clock>[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6} ))?"
"""Seconds since 1970; or (macOS --apple-time) a time of day, without date and zone, which is dropped."""
ADDRESS = r"[0-9A-Za-z.:%_-]{1,128}"


class Event(NamedTuple):
    """Content of a line about one echo; -1 and None: not printed."""

    line_number: int
    kind: int
    sequence: int
    received_at_s: float | None = None
    rtt_ms: float | None = None
    ttl: int = -1
    reply_bytes: int = -1
    responder: str | None = None
    error: str | None = None
    duplicate: bool = False


class Footer(NamedTuple):
    """The counts in ping's footer, and their line."""

    line_number: int
    text: str
    transmitted: int
    received: int
    duplicates: int


@dataclass(slots=True)
class Ping:
    """
    One ping in a file: its header, and its footer once read.

    `number` counts from 0, `line_number` is its header's (of fping: that of the first echo). `counted` are the echoes
    of Windows, or first echoes of fping. `reported` counts the errors that Windows counts as received,
    `doubtful` the times that may lack a carry, as printed.
    """

    number: int
    line_number: int
    dialect: str
    first_sequence: int
    target: str
    footer: Footer | None = None
    times: Times | None = None
    reported: int = 0
    counted: int = 0
    doubtful: Tally = field(default_factory=Tally)


def number(digits: str | None) -> float | None:
    """The number that these digits write; None for none."""
    return None if digits is None else float(digits)
