"""The interface of experiments, and how they keep a command's output, whether it succeeds or not."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field, fields
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

from wanbench.checks import check_choice, check_fields, check_flag
from wanbench.errors import CommandError
from wanbench.measure.labs.base import Completed, Host
from wanbench.runs import RawFile, write_raw

Hosts = Sequence[Host]
WhenSending = Callable[[], None] | None  # Called once, as soon as all producers send.
PROCESS_S = 0.02
"""
Time to start and end a command on a local lab; measured together with `HANDSHAKE_RTTS` of iperf3.
"""

_STACK_FRAME = re.compile(r"\s*(at [\w.$/]+|\.\.\. \d+ (more|common))")
"""Stack frames of Java: they name the place, not the error."""


@runtime_checkable
class Experiment(Protocol):
    """
    What to run on a pair of hosts: a frozen dataclass whose fields are its settings.

    `wanbench.measure.plan` asks for the expected duration and volume and keeps name and settings in the manifest;
    `wanbench.measure.campaign` runs it, test by test; `wanbench.read.ingest` has a reader for the files of that name.

    A setting has a default or is required, is checked in `__post_init__` (ParameterError), and its value is a JSON
    type: runs with equal settings belong together. `str(experiment)` is its line in a plan.

    Three attributes are optional. `rtt_ms`: the round-trip time in ms that it configures itself. `reverse`: True if the
    target sends, whose cloud then charges for `expected_bytes`. `set_up_s(before)`: the time in s to switch from the
    experiment `before` of its kind, or (None) from a newly opened lab.
    """

    name: ClassVar[str]
    """Its name in manifest, journal and readers; also the folder of its raw files."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def run(self, source: Host, target: Host, folder: Path, stem: str) -> list[RawFile]:
        """
        Measure from `source` to `target`, hosts of an open lab; returns the raw files, written with
        `wanbench.runs.write_raw`.

        Files go to <folder>/<name>/<stem>.<what> of the run folder; `stem` names the test and the attempt, and no file
        with it exists yet. An experiment that needs emulated links or a Kafka cluster asks by `links_of` and
        `cluster_of`.

        Raises ExperimentError if it failed, with the raw files that it left. Any LabError is a failed test, which is
        tried again; any other exception ends the campaign. Nothing that it started may run on afterwards.
        """

    def expected_s(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """Expected duration in s, at a round-trip time and, if it is known, a throughput."""

    def expected_bytes(self, rtt_ms: float, rate_bps: float | None = None) -> float | None:
        """Expected bytes on the links between regions; None if they depend on a throughput that is not given."""


@runtime_checkable
class ConcurrentExperiment(Experiment, Protocol):
    """An experiment that can also run while another one does."""

    def concurrently(
        self, source: Host, target: Host, folder: Path, stem: str
    ) -> AbstractContextManager[list[RawFile]]:
        """
        Measure while the block runs; the yielded list holds the raw files once the block is left.

        Raises ExperimentError if it cannot start or fails; never in place of an exception of the block.
        """


@runtime_checkable
class Load(Experiment, Protocol):
    """
    An experiment that loads a Kafka cluster; the load of a `KafkaTrial`.

    `topics`, `partitions` and `replication` are what it makes; the settings are by the names that its clients use.
    """

    topics: int
    partitions: int
    replication: int
    topic_settings: Mapping[str, object]
    producer_settings: Mapping[str, object]
    consumer_settings: Mapping[str, object]

    def run_on(
        self, producers: Hosts, consumers: Hosts, folder: Path, stem: str, *, when_sending: WhenSending = None
    ) -> list[RawFile]:
        """
        Like `run`, which also has `when_sending`, with producers and consumers spread over several hosts in turn;
        `when_sending` is called once, as soon as all producers send.
        """


class ClientLoad:
    """Base of loads by clients on hosts: a subclass defines `session`."""

    name: ClassVar[str]

    def run(
        self, source: Host, target: Host, folder: Path, stem: str, *, when_sending: WhenSending = None
    ) -> list[RawFile]:
        """Load the cluster from `source` (producers) and `target` (consumers): see `session`."""
        return self.run_on([source], [target], folder, stem, when_sending=when_sending)

    def run_on(
        self, producers: Hosts, consumers: Hosts, folder: Path, stem: str, *, when_sending: WhenSending = None
    ) -> list[RawFile]:
        """The same with clients spread over several hosts; ExperimentError if there is no cluster."""
        if not producers or not consumers:
            raise ExperimentError(f"{self.name} needs at least one host for its producers and one for its consumers")
        cluster = cluster_of(*producers, *consumers)
        return self.session(cluster, producers, consumers, folder, stem, when_sending).run()

    def session(self, *where):
        """The session that runs it; `where` are the arguments of a `ClientSession` after the first."""
        raise NotImplementedError


class ExperimentError(CommandError):
    """An experiment failed; `files` are the raw files it left."""

    def __init__(self, reason: str, files: Sequence[RawFile] = ()):
        super().__init__(reason)
        self.files = list(files)


def bounded(default: object, low: float, high: float):
    """A numeric field of an experiment with its limits, both allowed; without default if that is MISSING."""
    return field(default=default, metadata={"limits": (low, high)})


def one_of(default: object, allowed: Collection):
    """A field of an experiment that has one of some values; without default if that is MISSING."""
    return field(default=default, metadata={"allowed": allowed})


def check_declared(settings: object) -> None:
    """Check all fields that are `bounded`, `one_of` or flags; numbers are whole if declared as int."""
    for each in fields(settings):
        value, is_optional = getattr(settings, each.name), "None" in each.type
        label = f"{type(settings).__name__} {each.name}"
        if "limits" in each.metadata:
            optional = (each.name,) if is_optional else ()
            check_fields(settings, (each.name, *each.metadata["limits"]), whole="int" in each.type, optional=optional)
        elif "allowed" in each.metadata:
            check_choice(label, value, each.metadata["allowed"], optional=is_optional)
        elif each.type.startswith("bool"):
            check_flag(label, value, optional=is_optional)


def links_of(host: Host):
    """The emulated links of the host's lab; ExperimentError if the network is real."""
    if host.links is None:
        raise ExperimentError(
            f"{host.name} has no emulated links; only a lab with emulated links can count, cut or set them"
        )
    return host.links


def cluster_of(*hosts: Host):
    """The hosts' Kafka cluster: their lab's own or the one chosen by `reaching`; ExperimentError if there is none."""
    if cluster := next((host.cluster for host in hosts if host.cluster is not None), None):
        return cluster
    names = ", ".join(dict.fromkeys(host.name for host in hosts))
    raise ExperimentError(f"the lab of {names} has no Kafka cluster: open a Cluster on it first")


def reaching(host: Host, cluster: str | None) -> Host:
    """
    The host, using the named external cluster; None: the lab's own cluster.

    Raises ExperimentError if the lab can reach no cluster of that name.
    """
    if cluster is None:
        return host
    if cluster not in host.clusters:
        there = ", ".join(host.clusters) or "none"
        raise ExperimentError(f"{host.name} reaches no external cluster {cluster!r}; it reaches {there}")
    return host.clusters[cluster].seen_from(host)


def about(done: Completed) -> dict[str, object]:
    """A command as `write_raw` keeps it with a file."""
    return {name: getattr(done, name) for name in ("command", "returncode", "started_at_utc", "ended_at_utc")}


def keep(folder: Path, experiment: str, stem: str, extension: str, done: Completed) -> list[RawFile]:
    """
    Write stdout to <experiment>/<stem>.<extension>, and stderr, if there is any, to
    <experiment>/<stem>.stderr.txt (<stem>.server.stderr.txt if the extension is "server.txt").
    """
    contents = {f"{stem}.{extension}": done.stdout}
    if done.stderr:
        contents[".".join(filter(None, [stem, extension.rpartition(".")[0], "stderr.txt"]))] = done.stderr
    return [write_raw(folder, experiment, name, content, **about(done)) for name, content in contents.items()]


def run_to_end(host: Host, command: Sequence[str], timeout_s: float) -> tuple[Completed, str | None]:
    """
    Run a command; return its output, and None or the reason why it was stopped.

    Unlike `Host.run` this also returns the output of a command that timed out.
    """
    process = host.start(command)
    try:
        return process.wait(timeout_s), None
    except CommandError:
        done = process.stop()
        return done, f"{command[0]} on {host.name} did not end within {timeout_s:g} s and was stopped"
    except BaseException:
        process.stop()
        raise


def last_line(done: Completed) -> str:
    """Last line of a command's stderr, or else stdout, at most 300 characters, without Java stack frames."""
    for stream in (done.stderr, done.stdout):
        lines = stream[-20_000:].decode("utf-8", "replace").splitlines()
        if lines := [line.strip() for line in lines if line.strip() and not _STACK_FRAME.match(line)]:
            return lines[-1][:300]
    return "it printed nothing"


def ended_with(what: str, done: Completed) -> str:
    """
    The reason why a command failed.

    >>> ended_with("ping on a/0", Completed(("ping",), 2, b"", b"ping: unknown host", "", ""))
    'ping on a/0 ended with status 2: ping: unknown host'
    """
    return f"{what} ended with status {done.returncode}: {last_line(done)}"
