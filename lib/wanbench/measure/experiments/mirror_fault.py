"""
Lose the region of a mirrored cluster, and fail over to its mirror. Read by `wanbench.read.ingest.kafka_fault`.
"""

from __future__ import annotations

import json
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from wanbench.checks import refusal
from wanbench.errors import LabError
from wanbench.measure.kafka.cluster import Cluster
from wanbench.measure.kafka.programs import fault_consumer, fault_producer, log_reader
from wanbench.measure.labs.base import Host
from wanbench.runs import RawFile

from .base import ExperimentError, bounded, one_of
from .kafka_fault import NONE, KafkaFault
from .kafka_fault_session import LOG_S, MARGIN_S, READY_S, FaultSession
from .sampling import ProcessorUse
from .session import Program, client_command

SOURCE, AT_FAILOVER, TARGET = range(3)
"""Numbers of the logs that are read: the source's, and the target's at the failover and at the end."""
LOOK_AGAIN_S = 2.0  # interval of reading the target's log until it has the last records
GAPS = ("recreated", "expired")
STANDBY, LAST = 100, 200
"""Numbers of the first client that starts at the failover, and of the producer of the last records."""


@dataclass(frozen=True)
class MirrorFault(KafkaFault):
    """
    One episode on a pair of clusters: traffic to the first, its loss, failover to the second, healing, and both logs.

    Producers in every region send to the first cluster (the source); MirrorMaker copies the topic to the second. One
    group reads the source in its own region, and another reads the target. After the fault, clients of the surviving
    regions wait `failover_s`, and then use the target: producers go on with new records, and a consumer continues the
    source's group from the offsets that MirrorMaker has translated. The target's log is read at the failover and at the
    end, the source's at the end. Nothing is copied back.

    Parameters
    ----------
    at : str
        A region of the source's brokers.
    failover_s : float
        Time from the fault until the clients use the target, less than `fault_s`.
    gap : "recreated", "expired" or None
        A gap to plant, to test the analysis, with the fault "none": MirrorMaker is stopped for `fault_s`. Meanwhile,
        the topic is deleted and created again, or its oldest records are deleted.
    """

    fault_s: float = bounded(20.0, 1, 3600)
    after_s: float = bounded(90.0, 1, 3600)
    failover_s: float = bounded(8.0, 0.1, 3600)
    gap: str | None = one_of(None, GAPS)

    name: ClassVar[str] = "kafka_fault"

    def run(self, source: Host, target: Host, folder: Path, stem: str) -> list[RawFile]:
        """Run one episode; raise errors as `KafkaFault.run` does."""
        return MirrorSession(self, source, folder, stem).run()


class MirrorSession(FaultSession):
    """An episode of `settings` (a MirrorFault) on the pair of clusters of `source`'s lab."""

    def _check(self) -> None:
        settings, self._pair = self.settings, self.host.clusters.get("mirrored")
        if self._pair is None:
            raise ExperimentError(f"the lab of {self.host.name} has no mirrored pair: open it with cluster mirrored")
        self._cluster = self._pair.source
        self._hosts = [hosts for hosts in self._pair.lab.hosts.values() if hosts]
        settings.check_possible(self._source_host())
        regions = {broker.host.region for broker in self._cluster.brokers}
        self._regions = [settings.at] if settings.at else []
        if settings.fault != NONE and settings.at not in regions:
            raise refusal("MirrorFault at", settings.at, f"a region of the source: {', '.join(sorted(regions))}")
        if not settings.failover_s < settings.fault_s:
            raise refusal("MirrorFault failover_s", settings.failover_s, f"less than fault_s, {settings.fault_s:g}")
        if settings.gap and settings.fault != NONE:
            raise refusal("MirrorFault gap", settings.gap, "None, or with the fault 'none'")
        self._ready: set[str] = set()
        self._logs: list[Program] = []

    def _measure(self) -> None:
        use = ProcessorUse().concurrently(self.host, self.host, self.folder, self.stem)
        with use as self._sampled:
            self._create()
            self._start_clients()
            waiting = lambda: ", ".join(str(each) for each in self._clients if str(each) not in self._ready)  # noqa: E731
            self._await(waiting, READY_S, "not ready after")
            self._note("started_at_s")
            self._pause(self.settings.before_s)
            self._lose()
            self._note("ended_at_s")
            self._end()

    def _create(self) -> None:
        settings = self.settings
        options = {name: getattr(settings, name) for name in ("partitions", "replication")}
        made = self._cluster.create_topic(self._topic, settings=dict(settings.topic_settings), **options)
        self._replicas = [partition["replicas"] for partition in made["partitions"]]

    def _start_clients(self) -> None:
        hosts = [hosts[0] for hosts in self._hosts]
        for number, host in enumerate(hosts):
            seen = self._pair.seen_from(host)
            if seen.cluster is self._pair.target or host.region == self._source_host().region:
                self._consume(number, seen, self._topic if seen.cluster is self._cluster else f"{self._topic}-mirror")
            self._produce(number, self._cluster.seen_from(host))

    def _consume(self, number: int, host: Host, group: str) -> None:
        own = {"topic": self._topic, "group": group, "number": number, "ended_file": f"{self._stop_file(host)}.ended"}
        command = client_command(host, fault_consumer, settings=self._client_settings(), **own)
        self._clients.append(Program("consumer", number, host, host.start(command)))

    def _produce(self, number: int, host: Host) -> Program:
        settings = self.settings
        command = client_command(
            host, fault_producer, topic=self._topic, settings=self._client_settings(), partitions=settings.partitions,
            number=number, acks=settings.acks, interval_ns=round(1e9 / settings.records_per_s),
            record_bytes=settings.record_bytes, stop_file=f"{self._stop_file(host)}.{number}",
            drain_s=settings.drain_s,
        )  # fmt: skip
        self._clients.append(Program("producer", number, host, host.start(command)))
        return self._clients[-1]

    def _client_settings(self) -> str:
        return json.dumps({"topic.metadata.refresh.interval.ms": 1000, **dict(self.settings.client_settings)})

    def _lose(self) -> None:
        """Cause the fault or the gap, fail over, and heal."""
        settings = self.settings
        nodes = [broker.node_id for broker in self._cluster.brokers if broker.host.region in self._regions]
        fault = settings.on(self._source_host(), self._regions, nodes)
        try:
            self._note("fault_at_s")
            fault.begin()
            if settings.gap:
                self._pair.stop()
            self._note("fault_done_at_s")
            self._pause(settings.failover_s)
            if settings.fault != NONE:
                self._fail_over()
            self._plant()
            self._pause(settings.fault_s - settings.failover_s)
        finally:
            self._note("heal_at_s")
            try:
                fault.heal()
            finally:
                if settings.gap:
                    self._pair.start()
            self._note("heal_done_at_s")
        self._pause(settings.quiet_s)

    def _fail_over(self) -> None:
        """Let the clients of the surviving regions use the target."""
        survivors = [(n, hosts[0]) for n, hosts in enumerate(self._hosts) if hosts[0].region not in self._regions]
        for number, host in survivors:
            host.run(["touch", f"{self._stop_file(host)}.{number}"], timeout_s=MARGIN_S)
        self._note("failover_at_s")
        for number, host in survivors:
            self._produce(STANDBY + number, self._pair.target.seen_from(host))
        number, host = survivors[0]
        self._consume(STANDBY + number, self._pair.target.seen_from(host), self._topic)
        with self._noting():
            self._read_log(AT_FAILOVER)

    def _plant(self) -> None:
        """Make a gap in the source, which MirrorMaker cannot see because it is stopped."""
        if self.settings.gap == "recreated":
            Cluster.delete_topic(self._cluster, self._topic)
            options = {name: getattr(self.settings, name) for name in ("partitions", "replication")}
            Cluster.create_topic(self._cluster, self._topic, settings=dict(self.settings.topic_settings), **options)
        elif self.settings.gap == "expired":
            ends = self._ask("log_ends", topic=self._topic)
            about = [{"topic": self._topic, "partition": row["partition"], "offset": row["end"]} for row in ends]
            host, path = self._source_host(), f"{self.host.scratch}/{self._topic}.delete.json"
            with tempfile.NamedTemporaryFile("w") as file:
                json.dump({"version": 1, "partitions": about}, file)
                file.flush()
                host.put(Path(file.name), path)
            arguments = ["--bootstrap-server", self._cluster.bootstrap, "--offset-json-file", path]
            tool = self._cluster.java(host, "org.apache.kafka.tools.DeleteRecordsCommand", *arguments)
            host.run(tool, timeout_s=MARGIN_S)

    def _end(self) -> None:
        """Stop the traffic, wait until MirrorMaker has copied what it can, and read both logs."""
        for client in self._clients:
            if client.role == "producer":
                with self._noting():
                    self._stop_producer(client)
        last = self._produce(LAST, self._cluster.seen_from(self._source_host()))
        with self._noting():
            self._until(lambda: str(last) in self._ready, READY_S)
            self._pause(2 * self.settings.partitions / self.settings.records_per_s + 1)
            self._stop_producer(last)
        self._read_log(SOURCE)
        self._read_copy()

    def _stop_producer(self, client: Program) -> None:
        client.host.run(["touch", f"{self._stop_file(client.host)}.{client.number}"], timeout_s=MARGIN_S)
        client.wait(self.settings.drain_s + MARGIN_S)

    def _read_copy(self) -> None:
        """Read the target's log once it has the last record of every partition: MirrorMaker keeps their order."""
        end_s = time.monotonic() + self.settings.after_s
        while True:
            lines = map(json.loads, self._read_log(TARGET).done.stdout.splitlines())
            if (
                len({line[0] for line in lines if isinstance(line, list) and line[2] == LAST})
                == self.settings.partitions
            ):
                return
            if time.monotonic() > end_s:
                reason = f"MirrorMaker did not copy the last records in {self.settings.after_s:g} s"
                self._incomplete.append(reason)
                return
            self._logs.pop()
            self._pause(LOOK_AGAIN_S)

    def _read_log(self, number: int) -> Program:
        is_source = number == SOURCE
        seen = self._source_host() if is_source else self._pair.target.seen_from(self._pair.host)
        reader = {"topic": self._topic, "partitions": self.settings.partitions, "timeout_s": LOG_S}
        log = Program("log", number, seen, seen.start(client_command(seen, log_reader, **reader)))
        self._logs.append(log)
        log.wait(LOG_S + MARGIN_S)
        return log

    def _source_host(self) -> Host:
        return self._cluster.seen_from(self._cluster.brokers[0].host)

    def _programs(self) -> list[Program]:
        return [*self._clients, *self._logs]

    def _look(self) -> None:
        for program in self._clients:
            with self._noting():
                for line in program.new_lines():
                    if "start_ns" in line if isinstance(line, dict) else line[0] == "assigned" and line[2]:
                        self._ready.add(str(program))

    def _clean_up(self) -> None:
        if self._replicas:
            with suppress(LabError):
                self._cluster.delete_topic(self._topic)
