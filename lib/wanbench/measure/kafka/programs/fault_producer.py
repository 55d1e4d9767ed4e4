"""
Send numbered records on schedule, whatever happens to the cluster, until a file signals the end.

Runs on a host with confluent-kafka; started by `wanbench.measure.experiments.kafka_fault`. The schedule is open-loop: records
are due at fixed times, whether or not earlier ones were answered. Record n goes to partition n modulo the partitions.

It prints lines as fault_record.py says: an object with `start_ns` and `interval_ns` once it is ready, and then

    ["sent", sequence, at]                              handed to librdkafka
    ["acknowledged", sequence, at, partition, offset]
    ["failed", sequence, at, name of the error]
    ["error", at, name, text]                           what librdkafka reports and logs

At the end comes an object with `ended`, and `due`, how many records came due.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import time
from functools import partial

from .checked_record import HEAD, PROBE, WARM_UP, record
from .fault_record import Lines, client_settings, numbered

WARM_UP_S = 90.0
"""Timeout of the first connections: the cluster may be electing leaders."""
LEAD_NS = 200_000_000
"""Time from the end of the warm-up to the first record."""
LOOK_S = 0.1
"""Interval of checks for the file that stops it."""
NO_ANSWER = "no answer"
"""The reason of records that were neither acknowledged nor refused when the program ended."""


class Schedule:
    """
    Sends on schedule through `producer` (a confluent_kafka.Producer or equivalent).

    `outstanding` are the records sent and not answered, `due` counts the records that came due.
    """

    def __init__(self, producer, lines: Lines, arguments):
        self.producer, self.lines, self.arguments = producer, lines, arguments
        self.outstanding: set[int] = set()
        self.due = 0
        self.stopped = False
        self._hurried = False
        self._padding = random.Random(0).randbytes(arguments.record_bytes - HEAD.size)
        self._looked_s = time.monotonic()

    def hurry(self, *_) -> None:
        """Send nothing more and wait for nothing: a kill soon follows this signal."""
        self.stopped = self._hurried = True
        self.lines.flush()

    def warm_up(self) -> int:
        """Get a warm-up record acknowledged by every partition, with retries; returns how many failed."""
        left, end_s = set(range(self.arguments.partitions)), time.monotonic() + WARM_UP_S

        def answered(partition, error, _):
            if error is None:
                left.discard(partition)

        while left and not self.stopped and (left_s := end_s - time.monotonic()) > 0:
            for partition in sorted(left):
                value = record(WARM_UP, 0, 0, self._padding)
                told = partial(answered, partition)
                self.producer.produce(self.arguments.topic, value, partition=partition, on_delivery=told)
            self.producer.flush(left_s)
            if left:
                time.sleep(LOOK_S)
        return len(left)

    def run(self, start_ns: int) -> None:
        """Send each record when due, or at once if overdue, until stopped."""
        while not self.stopped:
            intended_ns = start_ns + self.due * self.arguments.interval_ns
            while (left_ns := intended_ns - time.time_ns()) > 0 and not self.stopped:
                self.producer.poll(min(left_ns / 1e9, LOOK_S / 2))
                self._look()
            if self.stopped:
                break
            sequence, self.due = self.due, self.due + 1
            self._send(sequence, intended_ns)
            self.producer.poll(0)
            self._look()

    def drain(self) -> None:
        """Wait for answers, at most `drain_s`; unanswered records then count as failed."""
        end_s = time.monotonic() + self.arguments.drain_s
        while self.outstanding and time.monotonic() < end_s and not self._hurried:
            self.producer.poll(0.05)
            self.lines.tick()
        for sequence in sorted(self.outstanding):
            self.lines.say(("failed", sequence, self.lines.now(), NO_ANSWER))

    def _send(self, sequence: int, intended_ns: int) -> None:
        value = record(PROBE, numbered(self.arguments.number, sequence), intended_ns, self._padding)
        partition = sequence % self.arguments.partitions
        self.outstanding.add(sequence)
        self.lines.say(("sent", sequence, self.lines.now()))
        try:
            self.producer.produce(
                self.arguments.topic, value, partition=partition, on_delivery=partial(self._answered, sequence)
            )
        except Exception as error:  # such as a full queue: the next record is due anyway
            kafka_error = error.args[0] if error.args and hasattr(error.args[0], "name") else None
            self._failed(sequence, kafka_error.name() if kafka_error else type(error).__name__)

    def _answered(self, sequence: int, error, message) -> None:
        if error is not None:
            self._failed(sequence, error.name())
            return
        self.outstanding.discard(sequence)
        at = self.lines.now()
        self.lines.say(("acknowledged", sequence, at, message.partition(), message.offset()))

    def _failed(self, sequence: int, why: str) -> None:
        self.outstanding.discard(sequence)
        self.lines.say(("failed", sequence, self.lines.now(), why))

    def _look(self) -> None:
        self.lines.tick()
        if time.monotonic() - self._looked_s > LOOK_S:
            self._looked_s = time.monotonic()
            self.stopped = self.stopped or os.path.exists(self.arguments.stop_file)


def read_arguments(given=None):
    """The settings, from the command line."""
    parser = argparse.ArgumentParser(description="Sends numbered records on schedule.")
    parser.add_argument("--client", required=True, help="JSON file of librdkafka's settings")
    parser.add_argument("--settings", default="{}", help="further settings, in JSON")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--partitions", type=int, required=True)
    parser.add_argument("--number", type=int, required=True, help="of this producer, from 0")
    parser.add_argument("--interval-ns", type=int, required=True)
    parser.add_argument("--record-bytes", type=int, required=True)
    parser.add_argument("--acks", choices=("0", "1", "all"), required=True)
    parser.add_argument("--stop-file", required=True, help="end once this file exists")
    parser.add_argument("--drain-s", type=float, required=True)
    return parser.parse_args(given)


def main() -> int:
    """Send with these arguments."""
    import confluent_kafka

    arguments = read_arguments()
    lines = Lines("fault producer", number=arguments.number, client=confluent_kafka.version())
    settings = {
        **client_settings(arguments.client, arguments.settings, "producer"),
        "acks": arguments.acks,
        "enable.idempotence": arguments.acks == "all",
        "client.id": f"producer-{arguments.number}",
        "error_cb": lines.client_error,
        "logger": lines.logger(),
    }
    schedule = Schedule(confluent_kafka.Producer(settings), lines, arguments)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, schedule.hurry)
    if left := schedule.warm_up():
        print(f"{left} of {arguments.partitions} partitions did not acknowledge in {WARM_UP_S:g} s", file=sys.stderr)
        return 1
    start_ns = time.time_ns() + LEAD_NS
    lines.say({"start_ns": start_ns, "interval_ns": arguments.interval_ns})
    lines.flush()
    schedule.run(start_ns)
    schedule.drain()
    lines.say({"ended": lines.now(), "due": schedule.due})
    lines.flush()
    os._exit(0)  # librdkafka would wait for what it cannot deliver


if __name__ == "__main__":
    sys.exit(main())
