"""
Cause a fault in a region while a Kafka cluster is in use, and heal it. Read by `wanbench.read.ingest.kafka_fault`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import MISSING, dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from wanbench.checks import LATER, T, refusal
from wanbench.errors import ParameterError
from wanbench.measure.kafka.cluster import Cluster
from wanbench.measure.kafka.programs.clients import HEAD
from wanbench.measure.labs.base import Host
from wanbench.runs import RawFile

from .base import ExperimentError, KafkaSettings, bounded, check_declared, links_of, one_of
from .kafka_fault_session import CONSUMERS, CONTROLLER, FaultSession
from .load_settings import ACKS, check_settings, setting_pairs
from .session import as_json

NONE = "none"
ON_LINKS = ("cut", "cut-out", "cut-in", "flap", "slow")
ON_BROKERS = ("kill", "freeze")
FAULTS = (*ON_LINKS, *ON_BROKERS, NONE)
FLAPS = 10  # times that the fault "flap" cuts a region
SLOW_DELAY_MS, SLOW_LOSS = 2_000.0, 0.05  # delay one way, and share of lost packets, of the fault "slow"


class Fault:
    """
    A fault in some regions; `nodes` are the brokers there. `begin` causes it, and `heal` undoes whatever `begin` did.

    `heal` also works after `begin` has failed half-way. If `heal` fails, a second call retries only what remains.
    ExperimentError is raised if the lab has no emulated links, or if its brokers cannot be killed or frozen.
    """

    def __init__(self, kind: str, host: Host, regions: Sequence[str], nodes: Sequence[int]):
        self.kind, self.regions, self.nodes = kind, tuple(regions), tuple(nodes)
        self._cluster, self._undo = host.cluster, []
        check_possible(kind, host)
        self._links = links_of(host) if kind in ON_LINKS else LATER

    def begin(self) -> None:
        """Cause the fault; return once the lab has confirmed it."""
        if self.kind in ("cut", "flap"):
            self._at_each(self.regions, self._links.cut_region, self._links.heal_region)
        elif self.kind in ("cut-out", "cut-in"):
            cut, heal = (partial(do, one_way=True) for do in (self._links.cut, self._links.heal))
            self._at_each(self._pairs(), lambda pair: cut(*pair), lambda pair: heal(*pair))
        elif self.kind == "slow":
            before = {pair: dict(vars(self._links.links[pair])) for pair in self._pairs()}
            set_link = self._links.set_link
            slow = partial(set_link, delay_ms=SLOW_DELAY_MS, loss=SLOW_LOSS)
            self._at_each(list(before), lambda pair: slow(*pair), lambda pair: set_link(*pair, **before[pair]))
        elif self.kind == "kill":
            self._at_each(self.nodes, self._cluster.kill, self._start)
        elif self.kind == "freeze":
            self._at_each(self.nodes, self._cluster.freeze, self._cluster.thaw)

    def last(self, fault_s: float, pause: Callable[[float], None]) -> None:
        """Let the fault last for `fault_s` seconds; a "flap" is healed and begun again meanwhile, and ends cut."""
        steps = 2 * FLAPS - 1 if self.kind == "flap" else 1
        for step in range(steps):
            if step:
                self.heal() if step % 2 else self.begin()
            pause(fault_s / steps)

    def heal(self) -> None:
        """Undo everything; raise an error only after trying all steps."""
        errors = []
        for undo in list(self._undo):
            try:
                undo()
            except BaseException as error:
                errors.append(error)
            else:
                self._undo.remove(undo)
        if errors:
            raise min(errors, key=lambda error: isinstance(error, Exception))  # KeyboardInterrupt and the like first

    def _at_each(self, things: Sequence[T], do: Callable[[T], object], undo: Callable[[T], object]) -> None:
        """Run `do` for all things at once, because two regions must fail together; register `undo` for `heal`."""
        self._undo += [lambda thing=thing: undo(thing) for thing in things]
        if things:
            with ThreadPoolExecutor(len(things)) as threads:
                for done in [threads.submit(do, thing) for thing in things]:
                    done.result()

    def _pairs(self) -> list[tuple[str, str]]:
        """Return the affected link directions: out of the regions, into them, or both ("slow")."""
        ends = {"cut-out": (0,), "cut-in": (1,), "slow": (0, 1)}[self.kind]
        return [pair for pair in self._links.links if any(pair[end] in self.regions for end in ends)]

    def _start(self, node_id: int) -> None:
        if not self._cluster.runs(node_id):
            self._cluster.start(node_id, wait=False)


def check_possible(kind: str, host: Host) -> None:
    """Raise ExperimentError if the lab or its cluster cannot produce this kind of fault."""
    if kind in ON_LINKS:
        links_of(host)
    if kind in ON_BROKERS and not isinstance(host.cluster, Cluster):
        hit = f"the brokers of {host.name}'s cluster cannot be {'killed' if kind == 'kill' else 'frozen'}"
        raise ExperimentError(f"{hit}: this lab did not start the cluster")


KINDS = ("drop", "duplicate", "reorder", "alter")


def damaged(printed: bytes, kind: str) -> tuple[bytes, dict[str, object] | None]:
    """
    Damage one record in a consumer's output, to test the analysis; return the output and a description of the damage.

    The record is dropped, duplicated, altered, or swapped with the next record of the same producer and partition. A
    record from the middle of the output that was received once is used; if there is none, the description is None.

    >>> damaged(b'["received",0,5,1,7,100,false]\\n', "alter")
    (b'["received",null,null,1,7,100,true]\\n', {'kind': 'alter', 'producer': 0, 'sequence': 5})
    """
    lines = printed.splitlines(keepends=True)
    receipts = {
        n: json.loads(line) for n, line in enumerate(lines) if line.startswith(b'["received"') and line.endswith(b"\n")
    }
    times = Counter(tuple(receipt[1:3]) for receipt in receipts.values())
    once = [n for n, receipt in receipts.items() if times[tuple(receipt[1:3])] == 1 and receipt[1] is not None]
    for n in once[len(once) // 2 :] + once[: len(once) // 2]:
        receipt = receipts[n]
        about = {"kind": kind, "producer": receipt[1], "sequence": receipt[2]}
        if kind == "drop":
            lines[n] = b""
        elif kind == "duplicate":
            lines[n] *= 2
        elif kind == "alter":
            lines[n] = as_json([receipt[0], None, None, *receipt[3:6], True])
        else:  # Kafka keeps the order within a producer and partition
            later = (m for m in once if m > n and receipts[m][1::2][:2] == receipt[1::2][:2])
            if (m := next(later, None)) is None:
                continue
            lines[n], lines[m] = lines[m], lines[n]
        return b"".join(lines), about
    return printed, None


_START_S, _END_S = 3.0, 3.0
"""Time before the first record, and time after the end of traffic, on two idle processors."""
_HEAL_S = 7.0
"""Time from healing to the end of traffic: 4 to 11 s in measured faults of 8 s, longest after cutting a region."""
_OVERHEAD_BYTES = 150  # approximate headers per record: TCP, IP, request and record batch
_OWNED: dict[str, str | None] = dict.fromkeys(
    ("acks", "bootstrap.servers", "client.id", "enable.idempotence", "group.id", "request.required.acks")
)


@dataclass(frozen=True)
class KafkaFault:
    """
    One episode: steady traffic, a fault, healing, recovery, and reading back the log.

    Producers in every region send numbered records with checksums to a new topic on a schedule; consumers in every
    region receive them as one group. All clients use librdkafka, and log times, answers and errors; producers with acks
    "all" are idempotent, with four requests in flight. A watcher in every region samples the cluster.

    Before an episode, the cluster must be healthy: all replicas in sync. Preferred leaders of Kafka's internal topics
    are then elected, so that every episode starts balanced. Traffic ends once replicas are in sync again, every member
    of the group has its partitions, and records flow through all partitions. The fault is always healed.

    Times come from the hosts' clocks, so the hosts must share one clock, as in a local lab.

    Parameters
    ----------
    fault : str
        "cut": all links of the region are cut. "cut-out", "cut-in": only its outgoing or its incoming directions are
        cut. "flap": all links are cut 10 times, and healed in between, in equal intervals. "slow": all links have 2 s
        of one-way delay and 5 % loss. "kill": the region's brokers are killed, and healing starts them again. "freeze":
        its brokers are suspended. "none": no fault.
    at : str
        A region, or two joined by "+"; "controller": the region of the active controller; "consumers": the region whose
        consumers have the most partitions. Empty for the fault "none".
    before_s, fault_s : float
        Duration of traffic before the fault, and of the fault.
    after_s, quiet_s : float
        Traffic ends `quiet_s` after the cluster is healthy again, but no later than `after_s` after healing.
    records_per_s : float
        Rate of each producer.
    client_settings : mapping of str
        librdkafka's settings, such as {"message.timeout.ms": 10000, "group.protocol": "consumer"}. Settings that exist
        only for producers, or only for consumers, are passed only to these.
    broker_settings : mapping of str, optional
        Settings for `Cluster.reconfigure` before the episode. None keeps the cluster's own settings.
    watch_interval_s : float
        Interval between samples of leaders and in-sync replicas.
    drain_s : float
        How long producers wait for answers at the end.
    damage : "drop", "duplicate", "reorder", "alter" or None
        Damage one record in a consumer's output, to test the analysis.

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
    records_per_s: float = bounded(30.0, 0.1, 1_000)
    record_bytes: int = bounded(256, HEAD.size, 900_000)
    partitions: int = bounded(9, 1, 1_000)
    replication: int = bounded(3, 1, 9)
    acks: str = one_of("all", ACKS)
    topic_settings: KafkaSettings = ()
    client_settings: KafkaSettings = ()
    broker_settings: KafkaSettings | None = None
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
        minimum = str(dict(self.topic_settings).get("min.insync.replicas", "1"))
        if not minimum.isdigit() or not 1 <= int(minimum) <= self.replication:
            allowed = f"a whole number from 1 to {self.replication}, its replication"
            raise refusal("KafkaFault topic_settings min.insync.replicas", minimum, allowed)

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
        Run one episode in all regions of the hosts' lab; it leaves kafka_fault/<stem>.fault.json, which names the other
        files (the compressed output of each program).

        Raises
        ------
        ParameterError
            If the lab does not have the region, or the cluster has fewer brokers than `replication`.
        ExperimentError
            If the lab or the cluster cannot produce this fault, if the cluster is not healthy at first, or if a program
            fails before the fault has begun; the measurements so far are kept. Later failures are part of the result,
            in the file's entry `incomplete`.
        """
        return FaultSession(self, source, folder, stem).run()

    def check_possible(self, host: Host) -> None:
        """Raise ExperimentError if the lab or its cluster cannot produce this fault."""
        check_possible(self.fault, host)

    def on(self, host: Host, regions: Sequence[str], nodes: Sequence[int]) -> Fault:
        """Return the fault in these regions of the host's lab and on their brokers (`nodes`)."""
        return Fault(self.fault, host, regions, nodes)

    def damaged(self, printed: bytes) -> tuple[bytes, dict[str, object] | None]:
        """
        Damage a consumer's output as the field `damage` says; return the output, and a description of the damage, or
        None.
        """
        return damaged(printed, self.damage) if self.damage else (printed, None)

    def expected_s(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """
        Return the expected duration in s, on two idle processors; a restart to apply other `broker_settings` adds about
        10 s.
        """
        return _START_S + self.before_s + self.fault_s + min(self.after_s, _HEAL_S) + _END_S

    def expected_bytes(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """
        Return the approximate number of bytes, with headers, on the links of a lab with three regions.

        Two of three records are produced outside their leader's region; every record is copied to the other replicas,
        and two of three are consumed in another region.
        """
        records = 3 * self.records_per_s * self.expected_s(rtt_ms, rate_bps)
        return records * (self.record_bytes + _OVERHEAD_BYTES) * (self.replication - 1 + 4 / 3)
