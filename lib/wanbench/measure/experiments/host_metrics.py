"""Record processors, disks, memory and networks of hosts with sysstat."""

from __future__ import annotations

import json
import secrets
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from wanbench.errors import CommandError, LabError
from wanbench.measure.labs.base import Host, Process
from wanbench.runs import RawFile, write_raw

from .base import ExperimentError, bounded, ended_with, keep, run_to_end
from .sampling import BOOT_ID, LONGEST_S, START_S, Sampling, file_part, gzipped, measured_hosts

_C = ["env", "LC_ALL=C"]  # sysstat formats numbers and dates by the locale
_NETWORK = ["-n", "DEV,EDEV,TCP,ETCP"]
_MACHINE = ["-u", "ALL", "-P", "ALL", "-d", "-r", "-q"]
_ASK_S = 20.0
_READ_S = 120.0  # timeout of sadf, long because a recording of many processors is large


@dataclass(frozen=True)
class HostMetrics(Sampling):
    """
    Record with sysstat on the source, the target and the brokers' hosts: `sar` runs in the background, then the output
    of `sadf -j` is kept, compressed.

    A machine or network namespace that several hosts share is recorded once, in the file of the first host;
    <stem>.<host>.hosts.json lists the hosts that share its machine and those that share its network devices. Figures of
    processors and disks are always for the whole machine. sysstat allows only whole seconds as intervals. Read by
    `wanbench.read.ingest.host_metrics`.
    """

    interval_s: int = bounded(1, 1, 3600)
    duration_s: float = bounded(10.0, 1, LONGEST_S)

    name: ClassVar[str] = "host_metrics"

    def __str__(self) -> str:
        return f"sysstat on all hosts every {self.interval_s} s"

    def start(self, source: Host, target: Host, ending: ExitStack) -> list[_Recorder]:
        recorders = _recorders(measured_hosts(source, target))
        for recorder in recorders:
            # The name is unique, because sar appends to an existing file.
            recorder.recorded = f"{recorder.host.scratch}/{file_part(recorder.host.name)}-{secrets.token_hex(6)}.sar"
            recorder.sar = recorder.host.start([*_C, "sar", "-o", recorder.recorded, str(self.interval_s)])
            ending.callback(recorder.sar.stop)
        for recorder in recorders:
            try:
                recorder.sar.wait_for_output("Linux", START_S)
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

    def _keep(self, recorder: _Recorder, folder: Path, stem: str, files: list[RawFile]) -> list[str]:
        part = f"{stem}.{file_part(recorder.host.name)}"
        what = [*(_MACHINE if recorder.machine_hosts else []), *_NETWORK]
        done, stopped = run_to_end(recorder.host, [*_C, "sadf", "-j", recorder.recorded, "--", *what], _READ_S)
        files += keep(folder, self.name, part, "sadf.json.gz", gzipped(done))
        about = {"interval_s": self.interval_s, "host": recorder.host.name}
        about |= {"machine_of": recorder.machine_hosts, "network_of": recorder.network_hosts}
        times: dict[str, Any] = {"started_at_utc": done.started_at_utc, "ended_at_utc": done.ended_at_utc}
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
    """A host on which sysstat records, and the names of the hosts to which its figures apply."""

    recorded: str
    sar: Process

    def __init__(self, host: Host):
        self.host, self.machine_hosts, self.network_hosts = host, [], []


def _recorders(hosts: list[Host]) -> list[_Recorder]:
    """
    Return one recorder for each network namespace; the first recorder on a machine also records the machine itself.
    """
    networks: dict[tuple[bytes, bytes], _Recorder] = {}
    machines: dict[bytes, _Recorder] = {}
    for host in hosts:
        machine = host.run(["cat", str(BOOT_ID)], timeout_s=_ASK_S).stdout
        network = host.run(["readlink", "/proc/self/ns/net"], timeout_s=_ASK_S).stdout
        recorder = networks.setdefault((machine, network), _Recorder(host))
        recorder.network_hosts.append(host.name)
        machines.setdefault(machine, recorder).machine_hosts.append(host.name)
    return list(networks.values())
