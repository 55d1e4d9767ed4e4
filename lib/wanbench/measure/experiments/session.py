"""Run an experiment of several programs on hosts: start them, wait, stop them, and keep their files."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import time
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from wanbench.errors import CommandError, LabError
from wanbench.measure.labs.base import Completed, Host, Process
from wanbench.measure.labs.programs import module_command
from wanbench.runs import RawFile, write_raw
from wanbench.runs.journal import now_utc

from .base import ExperimentError, Hosts, WhenSending, about, ended_with

LOOK_S = 0.05
CHECK_S = 1.0  # interval of checks for dead brokers
UNANSWERED = ("Unreachable", "Timeout")  # kinds of `AnswerError` without an answer from a broker


@dataclass
class Program:
    """
    A running program, identified by its `role` and `number`.

    `done` is the program's output and status once it has ended. The output is kept as <stem>.<role>-<number>.jsonl.gz.
    """

    role: str
    number: int
    host: Host
    process: Process
    started_at_s: float = field(default_factory=time.time)
    done: Any = None
    ended_at_s: float | None = None
    origin_ns: int = 0
    _position: int = 0

    def __str__(self) -> str:
        return f"{self.role} {self.number} on {self.host.name}"

    def new_lines(self) -> list[Any]:
        """
        Return output lines since the last call, parsed from JSON; raise ExperimentError if the program has failed.
        """
        if not (self.done or self.process.is_running()):
            self._has_ended(self.process.wait(0))
            if self.done.returncode:
                raise ExperimentError(ended_with(str(self), self.done))
        printed = self.process.printed(self._position) if self.done is None else self.done.stdout[self._position :]
        end = printed.rfind(b"\n") + 1
        lines = [json.loads(line) for line in printed[:end].splitlines()]
        self._position += end
        for line in lines:
            if isinstance(line, dict) and "origin_ns" in line:
                self.origin_ns = line["origin_ns"]
        return lines

    def unix_s(self, at: int) -> float:
        """Convert a time in the program's output, in µs since the program's origin, to a Unix time in s."""
        return (self.origin_ns + 1_000 * at) / 1e9

    def wait(self, timeout_s: float) -> None:
        """Wait for the program's end; raise ExperimentError on timeout or failure."""
        try:
            self._has_ended(self.process.wait(timeout_s))
        except CommandError as error:
            raise ExperimentError(f"{self} did not end within {timeout_s:g} s") from error
        if self.done.returncode:
            raise ExperimentError(ended_with(str(self), self.done))

    def stop(self) -> None:
        """Stop the program if it still runs."""
        if self.done is None:
            self._has_ended(self.process.stop())

    def describe(self) -> dict[str, Any]:
        """Return the program's entry for the session's file."""
        about = {"role": self.role, "number": self.number, "region": self.host.region, "host": self.host.name}
        ended_at_s = self.ended_at_s and round(self.ended_at_s, 6)
        killed = self.done is not None and self.done.returncode < 0
        return about | {"started_at_s": round(self.started_at_s, 6), "ended_at_s": ended_at_s, "killed": killed}

    def _has_ended(self, done: Completed) -> None:
        self.done, self.ended_at_s = done, time.time()


def client_command(host: Host, program: ModuleType, **options: object) -> list[str]:
    """
    Return the command of a client program, after putting the program on the host; `stop_file="a"` becomes ``--stop-file
    a``.
    """
    arguments = module_command(host, program.__name__, needs="confluent_kafka")
    arguments += ["--client", host.cluster.librdkafka_client_file(host)]
    for name, value in options.items():
        arguments += [f"--{name.replace('_', '-')}", str(value)]
    return arguments


def as_json(value: object) -> bytes:
    """Return a value as one compact line of JSON."""
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


class Session:
    """
    One run of an experiment, `settings`: measure, stop every program whatever happens, clean up, and keep the files.

    A subclass defines `_measure` and `_keep`, and may define `_check` (runs before anything is started), `_programs`
    and `_clean_up`.
    """

    def __init__(self, settings: Any, folder: Path, stem: str):
        self.settings, self.folder, self.stem = settings, folder, stem
        self.files: list[RawFile] = []
        self.started_at_utc = now_utc()

    def run(self) -> list[RawFile]:
        """Run the experiment and return its raw files; raise ExperimentError, with the files so far, if it failed."""
        error = undeleted = None
        self._check()
        try:
            self._measure()
        except LabError as failed:
            error = str(failed)
        except BaseException as failed:
            error = f"{type(failed).__name__}: {failed}"
            raise
        finally:
            try:
                self._stop()
                undeleted = self._clean_up()
            finally:
                self._keep(error)
        if error := error or undeleted:
            raise ExperimentError(error, self.files)
        return self.files

    def _check(self) -> None:
        """Raise an error if the run is impossible."""

    def _measure(self) -> None:
        raise NotImplementedError

    def _programs(self) -> Iterable[Any]:
        """Return the programs started so far."""
        return ()

    def _stop(self) -> None:
        """Stop every program, even if one of them fails to stop."""
        for program in self._programs():
            with suppress(LabError):
                program.stop()

    def _clean_up(self) -> str | None:
        """Remove what was created; return what could not be removed, and why."""

    def _keep(self, error: str | None) -> None:
        """Write the raw files."""

    def _unique(self, prefix: str) -> str:
        return f"{prefix}-{re.sub('[^A-Za-z0-9._-]', '-', self.stem)[:150]}-{uuid.uuid4().hex[:8]}"

    def _look(self) -> None:
        """Read new output."""

    def _is_over(self) -> bool:
        """Return whether waiting has become pointless."""
        return False

    def _until(self, condition: Callable[[], object], timeout_s: float, *, to_the_end: bool = False) -> bool:
        """Wait until a condition holds; return False on timeout or, unless `to_the_end`, once the session is over."""
        end_s = time.monotonic() + timeout_s
        while True:
            self._look()
            if condition():
                return True
            left_s = end_s - time.monotonic()
            if left_s <= 0 or (self._is_over() and not to_the_end):
                return False
            time.sleep(min(LOOK_S, left_s))

    def _pause(self, lasts_s: float) -> None:
        """Wait for `lasts_s` while reading new output; return early once the session is over."""
        self._until(lambda: False, lasts_s)

    def _await(self, obstacle: Callable[[], str], timeout_s: float, late: str) -> None:
        """
        Wait until `obstacle` returns an empty text; on timeout raise ExperimentError with `late`, the time and the
        obstacle.
        """
        last = ""

        def is_clear() -> bool:
            nonlocal last
            last = obstacle()
            return not last

        if not self._until(is_clear, timeout_s):
            raise ExperimentError(f"{late} {timeout_s:g} s: {last}")

    def _write(self, name: str, content: object, **about: Any) -> None:
        """Keep bytes, or an object as JSON, in the file <stem>.<name>."""
        if not isinstance(content, bytes):
            content = json.dumps(content, indent=1).encode() + b"\n"
        about = about or {"started_at_utc": self.started_at_utc, "ended_at_utc": now_utc()}
        self.files.append(write_raw(self.folder, self.settings.name, f"{self.stem}.{name}", content, **about))

    def _keep_packed(self, name: str, content: bytes, **about: Any) -> dict[str, str]:
        """Keep content in a compressed file; return the file's name and hash, for the session's file."""
        packed = gzip.compress(content, 9, mtime=0)
        self._write(name, packed, **about)
        return {"name": f"{self.stem}.{name}", "sha256": hashlib.sha256(packed).hexdigest()}

    def _keep_program(
        self, program: Program, content: Callable[[bytes], bytes] = bytes, role: str = ""
    ) -> dict[str, Any]:
        """
        Keep an ended program's output, converted by `content`, and its stderr; return the program's entry for the
        session's file.

        With a `role`, a second version of the output is kept under that name, without the stderr.
        """
        done, name = program.done, f"{role or program.role}-{program.number}"
        file = self._keep_packed(f"{name}.jsonl.gz", content(done.stdout), **about(done))
        if done.stderr and not role:
            self._write(f"{name}.stderr.txt", done.stderr[-100_000:], **about(done))
        return program.describe() | {"role": role or program.role, "file": file}


class ClientSession(Session):
    """A session that loads `cluster` from the hosts of producers and consumers."""

    def __init__(
        self,
        load: Any,
        cluster: Any,
        producers: Hosts,
        consumers: Hosts,
        folder: Path,
        stem: str,
        when_sending: WhenSending = None,
    ):
        super().__init__(load, folder, stem)
        self.cluster, self.producer_hosts, self.consumer_hosts = cluster, producers, consumers
        self.when_sending = when_sending or (lambda: None)
        self.made: dict[str, dict[str, Any]] = {}
        self.undeleted: str | None = None
        self._checked_s = time.monotonic()

    def _make_topics(self, names: Iterable[str], **settings: str) -> None:
        """Create the load's topics, from which no record is deleted unless the load's settings say so."""
        load = self.settings
        kept = {"retention.ms": "-1", "retention.bytes": "-1", **settings, **dict(load.topic_settings)}
        about = {"partitions": load.partitions, "replication": load.replication}
        for name in names:
            placement = getattr(load, "placement", None)
            self.made[name] = self.cluster.create_topic(name, settings=kept, placement=placement, **about)

    def _check_brokers(self) -> None:
        """Raise ClusterError if a broker has died; look only every `CHECK_S`."""
        if time.monotonic() - self._checked_s > CHECK_S:
            self._checked_s = time.monotonic()
            self.cluster.check()

    def _clean_up(self) -> str | None:
        """Delete the topics; stop trying once no broker answers."""
        for name in self.made:
            try:
                self.cluster.delete_topic(name)
            except LabError as error:
                self.undeleted = f"topic {name} could not be deleted: {error}"
                if getattr(error, "kind", None) in UNANSWERED:
                    break
        return self.undeleted
