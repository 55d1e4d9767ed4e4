"""
The local lab: one network namespace per region on this machine, joined by emulated links.

The lab leaves nothing behind. One process, `wanbench.measure.links.lab_supervisor`, owns the unnamed namespaces; when
the process that opened the lab ends, the supervisor and everything in the namespaces end too.
"""

import dataclasses
import functools
import os
import shutil
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from wanbench.checks import check_number
from wanbench.errors import LabError, ParameterError
from wanbench.measure.links import LinkSettings, gateway_queue_in_bytes, queue_in_bytes
from wanbench.measure.links.launch import SupervisorProcess, is_rootless, why_not
from wanbench.measure.links.namespaces import IPV6_OFF, address, address_ipv6, checked_sysctls

from .base import Completed, Host, Lab
from .processes import GRACE_S, EnteredProcess, result_of
from .ssh.programs.facts import machine, version

MAX_COUNT = 254  # Maximum number of regions, and of hosts in a region: each number is one byte of an address.
# Sysctls of every region's namespace: a known congestion control, buffers for long fat paths, IPv6 with the
# lab's own addresses only, so that nothing but tests sends packets.
SYSCTLS = {
    "net.ipv4.tcp_congestion_control": "cubic",
    "net.ipv4.tcp_no_metrics_save": "1",
    "net.ipv4.tcp_rmem": "4096 131072 33554432",
    "net.ipv4.tcp_wmem": "4096 16384 33554432",
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv4.conf.default.rp_filter": "0",
    "net.ipv4.conf.wan0.rp_filter": "0",
    IPV6_OFF: "0",
    "net.ipv6.conf.wan0.addr_gen_mode": "1",
}

_PAIRS_PER_REQUEST = 100
_OF_HOST = ("name", "region", "address", "address_ipv6")
EMULATOR = "relay"  # The link emulator's name in manifests. Older runs may have another: "netem".

_TOOLS = {"iperf3": "--version", "ping": "-V", "ip": "-V", "nsenter": "--version"}
# Limits of the socket buffers that programs request with setsockopt; all namespaces of the machine share them.
_GLOBAL_SYSCTLS = ("net.core.rmem_max", "net.core.wmem_max")
_CONGESTION_CONTROL = "net.ipv4.tcp_congestion_control"


class LocalHost(Host):
    """
    A host of the local lab: an address in its region's namespace.

    The host shares files, clock and processors with this machine. All hosts of a region share one namespace, so a
    command that must run on one particular host binds to `address`.
    """

    def __init__(self, lab: "LocalLab", region: str, number: int):
        self.name, self.region = f"{region}/{number}", region
        self.address = address(lab.regions.index(region) + 1, number)
        self._address_ipv6 = address_ipv6(lab.regions.index(region) + 1, number)
        self._lab = self.links = lab

    @property
    def address_ipv6(self) -> str | None:  # pyright: ignore[reportIncompatibleVariableOverride]  # it is read only
        """Return the host's IPv6 address; None if the lab is open and the kernel has no IPv6."""
        return None if IPV6_OFF in self._lab.refused else self._address_ipv6

    @property
    def scratch(self) -> str:
        return self._lab.scratch_of(self)

    def run(self, command: Sequence[str], *, timeout_s: float, ok: Sequence[int] | None = (0,)) -> Completed:
        return result_of(self.start(command), timeout_s, ok)

    def start(self, command: Sequence[str]) -> EnteredProcess:
        return self._lab.start_on(self, command)

    def put(self, source: Path, target: str) -> None:
        _copy(source, target)

    def get(self, source: str, target: Path) -> None:
        _copy(source, target)


class LocalLab(Lab):
    """
    A lab on this machine, with one network namespace for each region.

    Parameters
    ----------
    regions : sequence of str
        1 to 254 names. The hosts of region number i (counted from 1) have the addresses 10.i.0.1, 10.i.0.2 and so on,
        and fd77:616e:62:i::1, fd77:616e:62:i::2 and so on with i in hexadecimal.
    links : mapping
        Settings of the link of each ordered pair. Regions without a link cannot reach each other.
    hosts_per_region : int
        Number of hosts in each region, 1 to 254.
    sysctls : mapping, optional
        Sysctls of the regions' namespaces, in addition to `SYSCTLS`; their names begin with `net.`.
    seed : int
        Seed of the random loss and jitter.

    Raises
    ------
    ParameterError
        If a parameter is not as described.
    LabError
        On entry, if no lab can be opened on this machine, or the kernel refuses one of the `sysctls`.

    Examples
    --------
    >>> there_and_back = {("here", "there"): LinkSettings(10), ("there", "here"): LinkSettings(10)}
    >>> lab = LocalLab(["here", "there"], there_and_back)
    >>> lab.host("there")
    <host there/0 at 10.2.0.1>
    """

    kind = "local"

    def __init__(
        self,
        regions: Sequence[str],
        links: Mapping[tuple[str, str], LinkSettings],
        *,
        hosts_per_region: int = 1,
        sysctls: Mapping[str, str] | None = None,
        seed: int = 0,
    ):
        self.regions = checked_regions(regions)
        self.links = self._links_at_first = checked_links(links, self.regions)
        self.hosts_per_region = check_number("hosts_per_region", hosts_per_region, 1, MAX_COUNT, whole=True)
        self.seed = check_number("seed", seed, 0, 2**63 - 1, whole=True)
        self.wanted_sysctls = checked_sysctls(sysctls or {})
        self.sysctls = {**SYSCTLS, **self.wanted_sysctls}
        numbers = range(self.hosts_per_region)
        self.hosts = {region: [LocalHost(self, region, number) for number in numbers] for region in self.regions}

        self.gateways: dict[str, float] = {}
        self._numbers = {region: number for number, region in enumerate(self.regions, 1)}
        self._link_lock, self._process_lock, self._processes = threading.Lock(), threading.Lock(), []
        self._supervisor, self._opened, self._scratch = None, {}, ""

    @classmethod
    def unavailable(cls) -> str | None:
        """Try to open a local lab; return a sentence that says why this machine cannot open one, or None if it can."""
        return why_not()

    def __enter__(self) -> Self:
        if self._supervisor is not None:
            raise LabError("the lab is open already.")
        if reason := self.unavailable():
            raise LabError(f"no local lab: {reason}")
        self._supervisor = SupervisorProcess()
        try:
            sizes = {"regions": len(self.regions), "hosts_per_region": self.hosts_per_region}
            links = {"pairs": self._numbered(self.links), "seed": self.seed}
            self._scratch = self._supervisor.ask("scratch")
            self._opened = self._supervisor.ask("open", sysctls=self.sysctls, **sizes, **links)
            for name, why in self.refused.items():
                if name in self.wanted_sysctls:
                    raise LabError(f"the kernel refuses {name} = {self.sysctls[name]!r}: {why}.")
            self._send_settings(self.links, self.links)
            self._opened["granted"] = self._supervisor.ask("hurry")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        supervisor, self._supervisor = self._supervisor, None
        if supervisor is None:
            return
        try:
            for process in self._processes:
                process.ask_to_end()
            deadline = time.monotonic() + GRACE_S
            for process in self._processes:
                process.end_by(deadline)
        finally:
            self._processes, self.gateways = [], {}
            self.links = self._links_at_first
            supervisor.close()
            if self._scratch:  # a supervisor that was killed could not remove it
                shutil.rmtree(self._scratch, ignore_errors=True)
                self._scratch = ""

    @property
    def refused(self) -> dict[str, str]:
        """Return the sysctls that the kernel refused, with the reasons, while the lab is open; otherwise {}."""
        return self._opened.get("refused", {})

    def start_on(self, host: LocalHost, command: Sequence[str]) -> EnteredProcess:
        """Start a command in the namespace of a host's region; its temporary files are in the host's scratch folder."""
        nsenter, *into = self.entering(host.region)
        # If nsenter forks, it stops itself when the command is stopped, and never sees it end; unshare does not.
        fork = ["unshare", "--fork", "--", "setsid", "--"]
        environment = {**os.environ, "TMPDIR": self.scratch_of(host)}
        process = EnteredProcess(command, [nsenter, "--no-fork", *into, *fork], environment)
        with self._process_lock:
            self._processes = [other for other in self._processes if other.is_running()] + [process]
        return process

    def scratch_of(self, host: LocalHost) -> str:
        """Return the host's scratch folder on this machine."""
        self._open_supervisor()
        folder = Path(self._scratch, host.name.replace("/", "-").replace(":", "."))
        folder.mkdir(mode=0o700, exist_ok=True)
        return str(folder)

    def entering(self, region: str) -> list[str]:
        """
        Return the arguments to put before a command so that the command runs in a region's namespace.

        The arguments work while the lab is open, also in a terminal; without a command, they start a shell.
        """
        if region not in self._numbers:
            raise KeyError(f"no region {region!r}; the lab has {', '.join(self.regions)}")
        return self._open_supervisor().entering(self._opened["namespaces"][self._numbers[region] - 1])

    def set_link(self, from_region: str, to_region: str, **changes: object) -> None:
        """
        Change the link of one direction of a pair until the lab is closed. `changes` are fields of `LinkSettings`; the
        other fields stay. If `queue_bytes` is None, the queue follows the new rate and RTT. The schedules of both
        directions begin again.
        """
        pair = (from_region, to_region)
        with self._link_lock:
            self._check_pairs([pair])
            try:
                changed = {**self.links, pair: dataclasses.replace(self.links[pair], **changes)}
            except TypeError as error:
                allowed = ", ".join(field.name for field in dataclasses.fields(LinkSettings))
                raise ParameterError(f"a link has no such setting: {error}; allowed: {allowed}.") from None
            self._send_settings(changed, [other for other in (pair, (to_region, from_region)) if other in changed])
            self.links = changed

    def set_gateway(self, region: str, rate_bps: float | None) -> None:
        """
        Make all links that leave a region share one rate and one drop-tail queue, as if the region had one gateway.

        The gateway replaces the links' own rates and queues, CoDel included; its queue has the size
        `gateway_queue_in_bytes`. In `counters`, `bytes_backlog` of each of these links is the whole gateway queue. With
        `rate_bps` None the gateway is removed. The attribute `gateways` holds the rates of the gateways by region.
        """
        self._touching(region)
        rate_bps = check_number("gateway rate_bps", rate_bps, 1000, 1e12, optional=True)
        queue_bytes = None if rate_bps is None else gateway_queue_in_bytes(self.links, region, rate_bps)
        with self._link_lock:
            self._ask("gateway", region=self._numbers[region], rate_bps=rate_bps, queue_bytes=queue_bytes)
            others = {other: rate for other, rate in self.gateways.items() if other != region}
            self.gateways = others if rate_bps is None else {**others, region: rate_bps}

    def cut(self, a: str, b: str, *, one_way: bool = False) -> None:
        """
        Cut the links of a pair in both directions, as if a cable broke; `one_way` cuts only the direction `a` to `b`.

        A packet is dropped, and counted in `packets_cut`, if the link is cut when the packet is sent or when it would
        arrive. So no packet arrives during a cut; a packet sent before the cut is delivered if it is due after healing.
        Packets sent after healing are delayed as usual.
        """
        self._cut(self._both_ways(a, b, one_way), True)

    def heal(self, a: str, b: str, *, one_way: bool = False) -> None:
        """Undo a cut of a pair."""
        self._cut(self._both_ways(a, b, one_way), False)

    def cut_region(self, region: str) -> None:
        """Cut all links from and to a region."""
        self._cut(self._touching(region), True)

    def heal_region(self, region: str) -> None:
        """Undo all cuts of links from and to a region, including cuts of single pairs."""
        self._cut(self._touching(region), False)

    def counters(self, pairs: Iterable[tuple[str, str]] | None = None) -> list[dict[str, Any]]:
        """
        Return counters of every link, or of the links of `pairs`, since the lab was opened.

        Each row has from_region, to_region, and the numbers of packets and bytes sent, delivered, lost, queue_dropped,
        cut, device_dropped, too_big and in_flight (`packets_sent`, `bytes_sent`, ...). The number sent is the sum of
        the others. `packets_marked` is the number that CoDel marked, `bytes_backlog` the number of queued bytes, and
        `rate_bps` the present rate. `mean_late_ms` and `worst_late_ms` are the mean and maximum time from when packets
        were due until the relay delivered them (None if it delivered none). Packets are counted as on the wire, bytes
        with IP headers.
        """
        pairs, rows = list(self.links if pairs is None else pairs), []
        self._check_pairs(pairs)
        for first in range(0, len(pairs), _PAIRS_PER_REQUEST):
            some = pairs[first : first + _PAIRS_PER_REQUEST]
            counted = self._ask("counters", pairs=self._numbered(some))
            rows += [{"from_region": a, "to_region": b, **row} for (a, b), row in zip(some, counted, strict=True)]
        return rows

    def devices(self) -> list[dict[str, Any]]:
        """
        Return the kernel's counters of each region's devices since the lab was opened.

        Each row has region, device ("wan0", which leads to the other regions, or "lo", within the region),
        packets_received, packets_dropped_receiving, packets_sent and packets_dropped_sending.
        """
        return [{"region": self.regions[row.pop("region_number") - 1], **row} for row in self._ask("devices")]

    def lateness(self) -> dict[str, Any]:
        """
        Return how late the relay delivered packets so far, which shows whether the machine is fast enough; see
        `wanbench.measure.links.relay.Relay.lateness`.
        """
        return self._ask("lateness")

    def socket_buffer_limits(self) -> dict[str, int] | None:
        """
        Return the maximum size in bytes of the socket buffers that programs may request, by sysctl; None if unknown.

        All namespaces share these limits. A namespace's tcp_rmem and tcp_wmem limit only the sockets of programs that
        do not set the size of their buffers.
        """
        values = _global_sysctls()
        return {name: int(value) for name, value in values.items()} if len(values) == len(_GLOBAL_SYSCTLS) else None

    def describe(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "emulator": EMULATOR,
            "seed": self.seed,
            "machine": machine() | {"rootless": is_rootless()},
            "congestion_control": self.sysctls[_CONGESTION_CONTROL],
            "congestion_control_by": self._opened.get("congestion_control_by"),
            "sysctls": {**self.sysctls, **_global_sysctls()},
            "sysctls_refused": self.refused,
            "tools": tools(),
            "hosts": [{name: getattr(host, name) for name in _OF_HOST} for host in self.all_hosts()],
            "links": [{"from_region": a, "to_region": b, **_settings(self.links, a, b)} for a, b in self.links],
            "clock_offset_ms": 0,
            "clock_offset_from": "one machine, one clock",
            "granted": self._opened.get("granted", {}),
            "lateness": self.lateness() if self.is_open else {},
        }

    @property
    def is_open(self) -> bool:
        """Return whether the lab is open, so that commands can run."""
        return self._supervisor is not None

    def _open_supervisor(self):
        if self._supervisor is None:
            raise LabError("the lab is not open; use it in a with statement.")
        return self._supervisor

    def _ask(self, verb: str, **arguments: Any) -> Any:
        return self._open_supervisor().ask(verb, **arguments)

    def _numbered(self, pairs: Iterable[tuple[str, str]]) -> list[list[int]]:
        return [[self._numbers[a], self._numbers[b]] for a, b in pairs]

    def _send_settings(self, links: Mapping[tuple[str, str], LinkSettings], pairs: Iterable[tuple[str, str]]) -> None:
        self._ask("set", links=[[self._numbers[a], self._numbers[b], _settings(links, a, b)] for a, b in pairs])

    def _both_ways(self, a: str, b: str, one_way: bool) -> list[tuple[str, str]]:
        pairs = [(a, b)] if one_way else [pair for pair in ((a, b), (b, a)) if pair in self.links]
        return pairs or [(a, b)]

    def _touching(self, region: str) -> list[tuple[str, str]]:
        if region not in self._numbers:
            raise ParameterError(f"no region {region!r}; the lab has {', '.join(self.regions)}.")
        return [pair for pair in self.links if region in pair]

    def _check_pairs(self, pairs: Iterable[tuple[str, str]]):
        for a, b in pairs:
            if (a, b) not in self.links:
                raise ParameterError(f"the lab has no link from {a!r} to {b!r}.")

    def _cut(self, pairs: Sequence[tuple[str, str]], is_cut: bool) -> None:
        with self._link_lock:
            self._check_pairs(pairs)
            self._ask("cut", pairs=self._numbered(pairs), is_cut=is_cut)


def _copy(source: str | Path, target: str | Path) -> None:
    try:
        shutil.copyfile(source, target)
    except OSError as error:
        raise LabError(f"{source} cannot be copied to {target}: {error.strerror or error}.") from None


def _settings(links: Mapping[tuple[str, str], LinkSettings], a: str, b: str) -> dict[str, Any]:
    """Return the link settings of a direction in JSON types, with the size of its queue."""
    back = links.get((b, a))
    return {**dataclasses.asdict(links[a, b]), "queue_bytes": queue_in_bytes(links[a, b], back and back.delay_ms)}


def checked_regions(regions: Sequence[str]) -> tuple[str, ...]:
    """Return the regions; raise ParameterError unless they are at most `MAX_COUNT` names, all different."""
    if isinstance(regions, str) or not all(isinstance(region, str) and region for region in regions):
        raise ParameterError(f"regions is {regions!r}; allowed: a list of names.")
    if len(set(regions)) != len(regions):
        raise ParameterError(f"regions is {regions!r}; allowed: each name once.")
    if not 1 <= len(regions) <= MAX_COUNT:
        raise ParameterError(f"regions has {len(regions)} names; allowed: 1 to {MAX_COUNT}.")
    return tuple(regions)


def checked_links(
    links: Mapping[tuple[str, str], LinkSettings], regions: Sequence[str]
) -> dict[tuple[str, str], LinkSettings]:
    """Return the links; raise ParameterError unless each joins two of the regions."""
    for pair, settings in links.items():
        if not isinstance(settings, LinkSettings):
            raise ParameterError(f"link {pair!r} is {settings!r}; allowed: LinkSettings.")
        if not isinstance(pair, tuple) or len(pair) != 2 or pair[0] == pair[1] or set(pair) - set(regions):
            raise ParameterError(f"link is {pair!r}; allowed: two different regions of {', '.join(regions)}.")
    return dict(links)


@functools.cache
def tools() -> dict[str, str]:
    """Return the first line of each tool's version output; tools that cannot be run are left out."""
    return {tool: line for tool, option in _TOOLS.items() if (line := version(tool, option))}


def _global_sysctls():
    paths = {name: Path("/proc/sys", *name.split(".")) for name in _GLOBAL_SYSCTLS}
    return {name: path.read_text().strip() for name, path in paths.items() if path.exists()}
