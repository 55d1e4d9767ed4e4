"""A lab with Kafka: its own cluster, external clusters, or both, opened and closed together."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from wanbench.measure.labs.base import Lab
from wanbench.runs import RawFile

from .cluster import Cluster
from .external import ExternalCluster, external_clusters
from .java_commands import Jars
from .mirror import Mirrored
from .security import Security


def _of_lab(name: str) -> Any:
    return property(lambda lab: getattr(lab.lab, name), doc="As for the underlying lab.")


class KafkaLab(Lab):
    """
    A lab with a cluster of its own, a mirrored pair of clusters, external clusters, or several of these.

    A host's `cluster` is the lab's own cluster. Without one, it is the external cluster or the mirrored pair, if there
    is exactly one of these.

    Parameters
    ----------
    lab : Lab
        A lab that has not been entered.
    brokers : sequence of str
        The region of each broker of the lab's own cluster, in order. If it is empty, the lab has no cluster of its own.
    external : mapping, optional
        For each external cluster's name, the parameters of `wanbench.measure.kafka.ExternalCluster`.
    mirrored : mapping, optional
        Parameters of `wanbench.measure.kafka.Mirrored`, for a pair of clusters that is reached by the name "mirrored".
        The pair uses the hosts after those of the lab's own cluster.
    **options
        Further parameters of `wanbench.measure.kafka.Cluster`, for the own cluster and the pair.
    """

    hosts = _of_lab("hosts")
    links = _of_lab("links")
    sysctls = _of_lab("sysctls")
    settings = _of_lab("settings")
    path_names = _of_lab("path_names")
    agree_to = _of_lab("agree_to")
    before_round = _of_lab("before_round")
    counters = _of_lab("counters")
    devices = _of_lab("devices")
    keep_costs = _of_lab("keep_costs")

    def __init__(
        self,
        lab: Lab,
        brokers: Sequence[str] = (),
        *,
        external: Mapping[str, Mapping[str, Any]] | None = None,
        mirrored: Mapping[str, Any] | None = None,
        **options: Any,
    ):
        self.lab, self.kind = lab, lab.kind
        self.cluster_settings = {"brokers": list(brokers), **options}
        if isinstance(security := options.get("security"), Security):
            self.cluster_settings["security"] = security.describe()
        self.cluster = Cluster(lab, brokers=brokers, **options) if brokers else None
        self.external: dict[str, ExternalCluster | Mirrored] = {**external_clusters(lab, external or {})}
        if self.external:
            self.cluster_settings["external"] = self._external_descriptions()
        if mirrored is not None:
            self.cluster_settings["mirrored"] = dict(mirrored)
            first_host = max(map(list(brokers).count, brokers), default=0)
            self.external["mirrored"] = Mirrored(lab, **{"first_host": first_host, **options, **mirrored})
        self._stack = ExitStack()

    def __enter__(self):
        with ExitStack() as stack:
            stack.enter_context(self.lab)
            for cluster in self._clusters():
                stack.enter_context(cluster)
            self._stack = stack.pop_all()
        if self.cluster is None and len(self.external) == 1:
            for host in self.lab.all_hosts():
                [host.cluster] = self.external.values()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._stack.__exit__(*exception)

    def keep(self, folder: Path, stem: str) -> list[RawFile]:
        """Keep the logs and effective settings of brokers, and the reports of external clusters, as raw files."""
        files = [*self.lab.keep(folder, stem)]
        if self.cluster is not None:
            files += self.cluster.keep(folder, stem)
        for name, cluster in self.external.items():
            files += cluster.keep(folder, f"{stem}.{name}")
        return files

    def describe(self) -> dict[str, Any]:
        """
        Return the lab's entry in the manifest, without addresses and users of external clusters.

        Raise ClusterError if a broker has died (the message has its last error), or if an external cluster does not
        answer.
        """
        for cluster in self._clusters():
            cluster.check()
        lab = self.lab.describe()
        of_own = {} if self.cluster is None else {"cluster": self.cluster.describe()}
        version = of_own["cluster"]["kafka"] if of_own else Jars().version
        of_others = {"external": self._external_descriptions()} if self.external else {}
        return {**lab, "tools": {**lab.get("tools", {}), "Kafka": version}, **of_own, **of_others}

    def _clusters(self):
        return [*([] if self.cluster is None else [self.cluster]), *self.external.values()]

    def _external_descriptions(self):
        return {name: cluster.describe() for name, cluster in self.external.items()}
