"""Administrative requests to a cluster, sent by kafka-python in a process on a host: `program`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from wanbench.checks import check_choice, check_flag, check_number
from wanbench.errors import CommandError
from wanbench.measure.kafka.errors import ClusterError
from wanbench.measure.kafka.security.access import ClientFiles
from wanbench.measure.kafka.security.secret import refuse_secrets
from wanbench.measure.labs.base import Host, Process
from wanbench.measure.labs.programs import module_command

VERBS = (
    "cluster", "topics", "create_topic", "delete_topic", "reassign", "reassignments", "elect", "lead", "settings",
    "change", "groups", "offsets", "log_ends",
)  # fmt: skip
TIMEOUT_S = 60.0
"""Timeout, longer than the program's own waits for a broker and for the answer: 45 s."""

MINIMUM_INTERVAL_S = 0.25
"""Interval of samples; one with groups asks every broker, and takes several round trips of a long path."""


class AnswerError(ClusterError):
    """
    A cluster refused a request, or did not answer.

    Parameters
    ----------
    reason : str
        What was tried, and Kafka's message.
    kind : str
        Kafka's name of the error, such as "TopicAlreadyExistsError"; "Unreachable" if no broker answered.
    """

    def __init__(self, reason: str, kind: str):
        super().__init__(reason)
        self.kind = kind

    def __reduce__(self):
        return AnswerError, (str(self), self.kind)


def command(host: Host, files: ClientFiles, verb: str, arguments: dict) -> list[str]:
    """The command that sends a request; the client's settings are in a file that it names."""
    program = "wanbench.measure.kafka.admin.program"
    return module_command(host, program, files.python(host), verb, json.dumps(arguments))


def ask(host: Host, files: ClientFiles, verb: str, *, timeout_s: float = TIMEOUT_S, **arguments: object):
    """
    Run an administrative request and return the answer, in JSON types.

    Parameters
    ----------
    host : Host
        Host on which the asking process runs.
    files : ClientFiles
        How to reach the cluster from there.
    verb : str
        One of `VERBS`. Each is a function of `queries` or `groups`, which says what it takes and returns.
    **arguments
        What the verb takes. Any verb also takes connect_s and request_s: how long to look for a broker, and to wait
        for one answer.

    Raises
    ------
    ParameterError
        If there is no such verb, or settings may hold a secret: they would be visible in a command line.
    AnswerError
        If the cluster refuses or does not answer.
    """
    check_choice("verb", verb, VERBS)
    refuse_secrets(arguments.get("settings") or {}, "the cluster's security")  # command lines can be seen
    tried = f"{verb}{_subject(arguments)}, asked from {host.name} at {files.bootstrap} ({files.access.label})"
    try:
        done = host.run(command(host, files, verb, arguments), timeout_s=timeout_s, ok=None)
    except CommandError:
        raise AnswerError(f"{tried}: no answer within {timeout_s:g} s", "Timeout") from None
    try:
        printed = json.loads(done.stdout.splitlines()[-1])
        if "answer" in printed:
            return printed["answer"]
        kind, message = str(printed["error"]["kind"]), str(printed["error"]["message"])
    except (ValueError, LookupError, TypeError):
        last = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()[-1:]
        raise AnswerError(
            f"{tried}: it ended with status {done.returncode}: {' '.join(last)[:500] or 'it printed nothing'}", "Died"
        ) from None
    raise AnswerError(f"{tried}: {kind}: {message}" if kind != message else f"{tried}: {kind}", kind)


def create_topic(
    host: Host,
    files: ClientFiles,
    name: str,
    *,
    partitions: int = 1,
    replication: int = 1,
    settings: dict[str, object] | None = None,
    placement: list[list[int]] | None = None,
) -> dict:
    """
    Make a topic; return it, as `wanbench.measure.kafka.admin.queries.topics` does, once every broker knows its leaders.

    Raises
    ------
    ParameterError
        If partitions or replication is not a whole number of at least 1.
    AnswerError
        If there is one of that name (kind "TopicAlreadyExistsError"), or the cluster refuses it.
    """
    return ask(
        host,
        files,
        "create_topic",
        name=name,
        partitions=check_number("partitions", partitions, 1, whole=True),
        replication=check_number("replication", replication, 1, whole=True),
        settings=settings or {},
        placement=placement,
    )


def delete_topic(host: Host, files: ClientFiles, name: str) -> None:
    """
    Delete a topic; return once no broker knows it.

    Raises
    ------
    AnswerError
        If there is none (kind "UnknownTopicOrPartitionError").
    """
    ask(host, files, "delete_topic", name=name)


@contextmanager
def watching(
    host: Host,
    files: ClientFiles,
    duration_s: float,
    *,
    interval_s: float = MINIMUM_INTERVAL_S,
    topics: Sequence[str] | None = None,
    groups: bool = False,
    request_s: float = 1.0,
    members: Sequence[str] | None = None,
    internal: bool = False,
) -> Iterator[Process]:
    """
    Watch a cluster from a host; yields the process, which ends after `duration_s` and is stopped when the block ends.

    It prints a JSON object per sample on stdout: `samples(process.stop().stdout)`. `wanbench.measure.kafka.admin.watch.watch`
    says what the parameters mean and what a sample holds.

    Raises
    ------
    ParameterError
        If duration_s or request_s is not above 0, interval_s is less than 0.25, or groups or internal is not True or
        False.
    """
    arguments = {
        "duration_s": check_number("duration_s", duration_s, 0, above=True),
        "interval_s": check_number("interval_s", interval_s, MINIMUM_INTERVAL_S),
        "topics": None if topics is None else list(topics),
        "groups": check_flag("groups", groups),
        "request_s": check_number("request_s", request_s, 0, above=True),
        "members": None if members is None else list(members),
        "internal": check_flag("internal", internal),
    }
    process = host.start(command(host, files, "watch", arguments))
    try:
        yield process
    finally:
        process.stop()


def samples(printed: bytes) -> list[dict]:
    """
    The samples that a watch printed; a last line cut short by a stop is dropped.

    >>> samples(b'{"at_s": 1.0, "took_s": 0.1}\\n{"at_s": 1.')
    [{'at_s': 1.0, 'took_s': 0.1}]
    """
    whole = printed[: printed.rfind(b"\n") + 1]
    return [json.loads(line) for line in whole.splitlines()]


def _subject(arguments):
    name = arguments.get("name") or arguments.get("topic") or arguments.get("group")
    return f" {name!r}" if name is not None else ""
