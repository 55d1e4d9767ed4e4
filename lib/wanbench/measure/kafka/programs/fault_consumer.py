"""
Receive numbered records as a member of a group, and log every change of its assignment.

Needs confluent-kafka on the host; started by `wanbench.measure.experiments.kafka_fault`. It prints `Lines`:

    ["received", producer, sequence, partition, offset, at, is damaged]    producer and sequence are null if damaged
    ["assigned", at, partitions]                       partitions added to its assignment ["revoked", at, partitions],
    ["lost", at, partitions] ["error", at, name, text]

Once a file signals the end of traffic, the program also prints an object with `positions`, the member's offset in each
of its partitions, whenever an offset changes. The member stays in the group and keeps reading until it is stopped,
because only an observer of all members can decide whether everything was read.
"""

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .clients import LOOK_S, Lines, client_settings, on_stop, parse_record, read_arguments

POLL_S = 0.1
COMMITTED_S = 5.0  # timeout for the coordinator to return the group's offsets


class Member:
    """A member of the group; `positions` holds the offset after its last record in each partition."""

    def __init__(self, lines: Lines):
        self.lines = lines
        self.assigned: set[int] = set()
        self.positions: dict[int, int] = {}
        self.stopped = False
        self._reported: dict[int, int] | None = None

    def stop(self, *_: object) -> None:
        self.stopped = True
        self.lines.flush()

    def changed(self, what: str, partitions: Iterable[Any]) -> None:
        numbers = sorted(partition.partition for partition in partitions)
        if what == "assigned":
            self.assigned |= set(numbers)
        else:
            self.assigned -= set(numbers)
        for number in numbers:
            self.positions.pop(number, None)
        self.lines.write((what, self.lines.now(), numbers))
        self.lines.flush()

    def take(self, message: Any) -> None:
        """Log a message, or the error that was delivered in its place."""
        if message.error() is not None:
            self.lines.client_error(message.error())
            return
        at, place = self.lines.now(), (message.partition(), message.offset())
        self.positions[message.partition()] = message.offset() + 1
        if (content := parse_record(message.value())) is not None:
            producer, sequence, is_damaged = content
            self.lines.write(("received", producer, sequence, *place, at, is_damaged))

    def report(self, committed: Callable[[list[int]], Mapping[int, int]]) -> None:
        """
        Print the positions if they have changed; `committed` returns the group's offsets for partitions from which no
        record has come yet.
        """
        unknown = [number for number in self.assigned if number not in self.positions]
        if unknown:
            self.positions.update(committed(unknown))
        positions = {n: self.positions[n] for n in sorted(self.assigned) if n in self.positions}
        if positions != self._reported:
            self._reported = positions
            self.lines.write({"positions": positions})
            self.lines.flush()


def main() -> int:
    import confluent_kafka

    arguments = read_arguments(
        "Receives numbered records as a member of a group.", "client settings topic group number ended-file"
    )
    lines = Lines("fault consumer", number=arguments.number, client=confluent_kafka.version())
    member = Member(lines)
    settings = {
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": 1_000,
        **client_settings(arguments.client, arguments.settings, "consumer"),
        "group.id": arguments.group,
        "client.id": f"consumer-{arguments.number}",
        "error_cb": lines.client_error,
        "logger": lines.logger(),
    }
    consumer = confluent_kafka.Consumer(settings)
    consumer.subscribe(
        [arguments.topic],
        on_assign=lambda _, partitions: member.changed("assigned", partitions),
        on_revoke=lambda _, partitions: member.changed("revoked", partitions),
        on_lost=lambda _, partitions: member.changed("lost", partitions),
    )
    on_stop(member.stop)

    def committed(numbers: list[int]) -> dict[int, int]:
        asked = [confluent_kafka.TopicPartition(arguments.topic, number) for number in numbers]
        try:
            answers = consumer.committed(asked, timeout=COMMITTED_S)
        except confluent_kafka.KafkaException:
            return {}
        return {answer.partition: max(answer.offset, 0) for answer in answers if answer.error is None}

    looked_s = time.monotonic()
    while not member.stopped:
        message = consumer.poll(POLL_S)
        if message is not None:
            member.take(message)
        lines.tick()
        if time.monotonic() - looked_s > LOOK_S:
            looked_s = time.monotonic()
            if os.path.exists(arguments.ended_file):
                member.report(committed)
    lines.end()  # without leaving the group, because no other member takes its partitions over


if __name__ == "__main__":
    sys.exit(main())
