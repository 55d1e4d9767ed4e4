"""The interface of all labs: hosts on which commands run, and the lab that opens and closes them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from wanbench.errors import CommandError
from wanbench.runs import RawFile


@dataclass(frozen=True)
class Completed:
    """
    The result of a command that has ended.

    `stdout` and `stderr` are the bytes that it printed. Times are UTC, in ISO 8601 with microseconds.
    """

    command: tuple[str, ...]
    returncode: int
    stdout: bytes
    stderr: bytes
    started_at_utc: str
    ended_at_utc: str


@dataclass(frozen=True)
class Offset:
    """
    The difference of two clocks in ms, target minus source, with its maximum error and the method of measuring it.
    """

    offset_ms: float
    error_ms: float
    method: str

    def as_dict(self) -> dict[str, Any]:
        """Return the fields in JSON types."""
        return asdict(self)


def clock_offset(stamps: Sequence[Sequence[int]]) -> Offset:
    """
    Return the clock offset from exchanges of time stamps, each (sent, received there, answered there, received) in ns.

    The exchange with the shortest round trip is used. The error of its offset is at most half of the round trip,
    whichever direction took longer (RFC 5905, section 8).

    >>> clock_offset([[0, 105_000_000, 105_000_000, 10_000_000], [0, 150_000_000, 150_000_000, 90_000_000]])
    Offset(offset_ms=100.0, error_ms=5.0, method='2 exchanges of time stamps, the shortest in 10 ms')
    """
    trips = [((t3 - t0) - (t2 - t1), ((t1 - t0) + (t2 - t3)) / 2) for t0, t1, t2, t3 in stamps]
    trip_ns, offset_ns = min(trips)
    method = f"{len(trips)} exchanges of time stamps, the shortest in {trip_ns / 1e6:.4g} ms"
    return Offset(offset_ns / 1e6, max(trip_ns, 0) / 2e6, method)


class Process(ABC):
    """A command that runs in the background on a host."""

    command: tuple[str, ...]

    @abstractmethod
    def wait_for_output(self, text: str, timeout_s: float) -> None:
        """Wait until stdout contains `text`; CommandError, with the last output, if that does not happen in time."""

    @abstractmethod
    def wait(self, timeout_s: float) -> Completed:
        """Wait until the command has ended, and return its result; raise CommandError after `timeout_s`."""

    def so_far(self) -> Completed:
        """Return the result or, if the command still runs, its output so far; CommandError if that is not known."""
        try:
            return self.wait(0)
        except CommandError as error:
            if error.completed is None:
                raise
            return error.completed

    @abstractmethod
    def stop(self) -> Completed:
        """Ask the command to end, kill it after two seconds, and return its result. Safe to call twice."""

    @abstractmethod
    def is_running(self) -> bool:
        """Return whether the command still runs."""

    @abstractmethod
    def printed(self, start: int = 0) -> bytes:
        """Return the output on stdout so far, from byte `start` on."""


class Host(ABC):
    """
    One machine of a lab. Commands are lists of arguments, never shell strings.

    Attributes
    ----------
    address, address_ipv6
        The addresses at which other hosts of the lab reach it, by IPv4 and by IPv6 (None: it has none).
    links
        An object with `cut(a, b)`, `heal(a, b)` and `set_link(a, b, ...)`, which change the links between regions; None
        where the network is real.
    paths
        An object with `use(name)`, which selects one of several paths between the same hosts; None if there is only
        one.
    cluster
        The Kafka cluster that the lab runs, if any.
    clusters : mapping
        External Kafka clusters that the host can reach, by name.
    python : str or None
        The command of the host's Python, if known.
    """

    name: str
    region: str
    address: str
    address_ipv6: str | None = None
    links: Any = None
    paths: Any = None
    cluster: Any = None
    python: str | None = None
    clusters: Mapping[str, Any] = MappingProxyType({})

    def __repr__(self):
        return f"<host {self.name} at {self.address}>"

    @property
    @abstractmethod
    def scratch(self) -> str:
        """
        Return a folder (mode 0700) for commands' temporary files, their TMPDIR, deleted when the lab closes, even after
        a failure.
        """

    @abstractmethod
    def run(self, command: Sequence[str], *, timeout_s: float, ok: Sequence[int] | None = (0,)) -> Completed:
        """
        Run a command to its end. Raise CommandError if it does not end within `timeout_s` (it is then killed), or if
        its exit status is not in `ok` (None allows all).
        """

    @abstractmethod
    def start(self, command: Sequence[str]) -> Process:
        """Start a command in the background; if it still runs when the lab closes, the lab ends it."""

    @abstractmethod
    def put(self, source: Path, target: str) -> None:
        """Copy a local file to `target` on the host."""

    @abstractmethod
    def get(self, source: str, target: Path) -> None:
        """Copy the host's file `source` to a local path."""


class Lab(ABC):
    """
    A context manager that opens hosts on entry and, on exit, removes everything it made, even after an error.

    Attributes
    ----------
    kind : str
        The lab's name in manifests, a key of `labs.LABS`.
    hosts : dict
        The hosts of each region, in order. Commands run on them only while the lab is open.
    links : mapping
        Settings of the link of each (from, to) pair; empty where the network is real.
    sysctls : mapping
        Kernel settings that every host must have.
    cluster_settings : mapping or None
        Settings of the Kafka cluster that the lab runs; None where there is none.
    settings : mapping
        Further settings that affect results, in JSON types, such as the type of rented hosts. A run is resumed only on
        a lab with the same settings.
    path_names : tuple of str
        Names of the paths between the same hosts, if there are several for trials to choose from; otherwise empty.
    """

    kind: str
    hosts: dict[str, list[Host]]
    links: Mapping[tuple[str, str], Any] = MappingProxyType({})
    sysctls: Mapping[str, str] = MappingProxyType({})
    cluster_settings: Mapping[str, Any] | None = None
    settings: Mapping[str, Any] = MappingProxyType({})
    path_names: tuple[str, ...] = ()

    @abstractmethod
    def __enter__(self) -> Lab: ...

    @abstractmethod
    def __exit__(self, *exception: object) -> None: ...

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return the manifest's entry, in JSON types: kind, hosts, kernel, TCP settings, tools, link settings."""

    def agree_to(self, plan: Any, campaign: str, folder: Path | None = None) -> None:  # noqa: B027
        """
        Show what the plan will cost and ask the user to agree; raise LabError if the user does not agree.

        Called before the lab is opened, with the `Plan` of what is not measured yet. `folder` is the run folder,
        where earlier sessions recorded their costs; None if there is no run.
        """

    def before_round(self, expected_s: float, sent_bytes: Mapping[tuple[str, str], float] | None) -> None:  # noqa: B027
        """
        Raise LabError if the next round would exceed the budget; called before each round.

        The round is expected to take `expected_s` and to send `sent_bytes`, by (sending region, receiving region).
        """

    def counters(self) -> list[dict[str, Any]] | None:
        """Return the counters of every link since the lab opened; None on a real network, which has no counters."""
        return None

    def devices(self) -> list[dict[str, Any]] | None:
        """
        Return counters of packets that the kernel dropped outside the links; None where there are no such counters.
        """
        return None

    def socket_buffer_limits(self) -> dict[str, int] | None:
        """
        Return the maximum size in bytes of the socket buffers that programs on the hosts may request, by sysctl. Return
        None if these sizes are not known before the lab is open.
        """
        return None

    def keep(self, folder: Path, stem: str) -> list[RawFile]:
        """Write files about the lab itself, such as server logs, into a run folder; their names begin with `stem`."""
        return []

    def keep_costs(self, folder: Path, stem: str) -> list[RawFile]:
        """Write only those files of `keep` that record costs. The lab may be closed, or may have failed to open."""
        return []

    def all_hosts(self) -> list[Host]:
        """Return the hosts of all regions, in order."""
        return [host for hosts in self.hosts.values() for host in hosts]

    def host(self, region: str, number: int = 0) -> Host:
        """Return the host of a region that has this number, counted from 0; raise KeyError if there is none."""
        try:
            return self.hosts[region][number]
        except (KeyError, IndexError):
            raise KeyError(f"no host {number} in {region!r}; the lab has {', '.join(sorted(self.hosts))}") from None
