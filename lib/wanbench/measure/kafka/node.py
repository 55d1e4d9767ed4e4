"""Run one node of a cluster, a broker or controller or both: its folder, Java process, ports and logs."""

import gzip
import json
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from wanbench.errors import LATER, ClusterError, CommandError, LabError
from wanbench.measure.labs.base import Completed, Process
from wanbench.runs import RawFile, write_raw
from wanbench.runs.journal import now_utc

from .access import put_private, without_secrets
from .java_commands import PROFILES, Jars, java_command, java_fault, package_file, pause_log
from .placement import METRICS_PORT, NodePlacement
from .settings import effective_settings, properties

_HEAD = re.compile(r"^\d{4}-\d\d-\d\dT[\d:.]+Z (?P<level>[A-Z]+) (?P<message>.*?)( \([\w.$]+\))?$")
_PACKAGE = re.compile(r"\b(?:[a-z]\w*\.)+([A-Z]\w*(?:Exception|Error))")
_NOISE = re.compile(
    r"at |\.\.\. |\[[\d.]+s\]\[(warning|info)\]|OpenJDK.* warning|Picked up |Error: Could not create|Error: A fatal"
)
_MOST = 400  # maximum number of characters of a message; Kafka's own may contain a whole configuration


def last_message(log: bytes, printed: bytes) -> str:
    """
    Return the error that ended a broker, with its root cause, in one line.

    This is the first fatal error of the log (later errors follow from it), or else the log's last error, or else Java's
    output.

    >>> log = b'''2026-01-01T00:00:00.000Z ERROR Exiting Kafka (kafka.Kafka$)
    ... org.apache.kafka.common.KafkaException: Socket server failed
    ...     at somewhere
    ... Caused by: java.net.BindException: Address already in use
    ... 2026-01-01T00:00:01.000Z INFO bye (kafka.Kafka$)'''
    >>> last_message(log, b"")
    'Exiting Kafka: KafkaException: Socket server failed: BindException: Address already in use'
    >>> last_message(b"", b"Unrecognized VM option 'UseXGC'\\nError: Could not create the Java Virtual Machine.")
    "Unrecognized VM option 'UseXGC'"
    """
    error = _last_error(log.decode("utf-8", "replace").splitlines())
    if error is None:
        error = _printed_error(printed.decode("utf-8", "replace").splitlines())
    return error if len(error) <= _MOST else f"{error[: _MOST - 3]}..."


def _printed_error(lines: Iterable[str]) -> str:
    kept = [line.strip() for line in lines if line.strip() and not _NOISE.match(line.strip())]
    causes = [line for line in kept[1:] if line.startswith("Caused by: ")]
    return ": ".join(map(_plain, [*kept[:1], *causes[-1:]])) or "it printed nothing"


def _plain(line: str) -> str:
    return _PACKAGE.sub(r"\1", line).removeprefix("Caused by: ")


def _last_error(lines: Sequence[str]) -> str | None:
    last = None
    for number, line in enumerate(lines):
        head = _HEAD.match(line)
        if head and head["level"] in ("ERROR", "FATAL"):
            last = number, head["message"]
            if head["level"] == "FATAL" or "fatal" in head["message"].lower():
                break
    if last is None:
        return None
    number, message = last
    parts = [message]
    for line in lines[number + 1 :]:
        if _HEAD.match(line):
            break
        if not line.startswith((" ", "\t")):
            parts.append(_plain(line))
    kept = []
    for part in [parts[0], *parts[1:2], *parts[-1:]]:
        part = part.strip().rstrip(":")
        if part and not any(part in other for other in kept):
            kept.append(part)
    return ": ".join(kept)


FORMAT_S = 120.0  # timeout of formatting the storage: a start of Java, on a busy machine
STOP_S = 60.0  # timeout for a broker to hand over its partitions and end

# The shell writes its process id to a file and then becomes the command, so that the process can be signalled later.
_WITH_PID_FILE = ("sh", "-c", 'echo $$ >"$0" && exec "$@"')


class Node:
    """
    A node of a cluster on its host.

    `settings` is the content of the node's server.properties. `is_up` says whether the node was started and not stopped
    since. `flags` are the JVM's flags. `metrics` and `pauses` are as for `Cluster`.
    """

    def __init__(
        self, placement: NodePlacement, *, jars: Jars, heap_mb: int, flags: Sequence[str], metrics: bool, pauses: bool
    ):
        self.placement, self.host = placement, placement.host
        self.folder = f"{self.host.scratch}/kafka-{placement.node_id}"
        self.data_folder, self.pid_file = f"{self.folder}/data", f"{self.folder}/pid"
        self._properties = f"{self.folder}/server.properties"
        self.settings: Mapping[str, str] = {}
        self.is_up, self.starts = False, 0
        self.jars, self._heap_mb, self._flags = jars, heap_mb, tuple(flags)
        self._metrics, self._pauses = metrics and placement.is_broker, pauses
        self._process: Process = LATER
        self._has_folder = False

    @property
    def command(self) -> list[str]:
        flags = ["-XX:+ExitOnOutOfMemoryError", f"-XX:ErrorFile={self.folder}/hs_err.log", *self._flags]
        if self._metrics:
            agent = f"{self.jars.on(self.host)}/{self.jars.agent}"
            flags.append(f"-javaagent:{agent}={self.host.address}:{METRICS_PORT}:{self.folder}/jmx_exporter.yaml")
        start = max(1, self.starts)
        if self._pauses:
            flags += pause_log(f"{self.folder}/jvm-{start}.log")
        return self._java("kafka.Kafka", [self._properties], f"server-{start}.log", self._heap_mb, flags)

    def make_folder(self) -> None:
        """Make the node's folder, with the files that it needs; raise ClusterError if it cannot be made."""
        done = self.host.run(["mkdir", self.folder], timeout_s=30, ok=None)
        if done.returncode:
            message = last_message(b"", done.stderr)
            raise ClusterError(f"{self.folder} on {self.host.name} cannot be created: {message}")
        self._has_folder = True
        self.write_settings(self.settings)
        for name in ("log4j2.properties", "jmx_exporter.yaml"):
            self.host.put(package_file(name), f"{self.folder}/{name}")

    def prepare(self, cluster_id: str, features: Mapping[str, int]) -> None:
        """Make the node's folder and format its storage; raise ClusterError if a step fails."""
        self.make_folder()
        arguments = ["format", "-t", cluster_id, "-c", self._properties]
        for name, level in features.items():
            arguments += ["--feature", f"{name}={level}"]
        command = self._java("kafka.tools.StorageTool", arguments, "format.log", 128, PROFILES["functional"])
        done = self.host.run(command, timeout_s=FORMAT_S, ok=None)
        if done.returncode:
            java = self.host.run(["java", "-version"], timeout_s=60, ok=None)
            if fault := java_fault(java.returncode, java.stderr.decode(errors="replace"), self.host.name):
                raise ClusterError(fault)
            log = self._read("format.log")
            message = last_message(log, done.stdout + b"\n" + done.stderr)
            raise ClusterError(f"the storage of {self.placement.name} cannot be formatted: {message}", log)

    def start(self) -> None:
        """Start the Java process with a new log, without waiting until it serves."""
        self.starts += 1
        self._process = self.host.start([*_WITH_PID_FILE, self.pid_file, *self.command])
        self.is_up = True

    def stop(self) -> None:
        """
        Stop the node after it has handed over its leadership. If that takes more than `STOP_S`, kill the node and raise
        ClusterError.
        """
        self.is_up = False
        self._signal("TERM")
        try:
            self._process.wait(STOP_S)
        except CommandError:
            message = last_message(self.log(), b"")
            self.kill()
            killed = f"{self.placement.name} did not end within {STOP_S:g} s and was killed: {message}"
            raise ClusterError(killed) from None

    def kill(self) -> None:
        """Kill the node at once, as a power cut would; do nothing if it is not running."""
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
        self._signal("CONT")

    def write_settings(self, settings: Mapping[str, str]) -> None:
        """Replace the node's settings, which the process reads at its next start."""
        self.settings = settings
        put_private(self.host, f"kafka-{self.placement.node_id}/server.properties", properties(settings))

    def death(self) -> ClusterError | None:
        """Return the error with which the node ended unexpectedly; return None if it is running or was stopped."""
        done = self._ended() if self.is_up else None
        if done is None:
            return None
        log = self.log()
        message = last_message(log, done.stdout + b"\n" + done.stderr)
        return ClusterError(f"{self.placement.name} ended with status {done.returncode}: {message}", log)

    def log(self, start: int | None = None) -> bytes:
        """Return the log of one start (numbered from 1), by default of the latest."""
        return self._read(f"server-{start or self.starts}.log")

    def pause_log(self, start: int) -> bytes:
        """Return the JVM's pause log of one start (numbered from 1); rotation may have removed its beginning."""
        return self._read(f"jvm-{start}.log.0") + self._read(f"jvm-{start}.log")

    def printed(self) -> Completed | None:
        """Return the output, other than the log, of the latest start; None if the node was never started."""
        return None if self._process is None else self._process.so_far()

    def remove(self) -> None:
        """Delete the node's folder on its host, and the key files that its settings name."""
        paths = [path for name, path in self.settings.items() if re.fullmatch(r"ssl\.(key|trust)store\.location", name)]
        paths += [self.folder] if self._has_folder else []
        if paths:
            self.host.run(["rm", "-rf", "--", *paths], timeout_s=120, ok=None)

    def _java(self, main_class: str, arguments: Sequence[str], log: str, heap_mb: int, flags: Sequence[str]):
        logging = [f"-Dlog4j2.configurationFile={self.folder}/log4j2.properties", f"-Dwanbench.log={self.folder}/{log}"]
        jars, flags = self.jars.on(self.host), [*self.jars.archive(self.host), *flags, *logging]
        return java_command(jars, main_class, arguments, heap_mb=heap_mb, flags=flags, temporary=self.folder)

    def _ended(self):
        try:
            return self._process.wait(0)
        except CommandError:
            return None

    def _signal(self, name: str) -> None:
        pid = self._read("pid").decode(errors="replace").strip()
        if pid.isdigit():
            self.host.run(["kill", f"-{name}", pid], timeout_s=30, ok=None)

    def _read(self, name: str) -> bytes:
        with tempfile.TemporaryDirectory(prefix="wanbench-") as folder:
            target = Path(folder, "file")
            try:
                self.host.get(f"{self.folder}/{name}", target)
            except LabError:
                return b""
            return target.read_bytes()


EXPERIMENT = "kafka_cluster"


def keep(nodes: Sequence[Node], folder: Path, stem: str) -> list[RawFile]:
    """
    Write the logs, output and settings of nodes to <run folder>/kafka_cluster/.

    The names of a node's files begin with <stem>.<kind>-<node_id>, followed by: .server.log.gz for the log of its first
    start, .server-2.log.gz for the second, and so on; .jvm.log.gz for the JVM's pauses; .txt and .stderr.txt for
    output, if there is any; .settings.json for the `given` and `effective` settings, without secrets.
    """
    started, files = now_utc(), []

    def write(name: str, content: bytes, node: Node, returncode: int | None = None) -> None:
        about = {"command": node.command, "returncode": returncode}
        about |= {"started_at_utc": started, "ended_at_utc": now_utc()}
        files.append(write_raw(folder, EXPERIMENT, name, content, **about))

    for node in nodes:
        base = ".".join(filter(None, [stem, f"{node.placement.kind}-{node.placement.node_id}"]))
        for start in range(1, node.starts + 1):
            # Compression leaves a tenth, because a log names each partition of each topic several times.
            for kind, log in (("server", node.log(start)), ("jvm", node.pause_log(start))):
                if log or kind == "server":
                    name = f"{base}.{kind}{f'-{start}' if start > 1 else ''}.log.gz"
                    write(name, gzip.compress(log, mtime=0), node)
        done = node.printed()
        for name, content in (("txt", done.stdout), ("stderr.txt", done.stderr)) if done else ():
            if content:
                write(f"{base}.{name}", content, node, done.returncode if done and node.death() else None)
        settings = {
            "given": without_secrets(node.settings),
            "effective": without_secrets(effective_settings(node.log())) if node.starts else {},
        }
        write(f"{base}.settings.json", json.dumps(settings, indent=1).encode() + b"\n", node)
    return files
