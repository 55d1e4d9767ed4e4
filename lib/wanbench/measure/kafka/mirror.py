"""Mirror the topics of one cluster to another with Kafka's MirrorMaker 2."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from wanbench.errors import LATER, ClusterError
from wanbench.measure.labs.base import Host, Lab
from wanbench.runs import RawFile

from .access import without_secrets
from .base import AnswerError
from .cluster import Cluster
from .node import Node, keep
from .placement import Broker, NodePlacement
from .settings import checked_settings

COPY_S, LOOK_S = 90.0, 0.5  # timeout until MirrorMaker copies a topic, on a busy machine, and interval of looking
INTERVALS = ("refresh.topics", "refresh.groups", "emit.checkpoints", "sync.group.offsets")
DEFAULTS = {
    # A topic has one name in both clusters, so a client that fails over needs no other configuration.
    "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
    # New topics, new groups and offsets of groups reach the second cluster within seconds, not minutes.
    **{f"{name}.interval.seconds": "1" for name in INTERVALS},
    "offset.lag.max": "20",
    "sync.group.offsets.enabled": "true",
    "sync.topic.acls.enabled": "false",
    "source->target.enabled": "true",
    "target->source.enabled": "false",
}


class MirrorMaker(Node):
    """MirrorMaker 2, a process that is started, frozen, killed and logged like a node of a cluster."""

    @property
    def command(self) -> list[str]:
        log = f"server-{max(1, self.starts)}.log"
        main_class = "org.apache.kafka.connect.mirror.MirrorMaker"
        return self._java(main_class, [self._properties], log, self._heap_mb, self._flags)


class Mirrored:
    """
    Two clusters of a lab, and MirrorMaker 2, which copies every topic from the first to the second.

    A context manager that yields itself once MirrorMaker runs. Clients use the pair by `host.clusters["mirrored"]`: on
    hosts in regions of the second cluster they use the second, on all other hosts the first. Topics are created in the
    first cluster; creation returns once the second has the topic as well.

    Parameters
    ----------
    source, target : sequence of str
        Regions of the brokers of each cluster.
    first_host : int
        Number of the first host of each region to use; the lab's own cluster may use the hosts before it.
    mirror_settings : mapping
        Settings of MirrorMaker, which override `DEFAULTS`; see "Geo-replication" in Kafka's documentation. It runs on
        the target's first host, because consuming over a long path costs less throughput than producing over it.
    **options
        Parameters of both clusters: see `Cluster`.

    Raises
    ------
    ClusterError
        On entry, if a cluster or MirrorMaker does not start; the message has its last error.
    """

    name = "mirrored"

    def __init__(
        self,
        lab: Lab,
        source: Sequence[str],
        target: Sequence[str],
        *,
        first_host: int = 0,
        mirror_settings: Mapping[str, object] | None = None,
        **options: Any,
    ):
        self.lab, self.settings = lab, checked_settings(mirror_settings or {})
        self.source = _Source(lab, source, name="mirrored-source", first_host=first_host, **options)
        self.target = Cluster(lab, target, name="mirrored-target", first_host=first_host, **options)
        self.source.target, self.mirror, self._stack = self.target, LATER, ExitStack()

    def __enter__(self):
        with ExitStack() as stack:
            for cluster in (self.source, self.target):
                stack.enter_context(cluster)
            place, own = NodePlacement(0, self.target.brokers[0].host, False, False), self.target
            options = {"heap_mb": own.heap_mb, "flags": own.flags(), "metrics": False, "pauses": False}
            self.mirror = MirrorMaker(place, jars=own._jars, **options)  # pyright: ignore[reportPrivateUsage]
            self.mirror.settings = self._settings()
            stack.callback(self.mirror.remove)
            stack.callback(self.mirror.kill)
            self.mirror.make_folder()
            self.mirror.start()
            _await_copy(self.target, "heartbeats", self.check)
            self._stack = stack.pop_all()
        for host in self.lab.all_hosts():
            host.clusters = {**host.clusters, self.name: self}
        return self

    def __exit__(self, *exception: Any) -> None:
        for host in self.lab.all_hosts():
            host.clusters = {name: each for name, each in host.clusters.items() if each is not self}
        self._stack.__exit__(*exception)

    @property
    def brokers(self) -> tuple[Broker, ...]:
        return (*self.source.brokers, *self.target.brokers)

    def seen_from(self, host: Host) -> Host:
        """Return a copy of a host whose `cluster` is the second if that has the host's region, otherwise the first."""
        regions = {broker.host.region for broker in self.target.brokers}
        return (self.target if host.region in regions else self.source).seen_from(host)

    def check(self) -> None:
        """Raise ClusterError if a node or MirrorMaker has ended unexpectedly."""
        for cluster in (self.source, self.target):
            cluster.check()
        if death := self.mirror.death():
            raise death

    def describe(self) -> dict[str, Any]:
        """Return the pair's entry in the manifest: JSON types, no secrets."""
        clusters = {"source": self.source.describe(), "target": self.target.describe()}
        return {"kind": "mirrored", "mirror_maker": without_secrets({**DEFAULTS, **self.settings}), **clusters}

    def keep(self, folder: Path, stem: str = "") -> list[RawFile]:
        """Keep the logs, output and settings of all nodes and of MirrorMaker: see `Cluster.keep`."""
        clusters = [file for each in (self.source, self.target) for file in each.keep(folder, f"{stem}.{each.name}")]
        return [*clusters, *keep([self.mirror] if self.mirror else [], folder, stem)]

    def _settings(self):
        copies = min(3, len(self.source.brokers), len(self.target.brokers))
        internal = ("heartbeats.topic", "checkpoints.topic", "offset-syncs.topic", "offset.storage", "status.storage")
        return {
            "clusters": "source,target",
            "source.bootstrap.servers": self.source.bootstrap,
            "target.bootstrap.servers": self.target.bootstrap,
            "replication.factor": str(min(3, len(self.target.brokers))),
            **{f"{name}.replication.factor": str(copies) for name in (*internal, "config.storage")},
            **DEFAULTS,
            **self.settings,
        }


class _Source(Cluster):
    """The first cluster of a pair: its topics are also in the second."""

    target: Cluster

    def create_topic(self, name: str, *arguments: Any, **more: Any) -> dict[str, Any]:
        made = super().create_topic(name, *arguments, **more)
        _await_copy(self.target, name)
        return made

    def delete_topic(self, name: str) -> None:
        super().delete_topic(name)
        self.target.delete_topic(name)


def _await_copy(target: Cluster, topic: str, check: Callable[[], object] = lambda: None) -> None:
    """Wait until the second cluster has a topic."""
    began, host = time.monotonic(), target.brokers[0].host
    while time.monotonic() < began + COPY_S:
        check()
        try:
            if target.ask(host, "topics", names=[topic]):
                return
        except AnswerError as error:
            if not error.kind.startswith("UnknownTopic"):
                raise
        time.sleep(LOOK_S)
    raise ClusterError(f"MirrorMaker has not copied the topic {topic} after {COPY_S:g} s.")
