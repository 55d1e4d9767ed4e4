"""The lab of hosts that the user already has, reached by SSH."""

import csv
import json
import re
import shlex
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path
from typing import Any, Self

from wanbench.checks import T, check_choice, check_number, refusal
from wanbench.errors import LabError
from wanbench.measure.labs.base import Host, Lab, Offset, clock_offset

from .host import SshHost
from .inventory import Inventory, read_inventory
from .programs import facts

# The sysctls that affect the throughput of TCP.
_SYSCTLS = """
net.ipv4.tcp_congestion_control net.ipv4.tcp_available_congestion_control net.core.default_qdisc
net.ipv4.tcp_rmem net.ipv4.tcp_wmem net.core.rmem_max net.core.wmem_max
net.ipv4.tcp_window_scaling net.ipv4.tcp_timestamps net.ipv4.tcp_sack net.ipv4.tcp_ecn net.ipv4.tcp_mtu_probing
net.ipv4.tcp_no_metrics_save net.ipv4.tcp_slow_start_after_idle
"""
SYSCTLS = tuple(_SYSCTLS.split())
PATHS, KAFKA = "paths", "Kafka"
# Programs that experiments need, and of which kind these experiments are.
NEEDS = {"iperf3": PATHS, "ping": PATHS, "java": KAFKA, "sar": KAFKA, "sadf": KAFKA, "ss": KAFKA}
# Modules that Kafka's experiments import on a host, and the packages that contain them.
MODULES = {"kafka": "kafka-python", "confluent_kafka": "confluent-kafka"}
OLDEST_JAVA = 17  # Minimum version for brokers of Kafka 4, as in `wanbench.measure.kafka.java_commands`.
_TIMEOUT_S = 120.0


def facts_of(host: Host, python: str, sysctls: Iterable[str] = (), peer: str | None = None) -> dict[str, Any]:
    """
    Return facts about a host, as `programs/facts.py` prints them: kernel, processors, sysctls, tools, Python modules,
    and the congestion control of connections to the address `peer`. Raise LabError if the program fails.
    """
    program = f"{host.scratch}/{Path(facts.__file__).name}"
    host.put(Path(facts.__file__), program)
    asked = [python, program, host.address, peer or host.address, *dict.fromkeys([*SYSCTLS, *sysctls])]
    done = host.run(asked, timeout_s=_TIMEOUT_S)
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise LabError(f"{host.name}: {program} printed no facts about the host, but {done.stdout[-200:]!r}.") from None


def lacking(host_facts: Mapping[str, Any], needed_for: str) -> list[str]:
    """Return the programs of one kind of experiment that a host lacks; Java counts as missing if it is too old."""
    tools = dict(host_facts["tools"])
    version = re.search(r'version "(?:1\.)?(\d+)', tools.get("java", ""))
    if not version or int(version[1]) < OLDEST_JAVA:
        tools.pop("java", None)
    return [name for name, purpose in NEEDS.items() if purpose == needed_for and name not in tools]


def install_command(host_facts: Mapping[str, Any], programs: Iterable[str]) -> str:
    """
    Return the command that installs programs with the host's package manager; if the manager is not known, return a
    text with their names.
    """
    column = {"apt-get": "debian", "dnf": "fedora", "yum": "fedora"}.get(host_facts["manager"])
    if column is None:
        return f"install {', '.join(programs)}"
    text = files("wanbench").joinpath("programs.csv").read_text(encoding="utf-8")
    listed, packages = {row["program"]: row for row in csv.DictReader(text.splitlines())}, []
    for name in programs:
        packages += listed.get(name, {"debian": "iproute2", "fedora": "iproute"})[column].split()
    return f"sudo {host_facts['manager']} install -y {shlex.join(dict.fromkeys(packages))}"


def module_command(python: str, modules: Iterable[str]) -> str:
    """Return the command that installs Python modules on a host."""
    return f"{python} -m pip install {' '.join(MODULES[name] for name in modules)}"


CLOCK_EXCHANGES = 10


class SshLab(Lab):
    """
    Hosts of an inventory. The network between them is real: links cannot be set, counted or cut.

    If the inventory gives each host an address on each of several paths, trials choose between these paths.

    Parameters
    ----------
    regions : sequence of str
        Regions in which the inventory has hosts.
    links, seed
        Not used.
    hosts_per_region : int, optional
        How many hosts of each region to use, in the order of the inventory; None means all.
    sysctls : mapping, optional
        Values that the hosts must already have. They are compared and not set, because the hosts do not belong to
        wanbench.
    inventory : path or Inventory
        The hosts; see `read_inventory` and docs/hosts.md.

    Raises
    ------
    ParameterError
        If the inventory is malformed or lacks hosts.
    LabError
        On entry, if a host cannot be reached or lacks programs; the message has the command that installs them.
    """

    kind = "ssh"

    def __init__(
        self,
        regions: Sequence[str],
        links: object = None,
        *,
        hosts_per_region: int | None = 1,
        sysctls: Mapping[str, str] | None = None,
        seed: int = 0,
        inventory: str | Path | Inventory,
    ):
        if not isinstance(inventory, Inventory):
            inventory = read_inventory(inventory)
        count = check_number("hosts_per_region", hosts_per_region, 1, whole=True, optional=True)
        entries = {region: inventory.in_region(region, count) for region in regions}
        self.hosts = {region: [entry.host for entry in some] for region, some in entries.items()}
        self.sysctls = {name: " ".join(str(value).split()) for name, value in (sysctls or {}).items()}
        self._entries = [entry for some in entries.values() for entry in some]
        self.settings = {"hosts": [entry.as_dict() for entry in self._entries]}
        self._facts: dict[str, dict[str, Any]] = {}
        if len(ways := {tuple(sorted(entry.paths)) for entry in self._entries}) > 1:
            raise refusal(f"{inventory.path}: paths", ways, "the same names for all hosts of a lab, or for none")
        self.path_names = min(ways, default=())
        for entry in self._entries:
            entry.host.paths = self if self.path_names else None

    def use(self, path: str) -> None:
        """Make all hosts use their addresses on this path."""
        check_choice("path", path, self.path_names)
        for entry in self._entries:
            entry.host.address = entry.paths[path]

    def __enter__(self) -> Self:
        try:
            names = [entry.host.name for entry in self._entries]
            self._facts = dict(zip(names, self._at_once(self._prepare), strict=True))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self._facts = {}
        self._at_once(SshHost.close)

    def describe(self) -> dict[str, Any]:
        if not self._facts:
            raise LabError("the lab is not open; use it in a with statement.")
        self._at_once(SshHost.check)
        clocks = self._at_once(lambda host: clock_of(host).as_dict())
        hosts: list[dict[str, Any]] = [
            entry.as_dict() | self._facts[entry.host.name] | {"clock": clock}
            for entry, clock in zip(self._entries, clocks, strict=True)
        ]
        used = {host["congestion_control"] or "not known" for host in hosts}
        return {
            "kind": self.kind,
            "hosts": hosts,
            "congestion_control": ", ".join(sorted(used)),
            "sysctls": self.sysctls,
            "tools": _together(host["tools"] for host in hosts),
            "links": [],
            "clock_offset_from": "the clock of the machine that measured, for each host",
        }

    def _prepare(self, host: SshHost) -> dict[str, Any]:
        host.open()
        others = [entry.host.address for entry in self._entries if entry.host.region != host.region]
        host_facts = facts_of(host, host.connection.hello["python"], self.sysctls, *others[:1])
        if missing := lacking(host_facts, PATHS):
            raise LabError(f"{host.name} lacks {', '.join(missing)}: {install_command(host_facts, missing)}")
        if not host_facts["has_address"]:
            nat = "Behind network address translation, give the inner address"
            inner = f"{nat}; the hosts must then reach each other's inner addresses."
            lacks = f"{host.name} does not have the address {host.address} itself"
            raise LabError(f"{lacks}, so no server there can listen on it. {inner}")
        del host_facts["has_address"], host_facts["manager"]
        for name, value in self.sysctls.items():
            if host_facts["sysctls"][name] != value:
                has = f"{host.name} has {name} = {host_facts['sysctls'][name]!r}"
                raise LabError(f"{has}, but the lab needs {value!r}: sudo sysctl -w {name}='{value}'")
        return host_facts

    def _at_once(self, function: Callable[[SshHost], T]) -> list[T]:
        """Call a function for all hosts concurrently; return the results in order, or raise the first error."""
        with ThreadPoolExecutor(max_workers=32) as threads:
            return list(threads.map(function, [entry.host for entry in self._entries]))


def clock_of(host: SshHost) -> Offset:
    """Measure the host's clock minus this machine's, in ms with its error bound, by time stamps over the connection."""
    stamps = []
    for _ in range(CLOCK_EXCHANGES):
        sent_ns = time.time_ns()
        there_ns = host.connection.ask("clock")[0]["ns"]
        stamps.append((sent_ns, there_ns, there_ns, time.time_ns()))
    return clock_offset(stamps)


def _together(tools: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Merge the versions of tools on all hosts; where hosts differ, all versions are listed."""
    by_tool: dict[str, dict[str, None]] = {}
    for one in tools:
        for name, version in one.items():
            by_tool.setdefault(name, {})[version] = None
    return {name: "; ".join(versions) for name, versions in by_tool.items()}
