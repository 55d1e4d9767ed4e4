"""What every lab offers: hosts on which commands run."""

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
    A command that has ended, with everything it printed.

    `stdout` and `stderr` are bytes, as the tool wrote them. Times are UTC, ISO 8601 with microseconds.
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
    The target's clock less the source's, the most by which that may be wrong (None where it is not known), and how it
    was measured.
    """

    offset_ms: float | None
    error_ms: float | None
    method: str

    def as_dict(self) -> dict:
        """The same in JSON types."""
        return asdict(self)


def nearest(stamps: Sequence[Sequence[int]]) -> Offset:
    """
    The offset from exchanges (sent, received there, answered there, received here), in ns: that of the shortest, which
    is right to within half of it, wherever on the way the time was spent (RFC 5905, section 8).

    >>> nearest([[0, 105_000_000, 105_000_000, 10_000_000], [0, 150_000_000, 150_000_000, 90_000_000]])
    Offset(offset_ms=100.0, error_ms=5.0, method='2 exchanges of time stamps, the shortest in 10 ms')
    """
    trips = [((t3 - t0) - (t2 - t1), ((t1 - t0) + (t2 - t3)) / 2) for t0, t1, t2, t3 in stamps]
    trip_ns, offset_ns = min(trips)
    method = f"{len(trips)} exchanges of time stamps, the shortest in {trip_ns / 1e6:.4g} ms"
    return Offset(offset_ns / 1e6, max(trip_ns, 0) / 2e6, method)


def joined(before: Offset, after: Offset) -> Offset:
    """
    One offset from two readings; its error covers both, and so a drift between them.

    >>> joined(Offset(10.0, 1.0, "a"), Offset(11.0, 2.0, "b"))
    Offset(offset_ms=11.0, error_ms=2.0, method='a; afterwards b')
    """
    if before.offset_ms is None or after.offset_ms is None:
        return before if after.offset_ms is None else after
    low = min(before.offset_ms - before.error_ms, after.offset_ms - after.error_ms)
    high = max(before.offset_ms + before.error_ms, after.offset_ms + after.error_ms)
    return Offset((low + high) / 2, (high - low) / 2, f"{before.method}; afterwards {after.method}")


class Process(ABC):
    """A command that runs in the background on a host."""

    command: tuple[str, ...]

    @abstractmethod
    def wait_for_output(self, text: str, timeout_s: float) -> None:
        """Return once `text` has been printed on stdout; CommandError (with its last output) if it never is."""

    @abstractmethod
    def wait(self, timeout_s: float) -> Completed:
        """Wait for the end; CommandError after `timeout_s`."""

    def so_far(self) -> Completed | None:
        """What it has printed so far, as `completed` of a CommandError."""
        try:
            return self.wait(0)
        except CommandError as error:
            return error.completed

    @abstractmethod
    def stop(self) -> Completed:
        """Ask the command to end, kill it after two seconds; returns what it printed. Safe to call twice."""

    @abstractmethod
    def is_running(self) -> bool:
        """Whether it has not ended yet."""

    @abstractmethod
    def printed(self, start: int = 0) -> bytes:
        """What it has printed on stdout so far, from this byte on."""


class Host(ABC):
    """
    One machine of a lab. Commands are lists of arguments, never shell strings.

    `links` cuts, heals and changes its links to other regions (`cut(a, b)`, `heal(a, b)`, `set_link(a, b, ...)`); None
    where the network is real. `paths` selects the path in use (`use(name)`), where a lab has several between the same
    hosts. `cluster` is the Kafka cluster that the lab holds, `clusters` are those that run elsewhere and can be
    reached, by name. `python` is the host's Python, if known.
    """

    name: str
    region: str
    address: str
    links = None
    paths = None
    cluster = None
    python: str | None = None
    clusters: Mapping[str, Any] = MappingProxyType({})

    def __repr__(self):
        return f"<host {self.name} at {self.address}>"

    @property
    @abstractmethod
    def scratch(self) -> str:
        """
        A folder of mode 0700 for files that the lab's commands need, deleted with the lab, even after a failure.
        """

    @abstractmethod
    def run(self, command: Sequence[str], *, timeout_s: float, ok: Sequence[int] | None = (0,)) -> Completed:
        """
        Run a command to its end. CommandError if it takes longer than `timeout_s`, when it is killed, or ends with
        another status than those of `ok` (None allows all).
        """

    @abstractmethod
    def start(self, command: Sequence[str]) -> Process:
        """Start a command in the background. It ends with the lab at the latest."""

    @abstractmethod
    def put(self, source: Path, target: str) -> None:
        """Copy a local file to `target` on the host."""

    @abstractmethod
    def get(self, source: str, target: Path) -> None:
        """Copy the host's file `source` to a local path."""


class Lab(ABC):
    """
    A context manager that yields hosts, and takes everything down again whatever happened.

    Attributes
    ----------
    kind : str
        Its name in manifests: that of `labs.LABS`.
    hosts : dict
        Region to the hosts in it, in order; filled once the lab is open.
    links : mapping
        (from, to) to the settings requested of that direction; empty where the network is real.
    sysctls : mapping
        Kernel settings asked for on every host.
    cluster_settings : mapping or None
        What was asked of the Kafka cluster that the lab holds; None where there is none.
    settings : mapping
        What else a run depends on, in JSON types, such as the type of rented hosts: a run is resumed only with the
        same.
    path_names : tuple of str
        Paths between the same hosts that trials can choose from; empty where there is one only.
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
    def __exit__(self, *exception) -> None: ...

    @abstractmethod
    def describe(self) -> dict:
        """What the manifest keeps: kind, hosts, kernel, TCP settings, tools, nominal links (JSON types only)."""

    def agree_to(self, plan, campaign: str, folder: Path | None = None) -> None:  # noqa: B027
        """
        Called before the lab is opened, with what is left of the plan: show its cost, ask for consent, and raise
        LabError without it. `folder` is the run folder, in which earlier sessions recorded their costs; None: no run
        yet.
        """

    def before_round(self, expected_s: float, sent_bytes: Mapping[tuple[str, str], float] | None) -> None:  # noqa: B027
        """Called before each round; raises LabError where the round would exceed a budget. What is done is kept."""

    def counters(self) -> list[dict] | None:
        """What every link carried since the lab opened; None on a real network, where this is not counted."""
        return None

    def devices(self) -> list[dict] | None:
        """What the kernel dropped outside the links; None where this is not counted."""
        return None

    def socket_buffer_limits(self) -> dict[str, int] | None:
        """
        Maximum socket buffer in bytes that the hosts' kernel grants to a program, by sysctl; None where this is not
        known before the lab is open.
        """
        return None

    def keep(self, folder: Path, stem: str) -> list[RawFile]:
        """Files about the lab itself, such as logs of its servers, written into a run folder under `stem`."""
        return []

    def keep_costs(self, folder: Path, stem: str) -> list[RawFile]:
        """
        Only those files of `keep` that record costs, also for a lab that is closed or failed to open.
        """
        return []

    def all_hosts(self) -> list[Host]:
        """The hosts of all regions, in order."""
        return [host for hosts in self.hosts.values() for host in hosts]

    def host(self, region: str, number: int = 0) -> Host:
        """The region's host of that number; KeyError names the regions there are."""
        try:
            return self.hosts[region][number]
        except (KeyError, IndexError):
            raise KeyError(f"no host {number} in {region!r}; the lab has {', '.join(sorted(self.hosts))}") from None
