"""
Send the records of an open-loop load on a fixed schedule.

Needs confluent-kafka on the host; started by `wanbench.measure.experiments.kafka_open_loop`. One process runs all
producers of its host. Of K producers, producer k sends the records k, k + K, k + 2K, ..., to the partitions of its
topic in turn.

A due record is handed to librdkafka at the next tick of 1 ms, or at once if it is overdue; no record is skipped, and
each keeps its intended time. If librdkafka's queue is full, records wait, and that wait is attributed to the system.
`late` is the lateness of this program's loop alone.

It prints JSON, one value per line: first an object with `program`; an object with `ready` once every partition has
acknowledged a warm-up record of every producer; {"error": [name, text, count]}; and at the end an object for each
second of the schedule, and one with `ended`. The object of a second holds

    n_due, n_handed, n_answered, n_failed   records due in this second, and what became of them
    publish         time from due time to acknowledgement, in a transaction to its commit, in us: value, count, ...
    late            lateness of the loop in units of 100 us, in the same form
    late_max_us     largest lateness of the loop in us
    n_sent_in, n_acknowledged_in   records handed over, and acknowledged, during this second
    backlog         records due so far that were neither acknowledged nor failed at the end of this second
    blocked_us      time in this second during which a record waited for room in a queue
"""

import gc
import os
import sys
import threading
import time
from collections import Counter, defaultdict, deque
from contextlib import suppress
from functools import partial
from typing import Any

from . import clients
from .clients import HEAD, NAP_S, NS, RECORD, WARM_UP, WARM_UP_S, bucket, elapsed_ns, flat, line, n_records, put

TICK_S = 0.001  # length of a tick; one sleep per record, at several thousand a second, would take 10 % of a processor
STOPPED_S = 1.0  # less than the time after which a program that is asked to stop is killed
COMMIT_S = 10.0  # timeout of a commit, and again of an abort; together less than the session's timeout at the end


class Producer:
    """
    One producer of the load, with a thread that handles its answers promptly.

    `waiting` holds (record number, due time) of records for which librdkafka's queue had no room. With a
    `transaction_s`, a second thread commits a transaction after each such time.
    """

    def __init__(self, number: int, topic: str, client: Any, process: "Process", transaction_s: float = 0.0):
        self.number, self.topic, self.client, self.process = number, topic, client, process
        self.waiting: deque[tuple[int, int]] = deque()
        self.n_settled = 0
        self.published = defaultdict(lambda: defaultdict(int))
        self.failed, self.acknowledged_in = Counter(), Counter()
        self.errors: Counter[tuple[str, str]] = Counter()
        self._turn, self._closed = number, threading.Event()
        self._transaction_s, self._uncommitted, self._committing = transaction_s, deque(), threading.Lock()
        self._threads = [threading.Thread(target=self._take_answers, daemon=True)]
        if transaction_s:
            client.init_transactions()
            client.begin_transaction()
            self._threads.append(threading.Thread(target=self._commit_regularly, daemon=True))
        for thread in self._threads:
            thread.start()

    def hand_over(self, sequence: int, due_ns: int) -> bool:
        """Hand a record to librdkafka; return False if its queue is full or a transaction is being committed."""
        if not self._committing.acquire(blocking=False):
            return False
        try:
            return self._produce(sequence, due_ns)
        finally:
            self._committing.release()

    def _produce(self, sequence: int, due_ns: int) -> bool:
        process = self.process
        bodies = process.bodies
        head = HEAD.pack(RECORD, process.number, sequence, due_ns, 0)
        try:
            self.client.produce(
                self.topic,
                head + bodies[sequence % len(bodies)],
                partition=self._turn % process.partitions,
                on_delivery=partial(self._answered, sequence, due_ns),
            )
        except BufferError:
            return False
        except Exception as error:  # a fatal error, or an unknown topic
            self._fail(sequence, error)
        self._turn += 1
        return True

    def _answered(self, sequence: int, due_ns: int, error: Any, _: object) -> None:
        if error is not None:
            self._fail(sequence, error)
        elif self._transaction_s:
            self._uncommitted.append((sequence, due_ns))
        else:
            self._acknowledge(sequence, due_ns, time.time_ns())

    def _acknowledge(self, sequence: int, due_ns: int, at_ns: int) -> None:
        second = int(sequence / self.process.rate)
        self.published[second][bucket((at_ns - due_ns) // 1_000)] += 1
        self.acknowledged_in[max(at_ns - self.process.start_ns, 0) // NS] += 1
        self.n_settled += 1

    def _fail(self, sequence: int, error: Any) -> None:
        self.failed[int(sequence / self.process.rate)] += 1
        self.n_settled += 1
        self.note(error)

    def note(self, error: Any) -> None:
        clients.count_error(self.errors, error)

    def close(self) -> None:
        """Stop handling answers; return once the thread has ended."""
        self._closed.set()
        for thread in self._threads:
            thread.join()

    def _take_answers(self) -> None:
        while not self._closed.is_set():
            self.client.poll(0.1)

    def _commit_regularly(self) -> None:
        """Commit the transaction, or abort it if that fails, and begin the next one, until closed."""
        while not self._closed.wait(self._transaction_s):
            failed = None
            with self._committing:
                try:
                    self.client.commit_transaction(COMMIT_S)
                except Exception as error:
                    failed = error
                    with suppress(Exception):
                        self.client.abort_transaction(COMMIT_S)
                at_ns, n = time.time_ns(), len(self._uncommitted)
                with suppress(Exception):  # after a fatal error; the next record fails with the reason
                    self.client.begin_transaction()
            for _ in range(n):
                sequence, due_ns = self._uncommitted.popleft()
                if failed is None:
                    self._acknowledge(sequence, due_ns, at_ns)
                else:
                    self._fail(sequence, failed)


class Process:
    """All producers of one process, with the results of each second of the schedule."""

    def __init__(self, arguments: Any, bodies: list[bytes]):
        self.arguments, self.bodies = arguments, bodies
        self.number, self.partitions, self.rate = arguments.number, arguments.partitions, arguments.rate
        self.length_s = arguments.length_s
        self.n = n_records(self.rate, self.length_s)
        self.start_ns = 0
        self.stopped = False
        self.producers: list[Producer] = []
        self.n_due = 0
        self.due, self.handed, self.sent_in = Counter(), Counter(), Counter()
        self.late = defaultdict(lambda: defaultdict(int))
        self.late_max_us = Counter()
        self.backlog: dict[int, int] = {}
        self.blocked_ns = Counter()

    def stop(self, *_: object) -> None:
        """Stop sending and waiting, so that the results are printed."""
        self.stopped = True

    def warm_up(self) -> int:
        """
        Send a warm-up record from each producer to every partition, again and again until it is acknowledged; return
        how many were not acknowledged in time.
        """
        value = HEAD.pack(WARM_UP, self.number, 0, 0, 0) + self.bodies[0]

        def send(key: tuple[int, int], on_delivery: object) -> None:
            producer = self.producers[key[0]]
            producer.client.produce(producer.topic, value, partition=key[1], on_delivery=on_delivery)

        def flush(patience_s: float) -> None:
            for producer in self.producers:
                producer.client.flush(patience_s)

        keys = [(k, partition) for k in range(len(self.producers)) for partition in range(self.partitions)]
        return clients.warm_up(keys, send, flush, lambda: self.stopped)

    def run(self, start_ns: int) -> None:
        """
        Hand over every record when it is due, or at once if it is overdue; return after the last one or on timeout.
        """
        self.start_ns = start_ns
        self._next_second = 0
        give_up_ns = start_ns + round((self.length_s + self.arguments.drain_s) * NS)
        upcoming = self._schedule()
        producer, sequence, due_ns = next(upcoming, (None, 0, 0))
        looked_ns = start_ns
        while not self.stopped:
            now_ns = time.time_ns()
            was_blocked = self._send_waiting()
            if was_blocked:
                self.blocked_ns[max(looked_ns - start_ns, 0) // NS] += now_ns - looked_ns
            looked_ns = now_ns
            self._look_at_backlog(now_ns)
            while producer is not None and due_ns <= now_ns:
                self._send(producer, sequence, due_ns, now_ns)
                producer, sequence, due_ns = next(upcoming, (None, 0, 0))
                now_ns = time.time_ns()
            waits = any(producer.waiting for producer in self.producers)
            if now_ns > give_up_ns or (producer is None and not waits):
                break
            left_s = TICK_S if waits or producer is None else (due_ns - now_ns) / NS
            time.sleep(min(max(left_s, TICK_S), NAP_S))

    def _schedule(self):
        """Yield (producer, record number, due time) of this process's records, in order."""
        all_producers = self.arguments.producers_in_all
        for first in range(0, self.n, all_producers):
            for producer in self.producers:
                sequence = first + producer.number
                if sequence < self.n:
                    yield producer, sequence, self.start_ns + elapsed_ns(sequence, self.rate)

    def _send(self, producer: Producer, sequence: int, due_ns: int, now_ns: int) -> None:
        second = int(sequence / self.rate)
        late_us = (now_ns - due_ns) // 1_000
        self.n_due += 1
        self.due[second] += 1
        self.late[second][bucket(late_us // clients.LATE_UNIT_US)] += 1
        if late_us > self.late_max_us[second]:
            self.late_max_us[second] = late_us
        if producer.waiting or not producer.hand_over(sequence, due_ns):
            producer.waiting.append((sequence, due_ns))
        else:
            self._handed_over(second, now_ns)

    def _send_waiting(self) -> bool:
        """Hand over waiting records while there is room; return whether any waited."""
        any_waited = False
        for producer in self.producers:
            waiting = producer.waiting
            any_waited = any_waited or bool(waiting)
            while waiting and producer.hand_over(*waiting[0]):
                sequence, _ = waiting.popleft()
                self._handed_over(int(sequence / self.rate), time.time_ns())
        return any_waited

    def _handed_over(self, second: int, now_ns: int) -> None:
        self.handed[second] += 1
        self.sent_in[(now_ns - self.start_ns) // NS] += 1

    def _look_at_backlog(self, now_ns: int) -> None:
        while self._next_second < self.length_s and now_ns >= self.start_ns + (self._next_second + 1) * NS:
            self.backlog[self._next_second] = self._outstanding()
            self._next_second += 1

    def _outstanding(self) -> int:
        return self.n_due - sum(producer.n_settled for producer in self.producers)

    def drain(self) -> None:
        """Wait for the end of the schedule, then up to `drain_s` for answers, or `STOPPED_S` if stopped before it."""
        early, end_ns = self.stopped, self.start_ns + round(self.length_s * NS)
        end_ns = min(end_ns, time.time_ns()) if early else end_ns
        give_up_ns = max(end_ns, time.time_ns()) + round((STOPPED_S if early else self.arguments.drain_s) * NS)
        while self.stopped == early and (now_ns := time.time_ns()) < give_up_ns:
            self._look_at_backlog(now_ns)
            if now_ns > end_ns and not self._outstanding():
                break
            time.sleep(0.005)
        self._look_at_backlog(time.time_ns())

    def report(self) -> list[dict[str, Any]]:
        for producer in self.producers:
            producer.close()
        lines: list[dict[str, Any]] = []
        errors = sum((producer.errors for producer in self.producers), Counter())
        lines += [{"error": [*key, n]} for key, n in errors.most_common(clients.MOST_ERRORS)]
        for second in sorted(self.due):
            published: Counter[int] = Counter()
            for producer in self.producers:
                published.update(dict(producer.published.get(second, {})))
            lines.append(
                {
                    "second": second,
                    "n_due": self.due[second],
                    "n_handed": self.handed[second],
                    "n_answered": sum(published.values()),
                    "n_failed": sum(producer.failed[second] for producer in self.producers),
                    "n_sent_in": self.sent_in[second],
                    "n_acknowledged_in": sum(p.acknowledged_in[second] for p in self.producers),
                    "backlog": self.backlog.get(second),
                    "blocked_us": self.blocked_ns[second] // 1_000,
                    "late_max_us": self.late_max_us[second],
                    "late": flat(self.late[second]),
                    "publish": flat(published),
                }
            )
        blocked_us = sum(self.blocked_ns.values()) // 1_000
        ended = {"ended": time.time_ns(), "n_due": self.n_due, "n_handed": sum(self.handed.values())}
        return [*lines, {**ended, "blocked_us": blocked_us, "stopped": self.stopped}]


def bodies_of(path: str, record_bytes: int) -> list[bytes]:
    """Return record bodies from a file of equally long lines; each body leaves room for the head."""
    with open(path, "rb") as file:
        content = file.read()
    step = record_bytes + 1
    return [content[at + HEAD.size : at + record_bytes] for at in range(0, len(content) - step + 1, step)]


def main() -> int:
    import confluent_kafka

    arguments = clients.read_arguments(
        "Sends the records of an open-loop load on schedule.",
        "client settings topics partitions number producers producers-in-all rate length-s payload "
        "record-bytes transaction-ms drain-s go-file",
    )
    clients.raise_priority()
    process = Process(arguments, bodies_of(arguments.payload, arguments.record_bytes))
    clients.on_stop(process.stop)
    put(line({"program": "open-loop producer", "format": 1, "client": confluent_kafka.libversion()[0]}))
    sys.setswitchinterval(0.0005)
    for number in arguments.producers:
        topic = arguments.topics[number % len(arguments.topics)]
        settings = clients.client_settings(arguments.client, arguments.settings)
        settings["client.id"] = f"open-loop-producer-{number}"
        if arguments.transaction_ms:
            settings["transactional.id"] = f"{topic}-{number}"
        client, transaction_s = confluent_kafka.Producer(settings), arguments.transaction_ms / 1_000
        process.producers.append(Producer(number, topic, client, process, transaction_s))
    if left := process.warm_up():
        print(f"{left} partitions did not acknowledge a warm-up in {WARM_UP_S:g} s", file=sys.stderr)
        return 1
    put(line({"ready": time.time_ns()}))
    gc.collect()
    gc.freeze()
    gc.disable()  # a collection would delay records, and this program makes no reference cycles
    if (go := clients.await_file(arguments.go_file, lambda: process.stopped)) is not None:
        put(line({"start_ns": go["start_ns"]}))
        process.run(go["start_ns"])
        process.drain()
    put("".join(map(line, process.report())))
    os._exit(0)  # because librdkafka would wait to deliver outstanding records


if __name__ == "__main__":
    sys.exit(main())
