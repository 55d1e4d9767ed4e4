"""Metrics that brokers report through their Prometheus exporters. Read by `wanbench.read.ingest.broker_metrics`."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from wanbench.checks import check_fields, check_flag, refusal
from wanbench.measure.kafka import Broker
from wanbench.measure.kafka.programs import scrape
from wanbench.measure.labs.base import Host, Process
from wanbench.measure.labs.programs import program_command
from wanbench.runs import RawFile

from .base import ExperimentError, cluster_of, ended_with, keep
from .sampling import LONGEST_S, Sampling

_START_S = 30.0
"""Time for Python to start on a busy host."""


@dataclass(frozen=True)
class BrokerMetrics(Sampling):
    """
    Scrapes each broker's exporter on the broker's own host, by `wanbench.measure.kafka.programs.scrape`.

    Answers are kept verbatim, with the time and duration of each scrape.

    A broker that does not answer is recorded as such, and does not hold up the others.

    Parameters
    ----------
    interval_s : float
        Interval between scrapes of one broker.
    timeout_s : float
        Timeout for an answer.
    duration_s : float
        Duration of `run`; during another experiment, sampling lasts as long as that.
    compressed : bool, optional
        Whether to compress the answers, to a tenth or less; None: unchanged.
    """

    interval_s: float = 5.0
    timeout_s: float = 4.0
    duration_s: float = 30.0
    compressed: bool | None = None

    name: ClassVar[str] = "broker_metrics"

    def __post_init__(self):
        check_fields(self, ("interval_s", 0.2, 3600), ("timeout_s", 0.1, 600), ("duration_s", 0.1, LONGEST_S))
        check_flag("BrokerMetrics compressed", self.compressed, optional=True)
        if self.timeout_s > self.interval_s:
            raise refusal("BrokerMetrics timeout_s", self.timeout_s, f"at most interval_s, {self.interval_s!r}")

    def __str__(self) -> str:
        return f"metrics of the brokers every {self.interval_s:g} s"

    def command(self, program: Sequence[str], broker: Broker) -> list[str]:
        """The command that scrapes a broker; `program` is the one that starts `wanbench.measure.kafka.programs.scrape`."""
        address = broker.host.address
        address = f"[{address}]" if ":" in address else address
        settings = {
            "url": f"http://{address}:{broker.metrics_port}/metrics",
            "interval_s": self.interval_s,
            "timeout_s": self.timeout_s,
            "about": {"node_id": broker.node_id, "host": broker.host.name},
        }
        return [*program, json.dumps(settings)]

    def start(self, source: Host, target: Host, ending: ExitStack) -> dict[int, Process]:
        brokers = [broker for broker in cluster_of(source).brokers if broker.metrics_port is not None]
        if not brokers:
            raise ExperimentError("no broker has an exporter; those of a `Cluster` with metrics=True have one.")
        started = {}
        for broker in brokers:
            program = program_command(broker.host, Path(scrape.__file__))
            started[broker.node_id] = process = broker.host.start(self.command(program, broker))
            ending.callback(process.stop)
        for process in started.values():
            process.wait_for_output("#scrapes", _START_S)
        return started

    def end(self, started: dict[int, Process], folder: Path, stem: str, files: list[RawFile]) -> list[str]:
        with ThreadPoolExecutor(len(started)) as pool:
            ended = list(pool.map(lambda process: process.stop(), started.values()))
        faults = []
        for node_id, done in zip(started, ended, strict=True):
            extension = "prom.txt"
            if self.compressed:
                done, extension = replace(done, stdout=gzip.compress(done.stdout, mtime=0)), "prom.txt.gz"
            files += keep(folder, self.name, f"{stem}.{node_id}", extension, done)
            if done.returncode != 0:
                faults.append(f"{ended_with(f'the program that scrapes broker {node_id}', done)}.")
        return faults
