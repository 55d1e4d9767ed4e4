"""
Send numbered records on schedule, whatever happens to the cluster, until a file signals the end.

Needs confluent-kafka on the host; started by `wanbench.measure.experiments.kafka_fault`. Records are due at fixed
times, whether or not earlier records were answered. Record n goes to partition n modulo the number of partitions.

It prints `Lines`: once it is ready, an object with `start_ns` and `interval_ns`; then

    ["sent", sequence, at]                              handed to librdkafka
    ["acknowledged", sequence, at, partition, offset]
    ["failed", sequence, at, name of the error]
    ["error", at, name, text]                           reported or logged by librdkafka

The last line is an object with `ended`, and `due`, the number of records that came due.
"""

import random
import sys
import time
from functools import partial
from typing import Any

from .clients import HEAD, RECORD, WARM_UP_S, Lines, Paced, client_settings, error_name, on_stop, read_arguments, record

LEAD_NS = 200_000_000  # time from the end of the warm-up to the first record
IN_FLIGHT = 4
"""
Requests in flight of a connection of an idempotent producer. With five, the most that Kafka allows, a thread of
librdkafka spins while a broker does not answer and records wait. With four it does not, but for late answers.
"""
NO_ANSWER = "no answer"  # recorded for records that were neither acknowledged nor refused when the program ended


class Schedule(Paced):
    """Send records on schedule; `outstanding` holds the records that were sent and not yet answered."""

    def __init__(self, producer: Any, lines: Lines, arguments: Any):
        body = random.Random(0).randbytes(arguments.record_bytes - HEAD.size)
        super().__init__(producer, lines, arguments, arguments.partitions, body)
        self.outstanding: set[int] = set()
        self._hurried = False

    def stop(self, *_: object) -> None:
        """Stop sending, and stop waiting for answers, because a kill soon follows this signal."""
        self.stopped = self._hurried = True
        self.lines.flush()

    def send(self, sequence: int, intended_ns: int) -> None:
        value = record(RECORD, self.arguments.number, sequence, intended_ns, self.body)
        self.outstanding.add(sequence)
        self.lines.write(("sent", sequence, self.lines.now()))
        try:
            self.produce(value, sequence % self.n_partitions, partial(self._answered, sequence))
        except Exception as error:  # for example a full queue; the schedule continues
            self._failed(sequence, error_name(error))

    def drain(self) -> None:
        """Wait up to `drain_s` for answers; then count unanswered records as failed."""
        end_s = time.monotonic() + self.arguments.drain_s
        while self.outstanding and time.monotonic() < end_s and not self._hurried:
            self.producer.poll(0.05)
            self.lines.tick()
        for sequence in sorted(self.outstanding):
            self.lines.write(("failed", sequence, self.lines.now(), NO_ANSWER))

    def _answered(self, sequence: int, error: Any, message: Any) -> None:
        if error is not None:
            self._failed(sequence, error.name())
            return
        self.outstanding.discard(sequence)
        self.lines.write(("acknowledged", sequence, self.lines.now(), message.partition(), message.offset()))

    def _failed(self, sequence: int, why: str) -> None:
        self.outstanding.discard(sequence)
        self.lines.write(("failed", sequence, self.lines.now(), why))


def main() -> int:
    import confluent_kafka

    arguments = read_arguments(
        "Sends numbered records on schedule.",
        "client settings topic partitions number interval-ns record-bytes acks stop-file drain-s",
    )
    lines = Lines("fault producer", number=arguments.number, client=confluent_kafka.version())
    settings = {
        **({"max.in.flight.requests.per.connection": IN_FLIGHT} if arguments.acks == "all" else {}),
        **client_settings(arguments.client, arguments.settings, "producer"),
        "acks": arguments.acks,
        "enable.idempotence": arguments.acks == "all",
        "client.id": f"producer-{arguments.number}",
        "error_cb": lines.client_error,
        "logger": lines.logger(),
    }
    schedule = Schedule(confluent_kafka.Producer(settings), lines, arguments)
    on_stop(schedule.stop)
    if left := schedule.warm_up():
        print(f"{left} of {arguments.partitions} partitions did not acknowledge in {WARM_UP_S:g} s", file=sys.stderr)
        return 1
    start_ns = time.time_ns() + LEAD_NS
    lines.write({"start_ns": start_ns, "interval_ns": arguments.interval_ns})
    lines.flush()
    schedule.run(start_ns, arguments.interval_ns)
    schedule.drain()
    lines.end(due=schedule.due)


if __name__ == "__main__":
    sys.exit(main())
