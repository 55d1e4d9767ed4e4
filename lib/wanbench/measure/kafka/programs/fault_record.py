"""
Shared by the programs of a fault episode: record numbers, librdkafka's settings, and prompt output.

Records are those of `checked_record`; the upper bits of the sequence are the producer's number.

Every program prints JSON, one value per line. The first line has `origin_ns`, a Unix time; all times after it are whole
microseconds since then.
"""

from __future__ import annotations

import json
import logging
import time
from collections import deque

from .checked_record import PROBE, line, opened, put

SEQUENCE_BITS = 40
"""A million records a second for twelve days."""
FLUSH_S = 0.2
"""Buffering time of lines, and so the delay seen by watchers."""
SHOWN = 200
"""Characters of an error's text."""
_OF_CONSUMERS = (
    "auto.", "client.rack", "enable.auto.", "fetch.", "group.", "heartbeat.", "isolation.", "max.poll.",
    "partition.assignment.", "session.",
)  # fmt: skip
_OF_PRODUCERS = (
    "batch.", "compression.", "delivery.", "linger.", "max.in.flight", "message.send.", "message.timeout.",
    "queue.buffering.", "request.timeout.", "retries", "sticky.",
)  # fmt: skip


def numbered(producer: int, sequence: int) -> int:
    """
    The number that a record carries.

    >>> producer_and_sequence(numbered(2, 7))
    (2, 7)
    """
    return producer << SEQUENCE_BITS | sequence


def producer_and_sequence(number: int) -> tuple[int, int]:
    """The producer and the sequence in a record's number."""
    return number >> SEQUENCE_BITS, number & ((1 << SEQUENCE_BITS) - 1)


def read_record(value: bytes | None) -> tuple[int | None, int | None, bool] | None:
    """Producer, sequence and whether damaged (then both are None); None for a warm-up record."""
    kind, number, _, is_intact = opened(value)
    if not is_intact:
        return None, None, True
    return (*producer_and_sequence(number), False) if kind == PROBE else None


def client_settings(path: str, given: str, role: str) -> dict:
    """
    librdkafka's settings of a client: addresses and security from a JSON file, plus those of a JSON object that apply
    to this role.
    """
    with open(path, "rb") as file:
        settings = json.load(file)
    not_its = _OF_PRODUCERS if role == "consumer" else _OF_CONSUMERS
    more = {name: value for name, value in json.loads(given).items() if not name.startswith(not_its)}
    return {**settings, **more}


class Lines:
    """Buffered output lines, printed soon; times count from `origin_ns`."""

    def __init__(self, program: str, **about):
        self.origin_ns = time.time_ns()
        self._waiting: deque[str] = deque()
        self._flushed_s = time.monotonic()
        self.say({"program": program, "format": 1, "origin_ns": self.origin_ns, **about})
        self.flush()

    def now(self) -> int:
        """Microseconds since the origin."""
        return (time.time_ns() - self.origin_ns) // 1_000

    def say(self, value) -> None:
        """Print a value soon; thread-safe."""
        self._waiting.append(line(value))

    def client_error(self, error) -> None:
        """Log an error from librdkafka: ["error", at, its name, its text]."""
        self.say(("error", self.now(), error.name(), error.str()[:SHOWN]))

    def logger(self) -> logging.Logger:
        """
        A logger that turns librdkafka's log lines into errors, by their name there, such as REQTMOUT for an unanswered
        request. Their time is that of the poll that delivers them.
        """
        logger = logging.Logger("librdkafka")
        handler = logging.Handler()
        handler.emit = self._logged
        logger.addHandler(handler)
        return logger

    def _logged(self, record: logging.LogRecord) -> None:
        if isinstance(record.args, tuple) and len(record.args) == 3:
            name, _, text = map(str, record.args)
        else:
            name, text = "LOG", record.getMessage()
        self.say(("error", self.now(), name, text[:SHOWN]))

    def flush(self, *_) -> None:
        """Print buffered lines; safe in a signal handler."""
        lines = []
        while self._waiting:
            lines.append(self._waiting.popleft())
        if lines:
            put("".join(lines))
        self._flushed_s = time.monotonic()

    def tick(self) -> None:
        """Print buffered lines if it is time."""
        if time.monotonic() - self._flushed_s > FLUSH_S:
            self.flush()
