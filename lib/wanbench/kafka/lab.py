"""A lab that holds a Kafka cluster: opened and closed together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..labs.base import Lab
from ..runs import RawFile
from .cluster import Cluster
from .security.kinds import Security


class KafkaLab(Lab):
    """
    A lab with a cluster on it.

    Parameters
    ----------
    lab : Lab
        Not yet entered.
    brokers : sequence of str
        Regions of the brokers, in order.
    **options
        The other parameters of `wanbench.kafka.Cluster`.
    """

    def __init__(self, lab: Lab, brokers: Sequence[str], **options):
        self.lab, self.kind = lab, lab.kind
        self.cluster_settings = {"brokers": list(brokers), **options}
        if isinstance(security := options.get("security"), Security):
            self.cluster_settings["security"] = security.describe()
        self.cluster = Cluster(lab, brokers=brokers, **options)

    def __enter__(self) -> KafkaLab:
        self.lab.__enter__()
        try:
            self.cluster.__enter__()
        except BaseException:
            self.lab.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *exception) -> None:
        try:
            self.cluster.__exit__(*exception)
        finally:
            self.lab.__exit__(*exception)

    @property
    def hosts(self):
        return self.lab.hosts

    @property
    def links(self):
        return self.lab.links

    @property
    def sysctls(self):
        return self.lab.sysctls

    def counters(self) -> list[dict] | None:
        """The same as of the underlying lab."""
        return self.lab.counters()

    def devices(self) -> list[dict] | None:
        """The same as of the underlying lab."""
        return self.lab.devices()

    def keep(self, folder: Path, stem: str) -> list[RawFile]:
        """Logs and effective configuration of the brokers, as raw files of a run."""
        return [*self.lab.keep(folder, stem), *self.cluster.keep(folder, stem)]

    def describe(self) -> dict:
        """What the manifest keeps. ClusterError, with the broker's last message, if a broker has died."""
        self.cluster.check()
        lab, cluster = self.lab.describe(), self.cluster.describe()
        return {**lab, "tools": {**lab.get("tools", {}), "Kafka": cluster["kafka"]}, "cluster": cluster}
