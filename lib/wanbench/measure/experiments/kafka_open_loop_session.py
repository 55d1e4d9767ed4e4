"""Run one open-loop load: topics, programs, clocks, and raw files."""

import json
import re
import tempfile
import threading
import time
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from wanbench.errors import CommandError, WanbenchError
from wanbench.measure.kafka.programs import clock_echo, open_loop_consumer, open_loop_producer
from wanbench.measure.labs.base import Host, Offset, clock_offset
from wanbench.measure.labs.programs import program_command, put_whole
from wanbench.runs import RawFile

from .base import ExperimentError, keep, last_line, run_to_end
from .load_settings import put_records, rack_of
from .sampling import BOOT_ID
from .session import ClientSession, Program, client_command

LEAD_S = 1.0  # time from the start order to the first record; every process must have read the order by then
MARGIN_S = 30.0  # timeout for a program to end, on a busy machine
SHORTEST_DRAIN_S = 2.0  # minimum wait for the last records in transit, even if drain_s is 0
QUEUE_KBYTES = 32_768
"""
Size of a producer's queue: the default buffer.memory of Kafka's own producers. librdkafka's default of 1 GB would allow
a backlog of minutes.
"""
QUEUE_RECORDS = 1_000_000  # maximum number of records in the queue, so high that the limit in bytes applies
IN_FLIGHT = 5
"""
Requests in flight to a broker: the default of Kafka's own producers. A request of Kafka's producers holds a batch for
each partition of the broker, whereas a request of librdkafka's holds a batch for one partition only. So librdkafka gets
this number for each partition that a broker leads. Idempotent producers are an exception: they allow no more than this
number in total.
"""
_RUN_S = 30.0


class OpenLoopSession(ClientSession):
    """
    A run of `settings` (a KafkaOpenLoop) on `cluster`; the clock of the first producer's host is the reference.

    If `over` is set, producers stop, and the file keeps the length that the schedule then had.
    """

    def __init__(self, load: Any, *where: Any):
        super().__init__(load, *where)
        self.over = threading.Event()
        unique = self._unique("open-loop")
        self.topics = [f"{unique}-{number}" for number in range(load.topics)]
        self.producing = _by_host(self.producer_hosts, load.topics * load.producers)
        self.consuming = [self.consumer_hosts[group % len(self.consumer_hosts)] for group in range(load.groups)]
        self.reference = self.producing[0][0]
        self.producers: list[Program] = []
        self.consumers: list[Program] = []
        self.rereaders: list[Program] = []
        self.reread_records_per_s: float | None = None
        self.offsets: dict[str, list[Offset]] = {}
        self.start_ns = self.payload = None
        self._lines: dict[str, list[dict[str, Any]]] = {}

    def _measure(self) -> None:
        self._make_topics(self.topics)
        self._read_clocks("before")
        self._start()
        self._await(lambda: self._without("ready", self._programs()), self.settings.start_timeout_s, "not ready within")
        self._go()
        self._await_ends()
        self._read_clocks("after")

    def _programs(self) -> list[Program]:
        return [*self.producers, *self.consumers, *self.rereaders]

    # Before

    def _read_clocks(self, when: str) -> None:
        """Measure the offset of every host's clock from the reference clock."""
        hosts = {host.name: host for host in (*(host for host, _ in self.producing), *self.consuming)}
        for name, host in hosts.items():
            offset = Offset(0.0, 0.0, ONE_CLOCK)
            if host is not self.reference and not share_clock(self.reference, host):
                stem = f"{self.stem}.{re.sub('[^A-Za-z0-9-]', '-', name)}.{when}"
                try:
                    offset, files = exchange(self.reference, host, self.folder, self.settings.name, stem)
                except ExperimentError as error:
                    self.files += error.files
                    raise
                self.files += files
            self.offsets.setdefault(name, []).append(offset)

    def _start(self) -> None:
        load = self.settings
        paths, self.payload = put_records(load, [host for host, _ in self.producing])
        self._common = {
            "topics": json.dumps(self.topics),
            "partitions": load.partitions,
            "rate": repr(float(load.rate_records_per_s)),
            "length_s": repr(float(load.length_s)),
        }
        for group, host in enumerate(self.consuming):
            self.consumers.append(self._start_group("consumer", group, host))
        for process, (host, numbers) in enumerate(self.producing):
            command = client_command(
                host, open_loop_producer, number=process, producers=json.dumps(numbers),
                producers_in_all=load.topics * load.producers, payload=paths[host.name],
                record_bytes=load.record_bytes, drain_s=repr(float(load.drain_s)),
                transaction_ms=load.transaction_ms or 0,
                settings=json.dumps(self._producer_settings()), go_file=self._file(host, "go"), **self._common,
            )  # fmt: skip
            self.producers.append(Program("producer", process, host, host.start(command)))

    def _start_group(self, role: str, number: int, host: Host) -> Program:
        load, offsets_ns = self.settings, [round(1e6 * self._between(of, host)[0]) for of, _ in self.producing]
        command = client_command(
            host, open_loop_consumer, number=number, members=load.consumers, end_file=self._file(host, "end"),
            share_groups=int(load.share_groups), join_s=load.joins_at_s or 0,
            settings=json.dumps(self._consumer_settings(host)), offsets_ns=json.dumps(offsets_ns), **self._common,
        )  # fmt: skip
        return Program(role, number, host, host.start(command))

    def _producer_settings(self) -> dict[str, Any]:
        load = self.settings
        leaders = (Counter(part["leader"] for part in topic["partitions"]) for topic in self.made.values())
        most_led = max(max(led.values()) for led in leaders)
        return {
            "queue.buffering.max.kbytes": QUEUE_KBYTES,
            "queue.buffering.max.messages": QUEUE_RECORDS,
            "socket.nagle.disable": True,  # as Kafka's own clients
            "max.in.flight.requests.per.connection": IN_FLIGHT * (1 if load.idempotence else most_led),
            **dict(load.producer_settings),
            "acks": load.acks,
            "linger.ms": load.linger_ms,
            "batch.size": load.batch_bytes,
            "compression.type": load.compression,
            "enable.idempotence": load.idempotence,
        }

    def _consumer_settings(self, host: Host) -> dict[str, Any]:
        rack = rack_of(self.settings.client_rack, host.region)
        settings = {"socket.nagle.disable": True, **dict(self.settings.consumer_settings)}
        return settings | ({"client.rack": rack} if rack else {})

    def _file(self, host: Host, what: str) -> str:
        return f"{host.scratch}/{self.topics[0]}.{what}.json"

    # While it runs

    def _go(self) -> None:
        asked = self.reference.run(["date", "+%s%N"], timeout_s=_RUN_S)
        self.start_ns = int(asked.stdout) + round(1e9 * LEAD_S)
        began_s = time.monotonic()
        for host in {host.name: host for host, _ in self.producing}.values():
            here_ns = self.start_ns + round(1e6 * self.offsets[host.name][0].offset_ms)
            self._put(host, "go", {"start_ns": here_ns})
        self._pause(began_s + LEAD_S - time.monotonic())
        self.when_sending()

    def _await_ends(self) -> None:
        """Wait for the producers to end, then until the consumers have received everything or time out."""
        load = self.settings
        patience_s = max(load.drain_s, SHORTEST_DRAIN_S)
        limit_s = load.length_s + 2 * load.drain_s + MARGIN_S
        self._await(lambda: self._without("ended", self.producers), limit_s, "not ended after")
        n_handed = sum((self._line(program, "ended") or {})["n_handed"] for program in self.producers)
        for host in {host.name: host for host in self.consuming}.values():
            self._put(host, "end", {"expected": n_handed, "within_s": patience_s})
        self._await(lambda: self._without("ended", self.consumers), patience_s + MARGIN_S, "not ended after")
        if load.rereads:
            self.rereaders = [reader := self._start_group("rereader", load.groups, self.consuming[0])]
            limit_s = load.start_timeout_s + patience_s
            self._await(lambda: self._without("ended", self.rereaders), limit_s, "not ended after")
            read, first = (self._line(program, "ended") or {} for program in (reader, self.consumers[0]))
            if read["n_received"] < first["n_received"]:
                raise ExperimentError(f"{reader} received {read['n_received']} of {first['n_received']} records")
            self.reread_records_per_s = 1e9 * read["n_received"] / max(read["receiving_ns"], 1)
        for program in self._programs():
            program.wait(MARGIN_S)

    def _without(self, key: str, programs: list[Program]) -> str:
        return ", ".join(str(program) for program in programs if not self._line(program, key))

    def _look(self) -> None:
        for program in self.producers if self.over.is_set() else ():
            program.stop()
        for program in self._programs():
            self._lines.setdefault(str(program), []).extend(
                line for line in program.new_lines() if "second" not in line
            )
        self._check_brokers()

    def _line(self, program: Program, key: str):
        return next((line for line in self._lines.get(str(program), ()) if key in line), None)

    def _put(self, host: Host, what: str, content: Mapping[str, object]) -> None:
        with tempfile.NamedTemporaryFile("w") as file:
            json.dump(content, file)
            file.flush()
            put_whole(host, Path(file.name), self._file(host, what))

    # Afterwards

    def _between(self, source: Host, target: Host) -> tuple[float, float]:
        """Return the target's clock minus the source's, measured before the load, and its maximum error, in ms."""
        offset_ms = error_ms = 0.0
        for host, sign in ((target, 1), (source, -1)):
            before, *after = self.offsets[host.name]
            offset_ms += sign * before.offset_ms
            errors = [before.error_ms]
            errors += [abs(late.offset_ms - before.offset_ms) + late.error_ms for late in after]
            error_ms += max(errors)
        return offset_ms, error_ms

    def _keep(self, error: str | None) -> None:
        document = {
            "format": 1,
            "settings": asdict(self.settings),
            "start_s": self.start_ns and self.start_ns / 1e9,
            "error": error,
            "topics": [{"name": name, "partitions": topic["partitions"]} for name, topic in self.made.items()],
            "undeleted": self.undeleted,
            "payload": self.payload,
            "reread_records_per_s": self.reread_records_per_s,
            "producers": [],
            "consumers": [],
            "rereaders": [],
        }
        for program in self._programs():
            if program.done is not None:
                with suppress(WanbenchError):
                    document[f"{program.role}s"].append(self._keep_program(program) | self._clock(program))
        ended = [line for program in self.producers if (line := self._line(program, "ended"))]
        if self.over.is_set() and len(ended) == len(self.producers):
            due_s = sum(line["n_due"] for line in ended) / self.settings.rate_records_per_s
            document["settings"]["duration_s"] = max(due_s - self.settings.warmup_s, 0.0)
        self._write("load.json", document)

    def _clock(self, program: Program) -> dict[str, Any]:
        """Return, for a consumer, the clock offset from the producing host for which this offset is least certain."""
        if program.role != "consumer":
            return {}
        pairs = [self._between(host, program.host) for host, _ in self.producing]
        offset_ms, error_ms = max(pairs, key=lambda pair: pair[1])
        method = self.offsets[program.host.name][0].method
        return {"clock": {"offset_ms": offset_ms, "error_ms": error_ms, "method": method}}


def _by_host(hosts: Sequence[Host], n: int) -> list[tuple[Host, list[int]]]:
    """Distribute the numbers below n over the hosts round-robin; leave out hosts that get none."""
    spread = [(host, list(range(number, n, len(hosts)))) for number, host in enumerate(hosts)]
    return [(host, numbers) for host, numbers in spread if numbers]


EXCHANGES = 30  # number of exchanges; only the fastest counts, and among this many at least one rarely waits in a queue
INTERVAL_S = 0.01
FIRST_PORT, PORTS = 9500, 200
"""
First port, and number of ports. They are above the ports of brokers and above the default ports of concurrent iperf3
tests.
"""
ONE_CLOCK = "one machine, one clock"
_MARGIN_S = 15.0  # time for Python to start on a busy host


def share_clock(source: Host, target: Host) -> bool:
    """Return whether both hosts run on the same kernel (they have the same boot id), and so share a clock."""
    here, there = (host.run(["cat", str(BOOT_ID)], timeout_s=_RUN_S, ok=None) for host in (source, target))
    return here.returncode == there.returncode == 0 and here.stdout == there.stdout


def exchange(source: Host, target: Host, folder: Path, experiment: str, stem: str) -> tuple[Offset, list[RawFile]]:
    """
    Measure the clock offset between two hosts by exchanging time stamps over UDP; return the offset and the raw files:
    <experiment>/<stem>.clock.txt, and stderr if there is any.

    Raise ExperimentError if there is no answer: hosts must reach each other by UDP on the ports from `FIRST_PORT` on.
    """
    port = FIRST_PORT + zlib.crc32(stem.encode()) % PORTS
    here, there = (program_command(host, Path(clock_echo.__file__)) for host in (source, target))
    server = target.start([*there, "answer", target.address, str(port)])
    try:
        server.wait_for_output("listening", _MARGIN_S)
        asking = [*here, "ask", target.address, str(port), str(EXCHANGES), repr(INTERVAL_S)]
        done, reason = run_to_end(source, asking, EXCHANGES * INTERVAL_S + _MARGIN_S)
    except CommandError as error:
        files = keep(folder, experiment, stem, "clock.txt", server.stop())
        raise ExperimentError(f"the clock of {target.name} cannot be read: {error}", files) from error
    finally:
        server.stop()
    files = keep(folder, experiment, stem, "clock.txt", done)
    whole = done.stdout[: done.stdout.rfind(b"\n") + 1]  # the last line of a stopped program may lack its end
    stamps = [json.loads(line) for line in whole.splitlines()]
    if not stamps:
        raise ExperimentError(reason or f"the clock of {target.name} did not answer: {last_line(done)}", files)
    return clock_offset(stamps), files
