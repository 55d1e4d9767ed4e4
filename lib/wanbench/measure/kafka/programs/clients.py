"""
Shared by the programs that send and receive records: the record, its schedule, librdkafka's settings, output and ends.

A record is its head (kind, number of the sending process, sequence, intended send time in Unix ns of the sender's
clock, CRC-32 of all the rest or 0, big-endian) and its body. Every program prints JSON, one value per line.
"""

import argparse
import json
import logging
import os
import signal
import struct
import time
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial

HEAD = struct.Struct(">4sHQQI")
RECORD, WARM_UP = b"wbR1", b"wbW1"
NS = 1_000_000_000
WARM_UP_S = 90.0  # timeout of the first connections: the cluster may be electing leaders
FLUSH_S = 5.0  # timeout of a warm-up, before it is retried on the remaining partitions
LOOK_S = 0.1  # interval of checks for the file that stops a program
NAP_S = 0.05  # the longest sleep: how soon a stop is noticed
PRINT_S = 0.2  # buffering time of lines, and so the delay seen by watchers
MOST_TEXT = 200  # characters of an error's text
MOST_ERRORS = 20
PRIORITY = -10
# Values below 2,048 are exact, and above that their first 11 bits are kept: an error of 0.1 % at most, in the buckets
# of an HdrHistogram of three digits.
_EXACT_BITS = 11
_OF_CONSUMERS = (
    "auto.", "client.rack", "enable.auto.", "fetch.", "group.", "heartbeat.", "isolation.", "max.poll.",
    "partition.assignment.", "session.",
)  # fmt: skip
_OF_PRODUCERS = (
    "batch.", "compression.", "delivery.", "linger.", "max.in.flight", "message.send.", "message.timeout.",
    "queue.buffering.", "request.timeout.", "retries", "sticky.",
)  # fmt: skip

OPTIONS = {
    "client": (str, "JSON file of librdkafka's settings"),
    "settings": (json.loads, "further settings, in JSON"),
    "topic": (str, "its name"),
    "topics": (json.loads, "JSON list of names"),
    "partitions": (int, "of each topic"),
    "number": (int, "of this process, from 0"),
    "group": (str, "name of the group"),
    "members": (int, "of the group, for each topic"),
    "nodes": (str, "node_id of the leader of each partition, as 1,2,3"),
    "producers": (json.loads, "JSON list of the numbers of the producers here"),
    "producers-in-all": (int, "producers of all processes"),
    "offsets-ns": (json.loads, "JSON list: this host's clock less that of each producing process"),
    "rate": (float, "records/s of all producers"),
    "length-s": (float, "length of the schedule"),
    "interval-ns": (int, "from one record to the next"),
    "interval-us": (int, "between two records to a broker"),
    "limit-us": (int, "a slower record is late"),
    "payload": (str, "file of lines of --record-bytes each"),
    "record-bytes": (int, "size of a record"),
    "acks": (str, "0, 1 or all"),
    "drain-s": (float, "how long to wait for answers at the end"),
    "timeout-s": (float, "end after this time"),
    "go-file": (str, "JSON with start_ns, created when all may start"),
    "stop-file": (str, "end once this file exists"),
    "ended-file": (str, "created when the traffic has ended"),
    "end-file": (str, "JSON with expected and within_s, there at the end"),
}  # type and meaning of the options of all programs


def read_arguments(description: str, names: str) -> argparse.Namespace:
    """Read the options of these names (separated by spaces) from the command line; all but settings are required."""
    parser = argparse.ArgumentParser(description=description)
    for name in names.split():
        kind, text = OPTIONS[name]
        default = {} if name == "settings" else None
        parser.add_argument(f"--{name}", type=kind, help=text, default=default, required=default is None)
    return parser.parse_args()


def client_settings(path: str, more: dict, role: str | None = None) -> dict:
    """
    Return librdkafka's settings of a client: addresses and security from a JSON file, and those of `more` that apply to
    the role, "producer" or "consumer", if one is given.
    """
    with open(path, "rb") as file:
        settings = json.load(file)
    others = {"producer": _OF_CONSUMERS, "consumer": _OF_PRODUCERS, None: ()}[role]
    return {**settings, **{name: value for name, value in more.items() if not name.startswith(others)}}


def error_name(error) -> str:
    """librdkafka's name of an error, also of one inside an exception; else the exception's class."""
    kafka = error.args[0] if isinstance(error, Exception) and error.args else error
    return kafka.name() if hasattr(kafka, "name") else type(error).__name__


def count_error(counts: Counter, error) -> None:
    """Count an error, by its name and text, if it is one of the first `MOST_ERRORS` different ones."""
    key = error_name(error), (error.str() if hasattr(error, "str") else str(error))[:MOST_TEXT]
    if len(counts) < MOST_ERRORS or key in counts:
        counts[key] += 1


# The record and its schedule


def record(kind: bytes, producer: int, sequence: int, intended_ns: int, body: bytes) -> bytes:
    """
    A record with its checksum, as long as its head and its body.

    >>> made = record(RECORD, 2, 7, 1_000, b"..")
    >>> len(made) == HEAD.size + 2, parse_record(made), parse_record(made + b"!"), parse_record(b"?")
    (True, (2, 7, False), (None, None, True), (None, None, True))
    """
    return HEAD.pack(kind, producer, sequence, intended_ns, _sum(kind, producer, sequence, intended_ns, body)) + body


def parse_record(value: bytes | None) -> tuple[int | None, int | None, bool] | None:
    """Producer, sequence and whether damaged (then both are None); None for a warm-up record."""
    if value is not None and len(value) >= HEAD.size:
        *head, checksum = HEAD.unpack_from(value)
        kind, producer, sequence, _ = head
        if kind in (RECORD, WARM_UP) and checksum == _sum(*head, value[HEAD.size :]):
            return (producer, sequence, False) if kind == RECORD else None
    return None, None, True


def _sum(kind, producer, sequence, intended_ns, body):
    return zlib.crc32(body, zlib.crc32(HEAD.pack(kind, producer, sequence, intended_ns, 0)))


def elapsed_ns(sequence: int, rate: float) -> int:
    return round(sequence * NS / rate)


def n_records(rate: float, length_s: float) -> int:
    return max(1, round(rate * length_s))


def bucket(value: int) -> int:
    """
    Return the smallest value in the same bucket.

    >>> [bucket(value) for value in (-5, 2_047, 2_049, 100_001)]
    [0, 2047, 2048, 99968]
    """
    if value < 2_048:
        return value if value > 0 else 0
    shift = value.bit_length() - _EXACT_BITS
    return value >> shift << shift


def flat(counts: dict[int, int]) -> list[int]:
    """Return counts by value as one list, values ascending: value, count, value, count."""
    return [number for pair in sorted(counts.items()) for number in pair]


# Starting and stopping


def on_stop(handler: Callable) -> None:
    """Call the handler on SIGTERM and SIGINT."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handler)


def await_file(path: str, is_over: Callable[[], bool], nap_s: float = 0.02) -> dict | None:
    """Wait for a file, and return its JSON object; None once `is_over()` holds."""
    while not is_over():
        if os.path.exists(path):
            with open(path, "rb") as file:
                return json.load(file)
        time.sleep(nap_s)
    return None


def warm_up(keys: Iterable, send: Callable, flush: Callable, is_over: Callable[[], bool]) -> int:
    """
    Get a record acknowledged for each key, with retries; returns how many are not after `WARM_UP_S`. `send` takes a key
    and librdkafka's on_delivery; `flush` the seconds to wait for answers.
    """
    left, end_s = set(keys), time.monotonic() + WARM_UP_S

    def answered(key, error, _):
        if error is None:
            left.discard(key)

    while left and not is_over() and time.monotonic() < end_s:
        for key in sorted(left):
            with suppress(Exception):  # a partition that the client does not know yet
                send(key, partial(answered, key))
        flush(FLUSH_S)
        if left:
            time.sleep(NAP_S)
    return len(left)


def raise_priority() -> None:
    """
    Raise this process's priority if permitted: a load generator should not wait. Linux may share processors among
    sessions first (man 7 sched, "The autogroup feature"): where this process has a session of its own, that gets
    priority too.
    """
    with suppress(OSError):
        os.nice(PRIORITY)  # relative: the whole measurement may have been raised
    if os.getsid(0) == os.getpid():
        with suppress(OSError), open("/proc/self/autogroup", "w") as session:
            session.write(str(PRIORITY))


# Output


def line(value) -> str:
    """A value as one line of JSON."""
    return json.dumps(value, separators=(",", ":")) + "\n"


def put(text: str) -> None:
    """Write to stdout at once, bypassing Python's buffers, so that a signal handler may interrupt."""
    left = text.encode()
    while left:
        left = left[os.write(1, left) :]


class Lines:
    """
    Buffered output lines, printed soon. The first has `origin_ns`, a Unix time; all times after it are whole
    microseconds since then.
    """

    def __init__(self, program: str, **about):
        self.origin_ns = time.time_ns()
        self._waiting: deque[str] = deque()
        self._flushed_s = time.monotonic()
        self.write({"program": program, "format": 1, "origin_ns": self.origin_ns, **about})
        self.flush()

    def now(self) -> int:
        return (time.time_ns() - self.origin_ns) // 1_000

    def write(self, value) -> None:
        """Print a value soon; thread-safe."""
        self._waiting.append(line(value))

    def client_error(self, error) -> None:
        """Log an error from librdkafka: ["error", at, its name, its text]."""
        self.write(("error", self.now(), error.name(), error.str()[:MOST_TEXT]))

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
        self.write(("error", self.now(), name, text[:MOST_TEXT]))

    def flush(self, *_) -> None:
        """Print buffered lines; safe in a signal handler."""
        lines = []
        while self._waiting:
            lines.append(self._waiting.popleft())
        if lines:
            put("".join(lines))
        self._flushed_s = time.monotonic()

    def tick(self) -> None:
        if time.monotonic() - self._flushed_s > PRINT_S:
            self.flush()

    def end(self, status: int = 0, **about) -> None:
        """Print the last line, an object with `ended`, and end at once: librdkafka would wait for the undeliverable."""
        self.write({"ended": self.now(), **about})
        self.flush()
        os._exit(status)


class Paced:
    """
    Sends records at fixed times through `producer` (a confluent_kafka.Producer or equivalent), whether or not earlier
    ones were answered, until stopped by a signal or file. A subclass defines `send`. `due` counts the records that came
    due.
    """

    def __init__(self, producer, lines: Lines, arguments, n_partitions: int, body: bytes):
        self.producer, self.lines, self.arguments = producer, lines, arguments
        self.n_partitions, self.body = n_partitions, body
        self.due, self.stopped = 0, False
        self._looked_s = time.monotonic()

    def stop(self, *_) -> None:
        self.stopped = True

    def warm_up(self) -> int:
        """Get one record acknowledged by every partition; returns how many failed."""
        value = record(WARM_UP, 0, 0, 0, self.body)
        return warm_up(
            range(self.n_partitions),
            lambda partition, on_delivery: self.produce(value, partition, on_delivery),
            self.producer.flush,
            lambda: self.stopped,
        )

    def produce(self, value: bytes, partition: int, on_delivery: Callable) -> None:
        self.producer.produce(self.arguments.topic, value, partition=partition, on_delivery=on_delivery)

    def send(self, sequence: int, intended_ns: int) -> None:
        raise NotImplementedError

    def run(self, start_ns: int, interval_ns: float) -> None:
        """Send each record when due, or at once if overdue, until stopped."""
        while not self.stopped:
            intended_ns = start_ns + round(self.due * interval_ns)
            while (left_ns := intended_ns - time.time_ns()) > 0 and not self.stopped:
                self.producer.poll(min(left_ns / 1e9, NAP_S))
                self.look()
            if self.stopped:
                break
            sequence, self.due = self.due, self.due + 1
            self.send(sequence, intended_ns)
            self.producer.poll(0)
            self.look()

    def look(self) -> None:
        """Print lines and look for the file that stops it, each if it is time."""
        self.lines.tick()
        if time.monotonic() - self._looked_s > LOOK_S:
            self._looked_s = time.monotonic()
            self.stopped = self.stopped or os.path.exists(self.arguments.stop_file)
