"""A region's fault while a Kafka cluster is in use, begun and healed. Read by `wanbench.read.ingest.kafka_fault`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import ClassVar

from wanbench.checks import refusal
from wanbench.errors import ParameterError
from wanbench.measure.kafka.programs.clients import HEAD
from wanbench.measure.labs.base import Host
from wanbench.runs import RawFile

from .base import bounded, check_declared, one_of
from .kafka_fault_session import FaultSession
from .kafka_faults import CONSUMERS, CONTROLLER, FAULTS, KINDS, NONE
from .kafka_loads import ACKS, check_settings, setting_pairs

_START_S, _END_S = 6.0, 6.0
"""Overhead before the first record and after the end of traffic; measured on two processors."""
_HEAL_S = 7.0
"""Time from healing to the end of traffic; measured 4 to 11 s after faults of 8 s, longest with a region cut."""
_OVERHEAD_BYTES = 150
"""Approximate headers of TCP, IP, request and record batch, for one record."""
_OWNED = dict.fromkeys(
    ("acks", "bootstrap.servers", "client.id", "enable.idempotence", "group.id", "request.required.acks")
)


@dataclass(frozen=True)
class KafkaFault:
    """
    One episode: steady traffic, a fault, healing, recovery, and reading back the log.

    Producers in every region of the lab send numbered, checksummed records on a schedule to a new topic; consumers of
    one group in every region receive them. All clients use librdkafka, and log times, answers and errors; producers
    with acks "all" are idempotent. Every region watches the cluster.

    The cluster must be healthy before an episode starts: all replicas in sync. Preferred leaders of Kafka's own topics
    are then elected, so that every episode starts balanced. The traffic ends once replicas are in sync again, every
    member of the group has its partitions, and records flow through all of them. The fault is healed whatever happens.

    Times are those of the hosts' clocks: an episode requires hosts that share one clock, as in a local lab.

    Parameters
    ----------
    fault : str
        "cut": all links of the region. "cut-out", "cut-in": only what leaves it, or only what enters it. "slow": its
        links take 2 s one way and lose 5 %. "kill": its brokers are killed, and started again to heal. "freeze": its
        brokers are suspended. "none": nothing happens.
    at : str
        A region, or two joined by "+"; "controller": the region of the active controller; "consumers": the region whose
        consumers have most of the partitions. Empty for the fault "none".
    before_s, fault_s : float
        Duration of traffic before the fault, and of the fault.
    after_s, quiet_s : float
        Timeout for a healthy cluster after healing. The traffic ends then, or `quiet_s` after the cluster is healthy.
    records_per_s : float
        Rate of each producer.
    client_settings : mapping of str
        librdkafka's settings, such as {"message.timeout.ms": 10000, "group.protocol": "consumer"}; settings that only
        producers (or only consumers) have reach only these.
    broker_settings : mapping of str, optional
        Settings for `Cluster.reconfigure` before the episode. None: the cluster's own.
    watch_interval_s : float
        Interval of watching leaders and in-sync replicas.
    drain_s : float
        Timeout of producers for answers at the end.
    damage : "drop", "duplicate", "reorder", "alter" or None
        To test the reader of the files: damage to one record in a consumer's output.

    Examples
    --------
    >>> print(KafkaFault("cut", "eu"))
    fault: cut at eu for 8 s, acks all
    """

    fault: str = one_of(MISSING, FAULTS)
    at: str = ""
    before_s: float = bounded(6.0, 0.5, 3600)
    fault_s: float = bounded(8.0, 0.1, 3600)
    after_s: float = bounded(30.0, 1, 3600)
    quiet_s: float = bounded(2.0, 0, 3600)
    producers_per_region: int = bounded(1, 1, 64)
    consumers_per_region: int = bounded(1, 1, 64)
    records_per_s: float = bounded(30.0, 0.1, 1_000)
    record_bytes: int = bounded(256, HEAD.size, 900_000)
    partitions: int = bounded(9, 1, 1_000)
    replication: int = bounded(3, 1, 9)
    acks: str = one_of("all", ACKS)
    topic_settings: Mapping[str, object] = ()
    client_settings: Mapping[str, object] = ()
    broker_settings: Mapping[str, object] | None = None
    watch_interval_s: float = bounded(0.25, 0.25, 60)
    drain_s: float = bounded(15.0, 0, 600)
    damage: str | None = one_of(None, KINDS)

    name: ClassVar[str] = "kafka_fault"

    def __post_init__(self):
        check_declared(self)
        for name in ("topic_settings", "client_settings", "broker_settings"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, setting_pairs(self, name))
                check_settings(self, name, _OWNED if name == "client_settings" else {})
        self._check_at()
        minimum = dict(self.topic_settings).get("min.insync.replicas", "1")
        if not minimum.isdigit() or not 1 <= int(minimum) <= self.replication:
            raise refusal(
                "KafkaFault topic_settings min.insync.replicas",
                minimum,
                f"a whole number from 1 to {self.replication}, its replication",
            )

    def _check_at(self):
        parts = self.at.split("+") if isinstance(self.at, str) else []
        if self.fault == NONE:
            if self.at != "":
                raise refusal("KafkaFault at", self.at, "'' with the fault 'none'")
        elif not 1 <= len(parts) <= 2 or not all(parts) or len(set(parts)) < len(parts):
            raise refusal("KafkaFault at", self.at, "a region, two different ones joined by '+', or a role")
        elif len(parts) == 2 and {CONTROLLER, CONSUMERS} & set(parts):
            raise ParameterError(f"KafkaFault at is {self.at!r}; a role cannot be joined by '+'.")

    def __str__(self) -> str:
        where = f" at {self.at} for {self.fault_s:g} s" if self.fault != NONE else ""
        return f"fault: {self.fault}{where}, acks {self.acks}"

    def run(self, source: Host, target: Host, folder: Path, stem: str) -> list[RawFile]:
        """
        Run one episode in all regions of the hosts' lab. It leaves kafka_fault/<stem>.fault.json, which names the other
        files: the output of each program, compressed.

        Raises
        ------
        ParameterError
            If the lab has no such region, or the cluster fewer brokers than `replication`.
        ExperimentError
            If the lab or the cluster cannot have this fault, the cluster is not healthy at first, or a program fails
            before the fault has begun; measurements so far are kept. Later failures are part of the result,
            `incomplete` in the file.
        """
        return FaultSession(self, source, folder, stem).run()

    def expected_s(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """Expected duration on two processors; a restart for other `broker_settings` adds about 10 s."""
        return _START_S + self.before_s + self.fault_s + min(self.after_s, _HEAL_S) + _END_S

    def expected_bytes(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """
        Bytes on the links in a lab of three regions, with Kafka's and the network's headers roughly: two of three
        records come from another region than their leader's, are copied, and go to a consumer elsewhere.
        """
        records = 3 * self.producers_per_region * self.records_per_s * self.expected_s(rtt_ms, rate_bps)
        return records * (self.record_bytes + _OVERHEAD_BYTES) * (self.replication - 1 + 4 / 3)
