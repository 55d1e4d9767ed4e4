"""Experiments that sample at regular times, alone or while another experiment runs."""

from __future__ import annotations

import gzip
import json
import os
import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from wanbench.checks import T, refusal
from wanbench.errors import WanbenchError
from wanbench.measure.kafka.external import RemoteBrokerHost
from wanbench.measure.kafka.placement import Broker
from wanbench.measure.kafka.programs import processor_use, scrape
from wanbench.measure.labs.base import Completed, Host, Process
from wanbench.measure.labs.programs import program_command
from wanbench.runs import RawFile, write_raw
from wanbench.runs.journal import now_utc

from .base import ExperimentError, bounded, check_declared, cluster_of, ended_with, keep, links_of, one_of

LONGEST_S = 86_400  # maximum duration: a day


class Sampling(ABC):
    """
    An experiment that samples periodically, alone for `duration_s` or while another experiment runs.

    A subclass defines `start` and `end`.
    """

    name: ClassVar[str]
    duration_s: float

    def __post_init__(self):
        check_declared(self)

    @abstractmethod
    def start(self, source: Host, target: Host, ending: ExitStack) -> Any:
        """
        Start sampling, and return what `end` needs.

        The subclass registers with `ending`, at once, whatever it starts and must stop again.
        """

    @abstractmethod
    def end(self, started: Any, folder: Path, stem: str, files: list[RawFile]) -> list[str]:
        """Stop sampling, and add each raw file to `files`; return failures as sentences."""

    @contextmanager
    def concurrently(self, source: Host, target: Host, folder: Path, stem: str) -> Generator[list[RawFile]]:
        """
        Sample while the `with` block runs; after the block, the yielded list contains the raw files.

        Raise ExperimentError if sampling cannot start or fails, but never replace an exception raised in the block.
        """
        files: list[RawFile] = []
        with ExitStack() as ending:
            try:
                started = self.start(source, target, ending)
            except WanbenchError as error:
                raise ExperimentError(f"{self.name} cannot start: {error}", files) from error
            block_succeeded = False
            try:
                yield files
                block_succeeded = True
            finally:
                try:
                    faults = self.end(started, folder, stem, files)
                except WanbenchError as error:
                    faults = [str(error)]
                if faults and block_succeeded:
                    raise ExperimentError(f"{self.name}: {' '.join(faults)}", files)

    def run(self, source: Host, target: Host, folder: Path, stem: str) -> list[RawFile]:
        """Sample for `duration_s`, and return the raw files; raise ExperimentError as `concurrently` does."""
        with self.concurrently(source, target, folder, stem) as files:
            time.sleep(self.duration_s)
        return files

    def expected_s(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """Return the expected duration of `run` in s."""
        return self.duration_s

    def expected_bytes(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """Return 0: no bytes cross links between regions, because each host samples locally."""
        return 0.0


def measured_hosts(source: Host, target: Host) -> list[Host]:
    """Return the source, the target and the hosts of the lab's own brokers, each once."""
    brokers = () if source.cluster is None else source.cluster.brokers
    ours = [broker.host for broker in brokers if not isinstance(broker.host, RemoteBrokerHost)]
    return list({host.name: host for host in (source, target, *ours)}.values())


def file_part(name: str) -> str:
    """
    Return a host's name in a form that can be part of a file name.

    >>> file_part("aws:eu-west-1/0")
    'aws.eu-west-1-0'
    """
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name.replace(":", "."))


START_S = 30.0  # time for Python to start on a busy host


def _start_programs(
    program: str, hosts: Mapping[T, tuple[Host, Mapping[str, object]]], first_output: str, ending: ExitStack
) -> dict[T, Process]:
    """
    Start a sampling program on each host with the settings given; return the processes once all have printed a line.
    """
    started = {}
    for key, (host, settings) in hosts.items():
        started[key] = host.start([*program_command(host, Path(program)), json.dumps(settings)])
        ending.callback(started[key].stop)
    for process in started.values():
        process.wait_for_output(first_output, START_S)
    return started


def _about(broker: Broker) -> dict[str, object]:
    return {"node_id": broker.node_id, "host": broker.host.name}


def _keep_stopped(
    name: str, verb: str, extension: str, started: Mapping[int, Process], folder: Path, stem: str, files: list[RawFile]
) -> list[str]:
    """Stop the programs of all brokers concurrently, and keep their output; return sentences on failures."""
    with ThreadPoolExecutor(len(started)) as pool:
        ended = list(pool.map(lambda process: process.stop(), started.values()))
    faults = []
    for node_id, done in zip(started, ended, strict=True):
        done = gzipped(done) if extension.endswith(".gz") else done
        files += keep(folder, name, f"{stem}.{node_id}", extension, done)
        if done.returncode != 0:
            faults.append(f"{ended_with(f'the program that {verb} broker {node_id}', done)}.")
    return faults


def gzipped(done: Completed) -> Completed:
    """Return a command's result with stdout compressed by gzip."""
    return replace(done, stdout=gzip.compress(done.stdout, mtime=0))


@dataclass(frozen=True)
class BrokerMetrics(Sampling):
    """
    Scrape each broker's exporter on the broker's own host, by `wanbench.measure.kafka.programs.scrape`.

    Answers are kept verbatim, with the time and duration of each scrape. A broker that does not answer within
    `timeout_s` is recorded as silent, and does not delay others. `compressed` files have a tenth of the size or less.
    Read by `wanbench.read.ingest.broker_metrics`.
    """

    interval_s: float = bounded(5.0, 0.2, 3600)
    timeout_s: float = bounded(4.0, 0.1, 600)
    duration_s: float = bounded(30.0, 0.1, LONGEST_S)
    compressed: bool | None = None

    name: ClassVar[str] = "broker_metrics"

    def __post_init__(self):
        super().__post_init__()
        if self.timeout_s > self.interval_s:
            raise refusal("BrokerMetrics timeout_s", self.timeout_s, f"at most interval_s, {self.interval_s!r}")

    def __str__(self) -> str:
        return f"metrics of the brokers every {self.interval_s:g} s"

    def start(self, source: Host, target: Host, ending: ExitStack) -> dict[int, Process]:
        hosts, times = {}, {"interval_s": self.interval_s, "timeout_s": self.timeout_s}
        for broker in cluster_of(source).brokers:
            if broker.metrics_port is not None:
                address = f"[{broker.host.address}]" if ":" in broker.host.address else broker.host.address
                url = f"http://{address}:{broker.metrics_port}/metrics"
                hosts[broker.node_id] = broker.host, {"url": url, **times, "about": _about(broker)}
        if not hosts:
            raise ExperimentError("no broker has a metrics exporter; start the cluster with metrics=True.")
        return _start_programs(scrape.__file__, hosts, "#scrapes", ending)

    def end(self, started: dict[int, Process], folder: Path, stem: str, files: list[RawFile]) -> list[str]:
        extension = "prom.txt.gz" if self.compressed else "prom.txt"
        return _keep_stopped(self.name, "scrapes", extension, started, folder, stem, files)


@dataclass(frozen=True)
class BrokerProcessors(Sampling):
    """
    Sample the CPU time of each broker process, and the time for which its quota throttled it.

    Limits that a cloud provider applies, such as burst credits, are invisible to the guest; steal time is recorded by
    `HostMetrics`.
    """

    interval_s: float = bounded(5.0, 0.1, 3600)
    duration_s: float = bounded(30.0, 0.1, LONGEST_S)

    name: ClassVar[str] = "broker_processors"

    def __str__(self) -> str:
        return f"processor time of the brokers every {self.interval_s:g} s"

    def start(self, source: Host, target: Host, ending: ExitStack) -> dict[int, Process]:
        cluster = cluster_of(source)
        if not hasattr(cluster, "pid_file"):
            raise ExperimentError(f"{cluster!r} runs outside the lab: its brokers' processes cannot be sampled")
        hosts = {}
        for broker in cluster.brokers:
            settings = {"pid_file": cluster.pid_file(broker.node_id), "interval_s": self.interval_s}
            hosts[broker.node_id] = broker.host, settings | {"about": _about(broker)}
        return _start_programs(processor_use.__file__, hosts, "ticks_per_s", ending)

    def end(self, started: dict[int, Process], folder: Path, stem: str, files: list[RawFile]) -> list[str]:
        return _keep_stopped(self.name, "samples", "processors.jsonl", started, folder, stem, files)


BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class ProcessorUse(Sampling):
    """
    Sample the processor time of every machine and its programs, with `wanbench.measure.kafka.programs.processor_use`.

    Every Kafka trial and fault episode includes this. The process that drives the test is not among the programs; if it
    runs on a sampled machine, <stem>.<host>.driver.json has its processor time.
    """

    interval_s: float = bounded(1.0, 0.1, 3600)
    duration_s: float = bounded(10.0, 0.1, LONGEST_S)

    name: ClassVar[str] = "processor_use"

    def __str__(self) -> str:
        return f"processor time by program every {self.interval_s:g} s"

    def start(self, source: Host, target: Host, ending: ExitStack) -> tuple[dict[str, Process], list[Any]]:
        machines: dict[str, Host] = {}
        for host in measured_hosts(source, target):
            boot_id = host.run(["cat", str(BOOT_ID)], timeout_s=START_S, ok=None).stdout
            machines.setdefault(boot_id.decode(errors="replace").strip(), host)
        machines.pop("", None)  # machines without /proc, which do not run Linux
        hosts = {
            host.name: (host, {"interval_s": self.interval_s, "about": {"host": host.name}})
            for host in machines.values()
        }
        return _start_programs(processor_use.__file__, hosts, "boot_id", ending), [_own_time()]

    def end(
        self, started: tuple[dict[str, Process], list[Any]], folder: Path, stem: str, files: list[RawFile]
    ) -> list[str]:
        processes, own_times = started
        own_times.append(_own_time())
        for name, process in processes.items():
            done, part = process.stop(), f"{stem}.{file_part(name)}"
            files += keep(folder, self.name, part, "processors.jsonl.gz", gzipped(done))
            if BOOT_ID.exists() and BOOT_ID.read_bytes().strip() in done.stdout.partition(b"\n")[0]:
                times: dict[str, Any] = {"started_at_utc": done.started_at_utc, "ended_at_utc": done.ended_at_utc}
                content = json.dumps({"at_s_and_used_s": own_times}).encode() + b"\n"
                files.append(write_raw(folder, self.name, f"{part}.driver.json", content, **times))
        return []  # a failed sampler does not fail the test: it leaves its stderr, and its rows are missing


def _own_time() -> tuple[float, float]:
    """Return the current Unix time in s, and the processor time that this process has used."""
    return time.time(), sum(os.times()[:2])


FOLDER = "links"
WHICH = ("pair", "all")
_AT_ONCE = 6  # number of links per request; the relay forwards no packets while it reads them: see `LinkSamples`
_END_S = 30.0  # timeout for the last sample, from a busy relay


@dataclass(frozen=True)
class LinkSamples(Sampling):
    """
    Sample the counters of emulated links: packets and bytes sent, delivered and dropped, backlog and rate.

    `which` is "pair" (both directions of the pair) or "all" (all links of the lab). Each sample is a JSON object, read
    by `wanbench.read.ingest.lab.read_samples`.

    The relay forwards no packets while it reads counters. Therefore at most six links are read at once, in 0.06 to 0.1
    ms; all 72 links of nine regions at once would take 0.6 to 1 ms (``pytest -s -k cost_of_counting
    lib/tests/test_experiments_link_samples.py``, on two processors).
    """

    interval_s: float = bounded(1.0, 0.05, 3600)
    which: str = one_of("pair", WHICH)
    duration_s: float = bounded(10.0, 0.1, LONGEST_S)

    name: ClassVar[str] = "link_samples"

    def __str__(self) -> str:
        links = "all links" if self.which == "all" else "the links of the pair"
        return f"counters of {links} every {self.interval_s:g} s"

    def start(self, source: Host, target: Host, ending: ExitStack) -> _Sampler:
        links = links_of(source)
        pairs = [(source.region, target.region), (target.region, source.region)]
        pairs = [pair for pair in links.links if self.which == "all" or pair in pairs]
        if not pairs:
            raise ExperimentError(f"the lab has no link between {source.region} and {target.region}.")
        sampler = _Sampler(links, pairs, self.interval_s)
        ending.callback(sampler.stop)
        sampler.start()
        return sampler

    def end(self, started: _Sampler, folder: Path, stem: str, files: list[RawFile]) -> list[str]:
        started.stop()
        about = {"command": ["counters", self.which], "started_at_utc": started.started_at_utc}
        # Compression leaves a tenth, because every sample repeats the names of all links and counters.
        content = gzip.compress(b"".join(started.lines), mtime=0)
        files.append(write_raw(folder, FOLDER, f"{stem}.samples.jsonl.gz", content, ended_at_utc=now_utc(), **about))
        return started.faults


class _Sampler(threading.Thread):
    """A thread that reads the counters at its start, every `interval_s`, and once more when stopped."""

    def __init__(self, links: Any, pairs: Sequence[tuple[str, str]], interval_s: float):
        super().__init__(name="link samples", daemon=True)
        self.links, self.pairs, self.interval_s = links, pairs, interval_s
        self.lines: list[bytes] = []
        self.faults: list[str] = []
        self.started_at_utc, self._ended = now_utc(), threading.Event()

    def stop(self) -> None:
        self._ended.set()
        if self.is_alive():
            self.join(_END_S)
            if self.is_alive():
                self.faults.append(f"the last sample did not arrive within {_END_S:g} s.")

    def run(self) -> None:
        due = time.monotonic()
        try:
            while not self._ended.wait(max(0.0, due - time.monotonic())):
                self._sample()
                due += self.interval_s * max(1, -(-(time.monotonic() - due) // self.interval_s))
            self._sample()
        except Exception as error:  # an exception that ends a thread would go unnoticed
            self.faults.append(f"sampling stopped after {len(self.lines)} samples: {error}")

    def _sample(self) -> None:
        rows, longest_s = [], 0.0
        for first in range(0, len(self.pairs), _AT_ONCE):
            asked_at_s, asked = time.time(), time.perf_counter()
            counted = self.links.counters(self.pairs[first : first + _AT_ONCE])
            took_s = time.perf_counter() - asked
            longest_s = max(longest_s, took_s)
            rows += [{"at_s": asked_at_s + took_s / 2, **row} for row in counted]
        sample = {"answer_ms": round(longest_s * 1000, 3), "links": rows}
        self.lines.append(json.dumps(sample).encode() + b"\n")
