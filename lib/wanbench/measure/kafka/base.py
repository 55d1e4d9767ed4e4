"""The interface of every cluster, wherever it runs: client commands, topics, and administrative requests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property

from wanbench.measure.labs.base import Host, Lab, Process

from . import leadership
from .admin import ask as admin
from .java_commands import Jars, checked_flags, checked_heap, java_command
from .security.access import ClientFiles


class BaseCluster(ABC):
    """A cluster that clients on the lab's hosts can reach. A subclass defines how, and whether it is open."""

    lab: Lab

    @cached_property
    def first_order(self) -> leadership.Order:
        """The replica order of each partition before the first of the running experiments changed it."""
        return {}

    @abstractmethod
    def _open_jars(self) -> Jars: ...

    @abstractmethod
    def _open_clients(self) -> ClientFiles: ...

    @abstractmethod
    def _running_host(self) -> Host: ...

    def java(
        self, host: Host, main_class: str, *arguments: str, heap_mb: int = 256, jvm: Sequence[str] = ()
    ) -> list[str]:
        """The command that runs a Java tool of Kafka on a host, logging warnings and errors to stderr."""
        jars, scratch = self._open_jars(), host.scratch
        logging = f"-Dlog4j2.configurationFile={scratch}/tools_log4j2.properties"
        return java_command(
            jars.on(host),
            main_class,
            arguments,
            heap_mb=checked_heap(heap_mb),
            flags=[*jars.archive(host), logging, *checked_flags(jvm)],
            temporary=scratch,
        )

    def client_file(self, host: Host) -> str | None:
        """Path, on that host, of a properties file for a Java client (--command-config); None if it needs none."""
        return self._open_clients().java(host)

    def librdkafka_client_file(self, host: Host) -> str:
        """Path, on that host, of a JSON file with settings for confluent-kafka."""
        return self._open_clients().librdkafka(host)

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication: int = 1,
        settings: Mapping[str, object] | None = None,
        placement: Sequence[Sequence[int]] | None = None,
    ) -> None:
        """
        Make a topic; ClusterError if it exists or the cluster refuses.

        `placement` names the node ids of each partition's replicas, the preferred leader first. None: Kafka's choice.
        """
        admin.create_topic(
            self._running_host(),
            self._open_clients(),
            name,
            partitions=partitions,
            replication=replication,
            settings=dict(settings or {}),
            placement=None if placement is None else [list(nodes) for nodes in placement],
        )

    def delete_topic(self, name: str) -> None:
        """Delete a topic; ClusterError if it does not exist."""
        admin.delete_topic(self._running_host(), self._open_clients(), name)

    def ask(self, host: Host, verb: str, **arguments: object):
        """Send an administrative request from a host: see `wanbench.measure.kafka.admin.ask`."""
        return admin.ask(host, self._open_clients(), verb, **arguments)

    def watching(self, host: Host, duration_s: float, **arguments: object) -> AbstractContextManager[Process]:
        """Watch topics, leaders, in-sync replicas and groups from a host: see `wanbench.measure.kafka.admin.ask.watching`."""
        return admin.watching(host, self._open_clients(), duration_s, **arguments)

    def _lab_hosts(self) -> list[Host]:
        return [host for hosts in self.lab.hosts.values() for host in hosts]
