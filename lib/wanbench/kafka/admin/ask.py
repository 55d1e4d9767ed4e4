"""Administrative questions to a cluster, put by kafka-python in a process on a host (`admin_program`)."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ...errors import CommandError, ParameterError
from ...labs.base import Host, Process
from ..errors import ClusterError
from ..security.access import ClientFiles
from ..security.secret import refuse_secrets

VERBS = (
    "cluster", "topics", "create_topic", "delete_topic", "reassign", "reassignments", "elect", "settings", "change",
    "groups", "offsets",
)  # fmt: skip
TIMEOUT_S = 60.0


class AnswerError(ClusterError):
    """
    A cluster refused what it was asked, or did not answer.

    Parameters
    ----------
    reason : str
        A sentence with Kafka's own words and what was tried.
    kind : str
        Kafka's name of the error, such as "TopicAlreadyExistsError"; "Unreachable" if nobody answered.
    """

    def __init__(self, reason: str, kind: str):
        super().__init__(reason)
        self.kind = kind

    def __reduce__(self):
        return AnswerError, (str(self), self.kind)


def command(host: Host, files: ClientFiles, verb: str, words: dict) -> list[str]:
    """The words of the command that puts a question; the client's settings are in a file that it names."""
    return [
        sys.executable,
        "-P",
        "-m",
        "wanbench.kafka.admin.program",
        files.python(host),
        verb,
        json.dumps(words),
    ]


def ask(host: Host, files: ClientFiles, verb: str, *, timeout_s: float = TIMEOUT_S, **words: object):
    """
    Put a question and return the answer, in JSON types.

    Parameters
    ----------
    host : Host
        Where the process that asks runs.
    files : ClientFiles
        How to reach the cluster from there.
    verb : str
        One of `VERBS`, each a function of `admin_queries` or `group_queries`, which say what they take and return.
    **words
        What the verb takes. Any verb also takes connect_s and request_s: how long to look for a broker, and to wait
        for one answer.

    Raises
    ------
    ParameterError
        If there is no such verb, or settings are given that may hold a secret: they would stand in a command line.
    AnswerError
        If the cluster refuses or nobody answers.
    """
    if verb not in VERBS:
        raise ParameterError(f"a cluster cannot be asked {verb!r}; allowed is {', '.join(VERBS)}.")
    refuse_secrets(words.get("settings") or {}, "the cluster's security")  # these words can be seen
    tried = f"{verb}{_named(words)}, asked from {host.name} at {files.bootstrap} ({files.access.tried})"
    try:
        done = host.run(command(host, files, verb, words), timeout_s=timeout_s, ok=None)
    except CommandError:
        raise AnswerError(f"{tried}: no answer within {timeout_s:g} s", "Timeout") from None
    try:
        printed = json.loads(done.stdout.splitlines()[-1])
        if "answer" in printed:
            return printed["answer"]
        kind, said = str(printed["error"]["kind"]), str(printed["error"]["said"])
    except (ValueError, LookupError, TypeError):
        last = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()[-1:]
        raise AnswerError(
            f"{tried}: it ended with status {done.returncode}: {' '.join(last)[:500] or 'it said nothing'}",
            "Died",
        ) from None
    raise AnswerError(f"{tried}: {kind}: {said}" if kind != said else f"{tried}: {kind}", kind)


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
    Make a topic; return it, as `wanbench.kafka.admin.queries.topics` does, once every broker knows its leaders.

    Raises
    ------
    ParameterError
        If the numbers are none.
    AnswerError
        If there is one of that name (kind "TopicAlreadyExistsError"), or the cluster refuses it.
    """
    for what, number in (("partitions", partitions), ("replication", replication)):
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise ParameterError(f"{what} is {number!r}; it must be a whole number, 1 at least.")
    words = {
        "partitions": partitions,
        "replication": replication,
        "settings": settings or {},
        "placement": placement,
    }
    return ask(host, files, "create_topic", name=name, **words)


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
def watching(host: Host, files: ClientFiles, for_s: float, **words: object) -> Iterator[Process]:
    """
    Watch a cluster from a host; yields the process, which ends by itself after `for_s` and is stopped at the end.

    What it prints on stdout, a JSON object per line, is `samples(process.stop().stdout)`.

    Parameters
    ----------
    **words
        As in `wanbench.kafka.watch.watch`: every_s, topics, groups, request_s.
    """
    process = host.start(command(host, files, "watch", {"for_s": for_s, **words}))
    try:
        yield process
    finally:
        process.stop()


def samples(printed: bytes) -> list[dict]:
    """
    The samples of a watch; a last line that a stop cut short is left out.

    >>> samples(b'{"at_s": 1.0, "blind": "why"}\\n{"at_s": 1.')
    [{'at_s': 1.0, 'blind': 'why'}]
    """
    whole = printed[: printed.rfind(b"\n") + 1]
    return [json.loads(line) for line in whole.splitlines()]


def _named(words):
    name = words.get("name") or words.get("topic") or words.get("group")
    return f" {name!r}" if name is not None else ""
