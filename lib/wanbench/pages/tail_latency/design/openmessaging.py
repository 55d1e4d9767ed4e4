"""
Run the OpenMessaging Benchmark as a load generator.

`wanbench.read.ingest.openmessaging` reads the files that a run writes.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

from wanbench.checks import LATER, refusal
from wanbench.errors import CommandError, LabError, ParameterError
from wanbench.measure.experiments.base import ClientLoad, ExperimentError, bounded, check_declared, keep, last_line
from wanbench.measure.experiments.session import ClientSession
from wanbench.measure.kafka.access import put_private
from wanbench.measure.kafka.base import BaseCluster
from wanbench.measure.kafka.java_commands import checked_heap
from wanbench.measure.labs.base import Completed, Host, Process

from .openmessaging_files import Driver, Workload, properties_text, read_driver, read_workload
from .openmessaging_open_loop import MINUTE_S, WARMUP_MINUTES, is_security

START_S, END_S = 15.0, 35.0
"""
Seconds from the start to the first message, and from the last window to the result, while consumers leave their groups;
measured on two processors.
"""


@dataclass(frozen=True)
class OpenMessaging(ClientLoad):
    """
    A run of the OpenMessaging Benchmark, or of one of its forks, against the cluster of the lab.

    The benchmark's distribution on the hosts runs unmodified, with the workload, and with the driver completed by the
    cluster's address and a reference to its security settings. Durations are whole minutes. Compare systems under the
    same load generator only: the benchmark measures in another way than `KafkaOpenLoop` (see `to_open_loop`), and uses
    Kafka's Java clients instead of librdkafka. With one request in flight no difference was seen (``python
    benchmarks/openmessaging.py --in-turn --in-flight 1 --blocks 2``; from two runs each, the ratio of means is only
    known to lie between 0.3 and 4.1). With several requests in flight latencies may differ: a broker processes the
    requests of a connection one at a time (https://kafka.apache.org/protocol), and with acks "all" each request
    occupies the connection until it is replicated, so latency depends on how a client batches.

    Parameters
    ----------
    distribution : str
        Absolute path of the benchmark on the hosts, a folder with bin and lib.
    workload : Workload, mapping of its fields, or path of a workload file
        `payloadFile` is relative to the distribution.
    driver : Driver, mapping of its fields, or path of a driver file
        It must have neither security settings nor `reset`, which deletes other topics. Its address is replaced.
    workers : tuple of str, optional
        Regions whose first hosts run a worker; a region may be listed several times. The first half of them produce and
        the others consume. If None, the benchmark process itself produces and consumes.
    port : int
        First port of the workers on a host; each worker uses two ports.
    heap_mb : int
        Java's heap of the benchmark and of each worker; older forks ignore it and take 4 GB.
    timeout_s : float or None
        Timeout of the benchmark, from its start; None means two minutes more than expected.

    Examples
    --------
    >>> workload = Workload(1, 3, 1000, 1, 1, 1, 200, 1, useRandomizedPayloads=True, randomBytesRatio=1.0,
    ...                     randomizedPayloadPoolSize=100, warmupDurationMinutes=0)
    >>> run = OpenMessaging("/opt/benchmark", workload)
    >>> run.expected_s(80.0), run.expected_bytes(80.0)
    (110.0, 12000000.0)
    """

    distribution: str
    workload: Workload
    driver: Driver = field(default_factory=Driver)
    workers: tuple[str, ...] | None = None
    port: int = bounded(18_080, 1024, 60_000)
    heap_mb: int = 512
    start_timeout_s: float = bounded(120.0, 1, 3_600)
    timeout_s: float | None = bounded(None, 1, 1e6)

    name: ClassVar[str] = "openmessaging"

    def __post_init__(self):
        path = self.distribution if isinstance(self.distribution, str) else ""
        if not path.startswith("/") or not path.isprintable():
            raise refusal("OpenMessaging distribution", self.distribution, "an absolute path on the hosts")
        object.__setattr__(self, "distribution", self.distribution.rstrip("/") or "/")
        for name, kind, read in (("workload", Workload, read_workload), ("driver", Driver, read_driver)):
            value = getattr(self, name)
            if isinstance(value, Mapping | str | Path):
                value = kind.of_mapping(value) if isinstance(value, Mapping) else read(value)
            if not isinstance(value, kind):
                raise refusal(f"OpenMessaging {name}", value, f"a {kind.__name__}, a mapping of its fields or a path")
            object.__setattr__(self, name, value)
        check_declared(self)
        checked_heap(self.heap_mb)
        for objection in self._objections():
            raise ParameterError(f"OpenMessaging {objection}")
        if self.workers is not None:
            workers = () if isinstance(self.workers, str) else tuple(self.workers)
            if len(workers) < 2 or not all(isinstance(region, str) and region for region in workers):
                allowed = "two regions or more, or None for the source alone"
                raise refusal("OpenMessaging workers", self.workers, allowed)
            object.__setattr__(self, "workers", workers)

    def _objections(self) -> Iterator[str]:
        """Yield each fault of workload and driver, as the end of an error's sentence."""
        workload = self.workload
        if workload.testDurationMinutes < 1:
            yield f"testDurationMinutes is {workload.testDurationMinutes}; allowed: at least 1, as 0 never ends."
        for name in ("topics", "partitionsPerTopic", "messageSize", "producersPerTopic"):
            if getattr(workload, name) < 1:
                yield f"{name} is {getattr(workload, name)}; allowed: at least 1."
        if workload.useRandomizedPayloads:
            if workload.randomBytesRatio is None:
                yield "randomBytesRatio is None; random payloads need it."
            if not (pool := workload.randomizedPayloadPoolSize):
                yield f"randomizedPayloadPoolSize is {pool}; random payloads need it."
        elif not workload.payloadFile:
            yield f"payloadFile is {workload.payloadFile!r}; allowed: a path, or useRandomizedPayloads: true."
        if workload.consumerBacklogSizeGB and self.timeout_s is None:
            yield "has consumerBacklogSizeGB, so it runs until the backlog is drained; give timeout_s."
        if self.driver.reset:
            yield "driver has reset, which deletes other topics of the cluster; leave it out: a run deletes its own."
        for what in ("common", "topic", "producer", "consumer"):
            for name in self.driver.settings(what):
                if is_security(name):
                    yield f"driver has {name!r} in {what}Config; the clients' security is set by the cluster."

    def __str__(self) -> str:
        workload = self.workload
        rate = f"{workload.producerRate:g} records/s" if workload.producerRate else "the highest rate"
        where = f", workers in {', '.join(self.workers)}" if self.workers else ""
        return (
            f"OpenMessaging Benchmark: {rate} of {workload.messageSize} bytes for {workload.testDurationMinutes} min, "
            f"{workload.subscriptionsPerTopic} group{'s' * (workload.subscriptionsPerTopic != 1)}{where}"
        )

    # Attributes that a trial needs of its load

    topics = property(lambda self: self.workload.topics)
    partitions = property(lambda self: self.workload.partitionsPerTopic)
    replication = property(lambda self: self.driver.replicationFactor)
    topic_settings = property(lambda self: self._settings("topic"))
    producer_settings = property(lambda self: self._settings("producer"))
    consumer_settings = property(lambda self: self._settings("consumer"))

    def _settings(self, what: str) -> tuple[tuple[str, str], ...]:
        return tuple(sorted(self.driver.settings(what).items()))

    @property
    def length_s(self) -> float:
        """Duration of warm-up and test in s, without building and draining a backlog."""
        warmup = self.workload.warmupDurationMinutes
        return MINUTE_S * (self.workload.testDurationMinutes + (WARMUP_MINUTES if warmup is None else warmup))

    def time_limit_s(self) -> float:
        """Return the time limit of the benchmark in s."""
        return self.expected_s(0.0) + 120.0 if self.timeout_s is None else self.timeout_s

    def session(
        self, cluster: BaseCluster, producers: Sequence[Host], consumers: Sequence[Host], *where: Any
    ) -> OpenMessagingSession:
        """
        Return a session that runs the benchmark on the host `producers[0]`, with workers in the regions `workers`.

        The session calls `when_sending` when the warm-up or, without one, the measurement starts. It writes
        openmessaging/<stem>.result.json, the benchmark's own result; <stem>.workload.yaml and <stem>.driver.yaml; and
        the output of each program as <stem>.benchmark.txt and <stem>.worker-<n>.txt. It deletes the benchmark's topics.

        Raises ExperimentError: a region of `workers` has no host, or clients are in several regions without workers.
        The session's `run` raises it, too, if a host lacks Java or the distribution, or if a program fails or leaves no
        result.
        """
        if self.workers is None and len({host.name for host in producers}) > 1:
            raise ExperimentError(
                f"OpenMessaging would run on {producers[0].name} alone, and the trial has clients in several regions; "
                "name them as workers"
            )
        hosts = cluster.lab.hosts
        if missing := ", ".join(region for region in self.workers or () if not hosts.get(region)):
            raise ExperimentError(f"OpenMessaging workers has {missing}; the lab has {', '.join(sorted(hosts))}")
        workers = [cluster.lab.host(region) for region in self.workers or ()]
        return OpenMessagingSession(self, cluster, producers[:1], workers, *where)

    def workload_on_host(self) -> Workload:
        """Return the workload with the absolute path of its payload file on the hosts."""
        path = self.workload.payloadFile
        if not path or path.startswith("/"):
            return self.workload
        return replace(self.workload, payloadFile=f"{self.distribution}/{path}")

    def expected_s(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """Return the expected duration in s, without building and draining a backlog."""
        return START_S + self.length_s + END_S

    def expected_bytes(self, rtt_ms: float, rate_bps: float | None = None) -> float | None:
        """Return the payload bytes that producers send, before compression; None if the benchmark searches the rate."""
        if not self.workload.producerRate:
            return None
        return float(self.workload.producerRate * self.workload.messageSize * self.length_s)


TOPIC_PREFIX = "test-topic"  # Prefix of the Kafka driver's topics, in all forks.
SENDS = b"----- Starting "  # Printed by the benchmark when its warm-up or measurement starts.
FAILS = b"Failed to run the workload"
WRITES = b"Writing test result into"
LISTENS = "Javalin has started"  # Printed by a worker once it listens.
CHECK_S = 1.0
_OVERLAP = 64
"""
Number of bytes that are searched again, because a line may arrive in parts: more than the longest text searched for.
"""
_RUN_S = 30.0
_MOST_LOG_BYTES = 1_000_000
"""Longest output that is kept whole, in bytes; a minute makes some 5 kB."""
_FAULT = re.compile(rb"[\w.$]+(Exception|Error)\b.*")
_FAILED = re.compile(rb" ERROR [^\n]*")


@dataclass
class _Program:
    """The benchmark or one of its workers (as `what` says), with its folder on its host."""

    what: str
    host: Host
    folder: str
    process: Process = LATER
    done: Completed | None = None

    def stop(self) -> None:
        if self.process is not None and self.done is None:
            self.done = self.process.stop()


class OpenMessagingSession(ClientSession):
    """Runs an `OpenMessaging` (`settings`): the benchmark on the producers' host, workers on the consumers' hosts."""

    def __init__(self, load: OpenMessaging, *where: Any):
        super().__init__(load, *where)
        [host] = self.producer_hosts
        unique = f"openmessaging-{uuid.uuid4().hex[:8]}"
        self.benchmark = _Program("benchmark", host, f"{host.scratch}/{unique}-benchmark")
        self.workers = [
            _Program(f"worker-{number}", worker, f"{worker.scratch}/{unique}-worker-{number}")
            for number, worker in enumerate(self.consumer_hosts)
        ]
        # a worker uses a port for commands and the next one for statistics
        ports: defaultdict[str, count[int]] = defaultdict(lambda: count(self.settings.port, 2))
        self.addresses = [f"http://{worker.host.address}:{next(ports[worker.host.name])}" for worker in self.workers]
        self._topics_before: set[str] = set()
        self._prepared: list[_Program] = []
        self._contents: dict[str, bytes] = {}

    def _measure(self) -> None:
        self._check_hosts()
        self._prepare()
        self._start()
        self._follow()

    def _programs(self) -> list[_Program]:
        return [self.benchmark, *self.workers]

    def _check_hosts(self) -> None:
        path = self.settings.distribution
        for program in self._programs():
            host, script = program.host, f"{path}/bin/benchmark{'-worker' * (program is not self.benchmark)}"
            if not self._is(host, "-d", path):
                raise ExperimentError(f"OpenMessaging distribution is {path!r}; {host.name} has no such folder")
            if not self._is(host, "-f", script):
                raise ExperimentError(f"OpenMessaging distribution {path} on {host.name} has no {script}")
            find = ["find", f"{path}/lib", "-maxdepth", "1", "-name", "*benchmark-framework*.jar"]
            if not host.run(find, timeout_s=_RUN_S, ok=None).stdout.strip():
                raise ExperimentError(
                    f"OpenMessaging distribution {path} on {host.name} has no jar of the benchmark in lib; build "
                    "it, or unpack its binary distribution"
                )
            if host.run(["env", "java", "-version"], timeout_s=_RUN_S, ok=None).returncode:
                raise ExperimentError(f"{host.name} has no Java, which the OpenMessaging Benchmark needs")
        payload = self.settings.workload_on_host()
        if not payload.useRandomizedPayloads and not self._is(self.benchmark.host, "-f", payload.payloadFile):
            raise ExperimentError(f"{self.benchmark.host.name} has no payloadFile {payload.payloadFile}")

    @staticmethod
    def _is(host: Host, kind: str, path: str) -> bool:
        return host.run(["test", kind, path], timeout_s=_RUN_S, ok=None).returncode == 0

    def _prepare(self) -> None:
        """Make a folder for each program with links to the distribution, and write the files of workload and driver."""
        self._topics_before = self._topics()
        for program in self._programs():
            program.host.run(["mkdir", "-m", "700", program.folder], timeout_s=_RUN_S)
            self._prepared.append(program)
            parts = [f"{self.settings.distribution}/{part}" for part in ("bin", "lib")]
            program.host.run(["ln", "-s", "-t", program.folder, *parts], timeout_s=_RUN_S)
        inside = Path(self.benchmark.folder).name
        for name, file in (("workload", self.settings.workload_on_host()), ("driver", self._driver())):
            self._contents[f"{name}.yaml"] = file.text().encode()
            put_private(self.benchmark.host, f"{inside}/{name}.yaml", file.text())

    def _driver(self):
        """
        Return the driver with the cluster's address and security settings added.

        The security settings refer to a file on the client's host, so the driver contains no secret.
        """
        settings = {"bootstrap.servers": self.cluster.bootstrap}
        path = self.cluster.client_file(self.benchmark.host)
        if path is not None:
            for worker in self.workers:
                if not self._is(worker.host, "-r", path):
                    raise ExperimentError(
                        f"{worker.host.name} does not see {path}, which has the clients' security settings; workers of "
                        "a secured cluster must share a file system"
                    )
            names = self.benchmark.host.run(["sed", "-n", "s/=.*//p", path], timeout_s=_RUN_S).stdout.decode().split()
            settings |= {
                "config.providers": "file",
                "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
                **{name: f"${{file:{path}:{name}}}" for name in names},
            }
        given = self.settings.driver
        common = given.commonConfig + "\n" * bool(given.commonConfig and not given.commonConfig.endswith("\n"))
        return replace(given, commonConfig=common + properties_text(settings))

    def _start(self) -> None:
        for worker, address in zip(self.workers, self.addresses, strict=True):
            port = int(address.rpartition(":")[2])
            self._start_program(worker, "bin/benchmark-worker", "--port", str(port), "--stats-port", str(port + 1))
        limit_s = time.monotonic() + self.settings.start_timeout_s
        for worker in self.workers:
            try:
                worker.process.wait_for_output(LISTENS, max(limit_s - time.monotonic(), 0.1))
            except CommandError as error:
                raise ExperimentError(self._why(worker, f"did not listen: {error}")) from error
        arguments = ["--drivers", "driver.yaml", "--output", "result.json"]
        arguments += ["--workers", ",".join(self.addresses)] if self.workers else []
        self._start_program(self.benchmark, "bin/benchmark", *arguments, "workload.yaml")

    def _start_program(self, program: _Program, script: str, *arguments: str) -> None:
        heap = f"HEAP_OPTS=-Xms{self.settings.heap_mb}m -Xmx{self.settings.heap_mb}m"
        java = f"JDK_JAVA_OPTIONS=-XX:-UsePerfData -Djava.io.tmpdir={program.folder}"
        program.process = program.host.start(["env", "-C", program.folder, heap, java, "bash", script, *arguments])

    def _follow(self) -> None:
        """
        Wait until the benchmark has written its result, and keep the result.

        The benchmark itself may not end then, because threads of its local worker continue. Raises ExperimentError: the
        benchmark fails, ends without a result or takes too long, or a worker or broker dies.
        """
        benchmark, sending, position = self.benchmark, False, 0
        limit_s = self.settings.time_limit_s()
        end = time.monotonic() + limit_s
        while True:
            with suppress(CommandError):
                benchmark.done = benchmark.process.wait(CHECK_S)
            printed = benchmark.process.printed(position) if benchmark.done is None else benchmark.done.stdout
            if not sending and SENDS in printed:
                sending = True
                self.when_sending()
            if FAILS in printed:
                raise ExperimentError(self._why(benchmark, "failed"))
            if WRITES in printed:
                self._contents["result.json"] = self._written_result()
                return
            if benchmark.done is not None:
                raise ExperimentError(self._why(benchmark, f"ended with status {benchmark.done.returncode}"))
            position += max(len(printed) - _OVERLAP, 0)
            self.cluster.check()
            for worker in self.workers:
                if not worker.process.is_running():
                    worker.done = worker.process.wait(0)
                    raise ExperimentError(self._why(worker, "ended before the benchmark did"))
            if time.monotonic() > end:
                raise ExperimentError(self._why(benchmark, f"did not end within {limit_s:g} s and was stopped"))

    def _written_result(self) -> bytes:
        content, cat = b"", ["cat", f"{self.benchmark.folder}/result.json"]

        def is_whole():
            nonlocal content
            content = self.benchmark.host.run(cat, timeout_s=_RUN_S, ok=None).stdout
            with suppress(ValueError):
                return json.loads(content) is not None

        if not self._until(is_whole, _RUN_S):
            raise ExperimentError(self._why(self.benchmark, "left no whole result"))
        return content

    def _why(self, program: _Program, what: str) -> str:
        """Return an error message: the program, `what` happened, and the first error in its output with the cause."""
        done = program.done or program.process.so_far()
        printed = done.stdout + b"\n" + done.stderr
        failure = f"the OpenMessaging Benchmark's {program.what} on {program.host.name} {what}"
        failed = _FAILED.search(printed)
        if failed is None:
            return f"{failure}: {last_line(done)}"
        causes = [match.group() for match in _FAULT.finditer(printed, failed.end())]
        parts = [failed.group()[7:307], *(cause[:300] for cause in causes[-1:])]
        return f"{failure}: {b': '.join(parts).decode('utf-8', 'replace')}"

    def _topics(self) -> set[str]:
        topics = self.cluster.ask(self.benchmark.host, "topics")
        return {topic["name"] for topic in topics if topic["name"].startswith(TOPIC_PREFIX)}

    def _clean_up(self) -> str | None:
        why = None
        try:
            made = set() if self.benchmark.process is None else self._topics() - self._topics_before
            for topic in sorted(made):
                self.cluster.delete_topic(topic)
        except LabError as error:
            why = f"the benchmark's topics could not be deleted: {error}"
        for program in self._prepared:
            with suppress(LabError):
                program.host.run(["rm", "-rf", "--", program.folder], timeout_s=_RUN_S, ok=None)
        return why

    def _keep(self, error: str | None) -> None:
        for name, content in self._contents.items():
            self._write(name, content)
        for program in self._programs():
            if program.done is not None:
                done = replace(program.done, stdout=_cut(program.done.stdout), stderr=_cut(program.done.stderr))
                self.files += keep(self.folder, self.settings.name, f"{self.stem}.{program.what}", "txt", done)


def _cut(printed: bytes) -> bytes:
    """Return the output of a program; of a long one only both ends, and the number of bytes between them."""
    left_out = len(printed) - _MOST_LOG_BYTES
    if left_out <= 0:
        return printed
    half = _MOST_LOG_BYTES // 2
    return printed[:half] + f"\n... {left_out:,} bytes left out ...\n".encode() + printed[-half:]
