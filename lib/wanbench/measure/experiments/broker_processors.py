"""CPU time of each broker, and throttling by its quota. Read by `wanbench.read.ingest.broker_processors`."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from wanbench.checks import check_fields
from wanbench.measure.kafka.programs import processor_use
from wanbench.measure.labs.base import Host, Process
from wanbench.measure.labs.programs import program_command
from wanbench.runs import RawFile

from .base import ExperimentError, cluster_of, ended_with, keep
from .sampling import LONGEST_S, Sampling

_START_S = 30.0
"""Time for Python to start on a busy host."""


@dataclass(frozen=True)
class BrokerProcessors(Sampling):
    """
    CPU time of each broker process, and time throttled by its quota, by `wanbench.measure.kafka.programs.processor_use`.

    Limits of the provider, such as burst credits, are invisible from inside; steal time is in `HostMetrics`.

    Parameters
    ----------
    interval_s : float
        Interval between samples.
    duration_s : float
        Duration of `run`; during another experiment, sampling lasts as long as that.
    """

    interval_s: float = 5.0
    duration_s: float = 30.0

    name: ClassVar[str] = "broker_processors"

    def __post_init__(self):
        check_fields(self, ("interval_s", 0.1, 3600), ("duration_s", 0.1, LONGEST_S))

    def __str__(self) -> str:
        return f"processor time of the brokers every {self.interval_s:g} s"

    def start(self, source: Host, target: Host, ending: ExitStack) -> dict[int, Process]:
        cluster, started = cluster_of(source), {}
        if not hasattr(cluster, "pid_file"):
            raise ExperimentError(f"{cluster!r} runs elsewhere: the processes of its brokers cannot be seen")
        for broker in cluster.brokers:
            settings = {
                "pid_file": cluster.pid_file(broker.node_id),
                "interval_s": self.interval_s,
                "about": {"node_id": broker.node_id, "host": broker.host.name},
            }
            program = program_command(broker.host, Path(processor_use.__file__))
            started[broker.node_id] = process = broker.host.start([*program, json.dumps(settings)])
            ending.callback(process.stop)
        for process in started.values():
            process.wait_for_output("ticks_per_s", _START_S)
        return started

    def end(self, started: dict[int, Process], folder: Path, stem: str, files: list[RawFile]) -> list[str]:
        faults = []
        for node_id, process in started.items():
            done = process.stop()
            files += keep(folder, self.name, f"{stem}.{node_id}", "processors.jsonl", done)
            if done.returncode != 0:
                faults.append(f"{ended_with(f'the program that samples broker {node_id}', done)}.")
        return faults
