"""
Load Kafka on a fixed schedule, and measure the latency of every record. Read by `wanbench.read.ingest.kafka_open_loop`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, dataclass
from typing import Any, ClassVar

from wanbench.errors import ParameterError
from wanbench.measure.kafka.programs.clients import HEAD, n_records

from .base import ClientLoad, KafkaSettings, bounded, check_declared, one_of
from .kafka_open_loop_session import OpenLoopSession
from .load_settings import ACKS, COMPRESSIONS, GENERATED, check_clients, check_sent_bytes, checked_placement

START_S, END_S = 1.5, 0.5  # overhead before the first record and after the last answer, on two idle processors
MOST_RECORDS = 50_000_000
"""Maximum number of records: each consuming process keeps a byte for each record of the schedule."""
MOST_CLIENTS = 200
"""Maximum number of clients: each has several threads, and more would saturate the machine before the cluster."""
_OWNED = {
    "partitioner": "records go to the partitions in turn",
    "transactional.id": "give transaction_ms",
    "request.required.acks": "give acks",
    "queue.buffering.max.ms": "give linger_ms",
    "compression.codec": "give compression",
}


@dataclass(frozen=True)
class KafkaOpenLoop(ClientLoad):
    """
    Producers that send on a fixed schedule, and the latency of every record from its due time.

    A closed-loop load omits the delay of records that it could not send in time (coordinated omission: Tene 2013). In
    this load, record n is due n / rate seconds after the start, and no record is skipped. Latency counts from the due
    time: to the acknowledgement ("publish"), and to the first receipt by each consumer group ("end to end"). Latencies
    are kept as a histogram for each second of the schedule.

    All clients use librdkafka. Records have no key and go to the partitions round-robin. All producers of a host run in
    one process, and so do all members of a group. Each group reads every topic.

    On two otherwise idle processors, with mock brokers on the same machine, one producer and three groups kept the
    schedule up to 40,000 records/s of 2 KB (99 % of the records were handed over within 1.7 ms; ``python
    benchmarks/open_loop.py``). The sending loop wakes every millisecond: at more than one record per millisecond, a
    record is handed over 0.5 ms late on average, and latencies include this.

    `fell_behind` in table open_loop_loads means that the load generator, not the system, was late: see
    `wanbench.open_loop`. If a producer's queue is full, the system is late, not the generator: records wait, and their
    latency counts from their due time.

    Parameters
    ----------
    rate_records_per_s : float
        Total rate of all producers.
    producers : int
        Number of producers per topic.
    groups, consumers : int
        Number of consumer groups per topic, each of which receives all records, and number of members per group.
    share_groups : bool
        Whether groups are share groups (KIP-932), whose members receive records of any partition.
    joins_at_s : float, optional
        The last member of each group joins only when its group has received the records of so many seconds, so that
        partitions move to it meanwhile.
    rereads : bool
        Whether, after the load, one more group reads all records from the start, as after an outage.
    idempotence : bool
        Whether producers are idempotent. An idempotent producer of librdkafka has one batch in flight per partition
        (``python benchmarks/generators.py``). Others get five per partition, as Kafka's own idempotent producers have;
        a record that is sent again may then be stored twice or out of order.
    transaction_ms : float, optional
        Producers send in transactions, each committed so long after the last one. A record then counts as acknowledged
        when its transaction is committed, and waits while a transaction of its producer is being committed. Consumers
        receive it after that, unless `isolation.level` is read_uncommitted. Records of aborted transactions count as
        failed.
    topic_settings, producer_settings, consumer_settings : mapping of str
        Further settings. No record is deleted unless `retention.ms` or `retention.bytes` is set here. A producer's
        queue is limited to 32 MiB, unless `queue.buffering.max.kbytes` is set here.
    duration_s, warmup_s : float
        The schedule consists of a warm-up of `warmup_s`, whose results are kept and marked, and then `duration_s`,
        whose results count.
    drain_s : float
        After the schedule, how long to wait for acknowledgements, and then again for receipts. Records received later
        count as lost.
    payload, client_rack, placement
        See `KafkaLoad`.
    most_bytes : float
        Maximum total payload.

    Examples
    --------
    >>> load = KafkaOpenLoop(2_000, duration_s=10, warmup_s=2)
    >>> load.n_records, load.expected_bytes(80.0)
    (24000, 49152000.0)
    """

    rate_records_per_s: float = bounded(MISSING, 0.1, 1e6)
    record_bytes: int = bounded(2048, HEAD.size, 900_000)
    topics: int = bounded(1, 1, 1_000)
    partitions: int = bounded(3, 1, 10_000)
    replication: int = bounded(3, 1, 9)
    placement: tuple[tuple[int, ...], ...] | None = None
    producers: int = bounded(1, 1, MOST_CLIENTS)
    groups: int = bounded(3, 1, 100)
    consumers: int = bounded(1, 1, MOST_CLIENTS)
    share_groups: bool = False
    rereads: bool = False
    joins_at_s: float | None = bounded(None, 0.1, 86_400)
    acks: str = one_of("all", ACKS)
    linger_ms: float = bounded(10, 0, 60_000)
    batch_bytes: int = bounded(16_384, 1, 2**30)
    compression: str = one_of("none", COMPRESSIONS)
    idempotence: bool = False
    transaction_ms: float | None = bounded(None, 1, 10_000)
    topic_settings: KafkaSettings = ()
    producer_settings: KafkaSettings = ()
    consumer_settings: KafkaSettings = ()
    duration_s: float = bounded(20.0, 1, 86_400)
    warmup_s: float = bounded(5.0, 0, 3_600)
    drain_s: float = bounded(10.0, 0, 600)
    payload: str = one_of("random", GENERATED)
    payload_seed: int = bounded(0, 0, 2**63)
    client_rack: str | None = None
    most_bytes: float = bounded(20e9, 1, 2**50)
    start_timeout_s: float = bounded(120.0, 1, 3_600)

    name: ClassVar[str] = "kafka_open_loop"

    def __post_init__(self):
        object.__setattr__(self, "acks", str(self.acks))
        check_declared(self)
        check_clients(self, producer_settings=_OWNED)
        object.__setattr__(self, "placement", checked_placement(self))
        for objection in self._objections():
            raise ParameterError(f"KafkaOpenLoop {objection}")
        check_sent_bytes(self, self.n_records * self.record_bytes)

    def _objections(self) -> Iterator[str]:
        """Yield what is wrong with the combination of settings, each as the rest of a sentence."""
        if self.idempotence and self.acks != "all":
            yield f"idempotence is True with acks {self.acks!r}; allowed: acks 'all'."
        if self.transaction_ms and not self.idempotence:
            yield f"transaction_ms is {self.transaction_ms:g} without idempotence; allowed: idempotence True."
        if (self.transaction_ms or 0) >= 1_000 * self.drain_s:
            allowed = "less than drain_s, in which the last transaction is committed"
            yield f"transaction_ms is {self.transaction_ms:g} with drain_s {self.drain_s:g}; allowed: {allowed}."
        if self.joins_at_s and (self.consumers < 2 or self.joins_at_s >= self.length_s):
            given = f"{self.joins_at_s:g} with {self.consumers} consumers and a schedule of {self.length_s:g} s"
            yield f"joins_at_s is {given}; allowed: two consumers or more, and a time within the schedule."
        if self.consumers > self.partitions and not self.share_groups:
            allowed = f"at most {self.partitions}, the partitions of a topic, because each member of a group needs one"
            yield f"consumers is {self.consumers}; allowed: {allowed}."
        clients = self.topics * (self.producers + self.groups * self.consumers)
        if clients > MOST_CLIENTS:
            yield f"has {clients} clients (topics x (producers + groups x consumers)); allowed: {MOST_CLIENTS}."
        if self.n_records > MOST_RECORDS:
            yield f"would send {self.n_records:,} records; allowed: {MOST_RECORDS:,}."

    def __str__(self) -> str:
        topics = "" if self.topics == 1 else f"{self.topics} topics, "
        load = f"{self.rate_records_per_s:g} records/s with {self.record_bytes} bytes each for {self.duration_s:g} s"
        groups = f"{self.groups} consumer group{'s' * (self.groups > 1)}"
        return f"open-loop load of {load}, {topics}acks {self.acks}, {groups}"

    @property
    def length_s(self) -> float:
        """Return the length of the schedule in s, including the warm-up."""
        return self.warmup_s + self.duration_s

    @property
    def n_records(self) -> int:
        """Return the number of records in the schedule, including the warm-up."""
        return n_records(self.rate_records_per_s, self.length_s)

    def session(self, *where: Any) -> OpenLoopSession:
        """
        Return the session that loads the cluster of the hosts' lab; `when_sending` is called when the schedule starts.

        The load leaves kafka_open_loop/<stem>.load.json, which names the other files: <stem>.producer-<n>.jsonl.gz of
        each producing process, <stem>.consumer-<group>.jsonl.gz, exchanged time stamps if hosts have different clocks,
        and stderr if there is any. The topics are created, and deleted at the end.

        `run` raises ExperimentError, with the measurements so far, if a topic cannot be created, clients are not ready
        in time, or a program or a broker fails.
        """
        return OpenLoopSession(self, *where)

    def expected_s(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """Return the expected duration in s if every record arrives."""
        return START_S + self.length_s + 20 * rtt_ms / 1000 + END_S

    def expected_bytes(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """
        Return the bytes of payload that the producers send, before compression.

        Replicas fetch `replication` - 1 times as much, consumers `groups` times as much.
        """
        return float(self.n_records * self.record_bytes)
