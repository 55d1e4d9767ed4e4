"""Processors, disks, network and memory of the hosts, by sysstat. Read by `wanbench.read.ingest.host_metrics`."""

from __future__ import annotations

import gzip
import json
import secrets
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from wanbench.checks import check_fields
from wanbench.errors import CommandError, LabError
from wanbench.measure.labs.base import Host, Process
from wanbench.runs import RawFile, write_raw

from .base import ExperimentError, ended_with, keep, run_to_end
from .sampling import LONGEST_S, Sampling, file_part, hosts_at_work

_C = ["env", "LC_ALL=C"]
"""Locale for sysstat, which formats numbers and dates by it."""
_NETWORK = ["-n", "DEV,EDEV,TCP,ETCP"]
_MACHINE = ["-u", "ALL", "-P", "ALL", "-d", "-r", "-q"]
_ASK_S = 20.0
_START_S = 20.0
_READ_S = 120.0
"""Timeout of sadf: a long recording of a machine with many processors is large."""


@dataclass(frozen=True)
class HostMetrics(Sampling):
    """
    sysstat on both ends and the brokers' hosts: `sar` in the background, then `sadf -j` of its recording, compressed.

    A machine or network namespace that several hosts share is measured once: the first host has the file, and
    <stem>.<host>.hosts.json lists the hosts that share its machine, and those that share its network devices. In a
    namespace the devices are the namespace's own; processors and disks are always the whole machine's.

    Parameters
    ----------
    interval_s : int
        Interval between samples; sysstat has only whole seconds, also in its times.
    duration_s : float
        Duration of `run`; during another experiment, sampling lasts as long as that.
    """

    interval_s: int = 1
    duration_s: float = 10.0

    name: ClassVar[str] = "host_metrics"

    def __post_init__(self):
        check_fields(self, ("interval_s", 1, 3600), whole=True)
        check_fields(self, ("duration_s", 1, LONGEST_S))

    def __str__(self) -> str:
        return f"sysstat on every host every {self.interval_s} s"

    def start(self, source: Host, target: Host, ending: ExitStack) -> list[_Recorder]:
        recorders = _recorders(hosts_at_work(source, target))
        for recorder in recorders:
            # The name is unique, for sar appends to a file that is there already.
            recorder.recorded = f"{recorder.host.scratch}/{file_part(recorder.host.name)}-{secrets.token_hex(6)}.sar"
            recorder.sar = recorder.host.start([*_C, "sar", "-o", recorder.recorded, str(self.interval_s)])
            ending.callback(recorder.sar.stop)
        for recorder in recorders:
            try:
                recorder.sar.wait_for_output("Linux", _START_S)
            except CommandError as error:
                raise ExperimentError(f"{error} (sar and sadf come with sysstat)") from None
        return recorders

    def end(self, started: list[_Recorder], folder: Path, stem: str, files: list[RawFile]) -> list[str]:
        faults = []
        for recorder in started:
            recorder.sar.stop()
        for recorder in started:
            try:
                faults += self._keep(recorder, folder, stem, files)
            except LabError as error:
                faults.append(f"the recording of {recorder.host.name} is lost: {error}")
        return faults

    def _keep(self, recorder, folder, stem, files) -> list[str]:
        part = f"{stem}.{file_part(recorder.host.name)}"
        what = [*(_MACHINE if recorder.machine_hosts else []), *_NETWORK]
        command = [*_C, "sadf", "-j", recorder.recorded, "--", *what]
        done, stopped = run_to_end(recorder.host, command, _READ_S)
        compressed = replace(done, stdout=gzip.compress(done.stdout, mtime=0))
        files += keep(folder, self.name, part, "sadf.json.gz", compressed)
        about = {"interval_s": self.interval_s, **recorder.stands_for()}
        times = {"started_at_utc": done.started_at_utc, "ended_at_utc": done.ended_at_utc}
        content = json.dumps(about, indent=1).encode() + b"\n"
        files.append(write_raw(folder, self.name, f"{part}.hosts.json", content, **times))
        if not stopped and done.returncode == 0:
            recorder.host.run(["rm", "-f", recorder.recorded], timeout_s=_ASK_S, ok=None)
            return []
        fault = stopped or ended_with(f"sadf on {recorder.host.name}", done)
        with tempfile.TemporaryDirectory() as here:
            try:
                recorder.host.get(recorder.recorded, Path(here, "sar"))
                files.append(write_raw(folder, self.name, f"{part}.sar", Path(here, "sar").read_bytes(), **times))
            except (LabError, OSError) as error:
                fault += f"; and the recording of sar is lost: {error}"
        return [f"{fault}."]


class _Recorder:
    """A host where sysstat records, and the hosts that its figures apply to."""

    recorded: str
    sar: Process

    def __init__(self, host: Host):
        self.host, self.machine_hosts, self.network_hosts = host, [], []

    def stands_for(self) -> dict:
        return {
            "host": self.host.name,
            "machine_of": [host.name for host in self.machine_hosts],
            "network_of": [host.name for host in self.network_hosts],
        }


def _recorders(hosts: list[Host]) -> list[_Recorder]:
    """One per network namespace; the first on a machine also covers the machine."""
    networks: dict[tuple[str, str], _Recorder] = {}
    machines: dict[str, _Recorder] = {}
    for host in hosts:
        machine = _printed(host, ["cat", "/proc/sys/kernel/random/boot_id"])
        network = _printed(host, ["readlink", "/proc/self/ns/net"])
        recorder = networks.setdefault((machine, network), _Recorder(host))
        recorder.network_hosts.append(host)
        machines.setdefault(machine, recorder).machine_hosts.append(host)
    return list(networks.values())


def _printed(host: Host, command: list[str]) -> str:
    return host.run(command, timeout_s=_ASK_S).stdout.decode(errors="replace").strip()
