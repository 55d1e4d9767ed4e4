"""
Send a probe's records on a schedule fixed beforehand.

Runs on a host with kafka-python; started by `wanbench.experiments.kafka_probe`.

It prints JSON, one value per line: objects that say what it waits for (`waits_for`), one with the schedule once it is
ready, at the end one with how it ended, and between these two, as things happen, with times in Unix ns:

    ["sent", sequence, at, milliseconds after it was due]
    ["acknowledged", sequence, at, partition, offset]
    ["failed", sequence, at, why]

Producers are idempotent only on request, as kafka-python then sends one request at a time per partition, and records
queue. Otherwise a record that is sent again after a lost answer counts as a duplicate.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import signal
import sys
import time
from collections import deque
from functools import partial

from .probe_record import END, HEAD, PROBE, WARM_UP, client_settings, clocks_ns, insist, line, put, record

WARM_UPS = 3
"""Warm-up records to every partition, which establish connections and metadata."""
WARM_UP_S = 60.0
LEAD_NS = 200_000_000
"""Time from the end of the preparations to the first record."""
FLUSH_NS = 1_000_000_000
"""Buffering time of lines, as printing may delay a due record."""
TIME_TO_FLUSH_NS = 3_000_000
"""Lines are printed only if no record is due within this."""
NAP_S = 0.1
"""The longest sleep: how soon a stop is noticed."""
END_S = 5.0
"""Timeout of the end markers."""


def schedule(records: int, start_ns: int, interval_ns: int, held: set[int], hold_ns: int) -> list:
    """
    (send time, sequence, intended send time) in order of sending; a held record does not delay others.

    >>> schedule(3, 100, 10, {0}, 15)
    [(110, 1, 110), (115, 0, 100), (120, 2, 120)]
    """
    intended = [(start_ns + sequence * interval_ns, sequence) for sequence in range(records)]
    return sorted((at + hold_ns * (sequence in held), sequence, at) for at, sequence in intended)


def held_records(records: int, share: float) -> set[int]:
    """
    Records held back to test the probe: the share rounded to a whole number, drawn at random.

    >>> len(held_records(1000, 0.01)), held_records(10, 0.0)
    (10, set())
    """
    return set(random.Random(0).sample(range(records), round(records * share)))


class Probe:
    """The producers of a probe. `outstanding`: records neither acknowledged nor failed."""

    def __init__(self, producers: list, arguments):
        self.producers, self.arguments = producers, arguments
        self.outstanding: set[int] = set()
        self.stopped_ns: int | None = None
        self._padding = random.Random(0).randbytes(arguments.record_bytes - HEAD.size)
        self._waiting: deque = deque()
        self._flushed_ns = self._looked_ns = time.time_ns()
        self._hurried = False

    def stop(self, *_) -> None:
        """Send no more records."""
        self.stopped_ns = self.stopped_ns or time.time_ns()

    def hurry(self, *_) -> None:
        """Send no more records and wait for nothing: a kill soon follows this signal."""
        self.stop()
        self._hurried = True
        self.flush()

    def say(self, value) -> None:
        """Print a line soon; also called by the producer's thread."""
        self._waiting.append(value)

    def flush(self) -> None:
        """Print buffered lines."""
        lines = []
        while self._waiting:
            lines.append(line(self._waiting.popleft()))
        put("".join(lines))
        self._flushed_ns = time.time_ns()

    def send_to_all(self, kind: bytes, timeout_s: float) -> None:
        """Send a warm-up or end marker to every partition; returns when all are acknowledged."""
        value = record(kind, 0, 0, self._padding)
        futures = [
            producer.send(self.arguments.topic, value, partition=partition)
            for producer in self.producers
            for partition in range(self.arguments.partitions)
        ]
        for future in futures:
            future.get(timeout=timeout_s)

    def send(self, plan: list) -> None:
        """
        Send each record when due, or at once if overdue; none is skipped.

        After a stop only records due before it are sent.
        """
        for due_ns, sequence, intended_ns in plan:
            if self._is_over(intended_ns):
                continue
            value = record(PROBE, sequence, intended_ns, self._padding)
            while (left_ns := due_ns - time.time_ns()) > 0 and not self._is_over(intended_ns):
                if left_ns > TIME_TO_FLUSH_NS and time.time_ns() - self._flushed_ns > FLUSH_NS:
                    self.flush()
                else:
                    time.sleep(min(left_ns / 1e9, NAP_S))
                self._look_for_the_file()
            self._look_for_the_file()
            if self._is_over(intended_ns):
                continue
            at_ns = time.time_ns()
            self.outstanding.add(sequence)
            self.say(("sent", sequence, at_ns, round((at_ns - due_ns) / 1e6, 3)))
            try:
                partition = sequence % self.arguments.partitions
                producer = self.producers[sequence % len(self.producers)]
                future = producer.send(self.arguments.topic, value, partition=partition)
            except Exception as error:
                self.failed(sequence, error)
                continue
            future.add_callback(partial(self.acknowledged, sequence))
            future.add_errback(partial(self.failed, sequence))

    def _is_over(self, intended_ns: int) -> bool:
        return self._hurried or (self.stopped_ns is not None and intended_ns >= self.stopped_ns)

    def _look_for_the_file(self) -> None:
        if time.time_ns() - self._looked_ns > NAP_S * 1e9:
            self._looked_ns = time.time_ns()
            if self.arguments.stop_file and os.path.exists(self.arguments.stop_file):
                self.stop()

    def acknowledged(self, sequence: int, about) -> None:
        """Log the answer to a record; `about` is kafka-python's."""
        self.say(("acknowledged", sequence, time.time_ns(), about.partition, about.offset))
        self.outstanding.discard(sequence)

    def failed(self, sequence: int, error: BaseException) -> None:
        """Log the failure of a record, with the reason."""
        self.say(("failed", sequence, time.time_ns(), f"{type(error).__name__}: {error}"[:300]))
        self.outstanding.discard(sequence)

    def drain(self) -> None:
        """Wait for answers, at most `drain_s`, then send the end marker to consumers."""
        end_ns = time.time_ns() + int(self.arguments.drain_s * 1e9)
        while self.outstanding and time.time_ns() < end_ns and not self._hurried:
            time.sleep(0.01)
        for sequence in sorted(self.outstanding):
            self.say(("failed", sequence, time.time_ns(), "no answer when the probe ended"))
        self.flush()
        if not self._hurried:
            try:
                self.send_to_all(END, END_S)
            except Exception as error:
                print(f"the consumers were not notified of the end: {error}", file=sys.stderr)


def read_arguments(given=None):
    """The settings, from the command line."""
    parser = argparse.ArgumentParser(description="Sends the records of a probe on schedule.")
    parser.add_argument("--client", required=True, help="JSON file of kafka-python's keywords")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--producers", type=int, default=1, help="each with its own connections")
    parser.add_argument("--records", type=int, required=True)
    parser.add_argument("--interval-ns", type=int, required=True)
    parser.add_argument("--record-bytes", type=int, required=True)
    parser.add_argument("--acks", choices=("0", "1", "all"), default="all")
    parser.add_argument("--linger-ms", type=float, default=0)
    parser.add_argument("--idempotence", action="store_true")
    parser.add_argument("--stop-file", help="end once this file exists")
    parser.add_argument("--drain-s", type=float, default=10.0)
    parser.add_argument("--hold-share", type=float, default=0.0, help="for tests: hold this share back")
    parser.add_argument(
        "--hold-ms", type=float, default=0.0, help="... for this long after their intended time"
    )
    return parser.parse_args(given)


def main() -> int:
    """Run the probe with these arguments."""
    import kafka

    arguments = read_arguments()
    make = partial(
        kafka.KafkaProducer,
        acks=arguments.acks if arguments.acks == "all" else int(arguments.acks),
        enable_idempotence=arguments.idempotence,
        linger_ms=arguments.linger_ms,
        metrics_enabled=False,
        **client_settings(arguments.client),
    )
    producers = [
        insist(make, f"a connection of producer {number + 1} of {arguments.producers} to the cluster")
        for number in range(arguments.producers)
    ]
    probe = Probe(producers, arguments)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, probe.hurry)
    for number in range(WARM_UPS):
        insist(
            partial(probe.send_to_all, WARM_UP, WARM_UP_S),
            f"acknowledgements of warm-up {number + 1} of {WARM_UPS} from all partitions",
        )
    held = held_records(arguments.records, arguments.hold_share)
    sys.setswitchinterval(0.0005)
    start_ns = time.time_ns() + LEAD_NS + 1_000 * arguments.records
    plan = schedule(arguments.records, start_ns, arguments.interval_ns, held, round(arguments.hold_ms * 1e6))
    about = {
        "program": "probe producer",
        "format": 1,
        "kafka_python": kafka.__version__,
        "start_ns": start_ns,
    }
    about |= {
        "interval_ns": arguments.interval_ns,
        "records": arguments.records,
        "record_bytes": arguments.record_bytes,
    }
    about |= {"held": sorted(held), "hold_ms": arguments.hold_ms, "clocks": clocks_ns()}
    probe.say(about)
    probe.flush()
    gc.collect()
    gc.freeze()
    probe.send(plan)
    probe.drain()
    probe.say({"ended": clocks_ns(), "stopped_ns": probe.stopped_ns})
    probe.flush()
    for producer in producers:
        producer.close(timeout=0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
