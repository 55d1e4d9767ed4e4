"""Every cluster, wherever it runs: client commands, topics, and administrative requests."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property

from wanbench.checks import check_choice, check_flag, check_number
from wanbench.errors import ClusterError, CommandError
from wanbench.measure.labs.base import Host, Lab, Process
from wanbench.measure.labs.programs import module_command

from . import leadership
from .access import ClientFiles, refuse_secrets
from .java_commands import checked_flags, checked_heap, java_command

# Functions of `wanbench.measure.kafka.programs.admin`, which this machine does not import.
VERBS = ("cluster", "topics", "create_topic", "delete_topic", "elect", "lead", "settings", "log_ends")
TIMEOUT_S = 60.0  # timeout, longer than the program's own waits for a broker and for the answer: 45 s
MINIMUM_INTERVAL_S = 0.25  # interval of samples: each takes a round trip of a long path


class AnswerError(ClusterError):
    """
    A cluster refused a request, or did not answer. `kind` is Kafka's name of the error, such as
    "TopicAlreadyExistsError"; "Unreachable" if no broker answered.
    """

    def __init__(self, reason: str, kind: str):
        super().__init__(reason)
        self.kind = kind

    def __reduce__(self):
        return AnswerError, (str(self), self.kind)


def ask(host: Host, files: ClientFiles, verb: str, *, timeout_s: float = TIMEOUT_S, **arguments: object):
    """
    Run an administrative request in a process on a host; returns the answer, in JSON types.

    `verb` is one of `VERBS`; the function of that name says what it takes and returns. Any verb also takes connect_s
    and request_s: how long to look for a broker, and to wait for one answer.

    Raises
    ------
    ParameterError
        If there is no such verb, or settings may hold a secret: they would be visible in a command line.
    AnswerError
        If the cluster refuses or does not answer.
    """
    check_choice("verb", verb, VERBS)
    refuse_secrets(arguments.get("settings") or {}, "the cluster's security")  # command lines can be seen
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
) -> Iterator[Process]:
    """
    Watch a cluster from a host; yields the process, which ends after `duration_s` and is stopped when the block ends.

    It prints a JSON object per sample on stdout. `wanbench.measure.kafka.programs.watch.watch` says what the parameters
    mean and what a sample holds. ParameterError if duration_s is not above 0, interval_s is less than 0.25, or internal
    is not True or False.
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


def _program(host, files, name, *arguments):
    words = [word if isinstance(word, str) else json.dumps(word) for word in arguments]
    return module_command(host, f"wanbench.measure.kafka.programs.{name}", files.python(host), *words)


class BaseCluster:
    """
    A cluster that clients on the lab's hosts can reach. A subclass defines `_open_jars`, `_open_clients` and
    `_running_host`, which raise ClusterError unless it is open.
    """

    lab: Lab

    @cached_property
    def original_order(self) -> leadership.Order:
        """The replica order of each partition before the first of the running experiments changed it."""
        return {}

    def java(
        self, host: Host, main_class: str, *arguments: str, heap_mb: int = 256, jvm: Sequence[str] = ()
    ) -> list[str]:
        """The command that runs a Java tool of Kafka on a host, logging warnings and errors to stderr."""
        jars, scratch = self._open_jars(), host.scratch
        logging = f"-Dlog4j2.configurationFile={scratch}/tools_log4j2.properties"
        flags = [*jars.archive(host), logging, *checked_flags(jvm)]
        heap_mb = checked_heap(heap_mb)
        return java_command(jars.on(host), main_class, arguments, heap_mb=heap_mb, flags=flags, temporary=scratch)

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
    ) -> dict:
        """
        Make a topic and return it, as the verb topics does; ClusterError if it exists or the cluster refuses.

        `placement` names the node ids of each partition's replicas, the preferred leader first. None: Kafka's choice.
        """
        arguments = {
            "partitions": check_number("partitions", partitions, 1, whole=True),
            "replication": check_number("replication", replication, 1, whole=True),
            "settings": dict(settings or {}),
            "placement": None if placement is None else [list(nodes) for nodes in placement],
        }
        return self.ask(self._running_host(), "create_topic", name=name, **arguments)

    def delete_topic(self, name: str) -> None:
        """Delete a topic; ClusterError if it does not exist."""
        self.ask(self._running_host(), "delete_topic", name=name)

    def ask(self, host: Host, verb: str, **arguments: object):
        """Send an administrative request from a host: see `ask` of this module."""
        return ask(host, self._open_clients(), verb, **arguments)

    def watching(self, host: Host, duration_s: float, **arguments: object) -> AbstractContextManager[Process]:
        """Watch topics, leaders, in-sync replicas and groups from a host: see `watching` of this module."""
        return watching(host, self._open_clients(), duration_s, **arguments)

    def _lab_hosts(self) -> list[Host]:
        return [host for hosts in self.lab.hosts.values() for host in hosts]
