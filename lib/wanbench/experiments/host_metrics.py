"""Processors, disks, network and memory of the hosts at work, by sysstat. Read by `wanbench.ingest.host_metrics`."""

from __future__ import annotations

import json
import secrets
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ..errors import CommandError, LabError, ParameterError
from ..labs.base import Host, Process
from ..runs import RawFile, write_raw
from .base import ExperimentError, keep, last_words, run_to_end
from .checks import check_numbers
from .concurrent import LONGEST_S, Beside, file_part, hosts_at_work

_C = ["env", "LC_ALL=C"]
_NETWORK = ["-n", "DEV,EDEV,TCP,ETCP"]
_MACHINE = ["-u", "ALL", "-P", "ALL", "-d", "-r", "-q"]
_ASK_S, _START_S, _READ_S = 20.0, 20.0, 120.0


@dataclass(frozen=True)
class HostMetrics(Beside):
    """
    sysstat on the hosts of both ends and of the brokers: `sar` in the background, then `sadf -j` of what it recorded.

    What a machine or a network namespace shares among several hosts is measured once: the first of them has the file,
    and <stem>.<host>.hosts.json beside it says which hosts its processors, disks and memory, and which its network
    devices speak for. In a namespace the devices are the namespace's own; processors and disks are always the whole
    machine's.

    Parameters
    ----------
    interval_s : int
        Between samples; sysstat knows whole seconds only, also in the times it gives.
    duration_s : float
        Of `run`; beside another experiment it lasts as long as that.
    """

    interval_s: int = 1
    duration_s: float = 10.0

    name: ClassVar[str] = "host_metrics"

    def __post_init__(self):
        if not isinstance(self.interval_s, int):
            raise ParameterError(
                f"HostMetrics interval_s is {self.interval_s!r}; sysstat knows whole seconds only."
            )
        check_numbers(self, ("interval_s", 1, 3600), ("duration_s", 1, LONGEST_S))

    def __str__(self) -> str:
        return f"sysstat on every host every {self.interval_s} s"

    def start(self, source: Host, target: Host, ending: ExitStack) -> list[_Place]:
        places = _places(hosts_at_work(source, target))
        for place in places:
            # The name is this run's own: sar adds to a file that is there already.
            place.recorded = f"{place.host.scratch}/{file_part(place.host.name)}-{secrets.token_hex(6)}.sar"
            place.sar = place.host.start([*_C, "sar", "-o", place.recorded, str(self.interval_s)])
            ending.callback(place.sar.stop)
        for place in places:
            try:
                place.sar.wait_for_output("Linux", _START_S)
            except CommandError as error:
                raise ExperimentError(f"{error} (sar and sadf come with sysstat)") from None
        return places

    def end(self, started: list[_Place], folder: Path, stem: str, files: list[RawFile]) -> list[str]:
        faults = []
        for place in started:
            place.sar.stop()
        for place in started:
            try:
                faults += self._keep(place, folder, stem, files)
            except LabError as error:
                faults.append(f"what {place.host.name} recorded is lost: {error}")
        return faults

    def _keep(self, place, folder, stem, files) -> list[str]:
        part = f"{stem}.{file_part(place.host.name)}"
        words = [
            *_C,
            "sadf",
            "-j",
            place.recorded,
            "--",
            *(_MACHINE if place.machine_hosts else []),
            *_NETWORK,
        ]
        done, stopped = run_to_end(place.host, words, _READ_S)
        files += keep(folder, self.name, part, "sadf.json", done)
        about = {"interval_s": self.interval_s, **place.speaks_for()}
        times = {"started_at_utc": done.started_at_utc, "ended_at_utc": done.ended_at_utc}
        content = json.dumps(about, indent=1).encode() + b"\n"
        files.append(write_raw(folder, self.name, f"{part}.hosts.json", content, **times))
        if not stopped and done.returncode == 0:
            place.host.run(["rm", "-f", place.recorded], timeout_s=_ASK_S, ok=None)
            return []
        said = stopped or f"sadf on {place.host.name} ended with status {done.returncode}: {last_words(done)}"
        with tempfile.TemporaryDirectory() as here:
            try:
                place.host.get(place.recorded, Path(here, "sar"))
                files.append(
                    write_raw(folder, self.name, f"{part}.sar", Path(here, "sar").read_bytes(), **times)
                )
            except (LabError, OSError) as error:
                said += f"; and what sar recorded is lost: {error}"
        return [f"{said}."]


class _Place:
    """A host that is measured, and the hosts that it speaks for."""

    recorded: str
    sar: Process

    def __init__(self, host: Host):
        self.host, self.machine_hosts, self.network_hosts = host, [], []

    def speaks_for(self) -> dict:
        return {
            "host": self.host.name,
            "machine_of": [host.name for host in self.machine_hosts],
            "network_of": [host.name for host in self.network_hosts],
        }


def _places(hosts: list[Host]) -> list[_Place]:
    """One per network namespace; the first of a machine also speaks for the machine."""
    networks: dict[tuple[str, str], _Place] = {}
    machines: dict[str, _Place] = {}
    for host in hosts:
        machine = _said(host, ["cat", "/proc/sys/kernel/random/boot_id"])
        network = _said(host, ["readlink", "/proc/self/ns/net"])
        place = networks.setdefault((machine, network), _Place(host))
        place.network_hosts.append(host)
        machines.setdefault(machine, place).machine_hosts.append(host)
    return list(networks.values())


def _said(host: Host, words: list[str]) -> str:
    return host.run(words, timeout_s=_ASK_S).stdout.decode(errors="replace").strip()
