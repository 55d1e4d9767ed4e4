"""Run one fault episode: topic, clients, watchers, fault, healing, and raw files."""

import json
import re
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

from wanbench.checks import refusal
from wanbench.errors import LATER, LabError, ParameterError
from wanbench.measure.kafka.base import AnswerError
from wanbench.measure.kafka.cluster import Cluster
from wanbench.measure.kafka.placement import NodePlacement
from wanbench.measure.kafka.programs import fault_consumer, fault_producer, log_reader
from wanbench.measure.labs.base import Host
from wanbench.runs import RawFile
from wanbench.runs.journal import now_utc

from .base import ExperimentError, cluster_of
from .kafka_fault_health import Health, compact_samples, group_samples
from .sampling import ProcessorUse
from .session import Program, Session, client_command

CONTROLLER, CONSUMERS = "controller", "consumers"
"""
Roles that stand for a region: the region of the active controller, and the region whose consumers have the most
partitions.
"""
READY_S = 120.0  # timeout for clients to be ready, on a busy machine
HEALTHY_S = 120.0  # timeout for a healthy cluster before an episode, because the previous one may have ended early
MARGIN_S = 30.0
MAX_REASON = 500  # maximum number of characters of a reason
LOG_S = 120.0  # timeout for reading back the log
COMPLETE_S = 60.0  # timeout for consumers to read the remaining records
REPLICATED_S = 45.0
"""Timeout for replicas to catch up or to leave the in-sync set: replica.lag.time.max.ms defaults to 30 s."""
HOLDS_S = 1.5  # health must last this long to count: a broker whose session expired may still be fenced after healing
_LOGGED_EVENTS = re.compile(
    rb"Fencing broker \d+|to unfence has been granted|Becoming the active controller|Shrinking ISR|ISR updated to"
    rb"|\] Leader \S+ .*starts at leader epoch"
)
_SECONDS = len("2026-11-22T09:52:29")


class FaultSession(Session):
    """Run one episode, as `settings` (a KafkaFault) describe it, on the lab of `source`."""

    def __init__(self, settings: Any, source: Host, folder: Path, stem: str):
        super().__init__(settings, folder, stem)
        self.host = source
        self._topic = self._unique("fault")
        self._replicas: list[list[int]] = []
        self._times: dict[str, float] = {}
        self._regions: list[str] = []
        self._clients: list[Program] = []
        self._watchers: list[Program] = []
        self._incomplete: list[str] = []
        self._sampled: list[RawFile] = []
        self._logs: dict[int, Program] = {}
        self._done_damage = self._fault = self._health = LATER

    def _measure(self) -> None:
        with ExitStack() as stack:
            use = ProcessorUse().concurrently(self.host, self.host, self.folder, self.stem)
            self._sampled = stack.enter_context(use)
            self._begin(stack)
            self._episode()
            self._end()

    def _programs(self) -> list[Program]:
        return [*self._clients, *self._watchers, *self._logs.values()]

    # Before

    def _check(self) -> None:
        self._cluster = cluster_of(self.host)
        self.settings.check_possible(self.host)
        self._hosts = [hosts for hosts in self._cluster.lab.hosts.values() if hosts]
        regions = [hosts[0].region for hosts in self._hosts]
        self._at = self.settings.at.split("+") if self.settings.at else []
        if missing := [name for name in self._at if name not in (*regions, CONTROLLER, CONSUMERS)]:
            lacks = f"the lab has no region {' and '.join(missing)}; it has {', '.join(regions)}"
            raise ParameterError(f"KafkaFault at is {self.settings.at!r}: {lacks}.")
        brokers = self._ask("cluster")["brokers"]
        if self.settings.replication > len(brokers):
            allowed = f"up to {len(brokers)}, the brokers of the cluster"
            raise refusal("KafkaFault replication", self.settings.replication, allowed)

    def _begin(self, stack: ExitStack) -> None:
        settings = self.settings
        if isinstance(self._cluster, Cluster):
            self._cluster.reconfigure(dict(settings.broker_settings or ()))
        self._await(self._unhealthy, HEALTHY_S, "the cluster is not healthy after")
        with suppress(AnswerError):  # for Kafka's internal topics; the episode's topic is new, and so balanced
            self._ask("elect")
        topic = {name: getattr(settings, name) for name in ("partitions", "replication")}
        about = self._ask("create_topic", name=self._topic, settings=dict(settings.topic_settings), **topic)
        self._replicas = [partition["replicas"] for partition in about["partitions"]]
        longest_s = settings.before_s + settings.fault_s + settings.after_s + READY_S + MARGIN_S
        for number, hosts in enumerate(self._hosts):
            names = {"topics": [self._topic], "members": [self._topic]}
            watch = self._cluster.watching(hosts[0], longest_s, interval_s=settings.watch_interval_s, **names)
            self._watchers.append(Program("watch", number, hosts[0], stack.enter_context(watch)))
        for number, hosts in enumerate(self._hosts):
            self._consume(number, hosts[0])
        for number, hosts in enumerate(self._hosts):
            self._produce(number, hosts[0])
        self._health = Health([*self._clients, *self._watchers], self._replicas)

        if not self._until(lambda: not self._health.awaited(), READY_S):
            raise ExperimentError(f"after {READY_S:g} s {'; '.join(self._health.awaited())}")
        self._note("started_at_s")

    def _consume(self, number: int, host: Host, **other: object) -> Program:
        own = {"group": self._topic, "number": number, "ended_file": f"{self._stop_file(host)}.ended"}
        return self._client("consumer", fault_consumer, host, **own | other)

    def _produce(self, number: int, host: Host, **other: object) -> Program:
        settings = self.settings
        own = {
            "number": number, "partitions": settings.partitions, "acks": settings.acks,
            "interval_ns": round(1e9 / settings.records_per_s), "record_bytes": settings.record_bytes,
            "stop_file": self._stop_file(host), "drain_s": settings.drain_s,
        }  # fmt: skip
        return self._client("producer", fault_producer, host, **own | other)

    def _client(self, role: str, program: ModuleType, host: Host, **options: Any) -> Program:
        own = {"topic": self._topic, "settings": json.dumps(self._client_settings())}
        started = host.start(client_command(host, program, **own | options))
        self._clients.append(Program(role, options["number"], host, started))
        return self._clients[-1]

    def _client_settings(self) -> dict[str, object]:
        return dict(self.settings.client_settings)

    def _read_log(self, number: int, host: Host) -> Program:
        """Read the topic's log from a host; `number` says which log it is."""
        reader = {"topic": self._topic, "partitions": self.settings.partitions, "timeout_s": LOG_S}
        self._logs[number] = log = Program("log", number, host, host.start(client_command(host, log_reader, **reader)))
        log.wait(LOG_S + MARGIN_S)
        return log

    # The fault

    def _episode(self) -> None:
        settings, begun_s = self.settings, time.monotonic()
        self._regions = self._target_regions()
        nodes = [row["node_id"] for row in self._ask("cluster")["brokers"] if row["rack"] in self._regions]
        self._fault = fault = settings.on(self.host, self._regions, nodes)
        self._pause(settings.before_s - (time.monotonic() - begun_s))
        try:
            self._note("fault_at_s")
            fault.begin()
            self._note("fault_done_at_s")
            self._last()
        finally:
            self._note("heal_at_s")
            try:
                fault.heal()
            except BaseException as error:  # retry what has failed
                fault.heal()
                if not isinstance(error, LabError):
                    raise
            self._note("heal_done_at_s")
        self._await_health()
        self._note("ended_at_s")

    def _last(self) -> None:
        """Let the fault last."""
        self._fault.last(self.settings.fault_s, self._pause)

    def _target_regions(self) -> list[str]:
        if self._at == [CONSUMERS]:
            self._health.look()
            return [self._health.region_of_most()]
        if self._at == [CONTROLLER]:
            answer = self._ask("cluster")
            racks = {row["node_id"]: row["rack"] for row in answer["brokers"]}
            if answer["controller"] not in racks:
                raise ExperimentError(f"the controller, node {answer['controller']}, is not a broker with a rack")
            return [racks[answer["controller"]]]
        return self._at

    def _await_health(self) -> None:
        """Return once the cluster and the traffic have worked again for a while, or on timeout."""
        healed_s = self._times["heal_done_at_s"]
        since: float | None = None

        def works() -> bool:
            nonlocal since
            in_sync, group = self._health.in_sync_since(healed_s), self._health.group_since()
            if in_sync is None or group is None:
                since = None
                self._times.pop("healthy_at_s", None)
                return False
            since = since or float(max(in_sync, group, healed_s))
            back = self._health.led_as_preferred_since(healed_s)
            if back is not None:
                self._times.setdefault("leaders_back_at_s", back)
            lasts_s = time.time() - since
            if lasts_s >= HOLDS_S:
                self._times["healthy_at_s"] = since
            return lasts_s >= max(HOLDS_S, self.settings.quiet_s) and self._health.flows(healed_s)

        self._until(works, self.settings.after_s)

    # Afterwards

    def _end(self) -> None:
        """
        Stop the traffic, read back the log, and let consumers read to its end.

        Failures are recorded as part of the result.
        """
        self._signal_clients()
        for client in self._clients:
            if client.role == "producer":
                with self._noting():
                    client.wait(self.settings.drain_s + MARGIN_S)
        with self._noting():
            self._await(self._unreplicated, REPLICATED_S, "not all replicas have the complete log after")
        with self._noting():
            self._read_log(0, self.host)
        self._signal_clients(".ended")
        ends: dict[str, int] = {}
        with self._noting():
            lines = [line for log in self._logs.values() for line in log.new_lines()]
            ends = next((line["ends"] for line in lines if "ends" in line), {})
        if not self._until(lambda: not self._health.unread(ends), COMPLETE_S):
            unread = ", ".join(map(str, self._health.unread(ends)))
            self._incomplete.append(f"consumers did not read partitions {unread} up to their ends in {COMPLETE_S:g} s")
        self._check_nodes()

    def _unreplicated(self) -> str:
        rows = self._ask("log_ends", topic=self._topic)
        return ", ".join(str(row["partition"]) for row in rows if row["high_watermark"] < row["end"])

    def _check_nodes(self) -> None:
        """Record and restart nodes that ended unexpectedly, which can happen shortly after a node is thawed."""
        for placement in self._placements():
            if not self._cluster.runs(placement.node_id):
                with self._noting():
                    self._cluster.check()
                with self._noting():
                    self._cluster.start(placement.node_id, wait=False)

    def _placements(self) -> list[NodePlacement]:
        return list(self._cluster.placements) if isinstance(self._cluster, Cluster) else []

    def _unhealthy(self) -> str:
        try:
            topics = self._ask("topics", internal=True)
        except AnswerError as error:
            return str(error)
        short = [
            f"{topic['name']} {partition['partition']}"
            for topic in topics
            for partition in topic["partitions"]
            if set(partition["isr"]) != set(partition["replicas"]) or partition["leader"] is None
        ]
        return f"replicas of {', '.join(short[:5])} are not in sync" if short else ""

    def _clean_up(self) -> None:
        if self._replicas:
            with suppress(LabError):
                self._ask("delete_topic", name=self._topic)

    def _keep(self, error: str | None) -> None:
        self.files += self._sampled
        contents = {"watch": compact_samples, "consumer": self._damage}
        described = []
        for program in self._programs():
            if program.done is None:
                continue
            if program.role == "watch":
                described.append(self._keep_program(program, group_samples, role="groups"))
            described.append(self._keep_program(program, contents.get(program.role, bytes)))
        logs = []
        for placement in self._placements():
            with suppress(LabError):
                logs.append(self._keep_log(placement))
        about = {
            "format": 1,
            "settings": asdict(self.settings),
            "regions": [hosts[0].region for hosts in self._hosts],
            "hit": self._regions,
            "times": {name: round(at_s, 6) for name, at_s in self._times.items()},
            "replicas": self._replicas,
            "topic": self._topic,
            "damage": self._done_damage,
            "error": error,
            "incomplete": "; ".join(dict.fromkeys(self._incomplete)) or None,
            "programs": described,
            "logs": logs,
        }
        self._write("fault.json", about)

    def _keep_log(self, placement: NodePlacement) -> dict[str, object]:
        """Keep the lines of a node's log that report fencing, leaders and in-sync replicas; return the log's entry."""
        since = self.started_at_utc[:_SECONDS].encode()
        lines = [
            line
            for line in self._cluster.log(placement.node_id).splitlines(keepends=True)
            if line[:_SECONDS] >= since and line[:2] == b"20" and _LOGGED_EVENTS.search(line)
        ]
        times = {"started_at_utc": self.started_at_utc, "ended_at_utc": now_utc()}
        file = self._keep_packed(f"node-{placement.node_id}.log.gz", b"".join(lines), **times)
        return {"node_id": placement.node_id, "region": placement.host.region, "file": file}

    def _damage(self, printed: bytes) -> bytes:
        """Return a consumer's output, damaged if the settings ask for it and no output has been damaged yet."""
        if self._done_damage is None:
            printed, self._done_damage = self.settings.damaged(printed)
        return printed

    # Helpers

    def _ask(self, verb: str, **arguments: object) -> Any:
        return self._cluster.ask(self.host, verb, **arguments)

    def _stop_file(self, host: Host) -> str:
        return f"{host.scratch}/{self._topic}.stop"

    def _signal_clients(self, more: str = "") -> None:
        for host in {client.host.name: client.host for client in self._clients}.values():
            with self._noting():
                host.run(["touch", self._stop_file(host) + more], timeout_s=MARGIN_S)

    @contextmanager
    def _noting(self):
        """Record a failure in the block as part of the result, and continue; before the fault has begun, raise it."""
        try:
            yield
        except LabError as error:
            if "fault_done_at_s" not in self._times:
                raise
            self._incomplete.append(str(error)[:MAX_REASON])

    def _look(self) -> None:
        """Read new output; until the fault has begun, raise ExperimentError as soon as a program fails."""
        if self._health is not None:
            with self._noting():
                self._health.look()

    def _note(self, name: str) -> None:
        self._times[name] = time.time()
