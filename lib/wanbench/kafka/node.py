"""One node of a cluster, a broker or a controller or both: its folder on its host and its Java process there."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..errors import CommandError, LabError
from ..labs.base import Host, Process
from .errors import ClusterError
from .java import Jars, java_words, package_file
from .last_words import last_words
from .placement import METRICS_PORT, Seat
from .private_files import put_private
from .settings import properties

FORMAT_S, STOP_S = 120.0, 60.0

# Notes its own number before it becomes the command, so that the command can be signalled wherever it runs.
_NOTED = ("sh", "-c", 'echo $$ >"$0" && exec "$@"')


class Node:
    """
    A node of a cluster on its host.

    Parameters
    ----------
    flags : sequence of str
        JVM flags.
    metrics : bool
        Serve metrics on `METRICS_PORT` of the host's address.

    `settings` is what its server.properties will hold.
    """

    def __init__(self, seat: Seat, *, jars: Jars, heap_mb: int, flags: Sequence[str], metrics: bool):
        self.seat, self.host = seat, seat.host
        self.settings: Mapping[str, str] = {}
        self.is_up = False
        self._jars, self._heap_mb, self._flags, self._metrics = jars, heap_mb, tuple(flags), metrics
        self._process: Process | None = None

    @property
    def folder(self) -> str:
        """All that the node has on its host."""
        return f"{self.host.scratch}/kafka-{self.seat.node_id}"

    @property
    def data_folder(self) -> str:
        """Where the partitions lie, a folder each."""
        return f"{self.folder}/data"

    def format(self, cluster_id: str) -> None:
        """Make the folder and format the disk; ClusterError with the tool's words if it refuses."""
        self.host.run(["mkdir", "-p", self.folder], timeout_s=30)
        put_private(self.host, f"{Path(self.folder).name}/server.properties", properties(self.settings))
        for name in ("log4j2.properties", "jmx_exporter.yaml"):
            self.host.put(package_file(name), f"{self.folder}/{name}")
        words = ["format", "-t", cluster_id, "-c", f"{self.folder}/server.properties"]
        flags = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        done = self.host.run(
            self._java("kafka.tools.StorageTool", words, "format.log", 128, flags),
            timeout_s=FORMAT_S,
            ok=None,
        )
        if done.returncode:
            words = last_words(self._read("format.log"), done.stderr + b"\n" + done.stdout)
            raise ClusterError(f"the disk of {self.seat.name} cannot be formatted: {words}")

    def start(self) -> None:
        """Start the Java process; whether it then serves is for `wait_for` in `serving` to say."""
        flags = list(self._flags)
        if self._metrics:
            agent = f"{self._jars.on(self.host)}/{self._jars.agent()}"
            flags.append(
                f"-javaagent:{agent}={self.host.address}:{METRICS_PORT}:{self.folder}/jmx_exporter.yaml"
            )
        words = self._java(
            "kafka.Kafka", [f"{self.folder}/server.properties"], "server.log", self._heap_mb, flags
        )
        self._process = self.host.start([*_NOTED, f"{self.folder}/pid", *words])
        self.is_up = True

    def stop(self) -> None:
        """Ask the node to hand over what it leads and end; ClusterError if it does not within `STOP_S`."""
        self._signal("TERM")
        self.is_up = False
        try:
            self._process.wait(STOP_S)
        except CommandError:
            words = last_words(self._read("server.log"), b"")
            self._process.stop()
            raise ClusterError(
                f"{self.seat.name} did not end within {STOP_S:g} s and was killed: {words}"
            ) from None

    def kill(self) -> None:
        """End the node at once, as a power cut would."""
        self.is_up = False
        if self._process is not None:
            self._signal("KILL")
            self._process.stop()

    def has_died(self) -> bool:
        """Whether it ended though nobody asked it to."""
        if not self.is_up:
            return False
        try:
            self._process.wait(0)
        except CommandError:
            return False
        return True

    def death(self) -> ClusterError:
        """How it died, in its own words."""
        done = self._process.stop()
        log = self._read("server.log")
        words = last_words(log, done.stdout + b"\n" + done.stderr)
        return ClusterError(f"{self.seat.name} ended with status {done.returncode}: {words}", log)

    def remove(self) -> None:
        """Delete the node's folder on its host."""
        self.host.run(["rm", "-rf", "--", self.folder], timeout_s=120, ok=None)

    def _java(self, main_class, words, log, heap_mb, flags):
        logging = [
            f"-Dlog4j2.configurationFile={self.folder}/log4j2.properties",
            f"-Dwanbench.log={self.folder}/{log}",
        ]
        flags = ["-XX:+ExitOnOutOfMemoryError", *self._jars.archive(self.host), *flags, *logging]
        return java_words(self._jars.on(self.host), main_class, words, heap_mb=heap_mb, flags=flags)

    def _signal(self, name):
        pid = self._read("pid").decode(errors="replace").strip()
        if pid.isdigit():
            self.host.run(["kill", f"-{name}", pid], timeout_s=30, ok=None)

    def _read(self, name):
        return read_on(self.host, f"{self.folder}/{name}")


def read_on(host: Host, path: str) -> bytes:
    """What a file on a host holds; nothing if there is none."""
    with tempfile.TemporaryDirectory(prefix="wanbench-") as folder:
        target = Path(folder, "file")
        try:
            host.get(path, target)
        except LabError:
            return b""
        return target.read_bytes()
