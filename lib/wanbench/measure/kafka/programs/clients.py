"""
Define what the programs that send and receive records share: records, schedules, librdkafka's settings, output.

A record is a head and a body. The head holds, big-endian: the kind, the number of the sending process, the sequence
number, the intended send time (Unix ns by the sender's clock), and a CRC-32 of the rest of the record (0 in open-loop
loads, which do not check it). Every program prints JSON, one value per line.
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
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn

HEAD = struct.Struct(">4sHQQI")
RECORD, WARM_UP = b"wbR1", b"wbW1"
NS = 1_000_000_000
WARM_UP_S = 90.0  # timeout of all warm-ups, long because the cluster may be electing leaders
FLUSH_S = 5.0  # timeout of one warm-up, before it is retried on the remaining partitions
LOOK_S = 0.1  # interval of checks for the file that stops a program
NAP_S = 0.05  # longest sleep, and so the delay until a stop is noticed
PRINT_S = 0.2  # interval of printing buffered lines, and so the delay until watchers see them
MOST_TEXT = 200  # maximum number of characters of an error's text
MOST_ERRORS = 20  # maximum number of different errors that are counted
LATE_UNIT_US = 100  # unit of counts of lateness
PRIORITY = -10  # change of the nice value
# Histogram buckets are those of an HdrHistogram with three digits: values below 2,048 are exact, larger values keep
# their first 11 bits, which is an error of at most 0.1 %.
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
    "share-groups": (int, "1: groups are share groups"),
    "join-s": (float, "the last member joins after so many seconds of records; 0: with the others"),
    "nodes": (str, "node_id of the leader of each partition, such as 1,2,3"),
    "producers": (json.loads, "JSON list of the numbers of this process's producers"),
    "producers-in-all": (int, "number of producers in all processes"),
    "offsets-ns": (json.loads, "JSON list: this host's clock minus the clock of each producing process"),
    "rate": (float, "records/s of all producers"),
    "length-s": (float, "length of the schedule"),
    "interval-ns": (int, "time from one record to the next"),
    "interval-us": (int, "time between two records to a broker"),
    "limit-us": (int, "a record is late after this time"),
    "payload": (str, "file of lines of --record-bytes each"),
    "record-bytes": (int, "size of a record"),
    "acks": (str, "0, 1 or all"),
    "transaction-ms": (float, "time from one commit to the next; 0: no transactions"),
    "drain-s": (float, "how long to wait for answers at the end"),
    "timeout-s": (float, "end after this time"),
    "go-file": (str, "JSON with start_ns, created when all may start"),
    "stop-file": (str, "end once this file exists"),
    "ended-file": (str, "created when the traffic has ended"),
    "end-file": (str, "JSON with expected and within_s, created at the end"),
}  # type and help text of the options of all programs


def read_arguments(description: str, names: str) -> argparse.Namespace:
    """Read the command-line options `names` (separated by spaces); all but `settings` are required."""
    parser = argparse.ArgumentParser(description=description)
    for name in names.split():
        kind, text = OPTIONS[name]
        default = {} if name == "settings" else None
        parser.add_argument(f"--{name}", type=kind, help=text, default=default, required=default is None)
    return parser.parse_args()


def client_settings(path: str, more: Mapping[str, Any], role: str | None = None) -> dict[str, Any]:
    """
    Return a client's settings for librdkafka: the content of a JSON file (addresses and security), and `more`.

    With a `role`, "producer" or "consumer", settings in `more` that apply only to the other role are left out.
    """
    with open(path, "rb") as file:
        settings = json.load(file)
    others = {"producer": _OF_CONSUMERS, "consumer": _OF_PRODUCERS, None: ()}[role]
    return {**settings, **{name: value for name, value in more.items() if not name.startswith(others)}}


def error_name(error: object) -> str:
    """
    Return librdkafka's name for an error, or for an exception that wraps an error; else the class of the exception.
    """
    kafka: Any = error.args[0] if isinstance(error, Exception) and error.args else error
    return kafka.name() if hasattr(kafka, "name") else type(error).__name__


def count_error(counts: Counter[tuple[str, str]], error: Any) -> None:
    """Count an error by name and text; only the first `MOST_ERRORS` different errors are counted."""
    key = error_name(error), (error.str() if hasattr(error, "str") else str(error))[:MOST_TEXT]
    if len(counts) < MOST_ERRORS or key in counts:
        counts[key] += 1


# The record and its schedule


def record(kind: bytes, producer: int, sequence: int, intended_ns: int, body: bytes) -> bytes:
    """
    Build a record: a head with these values and the checksum, and the body.

    >>> made = record(RECORD, 2, 7, 1_000, b"..")
    >>> len(made) == HEAD.size + 2, parse_record(made), parse_record(made + b"!"), parse_record(b"?")
    (True, (2, 7, False), (None, None, True), (None, None, True))
    """
    return HEAD.pack(kind, producer, sequence, intended_ns, _sum(kind, producer, sequence, intended_ns, body)) + body


def parse_record(value: bytes | None) -> tuple[int | None, int | None, bool] | None:
    """
    Return a record's producer and sequence number (both None if it is damaged), and whether it is damaged; return None
    for a warm-up record.
    """
    if value is not None and len(value) >= HEAD.size:
        *head, checksum = HEAD.unpack_from(value)
        kind, producer, sequence, _ = head
        if kind in (RECORD, WARM_UP) and checksum == _sum(kind, producer, sequence, head[3], value[HEAD.size :]):
            return (producer, sequence, False) if kind == RECORD else None
    return None, None, True


def _sum(kind: bytes, producer: int, sequence: int, intended_ns: int, body: bytes) -> int:
    return zlib.crc32(body, zlib.crc32(HEAD.pack(kind, producer, sequence, intended_ns, 0)))


def elapsed_ns(sequence: int, rate: float) -> int:
    return round(sequence * NS / rate)


def n_records(rate: float, length_s: float) -> int:
    return max(1, round(rate * length_s))


def bucket(value: int) -> int:
    """
    Return the smallest value in the histogram bucket that contains `value`.

    >>> [bucket(value) for value in (-5, 2_047, 2_049, 100_001)]
    [0, 2047, 2048, 99968]
    """
    if value < 2_048:
        return value if value > 0 else 0
    shift = value.bit_length() - _EXACT_BITS
    return value >> shift << shift


def flat(counts: dict[int, int]) -> list[int]:
    """Flatten counts by value into one list, in ascending order: value, count, value, count."""
    return [number for pair in sorted(counts.items()) for number in pair]


# Starting and stopping


def on_stop(handler: Callable[..., object]) -> None:
    """Call the handler on SIGTERM and SIGINT."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handler)


def await_file(path: str, is_over: Callable[[], bool], nap_s: float = 0.02) -> dict[str, Any] | None:
    """Wait until a file exists, and return its JSON object; return None if `is_over()` becomes true before that."""
    while not is_over():
        if os.path.exists(path):
            with open(path, "rb") as file:
                return json.load(file)
        time.sleep(nap_s)
    return None


def warm_up(
    keys: Iterable[Any], send: Callable[..., object], flush: Callable[[float], object], is_over: Callable[[], bool]
) -> int:
    """
    Send a record for each key until it is acknowledged; return how many were not acknowledged within `WARM_UP_S`.

    `send` takes a key and librdkafka's on_delivery callback; `flush` takes the seconds to wait for answers.
    """
    left, end_s = set(keys), time.monotonic() + WARM_UP_S

    def answered(key: object, error: object, _: object) -> None:
        if error is None:
            left.discard(key)

    while left and not is_over() and time.monotonic() < end_s:
        for key in sorted(left):
            with suppress(Exception):  # the client may not know the partition yet
                send(key, partial(answered, key))
        flush(FLUSH_S)
        if left:
            time.sleep(NAP_S)
    return len(left)


def raise_priority() -> None:
    """
    Raise this process's priority if permitted, because a load generator should not have to wait for a processor.

    Linux may share processors among sessions first (man 7 sched, "The autogroup feature"), so a process that leads its
    own session raises the session's priority too.
    """
    with suppress(OSError):
        os.nice(PRIORITY)  # relative, because the whole measurement may have a raised priority
    if os.getsid(0) == os.getpid():
        with suppress(OSError), open("/proc/self/autogroup", "w") as session:
            session.write(str(PRIORITY))


# Output


def line(value: object) -> str:
    """Return a value as one line of JSON."""
    return json.dumps(value, separators=(",", ":")) + "\n"


def put(text: str) -> None:
    """Write to stdout at once, without Python's buffers, so that signal handlers can also write."""
    left = text.encode()
    while left:
        left = left[os.write(1, left) :]


class Lines:
    """
    Buffered output lines, printed within about `PRINT_S`.

    The first line has `origin_ns`, a Unix time in ns; all times in later lines are whole microseconds since then.
    """

    def __init__(self, program: str, **about: object):
        self.origin_ns = time.time_ns()
        self._waiting: deque[str] = deque()
        self._flushed_s = time.monotonic()
        self.write({"program": program, "format": 1, "origin_ns": self.origin_ns, **about})
        self.flush()

    def now(self) -> int:
        return (time.time_ns() - self.origin_ns) // 1_000

    def write(self, value: object) -> None:
        """Print a value within about `PRINT_S`. Several threads can call this at the same time."""
        self._waiting.append(line(value))

    def client_error(self, error: Any) -> None:
        """Print an error from librdkafka as ["error", at, name, text]."""
        self.write(("error", self.now(), error.name(), error.str()[:MOST_TEXT]))

    def logger(self) -> logging.Logger:
        """
        Return a logger that prints librdkafka's log lines as errors.

        The errors have librdkafka's names, such as REQTMOUT for an unanswered request, and the time of the poll that
        delivers them.
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

    def flush(self, *_: object) -> None:
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

    def end(self, status: int = 0, **about: object) -> NoReturn:
        """
        Print the last line, an object with `ended`, and exit at once, because librdkafka would wait to deliver
        outstanding records.
        """
        self.write({"ended": self.now(), **about})
        self.flush()
        os._exit(status)


class Paced:
    """
    Send records at fixed times, without waiting for answers, until stopped by a signal or a file.

    `producer` is a confluent_kafka.Producer or an equivalent; a subclass defines `send`. `due` counts the records that
    came due.
    """

    def __init__(self, producer: Any, lines: Lines, arguments: Any, n_partitions: int, body: bytes):
        self.producer, self.lines, self.arguments = producer, lines, arguments
        self.n_partitions, self.body = n_partitions, body
        self.due, self.stopped = 0, False
        self._looked_s = time.monotonic()

    def stop(self, *_: object) -> None:
        self.stopped = True

    def warm_up(self) -> int:
        """
        Send a warm-up record to every partition, again and again until it is acknowledged; return how many were not
        acknowledged in time.
        """
        value = record(WARM_UP, 0, 0, 0, self.body)
        return warm_up(
            range(self.n_partitions),
            lambda partition, on_delivery: self.produce(value, partition, on_delivery),
            self.producer.flush,
            lambda: self.stopped,
        )

    def produce(self, value: bytes, partition: int, on_delivery: Callable[..., object]) -> None:
        self.producer.produce(self.arguments.topic, value, partition=partition, on_delivery=on_delivery)

    def send(self, sequence: int, intended_ns: int) -> None:
        raise NotImplementedError

    def run(self, start_ns: int, interval_ns: float) -> None:
        """
        Send each record when it is due, or at once if it is overdue, until stopped.

        Record n, counted from 0, is due at `start_ns` + n `interval_ns`, in Unix ns.
        """
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
        """Print buffered lines, and check whether the stop file exists, each at its own interval."""
        self.lines.tick()
        if time.monotonic() - self._looked_s > LOOK_S:
            self._looked_s = time.monotonic()
            self.stopped = self.stopped or os.path.exists(self.arguments.stop_file)
