"""
Send a small record to each broker at a steady rate, and print the acknowledgement latency of each record.

Needs confluent-kafka on the host; started by `wanbench.pages.rolling_and_degraded.design`. Partition n of the topic is
led by the n-th broker in `--nodes`. Records are due at fixed times, whether or not earlier records were answered;
latency counts from the due time.

It prints `Lines`, with times in microseconds since the origin:

    [partition, due, latency]            acknowledged
    [partition, due, null, "late"]       not answered within the limit; may be followed by
    [partition, due, latency, "after"]   the answer to such a record
    [partition, due, null, error name]   never acknowledged, with librdkafka's name of the error

The last line is an object with `ended`, and `due`, the number of records that came due.
"""

import sys
import time
from collections import deque
from functools import partial
from typing import Any

from .clients import WARM_UP_S, Lines, Paced, client_settings, on_stop, read_arguments

LEAD_NS = 300_000_000  # time from the end of the preparations to the first record


class Probe(Paced):
    """Send to the brokers in turn, and report which records are late."""

    def __init__(self, producer: Any, lines: Lines, arguments: Any):
        super().__init__(producer, lines, arguments, len(arguments.nodes.split(",")), bytes(arguments.record_bytes))
        self._unanswered: list[deque[int]] = [deque() for _ in range(self.n_partitions)]
        self._late: set[tuple[int, int]] = set()
        self._answered: set[tuple[int, int]] = set()

    def send(self, sequence: int, intended_ns: int) -> None:
        partition, due_us = sequence % self.n_partitions, (intended_ns - self.lines.origin_ns) // 1_000
        self._unanswered[partition].append(due_us)
        try:
            self.produce(self.body, partition, partial(self._delivered, partition, due_us))
        except BufferError:
            self._failed(partition, due_us, "_QUEUE_FULL")

    def look(self) -> None:
        """Report the records whose acknowledgement has now taken longer than the limit."""
        now = self.lines.now()
        for partition, waiting in enumerate(self._unanswered):
            while waiting:
                key = partition, waiting[0]
                if key in self._answered:
                    self._answered.discard(key)
                elif now - waiting[0] > self.arguments.limit_us:
                    self._late.add(key)
                    self.lines.write([*key, None, "late"])
                else:
                    break
                waiting.popleft()
        super().look()

    def drain(self) -> None:
        end_us = self.lines.now() + self.arguments.limit_us + 100_000
        while any(self._unanswered) and self.lines.now() < end_us:
            self.producer.poll(0.02)
            self.look()

    def _delivered(self, partition: int, due_us: int, error: Any, _: object) -> None:
        now = self.lines.now()
        if error is not None:
            self._failed(partition, due_us, error.name())
            return
        line: list[object] = [partition, due_us, now - due_us]
        if (partition, due_us) in self._late:
            self._late.discard((partition, due_us))
            line.append("after")
        else:
            self._answered.add((partition, due_us))
        self.lines.write(line)

    def _failed(self, partition: int, due_us: int, why: str) -> None:
        if (partition, due_us) not in self._late:
            self._answered.add((partition, due_us))
        self.lines.write([partition, due_us, None, why])


def main() -> int:
    import confluent_kafka

    arguments = read_arguments(
        "Times a record to each broker at a steady pace.",
        "client topic nodes interval-us limit-us record-bytes stop-file",
    )
    lines = Lines("detection probe", nodes=arguments.nodes, client=confluent_kafka.version())
    settings = {
        **client_settings(arguments.client, {}, "producer"),
        "acks": "1",
        "linger.ms": 0,
        "message.timeout.ms": 60_000,
        "reconnect.backoff.max.ms": 500,
        "client.id": "detection-probe",
        "error_cb": lambda error: None,
        "logger": lines.logger(),
    }
    probe = Probe(confluent_kafka.Producer(settings), lines, arguments)
    on_stop(probe.stop)
    if probe.warm_up():
        print(f"not every broker acknowledged a record in {WARM_UP_S:g} s", file=sys.stderr)
        return 1
    lines.write({"ready": lines.now()})
    lines.flush()
    probe.run(time.time_ns() + LEAD_NS, 1_000 * arguments.interval_us / probe.n_partitions)
    probe.drain()
    lines.end(due=probe.due)


if __name__ == "__main__":
    sys.exit(main())
