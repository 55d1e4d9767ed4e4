"""Load Kafka with its own performance tools. Read by `wanbench.read.ingest.kafka_load`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any, ClassVar

from wanbench.errors import ParameterError
from wanbench.formatting import count
from wanbench.measure.kafka.java_commands import checked_flags

from .base import ClientLoad, KafkaSettings, bounded, check_declared, one_of
from .kafka_load_session import LoadSession
from .load_settings import ACKS, COMPRESSIONS, GENERATED, check_clients, check_sent_bytes, checked_placement

START_S = 0.9  # time of two idle processors to start one tool
AROUND_S = 0.5  # time to create and delete topics, and to count batches
TIMESTAMPS = ("LogAppendTime", "CreateTime")
PAYLOADS = ("letters", *GENERATED)


@dataclass(frozen=True)
class KafkaLoad(ClientLoad):
    """
    Producers and consumers of Kafka's own performance tools, started together.

    Each tool prints a report periodically; such a report is called a window.

    Producer p writes to topic p modulo `topics`. Each topic is read by `consumer_groups` groups of `consumers`
    consumers each: for a fan-out of 1:3, use one producer per topic and three groups of one consumer.

    A load ends in one of three ways:

    - with `records`: after that many records per producer, in addition to `warmup_records`, which the tool reports
      separately. Without a target rate, the rate in the tool's summary is too low, because the summary starts while
      warm-up records are still in the producer's buffer;
    - with `duration_s` and `target_records_per_s`: after the corresponding number of records, with the same warm-up and
      summary;
    - with `duration_s` alone: the tools are stopped `warmup_s` + `duration_s` after the last producer's first window.
      The producers' summary lines and metrics are then missing; windows and the log's batches remain.

    ``<stem>.times.json`` records when all tools were sending, and which period counts.

    Parameters
    ----------
    topics, partitions, replication : int
        Number of topics, partitions per topic, and replicas per partition.
    placement : tuple of tuple of int, optional
        The node ids of each partition's replicas, the preferred leader first; the same for every topic.
    topic_settings, producer_settings, consumer_settings : mapping of str
        Further settings. Secrets are refused, because they belong in the settings of the cluster. No record is deleted
        during the load, unless `retention.ms` or `retention.bytes` is set here.
    timestamps : "LogAppendTime" or "CreateTime"
        Who stamps records with the time: the broker or the producer. The producer's time is earlier, by the time that a
        record waits in the producer's buffer.
    producers : int
        Number of producer processes, at least as many as topics.
    batch_bytes, linger_ms, compression, buffer_bytes, max_in_flight
        batch.size, linger.ms, compression.type, buffer.memory and max.in.flight.requests.per.connection.
    idempotence : bool or None
        Whether producers are idempotent. None stands for Kafka's default, which is True if acks is "all".
    target_records_per_s : float or None
        Rate of each producer; None means as fast as possible.
    payload : str
        "letters": the tool's own random letters, which hardly compress. "json", "log", "random": see
        `wanbench.measure.experiments.load_settings.records`.
    consumer_windows : bool
        Whether consumers print windows. If so, the tool prints no summary, but its metrics report how much it read.
    consumer_timeout_s : float
        A consumer ends after this time without a record; choose more than any gap in the load.
    drain : bool
        Whether consumers read all records and print their final output; otherwise they are stopped when the producers
        have ended.
    client_rack : str or None
        client.rack of the consumers, which then read from a replica in that rack. "region" stands for each consumer's
        own region. With None, consumers read from leaders.
    most_bytes : float
        Maximum total payload.
    timeout_s : float or None
        Timeout of the producers. Those still running are stopped; <stem>.times.json names them in `unfinished`, and the
        column `behind_s` of their windows shows how far they fell behind. None stands for a minute more than twice the
        sum of `duration_s` and `warmup_s`, or a minute more than it takes to send `records` at 1 Mbit/s.

    Examples
    --------
    >>> load = KafkaLoad(producers=3, record_bytes=1000, target_records_per_s=100, duration_s=10, warmup_s=2)
    >>> load.records_to_send, load.records_to_warm, load.expected_bytes(80.0)
    (1200, 200, 3600000.0)
    """

    topics: int = bounded(1, 1, 1000)
    partitions: int = bounded(3, 1, 10_000)
    replication: int = bounded(1, 1, 9)
    placement: tuple[tuple[int, ...], ...] | None = None
    topic_settings: KafkaSettings = ()
    timestamps: str = one_of("LogAppendTime", TIMESTAMPS)
    producers: int = bounded(1, 1, 100)
    consumer_groups: int = bounded(1, 0, 100)
    consumers: int = bounded(1, 0, 100)
    acks: str = one_of("all", ACKS)
    batch_bytes: int = bounded(16_384, 0, 2**30)
    linger_ms: float = bounded(5, 0, 60_000)
    compression: str = one_of("none", COMPRESSIONS)
    idempotence: bool | None = None
    buffer_bytes: int = bounded(32 << 20, 1 << 16, 2**36)
    max_in_flight: int = bounded(5, 1, 1000)
    record_bytes: int = bounded(1000, 1, 2**28)
    target_records_per_s: float | None = bounded(None, 0.01, 1e7)
    records: int | None = bounded(None, 1, 10**12)
    duration_s: float | None = bounded(10.0, 1, 86_400)
    warmup_s: float = bounded(0.0, 0, 3600)
    warmup_records: int = bounded(0, 0, 10**12)
    payload: str = one_of("letters", PAYLOADS)
    payload_seed: int = bounded(0, 0, 2**63)
    reporting_interval_s: float = bounded(1.0, 0.1, 600)
    consumer_windows: bool = True
    print_metrics: bool = True
    consumer_timeout_s: float = bounded(10.0, 0.5, 86_400)
    drain: bool = True
    heap_mb: int = bounded(256, 64, 2**20)
    jvm: tuple[str, ...] = ()
    producer_settings: KafkaSettings = ()
    consumer_settings: KafkaSettings = ()
    client_rack: str | None = None
    most_bytes: float = bounded(20e9, 1, 2**50)
    start_timeout_s: float = bounded(60.0, 1, 3600)
    timeout_s: float | None = bounded(None, 1, 1e6)

    name: ClassVar[str] = "kafka_load"

    def __post_init__(self):
        object.__setattr__(self, "acks", str(self.acks))
        object.__setattr__(self, "jvm", tuple(self.jvm) if isinstance(self.jvm, list) else self.jvm)
        check_declared(self)
        check_clients(self, producer_settings=_OWNED, topic_settings={"message.timestamp.type": "give timestamps"})
        checked_flags(self.jvm)
        object.__setattr__(self, "placement", checked_placement(self))
        for objection in _objections(self):
            raise ParameterError(f"KafkaLoad {objection}")
        check_sent_bytes(self, self._sent_bytes())

    def __str__(self) -> str:
        amount = f"{self.duration_s:g} s" if self.duration_s is not None else f"{self.records:,} records each"
        each = self.target_records_per_s
        rate = "as fast as possible" if each is None else f"at {each:g} records/s each"
        groups = f", {count(self.consumer_groups, 'consumer group')} of {count(self.consumers, 'consumer')}"
        consumers = groups if self.n_consumers else ""
        compression = f", {self.compression}" if self.compression != "none" else ""
        return (
            f"Kafka load: {count(self.producers, 'producer')} for {amount} {rate}, {self.record_bytes} bytes a record, "
            f"batches of {self.batch_bytes} bytes, acks {self.acks}, {count(self.topics, 'topic')} with "
            f"{count(self.partitions, 'partition')} and replication {self.replication}{consumers}{compression}"
        )

    @property
    def is_stopped(self) -> bool:
        """Return whether the tools are stopped after a time, instead of ending by themselves."""
        return self.duration_s is not None and self.target_records_per_s is None

    @property
    def n_consumers(self) -> int:
        """Return the total number of consumer processes."""
        return self.topics * self.consumer_groups * self.consumers

    @property
    def records_to_warm(self) -> int:
        """Return the number of warm-up records of each producer, which its tool reports separately."""
        if self.records is not None:
            return self.warmup_records
        return 0 if self.is_stopped else ceil(self.warmup_s * (self.target_records_per_s or 0))

    @property
    def records_to_send(self) -> int:
        """Return the number of records that each producer is to send, including the warm-up."""
        if self.records is not None:
            return self.records + self.warmup_records
        if self.is_stopped:
            return int(self.most_bytes / self.producers / self.record_bytes)
        return ceil((self.duration_s or 0) * (self.target_records_per_s or 0)) + self.records_to_warm

    def records_of_topic(self, topic: int) -> int:
        """Return the number of records that all producers of a topic are to send, including the warm-up."""
        return self.records_to_send * len(range(topic, self.producers, self.topics))

    def session(self, *where: Any) -> LoadSession:
        """
        Return the session that loads the cluster of the hosts' lab.

        `when_sending` is called once all producers have printed a window; for loads that end by themselves, it is
        called once they have started.

        Each tool leaves in kafka_load/ of the run folder its output, <stem>.producer-<n>.txt or
        <stem>.consumer-<group>-<n>.txt (both numbered over all topics), .stderr.txt if it wrote to stderr, and
        .lines.json with the times of its start and of each line. There are also <stem>.times.json, and
        <stem>.batches.json with counts from the leaders' logs. The topics are created, and deleted at the end.

        `run` raises ExperimentError, with the output so far, if a topic cannot be created, or a tool dies or sends
        nothing.
        """
        return LoadSession(self, *where)

    def expected_s(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """
        Return the expected duration in s.

        A load by `records` without a target rate is assumed to send at `rate_bps` or, if that is slower, as fast as
        `max_in_flight` batches per partition and round trip allow.
        """
        if self.duration_s is not None:
            sending_s = self.duration_s + self.warmup_s
        elif self.target_records_per_s is not None:
            sending_s = self.records_to_send / self.target_records_per_s
        else:
            in_flight = self.topics * self.partitions * self.batch_bytes * self.max_in_flight
            rates = [in_flight / (rtt_ms / 1000)] if rtt_ms > 0 else []
            rates += [rate_bps / 8] if rate_bps else []
            sending_s = self._sent_bytes() / min(rates) if rates else 0.0
        starting_s = START_S * (self.producers + self.n_consumers)
        idle = self.n_consumers and self.drain and (self.is_stopped or self.consumers > 1)
        return sending_s + starting_s + AROUND_S + (self.consumer_timeout_s if idle else 0.0)

    def expected_bytes(self, rtt_ms: float, rate_bps: float | None = None) -> float | None:
        """
        Return the bytes of payload that the producers send, before compression; None if they depend on an unknown rate.

        Replicas fetch `replication` - 1 times as much, consumers `consumer_groups` times as much.
        """
        if not self.is_stopped:
            return float(self._sent_bytes())
        sent = rate_bps and rate_bps / 8 * ((self.duration_s or 0) + self.warmup_s)
        return sent and min(sent, float(self.most_bytes))

    def _sent_bytes(self):
        return self.records_to_send * self.producers * self.record_bytes

    def time_limit_s(self) -> float:
        """Return the timeout of the producers in s: `timeout_s`, or its default."""
        if self.timeout_s is not None:
            return self.timeout_s
        if self.duration_s is not None:
            return 60.0 + 2 * (self.duration_s + self.warmup_s)
        return 60.0 + self._sent_bytes() * 8 / 1e6


REQUEST_BYTES = 1 << 20
"""The default max.request.size of producers and, to within a few bytes, the default message.max.bytes of brokers."""
RECORD_MARGIN_BYTES = 1024  # headers of record and batch, with a margin
_HEAP_MARGIN_MB = 64  # heap that the tool needs in addition to its buffers
_MOST_PROCESSES = 200
"""Maximum number of tools: each is a Java process, and more would saturate the machine before the cluster."""
_TRANSACTIONS = (
    "a load does not use transactions, because their markers in the log would count as batches, and producers with the "
    "same transactional.id fence each other"
)
_OWNED = {
    "transactional.id": _TRANSACTIONS,
    "buffer.memory": "give buffer_bytes",
    "max.in.flight.requests.per.connection": "give max_in_flight",
}


def _objections(load: KafkaLoad) -> Iterator[str]:
    """Yield what is wrong with a load, each as the rest of a sentence that begins with "KafkaLoad"."""
    producer, topic = dict(load.producer_settings), dict(load.topic_settings)
    if load.linger_ms != int(load.linger_ms):
        yield f"linger_ms is {load.linger_ms!r}; allowed: whole milliseconds, as in Kafka."
    if (load.duration_s is None) == (load.records is None):
        yield f"needs exactly one of duration_s ({load.duration_s!r}) and records ({load.records!r})."
    if load.warmup_records and load.records is None:
        yield "warmup_records is for loads by records; with duration_s give warmup_s."
    if load.warmup_s and load.duration_s is None:
        yield "warmup_s is for loads by duration_s; with records give warmup_records."
    if load.producers < load.topics:
        yield f"has {load.producers} producers for {load.topics} topics; each topic needs a producer."
    if load.producers + load.n_consumers > _MOST_PROCESSES:
        consumers = f"{load.n_consumers} consumers (topics x groups x consumers of each)"
        yield f"has {load.producers} producers and {consumers}; allowed: {_MOST_PROCESSES} processes."
    if load.consumer_groups and not 1 <= load.consumers <= load.partitions:
        why = "each consumer needs a partition, and each group a consumer (or set consumer_groups to 0)"
        yield f"has {load.consumers} consumers per group and {load.partitions} partitions per topic; {why}."
    if load.records_to_send < 1:
        yield f"most_bytes {load.most_bytes:g} is less than one record per producer."
    if load.idempotence and (load.acks != "all" or load.max_in_flight > 5):
        given = f"{load.acks!r} and {load.max_in_flight}"
        yield f"idempotence needs acks 'all' and max_in_flight of at most 5; given were {given}."
    if load.buffer_bytes < load.batch_bytes:
        yield f"buffer_bytes is {load.buffer_bytes}, less than one batch of {load.batch_bytes}."
    needed_mb = load.buffer_bytes / 2**20 + _HEAP_MARGIN_MB
    if load.heap_mb < needed_mb:
        yield f"heap_mb is {load.heap_mb}; buffers of {load.buffer_bytes} bytes need at least {needed_mb:.0f}."
    for name, margin in (("batch_bytes", 0), ("record_bytes", RECORD_MARGIN_BYTES)):
        too_large = getattr(load, name) + margin > REQUEST_BYTES
        if too_large and not ("max.request.size" in producer and "max.message.bytes" in topic):
            both = "set max.request.size in producer_settings and max.message.bytes in topic_settings"
            yield f"{name} is {getattr(load, name)}; above {REQUEST_BYTES - margin}, {both}."
