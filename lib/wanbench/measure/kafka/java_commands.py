"""Build Java commands for hosts: find a suitable Java, provide Kafka's jars, and check JVM flags."""

import functools
import re
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from wanbench.checks import check_number, refusal
from wanbench.errors import ClusterError, ParameterError
from wanbench.folders import kafka_jars
from wanbench.measure.labs.base import Host
from wanbench.runs.raw import sha256

from .access import may_hold_secret

OLDEST_JAVA = 17  # the oldest version for brokers of Kafka 4; its clients and tools would run on 11

_GET_JAVA = "apt-get install openjdk-17-jre-headless (Fedora: dnf install java-17-openjdk-headless)"


def unavailable() -> str | None:
    """Return a sentence that says why Kafka cannot start on this machine, with the remedy; return None if it can."""
    try:
        done = subprocess.run(["java", "-version"], capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return f"Java is not installed on this machine: {_GET_JAVA}."
    if reason := java_fault(done.returncode, done.stderr.decode(errors="replace"), "this machine"):
        return reason
    jars = kafka_jars()
    missing = [name for name in ("kafka_2.13", "kafka-tools") if not any(jars.glob(f"{name}-*.jar"))]
    if missing:
        return (
            f"Kafka's jars are not in {jars} ({' and '.join(missing)} missing): `make setup` downloads them by Maven."
        )
    return None


def java_fault(returncode: int, printed: str, where: str) -> str | None:
    """
    Return a sentence that says why Java on the host `where` is unsuitable, given the exit status and the output of
    `java -version`; return None if it is suitable.

    >>> java_fault(0, 'openjdk version "17.0.15" 2025-04-15', "eu/0")
    """
    version = re.search(r'version "(?:1\.)?(\d+)', printed)
    if returncode or not version:
        lines = printed.strip().splitlines()
        detail = f" (it printed {lines[-1][:200]!r})" if lines else ""
        return f"there is no working Java on {where}{detail}: {_GET_JAVA}."
    if int(version[1]) < OLDEST_JAVA:
        return f"Java on {where} is {version[1]}, and brokers of Kafka 4 need {OLDEST_JAVA}: {_GET_JAVA}."
    return None


# JVM flags of nodes. "load", for measurements, is Java's default. "functional" starts faster and needs less memory, but
# is slower under load.
PROFILES = {"load": ("-XX:+UseG1GC",), "functional": ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")}

ARCHIVE = "broker.jsa"  # the class archive, next to the folder of jars: see `jars`


# Size of each of the JVM's two rotating files, so at most 4 MiB per start of a node. A loaded broker writes about 0.6
# MB an hour, which compresses to an eighth.
PAUSE_LOG_BYTES = 2 * 2**20


def pause_log(path: str) -> list[str]:
    """
    Return JVM flags that log garbage collections and safepoints to a file, with UTC times in ms.

    Because of -Xlog:async, no thread waits for the disk at a safepoint, so logging does not lengthen pauses.
    """
    rotation = f"filecount=1,filesize={PAUSE_LOG_BYTES}"
    return ["-Xlog:async", f"-Xlog:gc,safepoint:file={path}:utctime,tags:{rotation}"]


class Jars:
    """
    Provide Kafka's jars on the lab's hosts; a host that does not see this machine's files gets a copy.

    `version` is a version of Kafka, by default the one that `make setup` installs. Raise ClusterError if a jar differs
    from the pinned one in jars.sha256.
    """

    def __init__(self, version: str | None = None):
        self._here, self._folders, self._locks = kafka_jars(version), {}, {}
        _check(tuple((jar, jar.stat().st_size, jar.stat().st_mtime_ns) for jar in self._here.glob("*.jar")))

    def on(self, host: Host) -> str:
        """Return the folder of jars on a host, copying them there first if necessary."""
        key = host.name, host.scratch
        with self._locks.setdefault(key, threading.Lock()):
            if key not in self._folders:
                self._folders[key] = self._copied_to(host)
            return self._folders[key]

    def archive(self, host: Host) -> list[str]:
        """Return the flags that make Java use the class archive; the list is empty if the host has no archive."""
        archive = self._here.parent / ARCHIVE
        if self.on(host) == str(self._here) and archive.is_file():
            return [f"-XX:SharedArchiveFile={archive}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
        return []

    @property
    def agent(self) -> str:
        return self._named("jmx_prometheus_javaagent").name

    @property
    def version(self) -> str:
        """Return Kafka's version, taken from the name of its jar."""
        return self._named("kafka_2.13").stem.removeprefix("kafka_2.13-")

    def _named(self, name: str) -> Path:
        jars = sorted(self._here.glob(f"{name}-*.jar"))
        if not jars:
            raise ClusterError(f"{name} is not among the jars in {self._here}; `make setup` downloads it by Maven.")
        return jars[0]

    def _copied_to(self, host: Host) -> str:
        sample = self._named("kafka_2.13")  # a host that sees this jar sees all files of this machine
        host.put(package_file("tools_log4j2.properties"), f"{host.scratch}/tools_log4j2.properties")
        if host.run(["test", "-f", str(sample)], timeout_s=30, ok=None).returncode == 0:
            return str(self._here)
        folder = f"{host.scratch}/jars-{self.version}"
        host.run(["mkdir", "-p", folder], timeout_s=30)
        for jar in sorted(self._here.glob("*.jar")):
            host.put(jar, f"{folder}/{jar.name}")
        return folder


@functools.cache
def _check(jars: tuple[tuple[Path, int, int], ...]) -> None:
    """Check the hashes of jars, given as (path, size, mtime); the result is cached."""
    sums = "".join(file.read_text() for file in sorted(Path(__file__).parent.glob("jars*.sha256")))
    pinned = {name: digest for digest, name in map(str.split, sums.splitlines())}
    for jar, _, _ in jars:
        if jar.name in pinned and sha256(jar) != pinned[jar.name]:
            remedy = "delete the folder and run `make setup`, which downloads all jars again"
            raise ClusterError(f"{jar.name} in {jar.parent} differs from the version that wanbench pins; {remedy}.")


def java_command(
    jars: str, main_class: str, arguments: Sequence[str], *, heap_mb: int, flags: Sequence[str], temporary: str
) -> list[str]:
    """Return a Java command that, even if killed, leaves no file outside the folder `temporary`."""
    flags = ["-XX:-UsePerfData", f"-Djava.io.tmpdir={temporary}", *flags]
    return ["java", f"-Xmx{heap_mb}m", *flags, "-cp", f"{jars}/*", main_class, *arguments]


def checked_heap(heap_mb: int) -> int:
    """Return the heap size in MiB; raise ParameterError below 64, the minimum with which Kafka starts."""
    return check_number("heap_mb", heap_mb, 64, 2**20, whole=True)


def checked_flags(flags: object) -> tuple[str, ...]:
    """Return the JVM flags; raise ParameterError if one is malformed or may hold a secret."""
    if not isinstance(flags, list | tuple) or not all(
        isinstance(flag, str) and flag.startswith("-") and flag.isprintable() for flag in flags
    ):
        raise refusal("jvm", flags, "a list of flags such as '-XX:+UseZGC'")
    if any(may_hold_secret(flag.partition("=")[0]) for flag in flags):
        raise ParameterError("jvm has a flag that may contain a secret; command lines are visible to other users.")
    return tuple(flags)


def package_file(name: str) -> Path:
    """Return the path of a file in this module's folder."""
    return Path(__file__).with_name(name)
