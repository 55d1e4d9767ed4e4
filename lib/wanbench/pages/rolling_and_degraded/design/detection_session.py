"""One run of a detection: the probe, the detector that reads it, and the response to an alarm."""

from __future__ import annotations

import json
import re
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from wanbench.change_detection import Alarm, Detector
from wanbench.errors import CommandError, LabError
from wanbench.measure.experiments.base import ExperimentError, cluster_of
from wanbench.measure.experiments.kafka_fault_programs import Program, kept
from wanbench.measure.kafka import leadership
from wanbench.measure.kafka.programs import detection_probe
from wanbench.measure.labs.base import Host
from wanbench.measure.labs.programs import module_command
from wanbench.runs import RawFile, write_raw
from wanbench.runs.journal import now_utc

LOOK_S = 0.05
READY_S = 120.0
JOIN_S = 180.0
"""Timeout for a demotion in progress at the end of the load: two answers of the cluster."""
END_S = 30.0


class DetectionSession:
    """A run of `settings` (a Detection) on the cluster of `source`: `start`, and `end`."""

    def __init__(self, settings, source: Host, folder: Path, stem: str, sending: Callable[[], bool] | None):
        self.settings, self.host, self.folder, self.stem = settings, source, folder, stem
        self.sending, self.files = sending, []
        self.files: list[RawFile] = []
        self.alarms: list[dict] = []
        self.detector = Detector(settings.detector)
        self._topic = f"detection-{re.sub('[^A-Za-z0-9._-]', '-', stem)[:150]}-{uuid.uuid4().hex[:8]}"
        self._made, self._probe, self._reader = False, None, None
        self._over = threading.Event()
        self._began_at_s: float | None = None
        self._started_at_utc = now_utc()
        self._faults: list[str] = []
        self._original: leadership.Order = {}
        self._demoted: set[int] = set()

    def start(self) -> None:
        """Make the topic, start the probe, and read it in a thread."""
        self._cluster = cluster_of(self.host)
        brokers = self._cluster.ask(self.host, "cluster")["brokers"]
        self.nodes = [row["node_id"] for row in brokers if not row["is_fenced"]]
        self._cluster.ask(self.host, "create_topic", name=self._topic, placement=[[node] for node in self.nodes])
        self._made = True
        self._stop_file = f"{self.host.scratch}/{self._topic}.stop"
        words = module_command(self.host, detection_probe.__name__, needs="confluent_kafka")
        words += ["--client", self._cluster.librdkafka_client_file(self.host), "--topic", self._topic]
        words += ["--nodes", ",".join(map(str, self.nodes)), "--stop-file", self._stop_file]
        words += ["--interval-us", str(round(self.settings.interval_s * 1e6))]
        words += ["--limit-us", str(round(self.settings.detector.limit_ms * 1e3))]
        words += ["--record-bytes", str(self.settings.record_bytes)]
        self._probe = Program("probe", 0, self.host, self.host.start(words))
        try:
            self._probe.process.wait_for_output('"ready"', READY_S)
        except CommandError as error:
            raise ExperimentError(f"the probe is not ready: {error}") from None
        self._reader = threading.Thread(target=self._read, name="detection", daemon=True)
        self._reader.start()

    def end(self) -> list[str]:
        """Stop the probe, undo demotions, and write the files; returns what failed."""
        self._over.set()
        try:
            if self._reader is not None:
                self._reader.join(JOIN_S)
            self._stop_probe()
            self._restore()
        finally:
            if self._probe is not None:
                self._attempt(self._probe.stop)
            if self._made:
                self._attempt(lambda: self._cluster.ask(self.host, "delete_topic", name=self._topic))
            self._keep()
        return self._faults

    # While it runs

    def _read(self) -> None:
        try:
            if self.sending is not None and not self.sending():
                return
            self._began_at_s = time.time() + (0 if self.sending is None else self.settings.settle_s)
            while not self._over.is_set():
                for known_at_s, node_id, value_ms in fed(self._probe, self.nodes, self.settings.detector):
                    if known_at_s >= self._began_at_s:
                        alarm = self.detector.update(known_at_s, node_id, value_ms)
                        if alarm is not None:
                            self._alarm(alarm)
                time.sleep(LOOK_S)
        except LabError as error:
            self._faults.append(str(error))
        except Exception as error:  # an exception that ends a thread is seen by nobody
            self._faults.append(f"{type(error).__name__}: {error}")

    def _alarm(self, alarm: Alarm) -> None:
        row = asdict(alarm) | {"named_at_s": time.time(), "baseline": asdict(self.detector.baseline(alarm.broker))}
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
        """Move all leadership off a broker; returns the number of partitions moved."""
        view = self._cluster.ask(self.host, "topics", internal=True)
        less = leadership.without_replica if self.settings.take_out else leadership.without_leader
        order = less(view, node_id)
        leadership.merge(self._original, leadership.remember(self._cluster.first_order, view, order))
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

    def _stop_probe(self) -> None:
        if self._probe is not None and self._probe.done is None:
            self._attempt(lambda: self.host.run(["touch", self._stop_file], timeout_s=END_S))
            self._attempt(lambda: self._probe.wait(END_S))

    def _restore(self) -> None:
        if self._original:
            self._attempt(lambda: self._cluster.ask(self.host, "lead", replicas=self._original, others=True))
            self._attempt(lambda: self._cluster.ask(self.host, "elect"))
            leadership.forget(self._cluster.first_order, self._original)

    def _attempt(self, do: Callable[[], object]) -> None:
        try:
            do()
        except LabError as error:
            self._faults.append(str(error))

    def _keep(self) -> None:
        described = []
        if self._probe is not None and self._probe.done is not None:
            files, named = kept(self.folder, self.settings.name, self.stem, self._probe)
            self.files += files
            described.append(self._probe.describe() | {"file": named})
        about = {
            "format": 1,
            "settings": asdict(self.settings),
            "nodes": getattr(self, "nodes", []),
            "began_at_s": self._began_at_s,
            "ended_at_s": time.time(),
            "alarms": self.alarms,
            "faults": self._faults,
            "programs": described,
        }
        content = json.dumps(about, indent=1).encode() + b"\n"
        ends = {"started_at_utc": self._started_at_utc, "ended_at_utc": now_utc()}
        name = f"{self.stem}.detection.json"
        self.files.append(write_raw(self.folder, self.settings.name, name, content, **ends))


def fed(probe: Program, nodes: Sequence[int], settings):
    """New output of a probe since the last call: (known_at_s, node_id, latency in ms), in order."""
    for line in probe.news():
        if not isinstance(line, list) or isinstance(line[0], str) or line[3:] == ["after"]:
            continue
        partition, due, latency, *why = line
        # a record that failed after it was late has been fed then; one that failed at once is told by its error
        if why and why[0] != "late":
            continue
        us = settings.limit_ms * 1e3 if latency is None else latency
        yield probe.unix_s(due + us), nodes[partition], us / 1e3
