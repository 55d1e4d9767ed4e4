"""The OpenMessaging Benchmark as load generator. Read by `wanbench.read.ingest.openmessaging`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from wanbench.checks import check_fields, refusal
from wanbench.errors import ParameterError
from wanbench.measure.experiments.base import ExperimentError, cluster_of
from wanbench.measure.kafka.java_commands import checked_heap
from wanbench.measure.kafka.access import names_secret
from wanbench.measure.labs.base import Host
from wanbench.runs import RawFile

from .openmessaging_files import Driver, Workload, read_driver, read_workload
from .openmessaging_open_loop import MINUTE_S, WARMUP_MINUTES
from .openmessaging_session import OpenMessagingSession

START_S, END_S = 15.0, 35.0
"""
Time from start to the first message, and from the last window to the result; consumers leave their groups in
between. Measured on two processors.
"""
_SECURITY = ("security.", "sasl.", "ssl.")


@dataclass(frozen=True)
class OpenMessaging:
    """
    A run of the OpenMessaging Benchmark, or of one of its forks, against the cluster of the lab.

    The distribution on the hosts runs unmodified, by its own scripts bin/benchmark and bin/benchmark-worker. It gets
    the workload, and the driver with the cluster's address and a reference to its security. Its durations are whole
    minutes: a run without warm-up takes at least one.

    Its measurements differ from those of `KafkaOpenLoop`: publish latency counts from the actual send, and "publish
    delay" is the lateness of that send; end-to-end latency counts from the producer's time stamp in whole milliseconds
    of both hosts' wall clocks, and drops values of zero or less. `Workload.of` makes its workload from a KafkaOpenLoop.

    It uses Kafka's Java clients, KafkaOpenLoop uses librdkafka. With one request in flight no difference was seen: at
    200 records/s of 1 kB over 20, 40 and 60 ms, acks "all", the median end to end was 129 and 160 ms for Java, 154 and
    154 ms for librdkafka (``python benchmarks/openmessaging.py --in-turn --in-flight 1 --blocks 2``; from two runs
    each, the ratio of means is only known to lie between 0.3 and 4.1). With several in flight a broker processes one
    request of a connection at a time (https://kafka.apache.org/protocol), with acks "all" for as long as replication
    takes, so requests wait for one another. Compare systems by one engine only.

    Parameters
    ----------
    distribution : str
        An absolute path on the hosts, of a folder with bin and lib.
    workload : Workload, mapping of its fields, or path of a workload file
        `payloadFile` is relative to the distribution.
    driver : Driver, mapping of its fields, or path of a driver file
        Without security settings, which come from the cluster; its address is replaced. `reset` is refused, because it
        deletes topics of others.
    workers : tuple of str, optional
        Regions whose first hosts run a worker; a region may stand here several times. As in the benchmark, the first
        half of them produce and the others consume (with an odd number, one more consumes). None: the benchmark runs on
        the source alone, which both produces and consumes.
    port : int
        Port of the first worker of a host, which also uses the next one; further workers of the host use the following
        ports.
    heap_mb : int
        Java's heap of the benchmark and of each worker; older forks ignore it and take 4 GB.
    start_timeout_s : float
        Timeout for the workers to listen.
    timeout_s : float or None
        Timeout of the benchmark, from its start; None: two minutes more than expected.

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
    port: int = 18_080
    heap_mb: int = 512
    start_timeout_s: float = 120.0
    timeout_s: float | None = None

    name: ClassVar[str] = "openmessaging"

    def __post_init__(self):
        if (
            not isinstance(self.distribution, str)
            or not self.distribution.startswith("/")
            or not self.distribution.isprintable()
        ):
            raise refusal("OpenMessaging distribution", self.distribution, "an absolute path on the hosts")
        object.__setattr__(self, "distribution", self.distribution.rstrip("/") or "/")
        for name, kind, read in (("workload", Workload, read_workload), ("driver", Driver, read_driver)):
            object.__setattr__(self, name, _given(getattr(self, name), kind, read))
        check_fields(self, ("port", 1024, 60_000), whole=True)
        check_fields(self, ("start_timeout_s", 1, 3_600), ("timeout_s", 1, 1e6), optional=("timeout_s",))
        checked_heap(self.heap_mb)
        self._check_workload()
        self._check_driver()
        if self.workers is not None:
            workers = () if isinstance(self.workers, str) else tuple(self.workers)
            if len(workers) < 2 or not all(isinstance(region, str) and region for region in workers):
                raise refusal(
                    "OpenMessaging workers", self.workers, "two regions or more, or None for the source alone"
                )
            object.__setattr__(self, "workers", workers)

    def _check_workload(self):
        workload = self.workload
        if workload.testDurationMinutes < 1:
            raise refusal("OpenMessaging testDurationMinutes", workload.testDurationMinutes, "at least 1: 0 never ends")
        for name in ("topics", "partitionsPerTopic", "messageSize", "producersPerTopic"):
            if getattr(workload, name) < 1:
                raise refusal(f"OpenMessaging {name}", getattr(workload, name), "at least 1")
        if workload.useRandomizedPayloads:
            for name in ("randomBytesRatio", "randomizedPayloadPoolSize"):
                if not getattr(workload, name) and (name != "randomBytesRatio" or workload.randomBytesRatio is None):
                    raise refusal(f"OpenMessaging {name}", getattr(workload, name), "given with random payloads")
        elif not workload.payloadFile:
            raise refusal("OpenMessaging payloadFile", workload.payloadFile, "a path, or useRandomizedPayloads: true")
        if workload.consumerBacklogSizeGB and self.timeout_s is None:
            raise ParameterError(
                "OpenMessaging has consumerBacklogSizeGB, and runs until the backlog is drained; give timeout_s."
            )

    def _check_driver(self):
        if self.driver.reset:
            raise ParameterError(
                "OpenMessaging driver has reset, which deletes other topics of the cluster; leave it out. The topics "
                "of a run are deleted at its end."
            )
        for what in ("common", "topic", "producer", "consumer"):
            for name in self.driver.settings(what):
                if names_secret(name) or name.startswith(_SECURITY):
                    raise ParameterError(
                        f"OpenMessaging driver has {name!r} in {what}Config; the cluster has the clients' security, "
                        "not the experiment."
                    )

    def __str__(self) -> str:
        workload = self.workload
        rate = f"{workload.producerRate:g} records/s" if workload.producerRate else "the highest rate"
        where = f", workers in {', '.join(self.workers)}" if self.workers else ""
        return (
            f"OpenMessaging Benchmark: {rate} of {workload.messageSize} bytes for {workload.testDurationMinutes} min, "
            f"{workload.subscriptionsPerTopic} group{'s' * (workload.subscriptionsPerTopic != 1)}{where}"
        )

    @property
    def topics(self) -> int:
        """Number of topics that it makes."""
        return self.workload.topics

    @property
    def partitions(self) -> int:
        """Partitions of each topic."""
        return self.workload.partitionsPerTopic

    @property
    def replication(self) -> int:
        """Replicas of each partition."""
        return self.driver.replicationFactor

    @property
    def topic_settings(self) -> tuple[tuple[str, str], ...]:
        """Settings of the topics."""
        return tuple(sorted(self.driver.settings("topic").items()))

    @property
    def producer_settings(self) -> tuple[tuple[str, str], ...]:
        """Settings of the producers, by their names in Java."""
        return tuple(sorted(self.driver.settings("producer").items()))

    @property
    def consumer_settings(self) -> tuple[tuple[str, str], ...]:
        """Settings of the consumers, by their names in Java."""
        return tuple(sorted(self.driver.settings("consumer").items()))

    @property
    def length_s(self) -> float:
        """Warm-up and test, without a backlog, which takes longer."""
        warmup = self.workload.warmupDurationMinutes
        return MINUTE_S * (self.workload.testDurationMinutes + (WARMUP_MINUTES if warmup is None else warmup))

    def time_limit_s(self) -> float:
        """Time limit of the benchmark."""
        return self.expected_s(0.0) + 120.0 if self.timeout_s is None else self.timeout_s

    def run(
        self, source: Host, target: Host, folder: Path, stem: str, *, when_sending: Callable[[], None] | None = None
    ) -> list[RawFile]:
        """
        Run the benchmark on `source`, and its workers in the regions `workers`. `when_sending` is called once, when its
        warm-up or, without one, its measurement starts.

        Leaves openmessaging/<stem>.result.json, the benchmark's own result; <stem>.workload.yaml and <stem>.driver.yaml
        its input files; <stem>.benchmark.txt and <stem>.worker-<n>.txt with the output of the benchmark and of each
        worker, and stderr if there is any. Its topics are deleted.

        Raises
        ------
        ExperimentError
            Before anything starts if there is no cluster, or no host in a region of `workers`, or a host lacks Java,
            the distribution, its scripts or its jars. Later if a worker or the benchmark fails, or leaves no result.
            What was printed is kept.
        """
        return self.run_on([source], [target], folder, stem, when_sending=when_sending)

    def run_on(
        self,
        producers: Sequence[Host],
        consumers: Sequence[Host],
        folder: Path,
        stem: str,
        *,
        when_sending: Callable[[], None] | None = None,
    ) -> list[RawFile]:
        """The same as `run`, on the first of the producers' hosts; `workers` alone says where clients run."""
        if not producers:
            raise ExperimentError("the benchmark needs a host to run on")
        cluster = cluster_of(*producers, *consumers)
        if self.workers is None and len({host.name for host in producers}) > 1:
            raise ExperimentError(
                f"OpenMessaging would run on {producers[0].name} alone, and the trial has clients in several regions; "
                "name them as workers"
            )
        lab = cluster.lab
        if missing := [region for region in self.workers or () if not lab.hosts.get(region)]:
            raise ExperimentError(
                f"OpenMessaging workers has {', '.join(missing)}; the lab has {', '.join(sorted(lab.hosts))}"
            )
        workers = [lab.host(region) for region in self.workers or ()]
        return OpenMessagingSession(self, cluster, producers[0], workers, folder, stem, when_sending).run()

    def workload_on_host(self) -> Workload:
        """The workload with the path of its payload on the hosts."""
        path = self.workload.payloadFile
        if not path or path.startswith("/"):
            return self.workload
        return replace(self.workload, payloadFile=f"{self.distribution}/{path}")

    def expected_s(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """Expected duration, without building and draining a backlog."""
        return START_S + self.length_s + END_S

    def expected_bytes(self, rtt_ms: float, rate_bps: float | None = None) -> float | None:
        """Payload that the producers send, before compression; None if the benchmark searches the highest rate."""
        if not self.workload.producerRate:
            return None
        return float(self.workload.producerRate * self.workload.messageSize * self.length_s)


def _given(value, kind, read):
    if isinstance(value, kind):
        return value
    return kind.of_mapping(value) if isinstance(value, Mapping) else read(_path(value, kind))


def _path(value, kind):
    if isinstance(value, str | Path):
        return value
    raise refusal(
        f"OpenMessaging {kind.__name__.lower()}", value, f"a {kind.__name__}, a mapping of its fields or a path"
    )
