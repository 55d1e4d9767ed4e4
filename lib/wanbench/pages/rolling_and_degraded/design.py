"""
Plan the trials of page 09, and detect slow brokers with a probe.

`wanbench.read.ingest.detection` reads the files that a detection writes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, ClassVar

from wanbench.change_detection import Alarm, Detector, DetectorSettings
from wanbench.checks import LATER, check_fields, check_number, refusal
from wanbench.errors import CommandError, LabError, ParameterError
from wanbench.measure.experiments import BrokerAction, BrokerActions, KafkaOpenLoop, KafkaTrial
from wanbench.measure.experiments.base import ExperimentError, bounded, check_declared, cluster_of
from wanbench.measure.experiments.concurrent_session import Concurrent, ConcurrentSession
from wanbench.measure.experiments.session import LOOK_S, Program, client_command
from wanbench.measure.kafka import leadership
from wanbench.measure.kafka.programs import detection_probe
from wanbench.measure.plan.plan import check_keys

Kinds = Mapping[str, Mapping[str, Any]]  # The fields of a BrokerAction, and what else differs, by name.
READY_S = 120.0
END_S = 30.0


class DetectionSession(ConcurrentSession):
    """Runs a `Detection` (`settings`) on the cluster of its host, while a load runs."""

    file = "detection"
    join_s = 180.0

    def _begin(self) -> None:
        self.alarms: list[dict[str, Any]] = []
        self.nodes: list[int] = []
        self.detector = Detector(self.settings.detector)
        self._topic = self._unique("detection")
        self._made, self._probe, self._began_at_s = False, LATER, LATER
        self._original: leadership.Order = {}
        self._demoted: set[int] = set()
        self._cluster = cluster_of(self.host)
        brokers = self._cluster.ask(self.host, "cluster")["brokers"]
        self.nodes = [row["node_id"] for row in brokers if not row["is_fenced"]]
        self._cluster.ask(self.host, "create_topic", name=self._topic, placement=[[node] for node in self.nodes])
        self._made = True
        self._stop_file = f"{self.host.scratch}/{self._topic}.stop"
        times = {"interval_us": self.settings.interval_s * 1e6, "limit_us": self.settings.detector.limit_ms * 1e3}
        options: dict[str, Any] = {name: round(us) for name, us in times.items()}
        options["record_bytes"] = self.settings.record_bytes
        options |= {"topic": self._topic, "nodes": ",".join(map(str, self.nodes)), "stop_file": self._stop_file}
        command = client_command(self.host, detection_probe, **options)
        self._probe = Program("probe", 0, self.host, self.host.start(command))
        try:
            self._probe.process.wait_for_output('"ready"', READY_S)
        except CommandError as error:
            raise ExperimentError(f"the probe is not ready: {error}") from None

    def _programs(self) -> list[Program]:
        return [] if self._probe is None else [self._probe]

    # While it runs

    def _follow(self) -> None:
        self._began_at_s = time.time() + (0 if self.sending is None else self.settings.settle_s)
        while not self._over.wait(LOOK_S):
            for known_at_s, node_id, value_ms in fed(self._probe, self.nodes, self.settings.detector):
                if known_at_s >= self._began_at_s and (alarm := self.detector.update(known_at_s, node_id, value_ms)):
                    self._alarm(alarm)

    def _alarm(self, alarm: Alarm) -> None:
        baseline: Any = self.detector.baseline(alarm.broker)
        row = asdict(alarm) | {"named_at_s": time.time(), "baseline": asdict(baseline)}
        row |= {"demoted_at_s": None, "leaders_moved": None, "error": None}
        self.alarms.append(row)
        few = 2 * alarm.n_alarmed <= len(self.nodes)
        if not self.settings.demote_on_alarm or alarm.broker in self._demoted or not few:
            return
        try:
            row["leaders_moved"] = self._demote(alarm.broker)
            row["demoted_at_s"] = time.time()
        except LabError as error:
            row["error"] = str(error)[:500]

    def _demote(self, node_id: int) -> int:
        """Make other brokers the leaders of a broker's partitions, and return the number of partitions moved."""
        view = self._cluster.ask(self.host, "topics", internal=True)
        less = leadership.without_replica if self.settings.take_out else leadership.without_leader
        order = less(view, node_id)
        leadership.merge(self._original, leadership.save_order(self._cluster.original_order, view, order))
        self._demoted.add(node_id)
        if not order:
            return 0
        led = {(topic, row["partition"]) for topic, row in leadership.partitions(view) if row["leader"] == node_id}
        answer = self._cluster.ask(self.host, "lead", replicas=order, others=bool(self.settings.take_out))
        if answer["led"] == sum(map(len, order.values())):
            return len(led)
        now = leadership.leaders(self._cluster.ask(self.host, "topics", internal=True))
        return sum(now.get(each, node_id) != node_id for each in led)

    # Afterwards

    def _end(self) -> None:
        if self._probe is not None and self._probe.done is None:
            self._attempt(lambda: self.host.run(["touch", self._stop_file], timeout_s=END_S))
            self._attempt(lambda: self._probe.wait(END_S))
        if self._original:
            self._attempt(lambda: self._cluster.ask(self.host, "lead", replicas=self._original, others=True))
            self._attempt(lambda: self._cluster.ask(self.host, "elect"))
            leadership.drop_partitions(self._cluster.original_order, self._original)
        self._stop()
        if self._made:
            self._attempt(lambda: self._cluster.ask(self.host, "delete_topic", name=self._topic))

    def _document(self) -> dict[str, object]:
        return {"nodes": self.nodes, "began_at_s": self._began_at_s, "ended_at_s": time.time(), "alarms": self.alarms}


def fed(probe: Program, nodes: Sequence[int], settings: DetectorSettings) -> Iterator[tuple[float, int, float]]:
    """
    Yield the probe's new latencies since the last call, as (time when known in Unix seconds, node, latency in ms).

    A late record counts with `settings.limit_ms`.
    """
    for line in probe.new_lines():
        if not isinstance(line, list) or isinstance(line[0], str) or line[3:] == ["after"]:
            continue
        partition, due, latency, *why = line
        # a record that fails after it was late was already yielded as late
        if why and why[0] != "late":
            continue
        us = settings.limit_ms * 1e3 if latency is None else latency
        yield probe.unix_s(due + us), nodes[partition], us / 1e3


@dataclass(frozen=True)
class Detection(Concurrent):
    """
    Probe every broker, run a detector on the latencies and, with `demote_on_alarm`, demote the broker that it names.

    The probe is a producer on the source host, with its own topic: one partition per broker, replication 1 and acks=1.
    So the latency of a partition reflects one broker and the path to it. `wanbench.change_detection` describes the
    detector. A record that is unanswered after the detector's `limit_ms` counts at once, with this latency.

    To demote a broker is to make it the last replica of every partition that it leads, so that the first in-sync
    replica leads instead. A named broker is demoted only if at most half of the brokers are in alarm; if more are, one
    broker is hardly the cause. At the end the earlier order of replicas and the preferred leaders are restored, even if
    `BrokerActions` changed the same order.

    A run writes detection/<stem>.detection.json, and <stem>.probe-0.jsonl.gz with every latency, so that other
    detectors can be tried on them (`wanbench.pages.rolling_and_degraded.detection`).

    Parameters
    ----------
    interval_s : float
        Interval between two records to a broker, in s.
    take_out : bool, optional
        Whether a demoted broker is also removed from the replicas of every partition that has another in-sync replica.
        Then no record waits for the broker, and it copies nothing until it is restored. Otherwise it remains a
        follower.
    settle_s : float
        Time from the start of the load until the detector begins to learn, in s.
    duration_s : float
        Duration of a run without a load, in s, such as an hour to measure the rate of false alarms.

    Examples
    --------
    >>> print(Detection(demote_on_alarm=True))
    detection by cusum, from 10 records/s to each broker, with demotion of the broker that is named
    """

    detector: DetectorSettings = field(default_factory=DetectorSettings)
    interval_s: float = 0.1
    record_bytes: int = bounded(100, 1, 100_000)
    demote_on_alarm: bool = False
    settle_s: float = bounded(5.0, 0, 3600)
    duration_s: float = bounded(300.0, 1, 86_400)
    take_out: bool | None = None

    name: ClassVar[str] = "detection"
    session: ClassVar[type[ConcurrentSession]] = DetectionSession

    def __post_init__(self):
        if isinstance(self.detector, dict):  # as a manifest holds it
            object.__setattr__(self, "detector", DetectorSettings(**self.detector))
        if not isinstance(self.detector, DetectorSettings):
            raise refusal("Detection detector", self.detector, "DetectorSettings")
        check_declared(self)
        check_fields(self, ("interval_s", 0.01, self.detector.window_s))

    def __str__(self) -> str:
        then = ", with demotion of the broker that is named" if self.demote_on_alarm else ""
        return f"detection by cusum, from {1 / self.interval_s:g} records/s to each broker{then}"

    def expected_s(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """Return the expected duration of a run without a load, in s."""
        return self.duration_s + 5.0

    def expected_bytes(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """
        Return the approximate number of bytes that leave the source's region, if two of three brokers are elsewhere.
        """
        return 2 * self.duration_s / self.interval_s * (self.record_bytes + 150)


TO_RESTORE_S = 1.0
"""Planned delay from the end of a slowness to the restoring of leadership; the command that ends it takes less."""


def rolls(load: KafkaOpenLoop, kinds: Kinds, *, calm_s: float, **trial: Any) -> dict[str, KafkaTrial]:
    """
    Plan rolls, trials that restart every broker in turn, and return them by name.

    `kinds` maps the name of each roll to the fields of its `BrokerAction`, such as {"kind": "restart"}, and optionally
    to "load" and "broker_settings": fields of the load and settings of brokers that differ in this roll. `calm_s` is
    the time between the moment when all brokers are up and the next restart; before the first restart, it includes the
    warm-up of `load`. `trial` has further fields of `KafkaTrial`.

    Examples
    --------
    >>> made = rolls(KafkaOpenLoop(100), {"kill": {"kind": "kill", "for_s": 2}}, calm_s=5)
    >>> print(made["kill"].alongside[0])
    every broker in turn: kill at 5 s for 2 s
    """
    made = {}
    for name, given in kinds.items():
        given = dict(given)
        changes, broker_settings = given.pop("load", {}), given.pop("broker_settings", None)
        check_keys(f"the load of “{name}”", changes, type(load))
        own = replace(load, **changes)
        action = _action(name, given, at_s=calm_s + own.warmup_s - load.warmup_s)
        actions = BrokerActions((action,), rolling=True, pause_s=0)
        made[name] = KafkaTrial(own, broker_settings=broker_settings, **_alongside(trial, actions))
    return made


def slowed(
    load: KafkaOpenLoop,
    kinds: Kinds,
    detection: Detection,
    *,
    brokers: int,
    first_s: float,
    slow_s: float,
    calm_s: float,
    **trial: Any,
) -> dict[str, KafkaTrial]:
    """
    Plan trials in which every broker is slowed in turn, two for each kind of slowness, and return them by name.

    In the trial "<kind>" the detector only watches. In "<kind>, demoted" the broker that it names is demoted, and gets
    its leaders back `TO_RESTORE_S` after the slowness ends. Both trials have the kind as `system`.

    `kinds` maps each kind to the fields of its `BrokerAction`, and optionally to "take_out", a field of `Detection`
    that only the trial with demotion uses. The first slowness starts at `first_s`; each lasts `slow_s` and is followed
    by `calm_s` without slowness. `trial` has further fields of `KafkaTrial`.

    Examples
    --------
    >>> times = {"first_s": 20, "slow_s": 10, "calm_s": 5}
    >>> made = slowed(KafkaOpenLoop(100), {"slow": {"kind": "slow"}}, Detection(), brokers=2, **times)
    >>> [(name, trial.load.duration_s) for name, trial in made.items()]
    [('slow', 45.0), ('slow, demoted', 45.0)]
    >>> print(made["slow, demoted"].alongside[1].actions[2])
    restore at 31 s
    """
    check_number("brokers", brokers, 1, 9, whole=True)
    made, turn_s = {}, slow_s + calm_s
    starts = {turn + 1: first_s + turn * turn_s for turn in range(brokers)}
    load = replace(load, duration_s=first_s + brokers * turn_s - load.warmup_s)
    restored = [BrokerAction("restore", at_s=at_s + slow_s + TO_RESTORE_S) for at_s in starts.values()]
    for name, given in kinds.items():
        given = dict(given)
        take_out = given.pop("take_out", None)
        slow = [_action(name, given, node_id=node_id, at_s=at_s, for_s=slow_s) for node_id, at_s in starts.items()]
        for label, demotes, actions in ((name, False, slow), (f"{name}, demoted", True, slow + restored)):
            watched = replace(detection, demote_on_alarm=demotes, take_out=take_out if demotes else None)
            concurrent = _alongside(trial, watched, BrokerActions(tuple(actions)))
            made[label] = KafkaTrial(load, system=name, **concurrent)
    return made


def _alongside(trial: Mapping[str, Any], *more: Concurrent) -> dict[str, Any]:
    return {**trial, "alongside": (*trial.get("alongside", ()), *more)}


def leader_skew(load: KafkaOpenLoop, *, node_id: int = 1, first_s: float, skew_s: float, **trial: Any) -> KafkaTrial:
    """
    Plan a trial in which the broker `node_id` leads all partitions for `skew_s`, from `first_s` on.

    Then leaders are spread again, and the load continues for another `skew_s`.
    """
    actions = BrokerAction("skew", node_id, first_s), BrokerAction("rebalance", at_s=first_s + skew_s)
    load = replace(load, duration_s=first_s + 2 * skew_s - load.warmup_s)
    return KafkaTrial(load, **_alongside(trial, BrokerActions(actions)))


def reassigned(
    load: KafkaOpenLoop, *, brokers: int, first_s: float, each_s: float, throttle_bytes_per_s: float | None, **more: Any
) -> KafkaTrial:
    """
    Plan a trial in which Kafka's tool empties the last broker from `first_s` on, and fills it again `each_s` later.

    The throttle limits the moved data that a broker sends or receives; None: no limit. Then the load continues for
    another `each_s`. So that the data of one broker fits on the others, partitions have at most `brokers` - 1 replicas.

    Examples
    --------
    >>> made = reassigned(KafkaOpenLoop(100), brokers=3, first_s=9, each_s=20, throttle_bytes_per_s=5e5)
    >>> print(made.alongside[0])
    reassign broker 3 at 500000 bytes/s at 9 s, reassign at 500000 bytes/s at 29 s
    """
    turns = (brokers, first_s), (None, first_s + each_s)
    actions = [BrokerAction("reassign", *turn, throttle_bytes_per_s=throttle_bytes_per_s) for turn in turns]
    replication = check_number("replicas, one fewer than brokers", min(load.replication, brokers - 1), 1)
    load = replace(load, replication=replication, duration_s=first_s + 3 * each_s - load.warmup_s)
    return KafkaTrial(load, **_alongside(more, BrokerActions(tuple(actions))))


def _action(name: str, given: Mapping[str, Any], **more: Any) -> BrokerAction:
    allowed = [field.name for field in fields(BrokerAction) if field.name not in ("node_id", "at_s")]
    check_keys(f"“{name}”", given, allowed)
    if "kind" not in given:
        raise ParameterError(f"“{name}” has no kind; allowed: restart, kill, slow, disk, link.")
    return BrokerAction(**{**given, **more})
