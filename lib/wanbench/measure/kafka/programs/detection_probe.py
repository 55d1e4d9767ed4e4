"""
Send a small record to each broker at a steady pace, and print each one's acknowledgement latency.

Runs on a host with confluent-kafka; started by `wanbench.pages.rolling_and_degraded.design`. Partition n of the topic is led by the
n-th broker in `--nodes`. The schedule is open-loop: records are due at fixed times, whether or not earlier ones were
answered, and latency counts from then.

It prints lines as fault_record.py says, with times in microseconds since the origin:

    [partition, due, latency]            acknowledged
    [partition, due, null, "late"]       not answered within the limit; may be followed by
    [partition, due, latency, "after"]   the answer to such a record
    [partition, due, null, why]          never acknowledged: librdkafka's name of the error

At the end comes an object with `ended` and `due`, the records that came due.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections import deque
from functools import partial

from .fault_record import Lines, client_settings

LEAD_US = 300_000
"""Time from the end of the preparations to the first record."""
NAP_S = 0.05
WARM_UP_S = 60.0


class Probe:
    """Sends on schedule through `producer` (a confluent_kafka.Producer or equivalent) until stopped."""

    def __init__(self, producer, lines: Lines, arguments):
        self.producer, self.lines, self.arguments = producer, lines, arguments
        self.n_partitions = len(arguments.nodes.split(","))
        self.stopped, self.due = False, 0
        self._value = bytes(arguments.record_bytes)
        self._unanswered: list[deque] = [deque() for _ in range(self.n_partitions)]
        self._late: set[tuple[int, int]] = set()
        self._answered: set[tuple[int, int]] = set()

    def stop(self, *_) -> None:
        """Send nothing more."""
        self.stopped = True

    def warm_up(self) -> bool:
        """Get one record acknowledged by each broker; False on timeout."""
        left = set(range(self.n_partitions))

        def answered(partition, error, _):
            if error is None:
                left.discard(partition)

        end_s = time.monotonic() + WARM_UP_S
        while left and not self.stopped and time.monotonic() < end_s:
            for partition in sorted(left):
                self._produce(partition, partial(answered, partition))
            self.producer.flush(2.0)
        return not left

    def run(self, start_us: int) -> None:
        """Send each record when due, to the brokers in turn."""
        step_us = self.arguments.interval_us / self.n_partitions
        while not self.stopped:
            due_us = start_us + round(self.due * step_us)
            while (left_us := due_us - self.lines.now()) > 0 and not self.stopped:
                self.producer.poll(min(left_us / 1e6, NAP_S))
                self._look()
            if self.stopped:
                return
            partition, self.due = self.due % self.n_partitions, self.due + 1
            self._unanswered[partition].append(due_us)
            try:
                self._produce(partition, partial(self._told, partition, due_us))
            except BufferError:
                self._failed(partition, due_us, "_QUEUE_FULL")
            self.producer.poll(0)
            self._look()

    def drain(self) -> None:
        """Wait for answers, at most for the limit."""
        end_us = self.lines.now() + self.arguments.limit_us + 100_000
        while any(self._unanswered) and self.lines.now() < end_us:
            self.producer.poll(0.02)
            self._look()

    def _produce(self, partition: int, told) -> None:
        self.producer.produce(self.arguments.topic, self._value, partition=partition, on_delivery=told)

    def _told(self, partition: int, due_us: int, error, _) -> None:
        now = self.lines.now()
        if error is not None:
            self._failed(partition, due_us, error.name())
            return
        line = [partition, due_us, now - due_us]
        if (partition, due_us) in self._late:
            self._late.discard((partition, due_us))
            line.append("after")
        else:
            self._answered.add((partition, due_us))
        self.lines.say(line)

    def _failed(self, partition: int, due_us: int, why: str) -> None:
        if (partition, due_us) not in self._late:
            self._answered.add((partition, due_us))
        self.lines.say([partition, due_us, None, why])

    def _look(self) -> None:
        """Mark records that are late by now."""
        now = self.lines.now()
        for partition, waiting in enumerate(self._unanswered):
            while waiting:
                key = partition, waiting[0]
                if key in self._answered:
                    self._answered.discard(key)
                elif now - waiting[0] > self.arguments.limit_us:
                    self._late.add(key)
                    self.lines.say([*key, None, "late"])
                else:
                    break
                waiting.popleft()
        self.lines.tick()
        if self.arguments.stop_file and os.path.exists(self.arguments.stop_file):
            self.stopped = True


def read_arguments(given=None):
    """The settings, from the command line."""
    parser = argparse.ArgumentParser(description="Times a record to each broker at a steady pace.")
    parser.add_argument("--client", required=True, help="JSON file of librdkafka's settings")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--nodes", required=True, help="node_id of the leader of each partition, as 1,2,3")
    parser.add_argument("--interval-us", type=int, required=True, help="between two records to a broker")
    parser.add_argument("--limit-us", type=int, required=True, help="a slower record is late")
    parser.add_argument("--record-bytes", type=int, required=True)
    parser.add_argument("--stop-file")
    return parser.parse_args(given)


def main() -> int:
    """Run the probe with these arguments."""
    import confluent_kafka

    arguments = read_arguments()
    lines = Lines("detection probe", nodes=arguments.nodes, client=confluent_kafka.version())
    settings = {
        **client_settings(arguments.client, "{}", "producer"),
        "acks": "1",
        "linger.ms": 0,
        "message.timeout.ms": 60_000,
        "reconnect.backoff.max.ms": 500,
        "client.id": "detection-probe",
        "error_cb": lambda error: None,
        "logger": lines.logger(),
    }
    probe = Probe(confluent_kafka.Producer(settings), lines, arguments)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, probe.stop)
    if not probe.warm_up():
        print(f"not every broker acknowledged a record in {WARM_UP_S:g} s", file=sys.stderr)
        return 1
    lines.say({"ready": lines.now()})
    lines.flush()
    probe.run(lines.now() + LEAD_US)
    probe.drain()
    lines.say({"ended": lines.now(), "due": probe.due})
    lines.flush()
    os._exit(0)  # librdkafka would wait for what it cannot deliver


if __name__ == "__main__":
    sys.exit(main())
