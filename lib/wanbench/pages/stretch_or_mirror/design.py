"""
Cut off a region of a mirrored cluster, fail over to the mirror, and go back.

`wanbench.read.ingest.kafka_fault` reads the files.
"""

from __future__ import annotations

import json
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from wanbench.checks import refusal
from wanbench.errors import LabError
from wanbench.measure.experiments.base import ExperimentError, bounded, one_of
from wanbench.measure.experiments.kafka_fault import NONE, KafkaFault
from wanbench.measure.experiments.kafka_fault_health import Health
from wanbench.measure.experiments.kafka_fault_session import HEALTHY_S, MARGIN_S, READY_S, FaultSession
from wanbench.measure.experiments.session import Program
from wanbench.measure.kafka.cluster import Cluster
from wanbench.measure.labs.base import Host
from wanbench.runs import RawFile

SOURCE, AT_FAILOVER, TARGET = range(3)
"""Numbers that identify the logs read: the source's log, and the target's log at the failover and at the end."""
LOOK_AGAIN_S = 2.0  # interval of reading the target's log until it has the last records
GAPS = ("recreated", "expired", "late")
STANDBY, BACK, LAST, STALE = 100, 400, 200, 300
"""
Numbers that identify clients: the first one at the target, the first one back at the source, the last producer, and a
stale consumer.
"""


@dataclass(frozen=True)
class MirrorFault(KafkaFault):
    """
    Send records to the first of two clusters, lose it by a fault, fail over to the second, heal, and read both logs.

    Producers in every region send to the first cluster (the source); MirrorMaker copies the topic to the second (the
    target). A consumer in the source's region reads from the source. `failover_s` after the fault, the clients of the
    surviving regions change to the target: producers send new records, and a consumer continues the source's consumer
    group from the offsets that MirrorMaker has translated. The target's log is read at the failover and at the end, the
    source's at the end. Nothing is copied back, even if these clients return to the source (`failback_s`).

    Parameters
    ----------
    at : str
        A region of the source's brokers.
    failover_s : float
        Time from the fault until the clients use the target, less than `fault_s`.
    failback_s : float, optional
        How long the clients that changed use the source again after healing. None: they stay at the target.
    gap : "recreated", "expired", "late" or None
        A gap in the mirrored topic, made on purpose to test the analysis; requires the fault "none". "recreated" and
        "expired": MirrorMaker is frozen for `failover_s` (at most 9 s, because its session ends after 10), and
        meanwhile the topic is deleted and created again, or its records are deleted. "late": for `failover_s`, a
        consumer at the target is a member of the group, so that MirrorMaker cannot update the group's offsets there;
        then clients fail over.
    """

    fault_s: float = bounded(20.0, 1, 3600)
    after_s: float = bounded(90.0, 1, 3600)
    failover_s: float = bounded(8.0, 0.1, 3600)
    failback_s: float | None = bounded(None, 0.1, 3600)
    gap: str | None = one_of(None, GAPS)

    name: ClassVar[str] = "kafka_fault"

    def __post_init__(self):
        super().__post_init__()
        if not self.failover_s < self.fault_s:
            raise refusal("MirrorFault failover_s", self.failover_s, f"less than fault_s, {self.fault_s:g}")
        if self.gap and self.fault != NONE:
            raise refusal("MirrorFault gap", self.gap, "None, or with the fault 'none'")
        if self.gap in ("recreated", "expired") and self.failover_s > 9:
            raise refusal("MirrorFault failover_s", self.failover_s, f"at most 9 with gap {self.gap!r}")

    def run(self, source: Host, target: Host, folder: Path, stem: str) -> list[RawFile]:
        """Run one episode and return its raw files; raises the errors of `KafkaFault.run`."""
        return MirrorSession(self, source, folder, stem).run()


class MirrorSession(FaultSession):
    """Runs one episode of `settings` (a MirrorFault) on the pair of clusters of the source host's lab."""

    def _check(self) -> None:
        self._pair: Any = self.host.clusters.get("mirrored")
        if self._pair is None:
            raise ExperimentError(f"the lab of {self.host.name} has no mirrored pair: open it with cluster mirrored")
        source = self._pair.source
        self.host, self._standby = source.seen_from(source.brokers[0].host), self._pair.target.seen_from
        super()._check()
        regions = {broker.host.region for broker in source.brokers}
        if not regions >= set(self._at):
            raise refusal("MirrorFault at", self.settings.at, f"a region of the source: {', '.join(sorted(regions))}")

    def _begin(self, stack: ExitStack) -> None:
        self._await(self._unhealthy, HEALTHY_S, "the cluster is not healthy after")
        made = self._cluster.create_topic(self._topic, **self._topic_options())
        self._replicas = [partition["replicas"] for partition in made["partitions"]]
        for number, host in enumerate(self._first_hosts()):
            if host.region == self.host.region:
                self._consume(number, self._cluster.seen_from(host))
            self._produce(number, self._cluster.seen_from(host))
        self._health = Health(self._clients, self._replicas)
        is_ready = lambda: self._health.group_since() and len(self._health.sending) == len(self._hosts)  # noqa: E731
        if not self._until(is_ready, READY_S):
            raise ExperimentError(f"not all clients were ready after {READY_S:g} s")
        self._note("started_at_s")

    def _first_hosts(self) -> list[Host]:
        return [hosts[0] for hosts in self._hosts]

    def _topic_options(self) -> dict[str, Any]:
        own = self.settings
        return {"partitions": own.partitions, "replication": own.replication, "settings": dict(own.topic_settings)}

    def _produce(self, number: int, host: Host, **other: Any) -> Program:
        return super()._produce(number, host, stop_file=f"{self._stop_file(host)}.{number}", **other)

    def _stop_producers(self, clients: list[Program]) -> None:
        for client in clients:
            client.host.run(["touch", f"{self._stop_file(client.host)}.{client.number}"], timeout_s=MARGIN_S)

    def _client_settings(self) -> dict[str, Any]:
        return {"topic.metadata.refresh.interval.ms": 1000, **super()._client_settings()}

    def _last(self) -> None:
        """Wait until healing is due; meanwhile fail over, or make the gap of the settings."""
        settings = self.settings
        if settings.gap in ("recreated", "expired"):
            self._pair.mirror.freeze()
            try:
                self._pause(settings.failover_s)
                self._plant()
            finally:
                self._pair.mirror.thaw()
        elif settings.gap:
            stale = self._consume(STALE, self._standby(self._survivors()[0]), topic="heartbeats")
            self._pause(settings.failover_s)
            stale.stop()
            self._fail_over()
        else:
            self._pause(settings.failover_s)
            if settings.fault != NONE:
                self._fail_over()
        self._pause(settings.fault_s - settings.failover_s)

    def _survivors(self) -> list[Host]:
        own = self._regions or [self.host.region]
        return [host for host in self._first_hosts() if host.region not in own]

    def _fail_over(self) -> None:
        """Stop the producers of the surviving regions, start their clients at the target, and read the target's log."""
        survivors = [host.name for host in self._survivors()]
        self._stop_producers(
            [each for each in self._clients if each.role == "producer" and each.host.name in survivors]
        )
        self._note("failover_at_s")
        for number, host in enumerate(self._survivors(), STANDBY):
            self._produce(number, self._standby(host))
        self._consume(STANDBY, self._standby(self._survivors()[0]))
        with self._noting():
            self._read_log(AT_FAILOVER, self._standby(self._survivors()[0]))

    def _plant(self) -> None:
        """Delete the records of the source, or its topic, while MirrorMaker is frozen and so cannot copy them first."""
        if self.settings.gap == "expired":
            self._ask("delete_records", topic=self._topic)
        else:
            Cluster.delete_topic(self._cluster, self._topic)
            Cluster.create_topic(self._cluster, self._topic, **self._topic_options())

    def _await_health(self) -> None:
        self._pause(self.settings.quiet_s)
        if self._regions and self.settings.failback_s:
            with self._noting():
                self._fail_back()

    def _fail_back(self) -> None:
        """Stop the clients of the surviving regions at the target, and start them at the source again."""
        moved = [client for client in self._clients if STANDBY <= client.number < LAST]
        self._stop_producers([client for client in moved if client.role == "producer"])
        for client in moved:
            if client.role == "producer":
                client.wait(self.settings.drain_s + MARGIN_S)
            else:
                client.stop()
        self._note("failback_at_s")
        hosts = [self._cluster.seen_from(host) for host in self._survivors()]
        self._consume(BACK, hosts[0])
        back = [self._produce(number, host).number for number, host in enumerate(hosts, BACK)]
        self._await_answers(back)
        self._pause(self.settings.failback_s)

    def _await_answers(self, producers: list[int]) -> None:
        """Wait until each of these producers has an acknowledgement from every partition."""
        awaited = {(number, n) for number in producers for n in range(self.settings.partitions)}
        if not self._until(lambda: awaited <= self._health.answered.keys(), READY_S):
            raise ExperimentError(f"the cluster did not answer all producers in {READY_S:g} s")

    def _end(self) -> None:
        """Stop the traffic, wait until MirrorMaker has copied what it can, and read both logs."""
        producers = [client for client in self._clients if client.role == "producer"]
        with self._noting():
            self._stop_producers(producers)
        for producer in producers:
            with self._noting():
                producer.wait(self.settings.drain_s + MARGIN_S)
        last = self._produce(LAST, self.host)
        with self._noting():
            self._await_answers([LAST])
            self._stop_producers([last])
            last.wait(self.settings.drain_s + MARGIN_S)
        with self._noting():
            self._read_log(SOURCE, self.host)
            self._read_copy()
        self._check_nodes()

    def _read_copy(self) -> None:
        """
        Read the target's log until every partition has a record of the last producer.

        As MirrorMaker copies in order, it has then copied everything before.
        """
        end_s = time.monotonic() + self.settings.after_s
        while time.monotonic() < end_s:
            lines = map(json.loads, self._read_log(TARGET, self._standby(self.host)).done.stdout.splitlines())
            ended = {line[0] for line in lines if isinstance(line, list) and line[2] == LAST}
            if len(ended) == self.settings.partitions:
                return
            self._pause(LOOK_AGAIN_S)
        self._incomplete.append(f"MirrorMaker did not copy the last records in {self.settings.after_s:g} s")

    def _clean_up(self) -> None:
        if self._replicas:
            with suppress(LabError):
                self._cluster.delete_topic(self._topic)
