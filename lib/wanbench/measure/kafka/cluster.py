"""Run a Kafka cluster on the hosts of a lab, and stop, kill and restart its nodes."""

import base64
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from wanbench.checks import LATER, check_choice, check_flag, check_number
from wanbench.errors import ClusterError, CommandError, ParameterError
from wanbench.measure.labs.base import Host, Lab
from wanbench.measure.labs.programs import module_command
from wanbench.runs import RawFile

from .access import ClientFiles, without_secrets
from .base import AnswerError, BaseCluster
from .java_commands import PROFILES, Jars, checked_flags, checked_heap
from .node import Node, keep
from .placement import METRICS_PORT, Broker, NodePlacement, place_nodes
from .security import Security
from .security import security as chosen_security
from .settings import checked_settings, defaults, effective_settings, node_settings, tier_settings, unknown

_REPORT_S = 10.0  # interval of progress reports on stderr while the cluster starts


class Cluster(BaseCluster):
    """
    An Apache Kafka cluster (KRaft) on an open lab: a context manager that yields itself once the cluster serves.

    The cluster serves once all brokers know each other and a client has produced a record to each broker with acks=all
    and consumed it. On exit, the nodes are always stopped and their files deleted.

    Parameters
    ----------
    brokers : sequence of str
        The region of each broker, for 1 to 9 brokers. Broker i (counted from 0) has the node.id i + 1, and its region
        as its rack. Broker k of a region (counted from 0) runs on `lab.host(region, k)`.
    controllers : "combined", or a sequence of str
        With "combined", up to three brokers are also controllers. A sequence gives the regions of 1, 3 or 5 separate
        controllers, whose node.ids follow those of the brokers.
    settings : mapping
        Broker settings; they override `wanbench.measure.kafka.settings.defaults`.
    features : mapping
        Levels of Kafka's features where they differ from the version's own, such as
        {"eligible.leader.replicas.version": 0}; Kafka refuses unknown ones.
    security : str or Security
        "plain", "tls" or "mtls".
    profile : str
        JVM flags, one of `wanbench.measure.kafka.java_commands.PROFILES`: "load" for measurements, "functional" for
        faster starts.
    heap_mb, jvm : int, sequence of str
        Heap of each node in MiB, and further JVM flags, which override the profile's.
    tiered : bool
        Whether brokers copy the closed segments of topics with `remote.storage.enable` to a second tier: a folder of
        this machine, by Kafka's own LocalTieredStorage. Needs hosts on this machine and security "plain".
    metrics : bool
        Whether to serve each broker's metrics over HTTP.
    pauses : bool
        Whether each JVM logs its garbage collections and safepoints, for table broker_pauses.
    start_timeout_s : float
        How long to wait until the cluster serves.
    name, first_host : str, int
        For one of several clusters of a lab: its name in `host.clusters`, and the number of the first host of each
        region that it uses.

    Raises
    ------
    ParameterError
        If a parameter is invalid or the lab has too few hosts.
    ClusterError
        On entry, if the cluster does not start; the message quotes the last error of the failed node.
    """

    def __init__(
        self,
        lab: Lab,
        brokers: Sequence[str],
        *,
        controllers: str | Sequence[str] = "combined",
        settings: Mapping[str, object] | None = None,
        features: Mapping[str, int] | None = None,
        security: str | Security = "plain",
        profile: str = "load",
        heap_mb: int = 384,
        jvm: Sequence[str] = (),
        tiered: bool = False,
        metrics: bool = True,
        pauses: bool = True,
        start_timeout_s: float = 180.0,
        name: str | None = None,
        first_host: int = 0,
    ):
        self.lab, self.metrics, self.pauses = lab, bool(metrics), bool(pauses)
        self.profile = check_choice("profile", profile, PROFILES)
        self.settings, self.features = checked_settings(settings or {}), dict(features or {})
        self.security = chosen_security(security)
        self.tiered = check_flag("tiered", tiered)
        if tiered and (lab.kind != "local" or self.security.kind != "plain"):
            given = f"True on a lab of kind {lab.kind!r} with security {self.security.kind!r}"
            raise ParameterError(f"tiered is {given}; allowed: a local lab and 'plain'.")
        self.heap_mb, self.jvm = checked_heap(heap_mb), checked_flags(jvm)
        self.start_timeout_s = check_number("start_timeout_s", start_timeout_s, 0, 3600, above=True)
        self._regions, self.name = (brokers, controllers, first_host), name
        self._place()
        self.started_in_s: float | None = None
        self._jars, self._clients, self._nodes = LATER, LATER, {}
        self._own, self._version = (self.settings, self.security), None

    def __enter__(self):
        if self._nodes:
            raise ClusterError("the cluster is already started.")
        began = time.monotonic()
        self._check_free()
        self._place()  # again, because rented hosts have no address before the lab is open
        try:
            self._make_nodes()
            self._at_each_node(lambda node: node.prepare(self._cluster_id, self.features))
            for node in self._nodes.values():
                node.start()
            self.await_serving(self.start_timeout_s)
            self._check_settings()
        except BaseException:
            self.__exit__()
            raise
        self.started_in_s = time.monotonic() - began
        self._offer()
        return self

    def __exit__(self, *exception: object) -> None:
        self._withdraw()
        try:
            self._at_each_node(Node.kill)
        finally:
            self._at_each_node(Node.remove)
            self._nodes = {}
            if self._clients is not None:
                self._clients.remove()

    def await_serving(self, timeout_s: float) -> None:
        """Return once every running broker serves; raise ClusterError with the latest state on timeout."""
        host, began = self.brokers[0].host, time.monotonic()
        up = ",".join(str(broker.node_id) for broker in self.brokers if self._node(broker.node_id).is_up)
        readiness = module_command(host, "wanbench.measure.kafka.programs.readiness", self._clients.python(host), up)
        process, report_at_s = host.start(readiness), _REPORT_S
        try:
            while True:
                self.check()
                try:
                    done = process.wait(0.25)
                    break
                except CommandError as error:
                    state = _last_line(error.completed.stdout) or "no broker has answered"
                waited_s = time.monotonic() - began
                if waited_s > timeout_s:
                    raise ClusterError(f"the cluster does not serve after {timeout_s:g} s: {state}")
                if waited_s > report_at_s:
                    print(f"Kafka: {state} after {waited_s:.0f} s", file=sys.stderr, flush=True)
                    report_at_s += _REPORT_S
        finally:
            process.stop()
        if done.returncode:
            why = _last_line(done.stderr) or f"status {done.returncode}"
            raise ClusterError(f"the check whether the cluster serves has failed: {why}")

    def log_folder(self, node_id: int) -> str:
        """Return a node's data folder on its host; it has a subfolder for each partition."""
        return self._node(node_id).data_folder

    def pid_file(self, node_id: int) -> str:
        """Return the path, on the node's host, of the file with the process id of the node's latest start."""
        return self._node(node_id).pid_file

    def log(self, node_id: int) -> bytes:
        """Return a node's log, of all its starts in order."""
        node = self._node(node_id)
        return b"".join(node.log(start) for start in range(1, node.starts + 1))

    def stop(self, node_id: int) -> None:
        """
        Stop a node after it has handed over its leadership. Raise ClusterError if the node is not running; if it died,
        the message says why.
        """
        self._running(node_id).stop()

    def kill(self, node_id: int) -> None:
        """
        Kill a node at once, as a power cut would. Raise ClusterError if the node is not running; if it died, the
        message says why.
        """
        self._running(node_id).kill()

    def start(self, node_id: int, *, wait: bool = True) -> None:
        """
        Start a stopped or dead node with its old data; raise ClusterError if it is running. With `wait`, return once
        all running nodes serve.
        """
        node = self._node(node_id)
        if self.runs(node_id):
            raise ClusterError(f"{node.placement.name} runs already.")
        node.start()
        if wait:
            self.await_serving(self.start_timeout_s)

    def runs(self, node_id: int) -> bool:
        """Return whether a node was started and has neither been stopped nor died since."""
        node = self._node(node_id)
        return node.is_up and node.death() is None

    def freeze(self, node_id: int) -> None:
        """
        Suspend a node's process, as if its machine swapped heavily; raise ClusterError if the node is not running.
        """
        self._running(node_id).freeze()

    def thaw(self, node_id: int) -> None:
        """Resume a suspended node's process."""
        self._node(node_id).thaw()

    def reconfigure(
        self,
        settings: Mapping[str, Any] | None = None,
        security: str | Security | None = None,
        version: str | None = None,
    ) -> bool:
        """
        Restart all nodes with other settings, security or version; return False, without a restart, if nothing changes.

        `settings` are added to the cluster's own settings; if a parameter is None, the cluster's own value is restored.
        Nodes keep their data in the format of the first version, as in a rolling upgrade before its last step.

        Raise ParameterError if a setting is malformed or set by the cluster itself; raise ClusterError if the cluster
        is not started or does not serve again, or if Kafka has no such setting.
        """
        self._open_jars()
        own_settings, own_security = self._own
        wanted = {**own_settings, **checked_settings(settings or {})}
        kind = own_security if security is None else chosen_security(security)
        if wanted == self.settings and kind.kind == self.security.kind and version == self._version:
            return False
        jars = self._jars if version == self._version else Jars(version)
        self._at_each_node(Node.kill)
        self._jars, self._version = jars, version
        if kind.kind != self.security.kind:
            self._clients.remove()
            self._clients = ClientFiles(self.bootstrap, kind.access())
            self.security = kind
        self.settings = wanted
        for node in self._nodes.values():
            node.jars = jars
            node.write_settings(self._settings_of(node.placement, node.data_folder))
            node.start()
        self.await_serving(self.start_timeout_s)
        self._check_settings()
        return True

    def ask(self, host: Host, verb: str, **arguments: Any) -> Any:
        """Send an administrative request, as to any cluster; raise AnswerError at once if no broker is running."""
        self._running_host()
        return super().ask(host, verb, **arguments)

    def check(self) -> None:
        """Raise ClusterError, with the node's last error and its log, if a node has ended unexpectedly."""
        for node in self._nodes.values():
            if death := node.death():
                raise death

    def describe(self) -> dict[str, Any]:
        """Return the cluster's entry in the manifest: JSON types, no secrets."""
        return {
            "kafka": self._jars.version if self._jars else None,
            "nodes": [
                {"node_id": node.node_id, "host": node.host.name, "rack": node.host.region, "roles": node.roles}
                for node in self.placements
            ],
            "bootstrap": self.bootstrap,
            "defaults": defaults(len(self.brokers)),
            "settings": without_secrets(self.settings),
            "security": self.security.describe(),
            "profile": self.profile,
            "jvm": self.flags(),
            **{name: getattr(self, name) for name in ("heap_mb", "tiered", "metrics", "pauses", "started_in_s")},
        }

    def keep(self, folder: Path, stem: str = "") -> list[RawFile]:
        """
        Fetch the logs, output and settings of every node, running or not, into <run folder>/kafka_cluster/: see
        `wanbench.measure.kafka.node.keep`.
        """
        return keep(list(self._nodes.values()), folder, stem)

    def __repr__(self):
        state = "started" if self._nodes else "not started"
        return f"<Kafka cluster, {state}: {len(self.brokers)} brokers at {self.bootstrap}>"

    def _place(self):
        self.placements = place_nodes(self.lab, *self._regions)
        self.brokers = tuple(
            Broker(placement.node_id, placement.host, metrics_port=METRICS_PORT if self.metrics else None)
            for placement in self.placements
            if placement.is_broker
        )
        self.bootstrap = ",".join(f"{broker.host.address}:{broker.port}" for broker in self.brokers)

    def _make_nodes(self):
        self._jars = Jars()
        # The first letter is fixed, because the tool would take an identifier that begins with "-" for an option.
        self._cluster_id = "W" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")[1:]
        self._clients = ClientFiles(self.bootstrap, self.security.access())
        options = {name: getattr(self, name) for name in ("heap_mb", "metrics", "pauses")}
        for placement in self.placements:
            node = Node(placement, jars=self._jars, flags=self.flags(), **options)
            node.settings = self._settings_of(placement, node.data_folder)
            self._nodes[placement.node_id] = node

    def _settings_of(self, placement: NodePlacement, data_folder: str) -> dict[str, str]:
        first = self.brokers[0]
        folder = f"{first.host.scratch}/kafka-{first.node_id}/tier"  # removed with that node
        tier = tier_settings(folder, len(self.brokers)) if self.tiered else {}
        protocols, wanted = self.security.protocols, {**tier, **self.settings}
        own = node_settings(placement, self.placements, data_folder, protocols, wanted)
        return own | self.security.broker_settings(placement.host)

    def _check_settings(self):
        effective = effective_settings(self._nodes[self.brokers[0].node_id].log())
        if effective and (missing := unknown(self.settings, effective)):
            raise ClusterError(f"Kafka {self._jars.version} has no broker setting {', '.join(missing)}.")

    def _running_host(self):
        for broker in self.brokers:
            if self.runs(broker.node_id):
                return broker.host
        raise AnswerError("no broker of the cluster is running.", "Unreachable")

    def flags(self) -> list[str]:
        return [*PROFILES[self.profile], *self.jvm]

    def _at_each_node(self, do: Callable[[Node], None]):
        if self._nodes:
            with ThreadPoolExecutor(len(self._nodes)) as threads:
                for result in [threads.submit(do, node) for node in self._nodes.values()]:
                    result.result()

    def _running(self, node_id: int) -> Node:
        node = self._node(node_id)
        if not node.is_up:
            raise ClusterError(f"{node.placement.name} is not running.")
        if death := node.death():
            raise death
        return node

    def _node(self, node_id: int) -> Node:
        if node_id not in self._nodes:
            nodes = ", ".join(map(str, self._nodes)) or "none: it is not started"
            raise ClusterError(f"the cluster has no node {node_id!r}; it has {nodes}.")
        return self._nodes[node_id]

    def _open_jars(self):
        if self._jars is None:
            raise ClusterError("the cluster is not started; use it in a with statement.")
        return self._jars

    def _open_clients(self):
        self._open_jars()
        return self._clients


def _last_line(printed: bytes) -> str:
    lines = printed.decode(errors="replace").strip().splitlines()
    return lines[-1].strip()[:300] if lines else ""
