"""
The local lab: one network namespace per region on this machine, joined by emulated links.

It leaves nothing behind: one process (`wanbench.measure.links.lab_supervisor`) holds the namespaces, none of which has
a name, and ends with everything in them as soon as this process ends.
"""

from __future__ import annotations

import dataclasses
import functools
import shutil
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from wanbench.checks import check_number
from wanbench.errors import LabError, ParameterError
from wanbench.measure.links import LinkSettings, gateway_queue_in_bytes, queue_in_bytes
from wanbench.measure.links.launch import SupervisorProcess, is_rootless, why_not
from wanbench.measure.links.namespaces import address, checked_sysctls

from .base import Completed, Host, Lab
from .processes import GRACE_S, EnteredProcess, result_of
from .ssh.programs.facts import machine, version

MAX_COUNT = 254  # Regions of a lab, and hosts of a region: each is one byte of an address.
# What every region's namespace is set to: one known congestion control, buffers for long fat paths, IPv4.
SYSCTLS = {
    "net.ipv4.tcp_congestion_control": "cubic",
    "net.ipv4.tcp_no_metrics_save": "1",
    "net.ipv4.tcp_rmem": "4096 131072 33554432",
    "net.ipv4.tcp_wmem": "4096 16384 33554432",
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv4.conf.default.rp_filter": "0",
    "net.ipv4.conf.wan0.rp_filter": "0",
    "net.ipv6.conf.wan0.disable_ipv6": "1",
}

_PAIRS_PER_REQUEST = 100
EMULATOR = "relay"  # What makes the links, as a manifest names it. Runs recorded earlier may name another: "netem".

_TOOLS = {"iperf3": "--version", "ping": "-V", "ip": "-V", "nsenter": "--version"}
# Limits of the buffer that a program asks for with setsockopt; the same in all namespaces of the machine.
_GLOBAL_SYSCTLS = ("net.core.rmem_max", "net.core.wmem_max")
_CONGESTION_CONTROL = "net.ipv4.tcp_congestion_control"


class LocalHost(Host):
    """
    A host of the local lab: an address in its region's namespace.

    The files are this machine's, and so are clock and processors. Several hosts of one region share its
    namespace; commands that must tell them apart bind to `address`.
    """

    def __init__(self, lab: LocalLab, region: str, number: int):
        self.name, self.region = f"{region}/{number}", region
        self.address = address(lab.regions.index(region) + 1, number)
        self._lab = self.links = lab

    @property
    def scratch(self) -> str:
        return self._lab.scratch_of(self)

    def run(self, command: Sequence[str], *, timeout_s: float, ok: Sequence[int] | None = (0,)) -> Completed:
        return result_of(self.start(command), timeout_s, ok)

    def start(self, command: Sequence[str]) -> EnteredProcess:
        return self._lab.start_in(self.region, command)

    def put(self, source: Path, target: str) -> None:
        _copy(source, target)

    def get(self, source: str, target: Path) -> None:
        _copy(source, target)


class LocalLab(Lab):
    """
    A lab on this machine.

    `regions` are 1 to 254 names; number i (from 1) has the addresses 10.i.0.1 and so on. `links` are directed pairs;
    regions without one cannot reach each other. A region has 1 to 254 `hosts_per_region`. `sysctls` are settings below
    `net.` of the regions' namespaces, on top of `SYSCTLS`. `seed` is that of all loss and jitter.

    ParameterError if one of these is not as described. On entering, LabError if no lab can be opened here or the kernel
    refuses one of the `sysctls`.

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
        self.cut_pairs: set[tuple[str, str]] = set()
        self.gateways: dict[str, float] = {}
        self._numbers = {region: number for number, region in enumerate(self.regions, 1)}
        self._link_lock, self._process_lock, self._processes = threading.Lock(), threading.Lock(), []
        self._supervisor, self._opened, self._scratch = None, {}, None

    @classmethod
    def unavailable(cls) -> str | None:
        """Why no local lab can be opened on this machine, as a sentence; None if one can. Found by trying."""
        return why_not()

    def __enter__(self) -> LocalLab:
        if self._supervisor is not None:
            raise LabError("the lab is open already.")
        if reason := self.unavailable():
            raise LabError(f"no local lab: {reason}")
        self._supervisor = SupervisorProcess()
        try:
            sizes = {"regions": len(self.regions), "hosts_per_region": self.hosts_per_region}
            links = {"pairs": self._numbered(self.links), "seed": self.seed}
            self._opened = self._supervisor.ask("open", sysctls=self.sysctls, **sizes, **links)
            for name, why in self._opened["refused"].items():
                if name in self.wanted_sysctls:
                    raise LabError(f"the kernel refuses {name} = {self.sysctls[name]!r}: {why}.")
            self._send_settings(self.links, self.links)
            self._opened["granted"] = self._supervisor.ask("hurry")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception) -> None:
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
            self._processes, self.cut_pairs, self.gateways = [], set(), {}
            self.links = self._links_at_first
            supervisor.close()
            if self._scratch:  # a supervisor that was killed could not remove it
                shutil.rmtree(self._scratch, ignore_errors=True)
                self._scratch = None

    def start_in(self, region: str, command: Sequence[str]) -> EnteredProcess:
        """Start a command in a region's namespace; what `Host.start` does."""
        nsenter, *into = self.entering(region)
        # If nsenter forked, it would stop itself when the command is stopped, and never see it end; unshare does not.
        fork = ["unshare", "--fork", "--", "setsid", "--"]
        process = EnteredProcess(command, [nsenter, "--no-fork", *into, *fork])
        with self._process_lock:
            self._processes = [other for other in self._processes if other.is_running()] + [process]
        return process

    def scratch_of(self, host: LocalHost) -> str:
        """The host's folder on this machine; what `Host.scratch` gives."""
        self._scratch = self._ask("scratch")
        folder = Path(self._scratch, host.name.replace("/", "-").replace(":", "."))
        folder.mkdir(mode=0o700, exist_ok=True)
        return str(folder)

    def entering(self, region: str) -> list[str]:
        """
        The arguments to put before a command so that it runs in a region, also by hand in a terminal.

        Without a command they start a shell there. They hold as long as the lab is open.
        """
        if region not in self._numbers:
            raise KeyError(f"no region {region!r}; the lab has {', '.join(self.regions)}")
        return self._open_supervisor().entering(self._opened["namespaces"][self._numbers[region] - 1])

    def set_link(self, from_region: str, to_region: str, **changes) -> None:
        """
        Change one direction of a pair until the lab is closed: some fields of `LinkSettings`; the others stay. Where
        its `queue_bytes` is None, a link's queue follows its rate and the pair's RTT.
        """
        pair = (from_region, to_region)
        with self._link_lock:
            self._check_pairs([pair])
            try:
                changed = {**self.links, pair: dataclasses.replace(self.links[pair], **changes)}
            except TypeError as error:
                allowed = ", ".join(field.name for field in dataclasses.fields(LinkSettings))
                raise ParameterError(f"a link has no such setting: {error}; allowed: {allowed}.") from None
            self._send_settings(changed, [other for other in (pair, pair[::-1]) if other in changed])
            self.links = changed

    def set_gateway(self, region: str, rate_bps: float | None) -> None:
        """
        Have all links that leave a region share one rate and one drop-tail queue, as one gateway for the region would.

        While there is a gateway the links' own rates and queues do not count, and `bytes_backlog` in `counters` is what
        waits at the gateway, for whichever region. Its queue is that of `gateway_queue_in_bytes`. None takes the
        gateway away; `gateways` holds the rates of those there are.
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
        Cut the pair, as a broken cable would.

        A packet is dropped, and counted in `packets_cut`, if the link is cut when the packet is sent or when it would
        arrive. So nothing arrives from now until the cut is healed, not even what was on its way; and what was sent
        before the cut arrives after it if its delay ends after the healing. A link that is healed delivers one delay
        later again. `one_way` cuts only the direction from `a` to `b`.
        """
        self._cut(self._both_ways(a, b, one_way), True)

    def heal(self, a: str, b: str, *, one_way: bool = False) -> None:
        """Undo a cut."""
        self._cut(self._both_ways(a, b, one_way), False)

    def cut_region(self, region: str) -> None:
        """Cut all links from and to a region."""
        self._cut(self._touching(region), True)

    def heal_region(self, region: str) -> None:
        """Undo all cuts of links from and to a region, also those of single pairs."""
        self._cut(self._touching(region), False)

    def counters(self, pairs: Iterable[tuple[str, str]] | None = None) -> list[dict]:
        """
        Count what every link, or each link of `pairs`, carried since the lab was opened.

        Each has from_region, to_region, and packets and bytes sent, delivered, lost, queue_dropped, cut, device_dropped
        and in_flight (`packets_sent`, `bytes_sent`, ...): the first is the sum of the others. Then `bytes_backlog`,
        what waits for the rate; and `mean_late_ms` and `worst_late_ms`, how much later than asked the relay delivered
        (None where it delivered nothing). Packets are those of the wire; bytes are those of IP.
        """
        pairs, rows = list(self.links if pairs is None else pairs), []
        self._check_pairs(pairs)
        for first in range(0, len(pairs), _PAIRS_PER_REQUEST):
            some = pairs[first : first + _PAIRS_PER_REQUEST]
            counted = self._ask("counters", pairs=self._numbered(some))
            rows += [{"from_region": a, "to_region": b, **row} for (a, b), row in zip(some, counted, strict=True)]
        return rows

    def devices(self) -> list[dict]:
        """
        Count what the kernel carried and dropped at each region's devices since the lab was opened, outside the links.

        Each device ("wan0" towards the other regions, "lo" within the region) has region, device, and packets received,
        dropped_receiving, sent and dropped_sending (`packets_received`, ...).
        """
        return [{"region": self.regions[row.pop("region_number") - 1], **row} for row in self._ask("devices")]

    def lateness(self) -> dict:
        """
        How late packets of all links were so far, as in `wanbench.measure.links.relay.Relay.lateness`: whether the
        machine was fast enough.
        """
        return self._ask("lateness")

    def socket_buffer_limits(self) -> dict[str, int] | None:
        """
        See `Lab.socket_buffer_limits`. A namespace sees these and cannot change them; its tcp_rmem and tcp_wmem bound
        only what the kernel gives by itself, to sockets that ask for nothing.
        """
        values = _global_sysctls()
        return {name: int(value) for name, value in values.items()} if len(values) == len(_GLOBAL_SYSCTLS) else None

    def describe(self) -> dict:
        return {
            "kind": self.kind,
            "emulator": EMULATOR,
            "seed": self.seed,
            "machine": machine() | {"rootless": is_rootless()},
            "congestion_control": self.sysctls[_CONGESTION_CONTROL],
            "congestion_control_by": self._opened.get("congestion_control_by"),
            "sysctls": {**self.sysctls, **_global_sysctls()},
            "sysctls_refused": self._opened.get("refused", {}),
            "tools": tools(),
            "hosts": [{"name": host.name, "region": host.region, "address": host.address} for host in self.all_hosts()],
            "links": [{"from_region": a, "to_region": b, **_settings(self.links, a, b)} for a, b in self.links],
            "clock_offset_ms": 0,
            "clock_offset_from": "one machine, one clock",
            "granted": self._opened.get("granted", {}),
            "lateness": self.lateness() if self.is_open else {},
        }

    def __repr__(self):
        state = "open" if self.is_open else "closed"
        return f"<local lab, {state}: {len(self.regions)} regions, {len(self.links)} links>"

    @property
    def is_open(self) -> bool:
        """Whether commands can run."""
        return self._supervisor is not None

    def _open_supervisor(self):
        if self._supervisor is None:
            raise LabError("the lab is not open; use it in a with statement.")
        return self._supervisor

    def _ask(self, verb, **arguments):
        return self._open_supervisor().ask(verb, **arguments)

    def _numbered(self, pairs):
        return [[self._numbers[a], self._numbers[b]] for a, b in pairs]

    def _send_settings(self, links, pairs):
        self._ask("set", links=[[self._numbers[a], self._numbers[b], _settings(links, a, b)] for a, b in pairs])

    def _both_ways(self, a, b, one_way):
        pairs = [(a, b)] if one_way else [pair for pair in ((a, b), (b, a)) if pair in self.links]
        return pairs or [(a, b)]

    def _touching(self, region):
        if region not in self._numbers:
            raise ParameterError(f"no region {region!r}; the lab has {', '.join(self.regions)}.")
        return [pair for pair in self.links if region in pair]

    def _check_pairs(self, pairs: Iterable[tuple[str, str]]):
        for a, b in pairs:
            if (a, b) not in self.links:
                raise ParameterError(f"the lab has no link from {a!r} to {b!r}.")

    def _cut(self, pairs, is_cut):
        with self._link_lock:
            self._check_pairs(pairs)
            self._ask("cut", pairs=self._numbered(pairs), is_cut=is_cut)
            self.cut_pairs = self.cut_pairs | set(pairs) if is_cut else self.cut_pairs - set(pairs)


def _copy(source, target):
    try:
        shutil.copyfile(source, target)
    except OSError as error:
        raise LabError(f"{source} cannot be copied to {target}: {error.strerror or error}.") from None


def _settings(links, a, b) -> dict:
    """The settings of a direction, in JSON types, with the queue that follows from them where none is asked for."""
    back = links.get((b, a))
    return {**dataclasses.asdict(links[a, b]), "queue_bytes": queue_in_bytes(links[a, b], back and back.delay_ms)}


def checked_regions(regions: Sequence[str]) -> tuple[str, ...]:
    """ParameterError unless the regions are different names, no more than there are addresses."""
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
    """The links; ParameterError unless each joins two of the regions."""
    for pair, settings in links.items():
        if not isinstance(settings, LinkSettings):
            raise ParameterError(f"link {pair!r} is {settings!r}; allowed: LinkSettings.")
        if not isinstance(pair, tuple) or len(pair) != 2 or pair[0] == pair[1] or set(pair) - set(regions):
            raise ParameterError(f"link is {pair!r}; allowed: two different regions of {', '.join(regions)}.")
    return dict(links)


@functools.cache
def tools() -> dict[str, str]:
    """The first line of each tool's version output; tools that cannot be run are left out."""
    return {tool: line for tool, option in _TOOLS.items() if (line := version(tool, option))}


def _global_sysctls():
    paths = {name: Path("/proc/sys", *name.split(".")) for name in _GLOBAL_SYSCTLS}
    return {name: path.read_text().strip() for name, path in paths.items() if path.exists()}
