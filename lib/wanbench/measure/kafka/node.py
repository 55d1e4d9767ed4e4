"""One node of a cluster, a broker, controller or both: its folder and Java process on its host."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from wanbench.errors import CommandError, LabError
from wanbench.measure.labs.base import Completed, Process

from .available import java_fault
from .errors import ClusterError
from .java_commands import Jars, java_command, package_file, pause_log
from .last_message import last_message
from .placement import METRICS_PORT, NodePlacement
from .ports import check_free
from .security.private_files import put_private
from .settings import properties

FORMAT_S = 120.0
"""Timeout of formatting the storage: a start of Java, on a busy machine."""
STOP_S = 60.0
"""Timeout for a broker to hand over its partitions and end."""
KEY_FILES = ("ssl.keystore.location", "ssl.truststore.location")

# The shell writes down its process id before it becomes the command, which can then be signalled wherever it runs.
_WITH_PID_FILE = ("sh", "-c", 'echo $$ >"$0" && exec "$@"')


class Node:
    """
    A node of a cluster on its host.

    `settings` are those of its server.properties; `is_up` whether it was started and not stopped since.

    Parameters
    ----------
    heap_mb : int
    flags : sequence of str
        JVM flags.
    metrics : bool
        Serve metrics on `METRICS_PORT` of the host's address.
    pauses : bool
        Have its JVM write down garbage collections and safepoints.
    """

    def __init__(
        self,
        placement: NodePlacement,
        *,
        jars: Jars,
        heap_mb: int,
        flags: Sequence[str],
        metrics: bool,
        pauses: bool = False,
    ):
        self.placement, self.host = placement, placement.host
        self.settings: Mapping[str, str] = {}
        self.is_up, self.starts = False, 0
        self._jars, self._heap_mb, self._flags = jars, heap_mb, tuple(flags)
        self._metrics, self._pauses = metrics and placement.is_broker, pauses
        self._process: Process | None = None
        self._has_folder = False

    @property
    def folder(self) -> str:
        """The folder with all files of the node on its host."""
        return f"{self.host.scratch}/kafka-{self.placement.node_id}"

    @property
    def data_folder(self) -> str:
        """The folder with the partitions' folders."""
        return f"{self.folder}/data"

    @property
    def pid_file(self) -> str:
        """The file that holds the id of its latest process."""
        return f"{self.folder}/pid"

    @property
    def command(self) -> list[str]:
        """The command that starts it."""
        flags = ["-XX:+ExitOnOutOfMemoryError", f"-XX:ErrorFile={self.folder}/hs_err.log", *self._flags]
        if self._metrics:
            agent = f"{self._jars.on(self.host)}/{self._jars.agent}"
            flags.append(f"-javaagent:{agent}={self.host.address}:{METRICS_PORT}:{self.folder}/jmx_exporter.yaml")
        start = max(1, self.starts)
        if self._pauses:
            flags += pause_log(f"{self.folder}/jvm-{start}.log")
        return self._java("kafka.Kafka", [self._properties], f"server-{start}.log", self._heap_mb, flags)

    def prepare(self, cluster_id: str) -> None:
        """Make the folder and format the storage; ClusterError if a port is taken or the tool fails."""
        check_free(self.placement, self._metrics)
        done = self.host.run(["mkdir", self.folder], timeout_s=30, ok=None)
        if done.returncode:
            message = last_message(b"", done.stderr)
            raise ClusterError(f"{self.folder} on {self.host.name} cannot be made: {message}")
        self._has_folder = True
        self.write_settings(self.settings)
        for name in ("log4j2.properties", "jmx_exporter.yaml"):
            self.host.put(package_file(name), f"{self.folder}/{name}")
        arguments = ["format", "-t", cluster_id, "-c", self._properties]
        flags = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        done = self.host.run(
            self._java("kafka.tools.StorageTool", arguments, "format.log", 128, flags), timeout_s=FORMAT_S, ok=None
        )
        if done.returncode:
            self._check_java()
            log = self._read("format.log")
            message = last_message(log, done.stdout + b"\n" + done.stderr)
            raise ClusterError(f"the disk of {self.placement.name} cannot be formatted: {message}", log)

    def start(self) -> None:
        """Start the Java process with a new log; it does not serve yet."""
        self.starts += 1
        self._process = self.host.start([*_WITH_PID_FILE, self.pid_file, *self.command])
        self.is_up = True

    def stop(self) -> None:
        """Stop the node after it has handed over its leadership; ClusterError if that takes more than `STOP_S`."""
        self.is_up = False
        self._signal("TERM")
        try:
            self._process.wait(STOP_S)
        except CommandError:
            message = last_message(self.log(), b"")
            self.kill()
            raise ClusterError(
                f"{self.placement.name} did not end within {STOP_S:g} s and was killed: {message}"
            ) from None

    def kill(self) -> None:
        """Kill the node at once, like a power cut; no effect if it does not run."""
        self.is_up = False
        if self._process is not None and self._ended() is None:
            try:
                self._signal("KILL")
            finally:
                self._process.stop()

    def freeze(self) -> None:
        """Suspend the process, with its connections open, until `thaw`."""
        self._signal("STOP")

    def thaw(self) -> None:
        """Resume a frozen process."""
        self._signal("CONT")

    def write_settings(self, settings: Mapping[str, str]) -> None:
        """Replace `settings`; the process reads them at its next start."""
        self.settings = settings
        put_private(self.host, f"kafka-{self.placement.node_id}/server.properties", properties(settings))

    def death(self) -> ClusterError | None:
        """The error with which it ended unexpectedly; None if it runs or was stopped."""
        done = self._ended() if self.is_up else None
        if done is None:
            return None
        log = self.log()
        message = last_message(log, done.stdout + b"\n" + done.stderr)
        return ClusterError(f"{self.placement.name} ended with status {done.returncode}: {message}", log)

    def log(self, start: int | None = None) -> bytes:
        """Its log since its latest start, or since the start of that number (from 1)."""
        return self._read(f"server-{start or self.starts}.log")

    def pause_log(self, start: int) -> bytes:
        """The JVM's pause log since the start of that number (from 1); the oldest part may be gone."""
        return self._read(f"jvm-{start}.log.0") + self._read(f"jvm-{start}.log")

    def printed(self) -> Completed | None:
        """Its output other than its log since its latest start; None if never started."""
        return None if self._process is None else self._process.so_far()

    def remove(self) -> None:
        """Delete the node's folder on its host, and the keys that its settings name."""
        paths = [self.settings[name] for name in KEY_FILES if name in self.settings]
        paths += [self.folder] if self._has_folder else []
        if paths:
            self.host.run(["rm", "-rf", "--", *paths], timeout_s=120, ok=None)

    @property
    def _properties(self):
        return f"{self.folder}/server.properties"

    def _java(self, main_class, arguments, log, heap_mb, flags):
        logging = [f"-Dlog4j2.configurationFile={self.folder}/log4j2.properties", f"-Dwanbench.log={self.folder}/{log}"]
        return java_command(
            self._jars.on(self.host),
            main_class,
            arguments,
            heap_mb=heap_mb,
            flags=[*self._jars.archive(self.host), *flags, *logging],
            temporary=self.folder,
        )

    def _ended(self):
        try:
            return self._process.wait(0)
        except CommandError:
            return None

    def _check_java(self):
        done = self.host.run(["java", "-version"], timeout_s=60, ok=None)
        if fault := java_fault(done.returncode, done.stderr.decode(errors="replace"), self.host.name):
            raise ClusterError(fault)

    def _signal(self, name):
        pid = self._read("pid").decode(errors="replace").strip()
        if pid.isdigit():
            self.host.run(["kill", f"-{name}", pid], timeout_s=30, ok=None)

    def _read(self, name):
        with tempfile.TemporaryDirectory(prefix="wanbench-") as folder:
            target = Path(folder, "file")
            try:
                self.host.get(f"{self.folder}/{name}", target)
            except LabError:
                return b""
            return target.read_bytes()
