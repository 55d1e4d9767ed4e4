"""The interface of experiments, checks of their settings, and helpers that keep a command's output."""

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
KafkaSettings = Mapping[str, object] | tuple[tuple[str, str], ...]  # an experiment replaces a mapping by pairs
WhenSending = Callable[[], None] | None  # a function that is called once, as soon as all producers send
PROCESS_S = 0.02  # time to start and end a command on a local lab, measured together with `HANDSHAKE_RTTS` of iperf3

_STACK_FRAME = re.compile(r"\s*(at [\w.$/]+|\.\.\. \d+ (more|common))")
"""Matches the lines of a Java stack trace, which do not describe the error."""


@runtime_checkable
class Experiment(Protocol):
    """
    What to run on a pair of hosts: a frozen dataclass whose fields are its settings.

    `wanbench.measure.plan` asks an experiment for its expected duration and amount of data, and stores its name and
    settings in the manifest; `wanbench.measure.campaign` runs it for each test; `wanbench.read.ingest` reads its files,
    in the run's folder with the experiment's name.

    Every setting is required or has a default, is checked in `__post_init__` (ParameterError), and has a value of a
    JSON type. Runs with equal settings are analysed together. `str(experiment)` is the experiment's line in a plan.

    Three attributes are optional. `rtt_ms`: the round-trip time in ms that the experiment itself configures. `reverse`:
    True if the target sends, so that the target's cloud charges for `expected_bytes`. `set_up_s(before)`: the time in s
    to switch from the experiment `before`, which is of the same kind, or from a newly opened lab if `before` is None.
    """

    name: ClassVar[str]
    """The experiment's name in manifests, journals and readers; the folder of its raw files has this name too."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def run(self, source: Host, target: Host, folder: Path, stem: str) -> list[RawFile]:  # pyright: ignore[reportReturnType]
        """
        Measure from `source` to `target`, hosts of an open lab; write raw files by `wanbench.runs.write_raw` and return
        them.

        The files are <folder>/<name>/<stem>.<what>, where `folder` is the run folder. `stem` identifies the test and
        the attempt; no file has it yet. An experiment that needs emulated links or a Kafka cluster gets them from
        `links_of` and `cluster_of`.

        Raise ExperimentError, with the raw files so far, on failure. After any LabError the test counts as failed and
        is tried again; any other exception ends the campaign. Nothing that the experiment started may keep running.
        """

    def expected_s(self, rtt_ms: float, rate_bps: float | None = None) -> float:  # pyright: ignore[reportReturnType]
        """Return the expected duration in s, from a round-trip time in ms and, if known, a throughput in bit/s."""

    def expected_bytes(self, rtt_ms: float, rate_bps: float | None = None) -> float | None:
        """Return the expected bytes on links between regions; None if they depend on a throughput that is not given."""


@runtime_checkable
class ConcurrentExperiment(Experiment, Protocol):
    """An experiment that can run alongside another one."""

    def concurrently(
        self, source: Host, target: Host, folder: Path, stem: str
    ) -> AbstractContextManager[list[RawFile]]:  # pyright: ignore[reportReturnType]
        """
        Measure while the `with` block runs; after the block, the yielded list contains the raw files.

        Raise ExperimentError if the measurement cannot start or fails, but never replace an exception raised in the
        block.
        """


@runtime_checkable
class Load(Experiment, Protocol):
    """
    An experiment that loads a Kafka cluster, for use in a `KafkaTrial`.

    A load creates `topics` topics with `partitions` partitions each and `replication` replicas of each partition. The
    three mappings hold settings of Kafka or librdkafka by name.
    """

    topics: int
    partitions: int
    replication: int
    topic_settings: KafkaSettings
    producer_settings: KafkaSettings
    consumer_settings: KafkaSettings

    def run_on(
        self, producers: Hosts, consumers: Hosts, folder: Path, stem: str, *, when_sending: WhenSending = None
    ) -> list[RawFile]:  # pyright: ignore[reportReturnType]
        """
        Load the cluster as `run` does, with producers and consumers distributed over several hosts.

        `when_sending` is called once, as soon as all producers send; `run` accepts it too.
        """


class ClientLoad:
    """Base class of loads whose clients run on hosts; a subclass defines `session`."""

    name: ClassVar[str]

    def run(
        self, source: Host, target: Host, folder: Path, stem: str, *, when_sending: WhenSending = None
    ) -> list[RawFile]:
        """Load the cluster with producers on `source` and consumers on `target`, as the load's `session` describes."""
        return self.run_on([source], [target], folder, stem, when_sending=when_sending)

    def run_on(
        self, producers: Hosts, consumers: Hosts, folder: Path, stem: str, *, when_sending: WhenSending = None
    ) -> list[RawFile]:
        """
        Load the cluster with clients distributed over several hosts; raise ExperimentError if there is no cluster.
        """
        if not producers or not consumers:
            raise ExperimentError(f"{self.name} needs at least one host for its producers and one for its consumers")
        cluster = cluster_of(*producers, *consumers)
        return self.session(cluster, producers, consumers, folder, stem, when_sending).run()

    def session(self, *where: Any, **more: Any) -> Any:
        """Return the session that runs this load. The arguments are passed on to `ClientSession`."""
        raise NotImplementedError


class ExperimentError(CommandError):
    """An experiment failed; `files` are the raw files that it left."""

    def __init__(self, reason: str, files: Sequence[RawFile] = ()):
        super().__init__(reason)
        self.files = list(files)


def bounded(default: Any, low: float, high: float) -> Any:
    """
    Declare a numeric field that allows values from `low` to `high`, inclusive; it is required if `default` is MISSING.
    """
    return field(default=default, metadata={"limits": (low, high)})


def one_of(default: Any, allowed: Collection[object]) -> Any:
    """Declare a field that allows a fixed set of values; it is required if `default` is MISSING."""
    return field(default=default, metadata={"allowed": allowed})


def check_declared(settings: Any) -> None:
    """
    Check all fields declared by `bounded` or `one_of`, and all bool fields; fields declared as int must be whole
    numbers.
    """
    for item in fields(settings):
        value, kind = getattr(settings, item.name), str(item.type)
        label, is_optional = f"{type(settings).__name__} {item.name}", "None" in kind
        if "limits" in item.metadata:
            optional = (item.name,) if is_optional else ()
            check_fields(settings, (item.name, *item.metadata["limits"]), whole="int" in kind, optional=optional)
        elif "allowed" in item.metadata:
            check_choice(label, value, item.metadata["allowed"], optional=is_optional)
        elif kind.startswith("bool"):
            check_flag(label, value, optional=is_optional)


def address_of(host: Host, ip_version: int) -> str:
    """Return the host's IPv4 or IPv6 address (`ip_version` 4 or 6); raise ExperimentError if it has none."""
    address = host.address if ip_version == 4 else host.address_ipv6
    if not address:
        raise ExperimentError(f"{host.name} has no IPv{ip_version} address; its address is {host.address}")
    return address


def links_of(host: Host) -> Any:
    """Return the emulated links of the host's lab; raise ExperimentError if the network is real."""
    if host.links is None:
        message = f"{host.name} has no emulated links; only a lab with emulated links can count, cut or set them"
        raise ExperimentError(message)
    return host.links


def cluster_of(*hosts: Host) -> Any:
    """
    Return the Kafka cluster of the hosts; raise ExperimentError if there is none.

    This is the lab's own cluster, or the external one that `reaching` has selected.
    """
    if cluster := next((host.cluster for host in hosts if host.cluster is not None), None):
        return cluster
    names = ", ".join(dict.fromkeys(host.name for host in hosts))
    raise ExperimentError(f"the lab of {names} has no Kafka cluster: open a Cluster on it first")


def reaching(host: Host, cluster: str | None) -> Host:
    """
    Return `host` as a client of the external Kafka cluster with this name or, if `cluster` is None, of the lab's own.

    Raise ExperimentError if the lab cannot reach a cluster with this name.
    """
    if cluster is None:
        return host
    if cluster not in host.clusters:
        there = ", ".join(host.clusters) or "none"
        raise ExperimentError(f"{host.name} cannot reach an external cluster {cluster!r}; it can reach {there}")
    return host.clusters[cluster].seen_from(host)


def about(done: Completed) -> dict[str, Any]:
    """Return the arguments of `write_raw` that describe a finished command: the command, its status and its times."""
    return {name: getattr(done, name) for name in ("command", "returncode", "started_at_utc", "ended_at_utc")}


def keep(folder: Path, experiment: str, stem: str, extension: str, done: Completed) -> list[RawFile]:
    """
    Write the output of a command to <experiment>/<stem>.<extension>, and its stderr, if any, to <stem>.stderr.txt.

    For the extension "server.txt", stderr goes to <stem>.server.stderr.txt.
    """
    contents = {f"{stem}.{extension}": done.stdout}
    if done.stderr:
        contents[".".join(filter(None, [stem, extension.rpartition(".")[0], "stderr.txt"]))] = done.stderr
    return [write_raw(folder, experiment, name, content, **about(done)) for name, content in contents.items()]


def run_to_end(host: Host, command: Sequence[str], timeout_s: float) -> tuple[Completed, str | None]:
    """
    Run a command; return its output, and None or the reason why it was stopped.

    Unlike `Host.run`, it also returns the output of a command that timed out.
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
    """
    Return the last line of stderr, or of stdout if stderr is empty, cut to 300 characters; skip Java stack traces.
    """
    for stream in (done.stderr, done.stdout):
        lines = stream[-20_000:].decode("utf-8", "replace").splitlines()
        if lines := [line.strip() for line in lines if line.strip() and not _STACK_FRAME.match(line)]:
            return lines[-1][:300]
    return "it printed nothing"


def ended_with(what: str, done: Completed) -> str:
    """
    Return a sentence on why a command failed.

    >>> ended_with("ping on a/0", Completed(("ping",), 2, b"", b"ping: unknown host", "", ""))
    'ping on a/0 ended with status 2: ping: unknown host'
    """
    return f"{what} ended with status {done.returncode}: {last_line(done)}"
