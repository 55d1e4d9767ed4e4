"""
Receive a probe's records as the only member of a consumer group.

Runs on a host with kafka-python; started by `wanbench.experiments.kafka_probe`.

It prints JSON, one value per line: objects that say what it waits for (`waits_for`), one once it is ready to receive,
one when it ends, and between these two every record, as soon as `poll` hands it over, with times in Unix ns of this
host's clock:

    ["received", sequence, intended send time, at, partition, offset, whether the checksum is right]

Sequence and intended time are null where the checksum is wrong. It ends when the producer has sent the end to every
partition, or when it is asked to.
"""

from __future__ import annotations

import argparse
import gc
import signal
import sys
import time
from collections import deque
from functools import partial

from .probe_record import END, WARM_UP, client_settings, clocks_ns, insist, line, opened, put

POLL_MS = 100
"""How soon a stop is noticed."""
FLUSH_NS = 1_000_000_000
"""Buffering time of lines, as printing takes time."""
CLOSE_MS = 1_000
REJOIN_S = 20.0
"""
Time without partitions after which to join the group again. kafka-python 3.0.12 loses the answer to a join
that a change of metadata caused, such as a new topic, if the answer comes between two calls of `poll`.
"""


class Receipts:
    """The receipts, printed about once a second."""

    def __init__(self, partitions: int, shift_ns: int):
        self.partitions, self.shift_ns = partitions, shift_ns
        self.at_end: set[int] = set()
        self.stopped = False
        self._lines: deque[str] = deque()
        self._flushed_ns = time.time_ns()

    @property
    def complete(self) -> bool:
        """Whether the end marker has arrived from every partition."""
        return len(self.at_end) >= self.partitions

    def stop(self, *_) -> None:
        """End soon, and print at once: a kill soon follows this signal, and `poll` may not return before."""
        self.stopped = True
        self.flush()

    def take(self, batches: dict) -> None:
        """Log the records that `poll` returned, with the time."""
        at_ns = time.time_ns() + self.shift_ns
        for batch in batches.values():
            for message in batch:
                kind, sequence, intended_ns, is_intact = opened(message.value)
                if kind == END:
                    self.at_end.add(message.partition)
                if kind in (END, WARM_UP):
                    continue
                place = (message.partition, message.offset)
                self._lines.append(line(("received", sequence, intended_ns, at_ns, *place, is_intact)))
        if time.time_ns() - self._flushed_ns > FLUSH_NS:
            self.flush()

    def say(self, value: dict) -> None:
        """Print a line at once."""
        self._lines.append(line(value))
        self.flush()

    def flush(self) -> None:
        """Print buffered lines."""
        lines = []
        while self._lines:
            lines.append(self._lines.popleft())
        put("".join(lines))
        self._flushed_ns = time.time_ns()


def read_arguments(given=None):
    """The settings, from the command line."""
    parser = argparse.ArgumentParser(description="Receives the records of a probe.")
    parser.add_argument("--client", required=True, help="JSON file of kafka-python's keywords")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--group", required=True)
    parser.add_argument("--rack", default="", help="client.rack: read from a replica there")
    parser.add_argument(
        "--clock-shift-ms", type=float, default=0.0, help="for tests: how far the clock is ahead"
    )
    return parser.parse_args(given)


def join(consumer, topic: str, partitions: int, receipts: Receipts) -> None:
    """Return once the consumer has all partitions, or is told to end."""
    since_s = time.monotonic()
    while len(consumer.assignment()) < partitions and not receipts.stopped:
        receipts.take(consumer.poll(POLL_MS))
        if time.monotonic() - since_s > REJOIN_S:
            consumer.unsubscribe()
            consumer.subscribe([topic])
            since_s = time.monotonic()


def main() -> int:
    """Receive until the end marker, or until told to end."""
    import kafka

    arguments = read_arguments()
    receipts = Receipts(arguments.partitions, round(arguments.clock_shift_ms * 1e6))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, receipts.stop)
    make = partial(
        kafka.KafkaConsumer,
        arguments.topic,
        group_id=arguments.group,
        client_rack=arguments.rack,
        auto_offset_reset="earliest",
        auto_commit_interval_ms=1_000,
        check_crcs=False,
        metrics_enabled=False,
        **client_settings(arguments.client),
    )
    consumer = insist(make, "a connection to the cluster")
    receipts.say(
        {"waits_for": f"the assignment of {arguments.partitions} partitions by the group's coordinator"}
    )
    join(consumer, arguments.topic, arguments.partitions, receipts)
    for partition in consumer.assignment():
        insist(partial(consumer.position, partition), f"the position in partition {partition.partition}")
    sys.setswitchinterval(0.0005)
    gc.collect()
    gc.freeze()
    about = {
        "program": "probe consumer",
        "format": 1,
        "kafka_python": kafka.__version__,
        "group": arguments.group,
    }
    receipts.say(about | {"ready": clocks_ns(receipts.shift_ns)})
    while not receipts.stopped and not receipts.complete:
        receipts.take(consumer.poll(POLL_MS))
    receipts.say({"ended": clocks_ns(receipts.shift_ns), "complete": receipts.complete})
    consumer.close(autocommit=False, timeout_ms=CLOSE_MS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
