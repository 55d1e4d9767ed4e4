"""Processor time of the machines by program, during a test. Read by `wanbench.read.ingest.processor_use`."""

from __future__ import annotations

import gzip
import json
import os
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from wanbench.checks import check_fields
from wanbench.measure.kafka.programs import processor_use
from wanbench.measure.labs.base import Host, Process
from wanbench.measure.labs.programs import program_command
from wanbench.runs import RawFile, write_raw

from .base import keep
from .sampling import LONGEST_S, Sampling, file_part, hosts_at_work

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_START_S = 30.0
"""Time for Python to start on a busy host."""


@dataclass(frozen=True)
class ProcessorUse(Sampling):
    """
    Who used the processors: every machine's time by program, by `wanbench.measure.kafka.programs.processor_use`.

    Part of every Kafka trial and fault episode. The process that drives the test is not among the programs of a host;
    where it runs on a sampled machine, <stem>.<host>.driver.json has its time.
    """

    interval_s: float = 1.0
    duration_s: float = 10.0

    name: ClassVar[str] = "processor_use"

    def __post_init__(self):
        check_fields(self, ("interval_s", 0.1, 3600), ("duration_s", 0.1, LONGEST_S))

    def __str__(self) -> str:
        return f"processor time by program every {self.interval_s:g} s"

    def start(self, source: Host, target: Host, ending: ExitStack) -> tuple[dict[str, Process], list[tuple]]:
        machines: dict[str, Host] = {}
        for host in hosts_at_work(source, target):
            boot_id = host.run(["cat", str(_BOOT_ID)], timeout_s=_START_S, ok=None).stdout
            machines.setdefault(boot_id.decode(errors="replace").strip(), host)
        machines.pop("", None)  # no Linux: such a machine has no /proc
        started = {}
        for host in machines.values():
            about = {"interval_s": self.interval_s, "about": {"host": host.name}}
            process = host.start([*program_command(host, Path(processor_use.__file__)), json.dumps(about)])
            ending.callback(process.stop)
            started[host.name] = process
        for process in started.values():
            process.wait_for_output("boot_id", _START_S)
        return started, [_own_time()]

    def end(self, started, folder: Path, stem: str, files: list[RawFile]) -> list[str]:
        processes, own_times = started
        own_times.append(_own_time())
        for name, process in processes.items():
            done, part = process.stop(), f"{stem}.{file_part(name)}"
            compressed = replace(done, stdout=gzip.compress(done.stdout, mtime=0))
            files += keep(folder, self.name, part, "processors.jsonl.gz", compressed)
            if _BOOT_ID.exists() and _BOOT_ID.read_bytes().strip() in done.stdout.partition(b"\n")[0]:
                times = {"started_at_utc": done.started_at_utc, "ended_at_utc": done.ended_at_utc}
                content = json.dumps({"at_s_and_used_s": own_times}).encode() + b"\n"
                files.append(write_raw(folder, self.name, f"{part}.driver.json", content, **times))
        return []  # a test need not fail for them: a sampler that failed leaves its stderr, and rows that are missing


def _own_time() -> tuple[float, float]:
    """Now, in Unix s, and the processor time of this process."""
    return time.time(), sum(os.times()[:2])
