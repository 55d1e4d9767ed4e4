"""Experiments that sample at regular times, alone or while another experiment runs."""

from __future__ import annotations

import gzip
import json
import os
import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from wanbench.checks import check_choice, check_fields, check_flag, refusal
from wanbench.errors import WanbenchError
from wanbench.measure.kafka import Broker
from wanbench.measure.kafka.external import RemoteBrokerHost
from wanbench.measure.kafka.programs import processor_use, scrape
from wanbench.measure.labs.base import Host, Process
from wanbench.measure.labs.programs import program_command
from wanbench.runs import RawFile, write_raw
from wanbench.runs.journal import now_utc

from .base import ExperimentError, cluster_of, ended_with, keep, links_of

LONGEST_S = 86_400
"""Maximum duration, a day: no measurement is meant to be longer."""


class Sampling(ABC):
    """
    An experiment that samples periodically: alone for `duration_s`, or while another one runs.

    A subclass defines `start` and `end`.
    """

    name: str
    duration_s: float

    @abstractmethod
    def start(self, source: Host, target: Host, ending: ExitStack) -> object:
        """
        Start, and return the arguments that `end` needs. Everything that must be stopped is put on `ending` as soon as
        it is started.
        """

    @abstractmethod
    def end(self, started: object, folder: Path, stem: str, files: list[RawFile]) -> list[str]:
        """Stop, and add each raw file to `files`; returns faults, as sentences."""

    @contextmanager
    def concurrently(self, source: Host, target: Host, folder: Path, stem: str) -> Iterator[list[RawFile]]:
        """
        Sample while the block runs; the yielded list holds the raw files once the block is left.

        Raises
        ------
        ExperimentError
            If sampling cannot start or fails; never in place of an exception of the block.
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
        """Sample for `duration_s`; returns the raw files. ExperimentError as in `concurrently`."""
        with self.concurrently(source, target, folder, stem) as files:
            time.sleep(self.duration_s)
        return files

    def expected_s(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """Expected duration of `run`."""
        return self.duration_s

    def expected_bytes(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """Bytes on the links between regions: none, as each host samples locally."""
        return 0.0


def hosts_at_work(source: Host, target: Host) -> list[Host]:
    """Both ends and the brokers' hosts, each once; only the ends if the cluster runs elsewhere."""
    brokers = () if source.cluster is None else source.cluster.brokers
    ours = [broker.host for broker in brokers if not isinstance(broker.host, RemoteBrokerHost)]
    return list({host.name: host for host in (source, target, *ours)}.values())


def file_part(name: str) -> str:
    """
    A host's name as part of a file's name.

    >>> file_part("aws:eu-west-1/0")
    'aws.eu-west-1-0'
    """
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name.replace(":", "."))


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


_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


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


FOLDER = "links"
WHICH = ("pair", "all")
_AT_ONCE = 6
"""Number of links per request: the relay forwards no packets while it reads them, see `LinkSamples`."""
_END_S = 30.0
"""Timeout for the last sample, from a busy relay."""


@dataclass(frozen=True)
class LinkSamples(Sampling):
    """
    Counters of the links, one JSON object per sample: packets and bytes sent, delivered and dropped, backlog, rate.

    Only for labs with emulated links (`Host.links`). The relay forwards no packets while it reads counters, so at most
    six links are read at once: reading two takes 0.03 to 0.06 ms in the median, six 0.06 to 0.1 ms; all 72 links of
    nine regions at once would take 0.6 to 1 ms (``pytest -s -k cost_of_counting
    lib/tests/test_experiments_link_samples.py``, twice on two processors).

    Parameters
    ----------
    interval_s : float
        Interval between samples.
    which : "pair" or "all"
        Both directions of the pair, or all links of the lab.
    duration_s : float
        Duration of `run`; during another experiment, sampling lasts as long as that.
    """

    interval_s: float = 1.0
    which: str = "pair"
    duration_s: float = 10.0

    name: ClassVar[str] = "link_samples"

    def __post_init__(self):
        check_fields(self, ("interval_s", 0.05, 3600), ("duration_s", 0.1, LONGEST_S))
        check_choice("LinkSamples which", self.which, WHICH)

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
        # Every sample repeats the names of all links and counters; compression leaves a tenth.
        name, content = f"{stem}.samples.jsonl.gz", gzip.compress(b"".join(started.lines), mtime=0)
        files.append(write_raw(folder, FOLDER, name, content, ended_at_utc=now_utc(), **about))
        return started.faults


class _Sampler(threading.Thread):
    """Reads the counters at once, every `interval_s`, and once more when stopped."""

    def __init__(self, links, pairs, interval_s: float):
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
        except Exception as error:  # an exception that ends a thread is seen by nobody
            self.faults.append(f"sampling stopped after {len(self.lines)} samples: {error}")

    def _sample(self) -> None:
        rows, longest_s = [], 0.0
        for first in range(0, len(self.pairs), _AT_ONCE):
            asked_at_s, asked = time.time(), time.perf_counter()
            counted = self.links.counters(self.pairs[first : first + _AT_ONCE])
            took_s = time.perf_counter() - asked
            longest_s = max(longest_s, took_s)
            rows += [{"at_s": asked_at_s + took_s / 2, **self._nominal(row), **row} for row in counted]
        sample = {"answer_ms": round(longest_s * 1000, 3), "links": rows}
        self.lines.append(json.dumps(sample).encode() + b"\n")

    def _nominal(self, row):
        gateway_bps = self.links.gateways.get(row["from_region"])
        own_bps = self.links.links[row["from_region"], row["to_region"]].rate_bps
        return {"rate_bps": own_bps if gateway_bps is None else gateway_bps}
