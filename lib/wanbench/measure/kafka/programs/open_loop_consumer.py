"""
Receive the records of an open-loop load: one process runs all members of a consumer group.

Needs confluent-kafka on the host; started by `wanbench.measure.experiments.kafka_open_loop`. Each member has a thread,
which time-stamps records as librdkafka delivers them.

It prints JSON, one value per line: first an object with `program`; an object with `ready` once a warm-up record has
arrived from every partition; {"error": [name, text, count]}; and at the end an object for each second of the schedule,
and one with `ended`. The object of a second holds

    n_received      records due in this second that were received
    n_duplicates    repeated receipts of these records
    n_negative      records with a negative latency, due to clock errors
    latency         time from due time to first receipt, in us: value, count, value, count ...
    late            records by how long this program let them wait at most, in units of 0.1 ms: value, count ...
    n_received_in   first receipts during this second
"""

# confluent_kafka.admin does not declare the names that it offers
# pyright: reportPrivateImportUsage=false
import gc
import os
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from . import clients
from .clients import HEAD, LATE_UNIT_US, NS, RECORD, WARM_UP, bucket, elapsed_ns, flat, line, put

POLL_S = 0.1  # timeout of a poll, and so the delay until a stop is noticed
BATCH = 500  # maximum number of records that share a time stamp
NAP_S = 0.02


class Receipts:
    """Count the received records, by second of the schedule."""

    def __init__(self, rate: float, n: int, offsets_ns: list[int]):
        self.rate, self.offsets_ns = rate, offsets_ns
        self.stopped = False
        self.warm: set[tuple[str, int]] = set()
        self.n_received = 0
        self.latency, self.late = (defaultdict(lambda: defaultdict(int)) for _ in range(2))
        self.duplicates, self.negative, self.received_in = Counter(), Counter(), Counter()
        self.errors: Counter[tuple[str, str]] = Counter()
        self._seen = bytearray(n)
        self._first_ns = self._last_ns = 0
        self._lock = threading.Lock()

    def stop(self, *_: object) -> None:
        self.stopped = True

    def take(self, messages: Sequence[Any], at_ns: int, waited_ns: int) -> None:
        """Count messages delivered at `at_ns` (Unix ns) that waited at most `waited_ns` for this program."""
        late = bucket(waited_ns // 1_000 // LATE_UNIT_US)
        with self._lock:
            if messages:
                self._first_ns, self._last_ns = self._first_ns or at_ns, at_ns
            for message in messages:
                if message.error() is not None:
                    self.note(message.error())
                    continue
                value = message.value()
                if value is None or len(value) < HEAD.size:
                    continue
                kind, process, sequence, intended_ns, _ = HEAD.unpack_from(value)
                if kind == RECORD:
                    self._first(sequence, at_ns - intended_ns - self.offsets_ns[process], late)
                elif kind == WARM_UP:
                    self.warm.add((message.topic(), message.partition()))

    def _first(self, sequence: int, latency_ns: int, late: int) -> None:
        second = int(sequence / self.rate)
        if self._seen[sequence]:
            self.duplicates[second] += 1
            return
        self._seen[sequence] = 1
        self.n_received += 1
        if latency_ns < 0:
            self.negative[second] += 1
        self.latency[second][bucket(latency_ns // 1_000)] += 1
        self.late[second][late] += 1
        self.received_in[max(latency_ns + elapsed_ns(sequence, self.rate), 0) // NS] += 1

    def note(self, error: Any) -> None:
        clients.count_error(self.errors, error)

    def report(self) -> list[dict[str, Any]]:
        with self._lock:
            lines: list[dict[str, Any]] = [{"error": [*key, n]} for key, n in self.errors.most_common()]
            for second in sorted(set(self.latency) | set(self.received_in)):
                lines.append(
                    {
                        "second": second,
                        "n_received": sum(self.latency[second].values()),
                        "n_duplicates": self.duplicates[second],
                        "n_negative": self.negative[second],
                        "n_received_in": self.received_in[second],
                        "latency": flat(self.latency[second]),
                        "late": flat(self.late[second]),
                    }
                )
            receiving_ns = self._last_ns - self._first_ns
            return [*lines, {"ended": time.time_ns(), "n_received": self.n_received, "receiving_ns": receiving_ns}]


def join(consumer: Any, topic: str, after: int, receipts: Receipts, take_all: Callable[[Any, Receipts], None]) -> None:
    """Join the group once it has received so many records, then take messages until stopped."""
    while receipts.n_received < after and not receipts.stopped:
        time.sleep(NAP_S)
    consumer.subscribe([topic])
    take_all(consumer, receipts)


def receive_shared(consumer: Any, receipts: Receipts) -> None:
    """Take messages of a member of a share group until stopped; each `poll` acknowledges those of the one before."""
    returned_ns = time.time_ns()
    while not receipts.stopped:
        asked_ns = time.time_ns()
        messages = consumer.poll(POLL_S)
        receipts.take(messages, time.time_ns(), asked_ns - returned_ns)
        returned_ns = time.time_ns()


def receive(consumer: Any, receipts: Receipts) -> None:
    """
    Receive a member's messages until stopped. Only `poll` waits, because `consume` would wait for a full batch.

    The maximum time that a message has waited counts from when the queue was last known to be empty.
    """
    empty_ns = time.time_ns()
    while not receipts.stopped:
        asked_ns = time.time_ns()
        messages = consumer.consume(BATCH, 0)
        if not messages:
            messages = [message] if (message := consumer.poll(POLL_S)) is not None else []
            empty_ns = asked_ns = time.time_ns()
        receipts.take(messages, time.time_ns(), asked_ns - empty_ns)
        if len(messages) < BATCH:
            empty_ns = asked_ns


def share_member(settings: dict[str, Any], access: dict[str, Any]) -> Any:
    """Return a member of a share group that reads from the start of its topic."""
    from confluent_kafka import ShareConsumer, admin

    start = admin.ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=admin.AlterConfigOpType.SET)
    group = admin.ConfigResource(admin.ResourceType.GROUP, settings["group.id"], incremental_configs=[start])
    client = admin.AdminClient(access)  # in a variable, because answers fail once the client is gone
    client.incremental_alter_configs([group])[group].result()
    return ShareConsumer({name: value for name, value in settings.items() if name != "auto.offset.reset"})


def main() -> int:
    import confluent_kafka

    arguments = clients.read_arguments(
        "Receives the records of an open-loop load.",
        "client settings topics partitions number members share-groups join-s rate length-s offsets-ns end-file",
    )
    clients.raise_priority()
    receipts = Receipts(arguments.rate, clients.n_records(arguments.rate, arguments.length_s), arguments.offsets_ns)
    clients.on_stop(receipts.stop)
    put(line({"program": "open-loop consumer", "format": 1, "client": confluent_kafka.libversion()[0]}))
    sys.setswitchinterval(0.0005)
    access, is_shared = clients.client_settings(arguments.client, {}), arguments.share_groups
    consumers, take_all = [], receive_shared if is_shared else receive
    for topic in arguments.topics:
        for member in range(arguments.members):
            settings = {
                **clients.client_settings(arguments.client, arguments.settings),
                "auto.offset.reset": "earliest",
                "group.id": f"{topic}-{arguments.number}",
                "client.id": f"open-loop-consumer-{arguments.number}-{member}",
                "error_cb": receipts.note,
            }
            consumer = share_member(settings, access) if is_shared else confluent_kafka.Consumer(settings)
            consumers.append(consumer)
            after = round(arguments.join_s * arguments.rate) if member == arguments.members - 1 else 0
            threading.Thread(target=join, args=(consumer, topic, after, receipts, take_all), daemon=True).start()
    while len(receipts.warm) < arguments.partitions * len(arguments.topics) and not receipts.stopped:
        time.sleep(NAP_S)
    gc.collect()
    gc.freeze()
    gc.disable()  # a collection would delay records, and this program makes no reference cycles
    put(line({"ready": time.time_ns()}))
    if (end := clients.await_file(arguments.end_file, lambda: receipts.stopped, NAP_S)) is not None:
        end_s = time.monotonic() + end["within_s"]
        while receipts.n_received < end["expected"] and time.monotonic() < end_s and not receipts.stopped:
            time.sleep(NAP_S)
    put("".join(map(line, receipts.report())))
    os._exit(0)  # without leaving the groups, because no other member takes the partitions over


if __name__ == "__main__":
    sys.exit(main())
