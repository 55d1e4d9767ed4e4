"""What the sessions of Kafka's experiments share."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from wanbench.errors import CommandError, LabError
from wanbench.measure.kafka.programs import fault_consumer, fault_producer, log_reader
from wanbench.measure.labs.base import Completed, Host, Process
from wanbench.measure.labs.programs import module_command
from wanbench.runs import RawFile, write_raw
from wanbench.runs.journal import now_utc

from .base import ExperimentError, ended_with

_TELLING = re.compile(
    rb"Fencing broker \d+|to unfence has been granted|Becoming the active controller|Shrinking ISR|ISR updated to"
    rb"|\] Leader \S+ .*starts at leader epoch"
)
_SECONDS = len("2026-11-22T09:52:29")


def command(host: Host, program, topic: str, settings=(), **arguments: object) -> list[str]:
    """The command of one of the programs, after putting it on the host; `arguments` are its options."""
    words = module_command(host, program.__name__, needs="confluent_kafka")
    words += ["--client", host.cluster.librdkafka_client_file(host), "--topic", topic]
    words += ["--settings", json.dumps(dict(settings))] if settings else []
    for name, value in arguments.items():
        words += [f"--{name.replace('_', '-')}", str(value)]
    return words


@dataclass
class Program:
    """
    A running program, identified by `role` and `number`; its output is kept as <stem>.<role>-<number>.jsonl.gz.

    Attributes
    ----------
    done : Completed or None
        Its output and status, once it has ended.
    """

    role: str
    number: int
    host: Host
    process: Process
    started_at_s: float = field(default_factory=time.time)
    done: Completed | None = None
    ended_at_s: float | None = None
    origin_ns: int = 0
    _position: int = 0

    def __str__(self) -> str:
        return f"{self.role} {self.number} on {self.host.name}"

    def news(self) -> list:
        """New output lines since the last call; ExperimentError if the program has failed."""
        printed = self._printed()
        end = printed.rfind(b"\n") + 1
        lines = [json.loads(line) for line in printed[:end].splitlines()]
        self._position += end
        for line in lines:
            if isinstance(line, dict) and "origin_ns" in line:
                self.origin_ns = line["origin_ns"]
        return lines

    def unix_s(self, at: int) -> float:
        """A time of one of its lines as Unix time."""
        return (self.origin_ns + 1_000 * at) / 1e9

    def wait(self, timeout_s: float) -> None:
        """Wait for its end; ExperimentError on timeout or failure."""
        try:
            self._has_ended(self.process.wait(timeout_s))
        except CommandError as error:
            raise ExperimentError(f"{self} did not end within {timeout_s:g} s") from error
        if self.done.returncode:
            raise ExperimentError(ended_with(str(self), self.done))

    def stop(self) -> None:
        """Stop it, if it still runs."""
        if self.done is None:
            self._has_ended(self.process.stop())

    def describe(self) -> dict:
        """Its entry in the episode's file."""
        return {
            "role": self.role,
            "number": self.number,
            "region": self.host.region,
            "host": self.host.name,
            "started_at_s": round(self.started_at_s, 6),
            "ended_at_s": self.ended_at_s and round(self.ended_at_s, 6),
            "killed": self.done is not None and self.done.returncode < 0,
        }

    def _printed(self) -> bytes:
        """Output since the last complete line read."""
        if self.done is None:
            if self.process.is_running():
                return self.process.printed(self._position)
            self._has_ended(self.process.wait(0))
            if self.done.returncode:
                raise ExperimentError(ended_with(str(self), self.done))
        return self.done.stdout[self._position :]

    def _has_ended(self, done: Completed) -> None:
        self.done, self.ended_at_s = done, time.time()


def kept(
    folder: Path, experiment: str, stem: str, program: Program, content: Callable[[bytes], bytes] = bytes
) -> tuple[list[RawFile], dict]:
    """
    Keep an ended program's output, compressed, and its stderr; returns the raw files, and the name of the first for the
    episode's file. `content` transforms the output.
    """
    done = program.done
    about = {
        "command": done.command,
        "returncode": done.returncode,
        "started_at_utc": done.started_at_utc,
        "ended_at_utc": done.ended_at_utc,
    }
    base = f"{stem}.{program.role}-{program.number}"
    packed = gzip.compress(content(done.stdout), 9, mtime=0)
    files = [write_raw(folder, experiment, f"{base}.jsonl.gz", packed, **about)]
    if done.stderr:
        files.append(write_raw(folder, experiment, f"{base}.stderr.txt", done.stderr[-100_000:], **about))
    return files, {"name": Path(files[0].path).name, "sha256": hashlib.sha256(packed).hexdigest()}


def kept_log(folder: Path, experiment: str, stem: str, cluster, placement, since_utc: str) -> tuple[RawFile, dict]:
    """Keep the lines of a node's log since a time that report fencing, leaders and in-sync replicas; as `kept`."""
    lines = [
        line
        for line in cluster.log(placement.node_id).splitlines(keepends=True)
        if line[:_SECONDS] >= since_utc[:_SECONDS].encode() and line[:2] == b"20" and _TELLING.search(line)
    ]
    packed = gzip.compress(b"".join(lines), 9, mtime=0)
    times = {"started_at_utc": since_utc, "ended_at_utc": now_utc()}
    name = f"{stem}.node-{placement.node_id}.log.gz"
    file = write_raw(folder, experiment, name, packed, **times)
    return file, {
        "node_id": placement.node_id,
        "region": placement.host.region,
        "file": {"name": name, "sha256": hashlib.sha256(packed).hexdigest()},
    }


def start_clients(settings, topic: str, hosts: list[Host], stop_file: Callable[[Host], str]) -> list[Program]:
    """
    Start producers and consumers of a KafkaFault, numbered across regions in turn; `hosts` holds one per client of a
    role. If one fails to start, the others are stopped.
    """
    programs: list[Program] = []
    try:
        for number, host in enumerate(hosts * settings.consumers_per_region):
            words = command(
                host, fault_consumer, topic, settings.client_settings,
                group=topic, number=number, ended_file=f"{stop_file(host)}.ended",
            )  # fmt: skip
            programs.append(Program("consumer", number, host, host.start(words)))
        for number, host in enumerate(hosts * settings.producers_per_region):
            words = command(
                host, fault_producer, topic, settings.client_settings,
                partitions=settings.partitions, number=number, interval_ns=round(1e9 / settings.records_per_s),
                record_bytes=settings.record_bytes, acks=settings.acks, stop_file=stop_file(host),
                drain_s=settings.drain_s,
            )  # fmt: skip
            programs.append(Program("producer", number, host, host.start(words)))
    except BaseException:
        stop_all(programs)
        raise
    return programs


def start_log_reader(host: Host, topic: str, partitions: int, timeout_s: float) -> Program:
    """Start reading a topic back."""
    words = command(host, log_reader, topic, partitions=partitions, timeout_s=timeout_s)
    return Program("log", 0, host, host.start(words))


def stop_all(programs: list[Program]) -> None:
    """Stop all that run, even if one fails to stop."""
    for program in programs:
        with suppress(LabError):
            program.stop()
