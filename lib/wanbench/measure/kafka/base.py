"""
Define what clusters that wanbench runs and external ones share: client commands, topics and administrative requests.
"""

import copy
import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import Any

from wanbench.checks import LATER, check_choice, check_flag, check_number
from wanbench.errors import ClusterError, CommandError
from wanbench.measure.labs.base import Host, Lab, Process
from wanbench.measure.labs.programs import module_command

from . import leadership
from .access import ClientFiles, refuse_secrets
from .java_commands import checked_flags, checked_heap, java_command

# Names of functions in `wanbench.measure.kafka.programs.admin`, which runs on hosts only.
VERBS = ("cluster", "topics", "create_topic", "delete_topic", "elect", "lead", "settings", "log_ends", "delete_records")
TIMEOUT_S = 60.0  # longer than the program's own timeouts for reaching a broker and for an answer, 45 s together
PARTITION_S = 0.1  # longer than a busy broker takes to make its log of one partition
MINIMUM_INTERVAL_S = 0.25  # minimum interval of samples: each takes a round trip, on a long path


class AnswerError(ClusterError):
    """
    A cluster refused a request or did not answer.

    `kind` is Kafka's name for the error, such as "TopicAlreadyExistsError", or "Unreachable" if no broker answered.
    """

    def __init__(self, reason: str, kind: str):
        super().__init__(reason)
        self.kind = kind

    def __reduce__(self):
        return AnswerError, (str(self), self.kind)


def ask(host: Host, files: ClientFiles, verb: str, *, timeout_s: float = TIMEOUT_S, **arguments: Any) -> Any:
    """
    Run an administrative request as a process on a host; return its answer, in JSON types.

    `verb` is one of `VERBS`: functions in `wanbench.measure.kafka.programs.admin`, whose docstrings describe the
    arguments and answers. Every verb also takes `connect_s` and `request_s`, the timeouts in s for reaching a broker
    and for one answer.

    Raises
    ------
    ParameterError
        If the verb is unknown, or a setting may hold a secret, because command lines are visible to other users.
    AnswerError
        If the cluster refuses the request or does not answer.
    """
    check_choice("verb", verb, VERBS)
    refuse_secrets(arguments.get("settings") or {}, "the cluster's security")
    subject = arguments.get("name") or arguments.get("topic")
    subject = "" if subject is None else f" {subject!r}"
    asked = f"{verb}{subject}, asked from {host.name} at {files.bootstrap} ({files.access.label})"
    try:
        done = host.run(_program(host, files, "admin", verb, arguments), timeout_s=timeout_s, ok=None)
    except CommandError:
        raise AnswerError(f"{asked}: no answer within {timeout_s:g} s", "Timeout") from None
    try:
        printed = json.loads(done.stdout.splitlines()[-1])
        if "answer" in printed:
            return printed["answer"]
        kind, message = str(printed["error"]["kind"]), str(printed["error"]["message"])
    except (ValueError, LookupError, TypeError):
        last = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()[-1:]
        raise AnswerError(
            f"{asked}: it ended with status {done.returncode}: {' '.join(last)[:500] or 'it printed nothing'}", "Died"
        ) from None
    raise AnswerError(f"{asked}: {kind}: {message}" if kind != message else f"{asked}: {kind}", kind)


@contextmanager
def watching(
    host: Host,
    files: ClientFiles,
    duration_s: float,
    *,
    interval_s: float = MINIMUM_INTERVAL_S,
    topics: Sequence[str] | None = None,
    members: Sequence[str] | None = None,
    internal: bool = False,
) -> Generator[Process]:
    """
    Watch a cluster from a host; yield the watching process, which ends after `duration_s` or at the end of the `with`
    block.

    The process prints one JSON object per sample. `wanbench.measure.kafka.programs.watch.watch` describes the
    parameters and the samples. Raise ParameterError if `duration_s` is not above 0, if `interval_s` is below 0.25, or
    if `internal` is not True or False.
    """
    arguments = {
        "duration_s": check_number("duration_s", duration_s, 0, above=True),
        "interval_s": check_number("interval_s", interval_s, MINIMUM_INTERVAL_S),
        "topics": None if topics is None else list(topics),
        "members": None if members is None else list(members),
        "internal": check_flag("internal", internal),
    }
    process = host.start(_program(host, files, "watch", arguments))
    try:
        yield process
    finally:
        process.stop()


def _program(host: Host, files: ClientFiles, name: str, *arguments: object) -> list[str]:
    texts = [value if isinstance(value, str) else json.dumps(value) for value in arguments]
    return module_command(host, f"wanbench.measure.kafka.programs.{name}", files.python(host), *texts)


class BaseCluster:
    """
    A cluster that clients on the lab's hosts can reach.

    A subclass defines `_open_jars`, `_open_clients` and `_running_host`; each raises ClusterError if the cluster is not
    open.
    """

    lab: Lab
    _open_jars = _open_clients = _running_host = LATER
    name: str | None = None
    """The cluster's name in `host.clusters`; None if it is `host.cluster`, the lab's only one."""

    @cached_property
    def _views(self) -> dict[str, Host]:
        return {}

    @cached_property
    def original_order(self) -> leadership.Order:
        """Return the original replica order of each partition that a running experiment has changed."""
        return {}

    def java(
        self, host: Host, main_class: str, *arguments: str, heap_mb: int = 256, jvm: Sequence[str] = ()
    ) -> list[str]:
        """
        Return the command that runs one of Kafka's Java tools on a host; the tool logs warnings and errors to stderr.
        """
        jars, scratch = self._open_jars(), host.scratch
        logging = f"-Dlog4j2.configurationFile={scratch}/tools_log4j2.properties"
        flags = [*jars.archive(host), logging, *checked_flags(jvm)]
        heap_mb = checked_heap(heap_mb)
        return java_command(jars.on(host), main_class, arguments, heap_mb=heap_mb, flags=flags, temporary=scratch)

    def client_file(self, host: Host) -> str | None:
        """
        Return the path on the host of a properties file for Java clients (--command-config), or None if they need no
        file.
        """
        return self._open_clients().java(host)

    def librdkafka_client_file(self, host: Host) -> str:
        """Return the path on the host of a JSON file with settings for confluent-kafka."""
        return self._open_clients().librdkafka(host)

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication: int = 1,
        settings: Mapping[str, object] | None = None,
        placement: Sequence[Sequence[int]] | None = None,
    ) -> dict[str, Any]:
        """
        Create a topic; return its description, as the verb `topics` does. Raise ClusterError if it exists or the
        cluster refuses it.

        `placement` lists the node ids of each partition's replicas, the preferred leader first; if it is None, Kafka
        chooses.
        """
        arguments = {
            "partitions": check_number("partitions", partitions, 1, whole=True),
            "replication": check_number("replication", replication, 1, whole=True),
            "settings": dict(settings or {}),
            "placement": None if placement is None else [list(nodes) for nodes in placement],
        }
        timeout_s = TIMEOUT_S + PARTITION_S * (partitions if placement is None else len(placement))
        return self.ask(self._running_host(), "create_topic", timeout_s=timeout_s, name=name, **arguments)

    def delete_topic(self, name: str) -> None:
        """Delete a topic; raise ClusterError if it does not exist."""
        self.ask(self._running_host(), "delete_topic", name=name)

    def ask(self, host: Host, verb: str, **arguments: Any) -> Any:
        """Send an administrative request from a host: see `wanbench.measure.kafka.base.ask`."""
        return ask(host, self._open_clients(), verb, **arguments)

    def watching(self, host: Host, duration_s: float, **arguments: Any) -> AbstractContextManager[Process]:
        """
        Watch topics, leaders, in-sync replicas and groups from a host: see `wanbench.measure.kafka.base.watching`.
        """
        return watching(host, self._open_clients(), duration_s, **arguments)

    def seen_from(self, host: Host) -> Host:
        """Return a copy of a lab host whose `cluster` is this cluster; repeated calls return the same copy."""
        if host.name not in self._views:
            self._views[host.name] = seen = copy.copy(host)
            seen.cluster = self
        return self._views[host.name]

    def _check_free(self) -> None:
        if self.name is None and any(host.cluster is not None for host in self.lab.all_hosts()):
            raise ClusterError("the lab already has a cluster.")

    def _offer(self) -> None:
        """Let the lab's hosts reach this cluster."""
        for host in self.lab.all_hosts():
            if self.name is None:
                host.cluster = self
            else:
                host.clusters = {**host.clusters, self.name: self}

    def _withdraw(self) -> None:
        self._views.clear()
        for host in self.lab.all_hosts():
            if host.cluster is self:
                host.cluster = None
            host.clusters = {name: cluster for name, cluster in host.clusters.items() if cluster is not self}
