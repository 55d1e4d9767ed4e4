"""One run of a probe: topic, programs on both hosts, clocks, and raw files."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import time
import uuid
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from ..errors import CommandError, WanbenchError
from ..kafka.admin.ask import AnswerError
from ..kafka.programs import probe_consumer, probe_producer
from ..labs.base import Completed, Host, Process
from ..labs.programs import module_command
from ..runs import RawFile, write_raw
from ..runs.journal import now_utc
from . import clock
from .base import ExperimentError, cluster_of, ended_with, keep
from .kafka_checks import APART, rack_of
from .kafka_load_session import UNANSWERED

REPORT_S = 10.0
"""Waiting is reported on stderr at this interval."""
_MARGIN_S = 30.0
"""Timeout for a program to end, on a busy machine."""
_SHORTEST_DRAIN_S = 2.0
"""Wait for the last records in transit, even with drain_s of 0."""
_TIMEOUT_S = 30.0
_WAITS_FOR = re.compile(r'"waits_for": ?(".*")')


class NotReady(ExperimentError):
    """A probe was not ready in time, although nothing failed."""


class ProbeSession:
    """
    A probe between two hosts: `start`, then `wait` or something else, then `finish`; or `abandon`.

    `files` are the raw files so far. `settings` is the KafkaProbe.
    """

    def __init__(self, settings, source: Host, target: Host, folder: Path, stem: str):
        self.settings, self.source, self.target = settings, source, target
        self.folder, self.stem = folder, stem
        self.files: list[RawFile] = []
        self.started = False
        self._experiment, self._cluster = settings.name, source.cluster
        self._topic = f"probe-{re.sub('[^A-Za-z0-9._-]', '-', stem)[:150]}-{uuid.uuid4().hex[:8]}"
        self._stop_file = None
        self._about_topic = None
        self._producer: Process | None = None
        self._consumers: list[Process] = []
        self._clocks: list[clock.Offset] = []
        self._started_at_utc = now_utc()
        self._not_started: str | None = None
        self._ready_by = time.monotonic() + settings.start_timeout_s

    def start(self) -> None:
        """
        Make the topic, compare the clocks, start the consumers and, once all are ready, the producer.

        Raises
        ------
        NotReady
            If that takes longer than `start_timeout_s`; names what was waited for.
        """
        cluster, settings = cluster_of(self.source), self.settings
        self._make_topic()
        self._read_clocks("before")
        ready = '"ready"'
        program = module_command(self.target, probe_consumer.__name__)
        common = ["--topic", self._topic, "--partitions", str(settings.partitions)]
        for group in range(settings.groups):
            client = [
                "--client",
                cluster.python_client_file(self.target),
                "--group",
                f"{self._topic}-{group}",
            ]
            client += ["--clock-shift-ms", repr(float(settings.clock_shift_ms))]
            if rack := rack_of(settings.client_rack, self.target.region):
                client += ["--rack", rack]
            self._consumers.append(self.target.start([*program, *client, *common]))
        for group, consumer in enumerate(self._consumers):
            self._await(consumer, ready, f"consumer {group} on {self.target.name}")
        program = module_command(self.source, probe_producer.__name__)
        self._stop_file = f"{self.source.scratch}/{self._topic}.stop"
        client = ["--client", cluster.python_client_file(self.source), "--stop-file", self._stop_file]
        self._producer = self.source.start([*program, *client, *common, *self._producer_arguments()])
        self._await(self._producer, '"start_ns"', f"producer on {self.source.name}")
        self.started = True

    def wait(self) -> None:
        """Wait for the end of the schedule, or of the producer; `finish` ends a late one."""
        settings = self.settings
        lasts_s = settings.records * settings.interval_s + settings.hold_ms / 1000
        with suppress(CommandError):
            self._producer.wait(lasts_s + settings.drain_s + _MARGIN_S)

    def finish(self) -> list[str]:
        """End the producer, wait for its last records, keep everything; returns problems, in sentences."""
        producer, hung = self._ended(self._producer, self._ask_to_stop, self.settings.drain_s + _MARGIN_S)
        patience_s = (
            _SHORTEST_DRAIN_S if producer.returncode else max(self.settings.drain_s, _SHORTEST_DRAIN_S)
        )
        ended = [self._ended(consumer, None, patience_s) for consumer in self._consumers]
        consumers = [done for done, _ in ended]
        reasons = []
        for ask in (self._cluster.check, lambda: self._read_clocks("after")):
            try:
                ask()
            except WanbenchError as error:
                reasons.append(str(error))
        self._keep(producer, consumers)
        failed = [("producer", self.source, producer)] if producer.returncode or hung else []
        failed += [
            ("consumer", self.target, done) for done, stopped in ended if done.returncode and not stopped
        ]
        reasons += [ended_with(f"the probe's {what} on {host.name}", done) for what, host, done in failed]
        return reasons

    def abandon(self, not_started: str | None = None) -> None:
        """Stop everything at once and keep the measurements, with the reason if it did not start."""
        self._not_started = not_started
        stopped = self.stop()
        if self._producer is None:
            self._keep(None, stopped)
        else:
            self._keep(stopped[0], stopped[1:])

    def stop(self) -> list[Completed]:
        """Stop every program; returns their output, the producer's first."""
        return [process.stop() for process in (self._producer, *self._consumers) if process is not None]

    def _make_topic(self) -> None:
        """Make the topic; retries until the timeout if the cluster does not answer."""
        settings, tried = self.settings, None
        while self._about_topic is None:
            try:
                self._about_topic = self._cluster.ask(
                    self.source,
                    "create_topic",
                    name=self._topic,
                    partitions=settings.partitions,
                    replication=settings.replication,
                    settings=dict(settings.topic_settings),
                    placement=settings.placement and [list(nodes) for nodes in self._placement()],
                )
            except AnswerError as error:
                if tried and error.kind == "TopicAlreadyExistsError":  # made by the time the answer was lost
                    [self._about_topic] = self._cluster.ask(self.source, "topics", names=[self._topic])
                elif error.kind not in UNANSWERED:
                    raise
                tried = error
                self._report(f"the probe waits for its topic: {error}")

    def _placement(self):
        """The node ids of each partition's replicas."""
        if self.settings.placement != APART:
            return self.settings.placement
        nodes = [broker["node_id"] for broker in self._cluster.ask(self.source, "cluster")["brokers"]]
        topics = self._cluster.ask(self.source, "topics")
        leading = {partition["leader"] for topic in topics for partition in topic["partitions"]}
        if not (free := [node for node in nodes if node not in leading]):
            raise ExperimentError(
                f"each of the brokers {', '.join(map(str, nodes))} leads a partition of another topic, so the probe "
                f"cannot be {APART!r}; give the load a placement that leaves one of them to the probe"
            )
        firsts = [free[number % len(free)] for number in range(self.settings.partitions)]
        return [
            [first, *(node for node in nodes if node != first)][: self.settings.replication]
            for first in firsts
        ]

    def _await(self, process: Process, text: str, who: str) -> None:
        """Return once a program has printed a text; every `REPORT_S` report what it waits for."""
        while True:
            left_s = max(self._ready_by - time.monotonic(), 0.0)
            try:
                return process.wait_for_output(text, min(left_s, REPORT_S))
            except CommandError as error:
                waits_for = self._waits_for(process, who) or str(error)
            self._report(f"the probe's {who} waits for {waits_for}")

    def _waits_for(self, process: Process, who: str) -> str | None:
        """The program's last reported wait; ExperimentError, with its last line, if it has ended."""
        try:
            done = process.wait(0)
        except CommandError as error:
            printed = error.completed.stdout.decode("utf-8", "replace") if error.completed else ""
            reported = _WAITS_FOR.findall(printed)
            return json.loads(reported[-1]) if reported else "its program to start"
        raise ExperimentError(ended_with(f"the probe's {who}", done))

    def _report(self, what: str) -> None:
        """Report what is awaited, on stderr; NotReady on timeout."""
        if time.monotonic() >= self._ready_by:
            raise NotReady(f"after {self.settings.start_timeout_s:g} s {what}")
        print(f"Kafka: {what}", file=sys.stderr, flush=True)

    def _producer_arguments(self) -> list[str]:
        settings = self.settings
        return [
            "--producers", str(settings.producers),
            "--records", str(settings.records),
            "--interval-ns", str(round(settings.interval_s * 1e9)),
            "--record-bytes", str(settings.record_bytes),
            "--acks", settings.acks,
            "--linger-ms", repr(settings.linger_ms),
            "--drain-s", repr(float(settings.drain_s)),
            "--hold-share", repr(float(settings.hold_share)),
            "--hold-ms", repr(float(settings.hold_ms)),
            *(["--idempotence"] if settings.idempotence else []),
        ]  # fmt: skip

    def _ask_to_stop(self) -> None:
        self.source.run(["touch", self._stop_file], timeout_s=_TIMEOUT_S)

    @staticmethod
    def _ended(process: Process, ask, timeout_s: float) -> tuple[Completed, bool]:
        """The output of a process, and whether it had to be stopped."""
        with suppress(CommandError):
            if ask is not None:
                ask()
            return process.wait(timeout_s), False
        return process.stop(), True

    def _read_clocks(self, when: str) -> None:
        if not self.settings.clock_shift_ms and clock.one_clock(self.source, self.target):
            self._clocks.append(clock.Offset(0.0, 0.0, clock.ONE_CLOCK))
            return
        stem, shift_ms = f"{self.stem}.{when}", self.settings.clock_shift_ms
        try:
            offset, files = clock.exchange(
                self.source, self.target, self.folder, self._experiment, stem, shift_ms=shift_ms
            )
        except ExperimentError as error:
            self.files += error.files
            self._clocks.append(clock.Offset(None, None, f"{clock.UNKNOWN}: {error}"))
            raise
        self.files += files
        self._clocks.append(offset)

    def _keep(self, producer: Completed | None, consumers: list[Completed]) -> None:
        """Delete the topic; write the programs' output, and the file that the reader starts from."""
        deleted = False
        if self._about_topic is not None:
            with suppress(WanbenchError):
                self._cluster.delete_topic(self._topic)
                deleted = True
        names: dict[str, list] = {"producer": [], "consumers": []}
        ended = [("producer", "producer.jsonl", producer)] if producer is not None else []
        ended += [("consumers", f"consumer-{n}.jsonl", done) for n, done in enumerate(consumers)]
        for what, extension, done in ended:
            kept = keep(self.folder, self._experiment, self.stem, extension, done)
            self.files += kept
            names[what].append(
                {"name": Path(kept[0].path).name, "sha256": hashlib.sha256(done.stdout).hexdigest()}
            )
        about = {
            "format": 1,
            "settings": asdict(self.settings),
            "not_started": self._not_started,
            "source": {"name": self.source.name, "region": self.source.region},
            "target": {"name": self.target.name, "region": self.target.region},
            "topic": self._about_topic,
            "topic_deleted": deleted,
            "clock": self._offset().as_dict(),
            "clock_readings": [offset.as_dict() for offset in self._clocks],
            "files": {"producer": (names["producer"] or [None])[0], "consumers": names["consumers"]},
        }
        content = json.dumps(about, indent=1).encode() + b"\n"
        ends = {"started_at_utc": self._started_at_utc, "ended_at_utc": now_utc()}
        self.files.append(
            write_raw(self.folder, self._experiment, f"{self.stem}.probe.json", content, **ends)
        )

    def _offset(self) -> clock.Offset:
        if not self._clocks:
            return clock.Offset(None, None, clock.UNKNOWN)
        if len(self._clocks) == 1 or self._clocks[-1].method == clock.ONE_CLOCK:
            return self._clocks[-1]
        return clock.joined(*self._clocks)
