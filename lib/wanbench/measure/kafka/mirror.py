"""Mirror the topics of one cluster to another with Kafka's MirrorMaker 2."""

import gzip
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from wanbench.errors import ClusterError, CommandError
from wanbench.measure.labs.base import Host, Lab
from wanbench.runs import RawFile, write_raw
from wanbench.runs.journal import now_utc

from .access import put_private, without_secrets
from .base import AnswerError
from .cluster import Cluster
from .java_commands import checked_heap, java_command, package_file
from .node import EXPERIMENT, last_message
from .settings import checked_settings, properties

START_S, COPY_S, LOOK_S = 90.0, 60.0, 0.5  # timeouts of the start and of a new topic's copy, on a busy machine
DEFAULTS = {
    # A topic has one name in both clusters, so a client that fails over needs no other configuration.
    "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
    "refresh.topics.interval.seconds": "1",
    "emit.checkpoints.interval.seconds": "1",
    "sync.group.offsets.enabled": "true",
    "sync.group.offsets.interval.seconds": "1",
    "sync.topic.acls.enabled": "false",
    "source->target.enabled": "true",
    "target->source.enabled": "false",
}


class Mirrored:
    """
    Two clusters of a lab, and MirrorMaker 2, which copies every topic from the first to the second.

    A context manager that yields itself once MirrorMaker runs. Hosts reach the pair by `host.clusters[name]`: those in
    regions of the second cluster see that one, all others see the first. Topics are created in the first cluster;
    creation returns once the second has the topic as well.

    Parameters
    ----------
    source, target : sequence of str
        Regions of the brokers of each cluster.
    name : str
        The pair's name in `host.clusters`.
    first_host : int
        Number of the first host of each region to use; the lab's own cluster may use the hosts before it.
    mirror_settings : mapping
        Settings of MirrorMaker, which override `DEFAULTS`; see "Geo-replication" in Kafka's documentation.
    heap_mb : int
        Heap of MirrorMaker, and of each node, in MiB. MirrorMaker runs on the target's first host, because consuming
        over a long path costs less throughput than producing over it.
    **options
        Parameters of both clusters: see `Cluster`.

    Raises
    ------
    ClusterError
        On entry, if a cluster or MirrorMaker does not start; the message has its last error.
    """

    def __init__(
        self,
        lab: Lab,
        source: Sequence[str],
        target: Sequence[str],
        *,
        name: str = "mirrored",
        first_host: int = 0,
        mirror_settings: Mapping[str, object] | None = None,
        heap_mb: int = 384,
        **options,
    ):
        self.lab, self.name, self.heap_mb = lab, name, checked_heap(heap_mb)
        self.settings = checked_settings(mirror_settings or {})
        self.source = _Source(lab, source, name=f"{name}-source", first_host=first_host, heap_mb=heap_mb, **options)
        self.target = Cluster(lab, target, name=f"{name}-target", first_host=first_host, heap_mb=heap_mb, **options)
        self.source.target = self.target
        self.process, self._stack = None, ExitStack()

    def __enter__(self):
        with ExitStack() as stack:
            for cluster in (self.source, self.target):
                stack.enter_context(cluster)
            stack.callback(self.stop)
            self.start()
            self._await_started()
            self._stack = stack.pop_all()
        for host in self._hosts():
            host.clusters = {**host.clusters, self.name: self}
        return self

    def __exit__(self, *exception) -> None:
        for host in self._hosts():
            host.clusters = {name: each for name, each in host.clusters.items() if each is not self}
        self._stack.__exit__(*exception)

    @property
    def host(self) -> Host:
        """The host of MirrorMaker."""
        return self.target.brokers[0].host

    @property
    def brokers(self):
        return (*self.source.brokers, *self.target.brokers)

    def seen_from(self, host: Host) -> Host:
        """Return a copy of a host whose `cluster` is the cluster that it sees."""
        regions = {broker.host.region for broker in self.target.brokers}
        return (self.target if host.region in regions else self.source).seen_from(host)

    def start(self) -> None:
        """Start MirrorMaker, without waiting until it copies."""
        folder = f"{self.host.scratch}/mirror"
        self.host.run(["mkdir", "-p", folder], timeout_s=30)
        self.host.put(package_file("log4j2.properties"), f"{folder}/log4j2.properties")
        put_private(self.host, "mirror/mm2.properties", properties(self._settings()))
        jars = self.source._jars
        flags = [f"-Dlog4j2.configurationFile={folder}/log4j2.properties", f"-Dwanbench.log={folder}/mirror.log"]
        self._command = java_command(
            jars.on(self.host), "org.apache.kafka.connect.mirror.MirrorMaker", [f"{folder}/mm2.properties"],
            heap_mb=self.heap_mb, flags=[*jars.archive(self.host), *flags], temporary=folder,
        )  # fmt: skip
        self.process = self.host.start(self._command)

    def stop(self) -> None:
        """Kill MirrorMaker at once; do nothing if it does not run."""
        if self.process is not None:
            self.process.stop()

    def log(self) -> bytes:
        """Return MirrorMaker's log."""
        return self.host.run(["cat", f"{self.host.scratch}/mirror/mirror.log"], timeout_s=60, ok=None).stdout

    def check(self) -> None:
        """Raise ClusterError if a node or MirrorMaker has ended unexpectedly."""
        for cluster in (self.source, self.target):
            cluster.check()
        try:
            done = self.process.wait(0)
        except CommandError:
            return
        log = self.log()
        raise ClusterError(f"MirrorMaker ended: {last_message(log, done.stdout + done.stderr)}", log)

    def describe(self) -> dict:
        """Return the pair's entry in the manifest: JSON types, no secrets."""
        clusters = {"source": self.source.describe(), "target": self.target.describe()}
        return {"kind": "mirrored", "mirror_maker": without_secrets({**DEFAULTS, **self.settings}), **clusters}

    def keep(self, folder: Path, stem: str = "") -> list[RawFile]:
        """Keep the logs of all nodes, and MirrorMaker's as <run folder>/kafka_cluster/<stem>.mirror.log.gz."""
        files = [
            file for cluster in (self.source, self.target) for file in cluster.keep(folder, f"{stem}.{cluster.name}")
        ]
        about = {"command": self._command, "returncode": None, "started_at_utc": now_utc(), "ended_at_utc": now_utc()}
        return [
            *files,
            write_raw(folder, EXPERIMENT, f"{stem}.mirror.log.gz", gzip.compress(self.log(), mtime=0), **about),
        ]

    def _settings(self):
        copies = {"source": len(self.source.brokers), "target": len(self.target.brokers)}
        internal = ("heartbeats.topic", "checkpoints.topic", "offset-syncs.topic", "offset.storage", "status.storage")
        return {
            "clusters": "source,target",
            "source.bootstrap.servers": self.source.bootstrap,
            "target.bootstrap.servers": self.target.bootstrap,
            "replication.factor": str(min(3, copies["target"])),
            **{f"{name}.replication.factor": str(min(3, *copies.values())) for name in (*internal, "config.storage")},
            **DEFAULTS,
            **self.settings,
        }

    def _await_started(self):
        began = time.monotonic()
        while not any(topic == "heartbeats" for topic in _topics(self.target, self.host)):
            self.check()
            if time.monotonic() > began + START_S:
                raise ClusterError(f"MirrorMaker copies nothing after {START_S:g} s: {last_message(self.log(), b'')}")
            time.sleep(LOOK_S)

    def _hosts(self):
        return [host for hosts in self.lab.hosts.values() for host in hosts]


class _Source(Cluster):
    """The first cluster of a pair: its topics are also in the second."""

    target: Cluster

    def create_topic(self, name: str, *arguments, **more) -> dict:
        made = super().create_topic(name, *arguments, **more)
        began = time.monotonic()
        while name not in _topics(self.target, self.target.brokers[0].host, name):
            if time.monotonic() > began + COPY_S:
                raise ClusterError(f"MirrorMaker has not copied the new topic {name} after {COPY_S:g} s.")
            time.sleep(LOOK_S)
        return made

    def delete_topic(self, name: str) -> None:
        super().delete_topic(name)
        self.target.delete_topic(name)


def _topics(cluster, host, *names):
    try:
        return {row["name"] for row in cluster.ask(host, "topics", **({"names": list(names)} if names else {}))}
    except AnswerError as error:
        if error.kind.startswith("UnknownTopic"):
            return set()
        raise
