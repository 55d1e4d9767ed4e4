"""One run of the OpenMessaging Benchmark: files and workers on the hosts, result, and cleanup."""

from __future__ import annotations

import json
import re
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from wanbench.errors import CommandError, LabError
from wanbench.measure.experiments.base import ExperimentError, keep, last_line
from wanbench.measure.kafka.access import put_private
from wanbench.measure.labs.base import Completed, Host, Process
from wanbench.runs import RawFile, write_raw
from wanbench.runs.journal import now_utc

from .java_properties import properties_text

TOPIC_PREFIX = "test-topic"
"""Prefix of the Kafka driver's topics, in all forks."""
SENDS = b"----- Starting "
"""Printed by the benchmark when its warm-up or measurement starts."""
FAILS = b"Failed to run the workload"
WRITES = b"Writing test result into"
LISTENS = "Javalin has started"
"""Printed by a worker once it listens."""
CHECK_S = 1.0
_LOOK_S = 0.1
_OVERLAP = 64
"""Bytes to search again, because a line may arrive in parts: more than the length of the text searched for."""
_RUN_S = 30.0
_MOST_LOG_BYTES = 1_000_000
"""Maximum bytes kept from the beginning and from the end of an output: ten windows a minute are 5 kB."""
_FAULT = re.compile(rb"[\w.$]+(Exception|Error)\b.*")
_FAILED = re.compile(rb" ERROR [^\n]*")


@dataclass
class _Program:
    """The benchmark or a worker: `what` it is, and its folder on its host."""

    what: str
    host: Host
    folder: str
    process: Process | None = None
    done: Completed | None = None

    def stop(self) -> None:
        if self.process is not None and self.done is None:
            self.done = self.process.stop()

    def so_far(self) -> Completed:
        return self.done or self.process.so_far()


class OpenMessagingSession:
    """One run of `load` (an OpenMessaging) on `cluster`, with the benchmark on `host`."""

    def __init__(
        self,
        load,
        cluster,
        host: Host,
        workers: Sequence[Host],
        folder: Path,
        stem: str,
        when_sending: Callable[[], None] | None = None,
    ):
        self.load, self.cluster, self.folder, self.stem = load, cluster, folder, stem
        self.when_sending = when_sending or (lambda: None)
        unique = f"openmessaging-{uuid.uuid4().hex[:8]}"
        self.benchmark = _Program("benchmark", host, f"{host.scratch}/{unique}-benchmark")
        self.workers = [
            _Program(f"worker-{number}", worker, f"{worker.scratch}/{unique}-worker-{number}")
            for number, worker in enumerate(workers)
        ]
        self.addresses = self._addresses()
        self.files: list[RawFile] = []
        self._topics_before: set[str] | None = None
        self._prepared: list[_Program] = []
        self._texts: dict[str, str] = {}
        self._result: bytes | None = None
        self._started_at_utc = now_utc()

    def run(self) -> list[RawFile]:
        """Returns the raw files; ExperimentError, with the files so far, if anything failed."""
        reason = None
        try:
            try:
                self._check_hosts()
                self._prepare()
                self._start()
                self._follow()
            except LabError as error:
                reason = str(error)
            finally:
                self._stop()
        finally:
            undeleted = self._clean_up()
            self._keep()
        if reason := reason or undeleted:
            raise ExperimentError(reason, self.files)
        return self.files

    def _addresses(self) -> list[str]:
        """Each worker uses a port for its commands and the next for its statistics."""
        taken: dict[str, int] = {}
        found = []
        for worker in self.workers:
            number = taken[worker.host.name] = taken.get(worker.host.name, -1) + 1
            found.append(f"http://{worker.host.address}:{self.load.port + 2 * number}")
        return found

    def _check_hosts(self) -> None:
        """ExperimentError if a host lacks Java or the distribution."""
        path, hosts = self.load.distribution, {}
        for program in (self.benchmark, *self.workers):
            script = f"{path}/bin/benchmark{'-worker' * (program is not self.benchmark)}"
            hosts.setdefault(program.host.name, (program.host, {}))[1][script] = None
        for host, scripts in hosts.values():
            if not self._is(host, "-d", path):
                raise ExperimentError(f"OpenMessaging distribution is {path!r}; {host.name} has no such folder")
            for script in scripts:
                if not self._is(host, "-f", script):
                    raise ExperimentError(f"OpenMessaging distribution {path} on {host.name} has no {script}")
            find = ["find", f"{path}/lib", "-maxdepth", "1", "-name", "*benchmark-framework*.jar"]
            if not host.run(find, timeout_s=_RUN_S, ok=None).stdout.strip():
                raise ExperimentError(
                    f"OpenMessaging distribution {path} on {host.name} has no jar of the benchmark in lib; build "
                    "it, or unpack its binary distribution"
                )
            try:
                java = host.run(["java", "-version"], timeout_s=_RUN_S, ok=None).returncode
            except LabError:
                java = 127
            if java:
                raise ExperimentError(f"{host.name} has no Java, which the OpenMessaging Benchmark needs")
        payload = self.load.workload_on_host()
        if not payload.useRandomizedPayloads and not self._is(self.benchmark.host, "-f", payload.payloadFile):
            raise ExperimentError(f"{self.benchmark.host.name} has no payloadFile {payload.payloadFile}")

    @staticmethod
    def _is(host: Host, kind: str, path: str) -> bool:
        return host.run(["test", kind, path], timeout_s=_RUN_S, ok=None).returncode == 0

    def _prepare(self) -> None:
        """A folder for each program with a link to the distribution; workload and driver for the benchmark."""
        self._topics_before = self._topics()
        for program in (self.benchmark, *self.workers):
            host = program.host
            host.run(["mkdir", "-m", "700", program.folder], timeout_s=_RUN_S)
            self._prepared.append(program)
            parts = [f"{self.load.distribution}/{part}" for part in ("bin", "lib")]
            host.run(["ln", "-s", "-t", program.folder, *parts], timeout_s=_RUN_S)
        self._texts = {"workload.yaml": self.load.workload_on_host().text(), "driver.yaml": self._driver().text()}
        host = self.benchmark.host
        inside = Path(self.benchmark.folder).name
        for name, text in self._texts.items():
            put_private(host, f"{inside}/{name}", text)

    def _driver(self):
        """
        The driver with the cluster's address, and its security by reference to a file on the client's host, so that it
        contains no secret.
        """
        settings = {"bootstrap.servers": self.cluster.bootstrap}
        path = self.cluster.client_file(self.benchmark.host)
        if path is not None:
            for worker in self.workers:
                if not self._is(worker.host, "-r", path):
                    raise ExperimentError(
                        f"{worker.host.name} does not see {path}, which says how clients reach the cluster; workers of "
                        "a secured cluster must share a file system"
                    )
            names = self.benchmark.host.run(["sed", "-n", "s/=.*//p", path], timeout_s=_RUN_S).stdout.decode().split()
            settings |= {
                "config.providers": "file",
                "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
                **{name: f"${{file:{path}:{name}}}" for name in names},
            }
        given = self.load.driver
        common = given.commonConfig + "\n" * bool(given.commonConfig and not given.commonConfig.endswith("\n"))
        return replace(given, commonConfig=common + properties_text(settings))

    def _start(self) -> None:
        for worker, address in zip(self.workers, self.addresses, strict=True):
            port = int(address.rpartition(":")[2])
            self._start_program(worker, "bin/benchmark-worker", "--port", str(port), "--stats-port", str(port + 1))
        limit_s = time.monotonic() + self.load.start_timeout_s
        for worker in self.workers:
            try:
                worker.process.wait_for_output(LISTENS, max(limit_s - time.monotonic(), 0.1))
            except CommandError as error:
                raise ExperimentError(self._why(worker, f"did not listen: {error}")) from error
        arguments = ["--drivers", "driver.yaml", "--output", "result.json"]
        arguments += ["--workers", ",".join(self.addresses)] if self.workers else []
        self._start_program(self.benchmark, "bin/benchmark", *arguments, "workload.yaml")

    def _start_program(self, program: _Program, script: str, *arguments: str) -> None:
        heap = f"HEAP_OPTS=-Xms{self.load.heap_mb}m -Xmx{self.load.heap_mb}m"
        java = f"JDK_JAVA_OPTIONS=-XX:-UsePerfData -Djava.io.tmpdir={program.folder}"
        program.process = program.host.start(["env", "-C", program.folder, heap, java, "bash", script, *arguments])

    def _follow(self) -> None:
        """
        Wait for the benchmark's result. It may not end by itself afterwards: its local worker leaves threads.

        Raises
        ------
        ExperimentError
            If it fails or ends before, takes too long, or a worker or a broker dies.
        """
        benchmark, sending, position = self.benchmark, False, 0
        limit_s = self.load.time_limit_s()
        end = time.monotonic() + limit_s
        while True:
            with suppress(CommandError):
                benchmark.done = benchmark.process.wait(CHECK_S)
            printed = benchmark.process.printed(position) if benchmark.done is None else benchmark.done.stdout
            if not sending and SENDS in printed:
                sending = True
                self.when_sending()
            if FAILS in printed:
                raise ExperimentError(self._why(benchmark, "failed"))
            if WRITES in printed:
                self._result = self._written_result()
                return
            if benchmark.done is not None:
                raise ExperimentError(self._why(benchmark, f"ended with status {benchmark.done.returncode}"))
            position += max(len(printed) - _OVERLAP, 0)
            self.cluster.check()
            for worker in self.workers:
                if not worker.process.is_running():
                    worker.done = worker.process.wait(0)
                    raise ExperimentError(self._why(worker, "ended before the benchmark did"))
            if time.monotonic() > end:
                raise ExperimentError(self._why(benchmark, f"did not end within {limit_s:g} s and was stopped"))

    def _written_result(self) -> bytes:
        """The result once complete; ExperimentError on timeout."""
        end = time.monotonic() + _RUN_S
        path = f"{self.benchmark.folder}/result.json"
        with tempfile.TemporaryDirectory() as temporary:
            copy = Path(temporary, "result.json")
            while True:
                if self._is(self.benchmark.host, "-f", path):
                    self.benchmark.host.get(path, copy)
                    content = copy.read_bytes()
                    with suppress(ValueError):
                        json.loads(content)
                        return content
                if time.monotonic() > end:
                    raise ExperimentError(self._why(self.benchmark, "left no whole result"))
                time.sleep(_LOOK_S)

    def _why(self, program: _Program, what: str) -> str:
        """The failure, with the first error in the output and its cause."""
        done = program.so_far()
        printed = done.stdout + b"\n" + done.stderr
        said = f"the OpenMessaging Benchmark's {program.what} on {program.host.name} {what}"
        failed = _FAILED.search(printed)
        if failed is None:
            return f"{said}: {last_line(done)}"
        causes = [found.group() for found in _FAULT.finditer(printed, failed.end())]
        parts = [failed.group()[7:307], *(cause[:300] for cause in causes[-1:])]
        return f"{said}: {b': '.join(parts).decode('utf-8', 'replace')}"

    def _stop(self) -> None:
        for program in (self.benchmark, *self.workers):
            with suppress(LabError):
                program.stop()

    def _topics(self) -> set[str]:
        found = self.cluster.ask(self.benchmark.host, "topics")
        return {topic["name"] for topic in found if topic["name"].startswith(TOPIC_PREFIX)}

    def _clean_up(self) -> str | None:
        """Delete the benchmark's topics and folders; returns what remains, and why."""
        why = None
        try:
            made = [] if self._topics_before is None else sorted(self._topics() - self._topics_before)
            for topic in made if self.benchmark.process is not None else ():
                self.cluster.delete_topic(topic)
        except LabError as error:
            why = f"the benchmark's topics could not be deleted: {error}"
        for program in self._prepared:
            with suppress(LabError):
                program.host.run(["rm", "-rf", "--", program.folder], timeout_s=_RUN_S, ok=None)
        return why

    def _keep(self) -> None:
        ends = {"started_at_utc": self._started_at_utc, "ended_at_utc": now_utc()}
        contents = {name: text.encode() for name, text in self._texts.items()}
        if self._result is not None:
            contents["result.json"] = self._result
        for name, content in contents.items():
            self.files.append(write_raw(self.folder, self.load.name, f"{self.stem}.{name}", content, **ends))
        for program in (self.benchmark, *self.workers):
            if program.done is not None:
                done = replace(program.done, stdout=_cut(program.done.stdout), stderr=_cut(program.done.stderr))
                stem = f"{self.stem}.{program.what}"
                self.files += keep(self.folder, self.load.name, stem, "txt", done)


def _cut(printed: bytes) -> bytes:
    """An output; a long one shortened to both ends, with the number of bytes omitted."""
    left_out = len(printed) - _MOST_LOG_BYTES
    if left_out <= 0:
        return printed
    half = _MOST_LOG_BYTES // 2
    return printed[:half] + f"\n... {left_out:,} bytes left out ...\n".encode() + printed[-half:]
