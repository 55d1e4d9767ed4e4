"""Experiments that sample at regular times, alone or while another experiment runs."""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from wanbench.errors import WanbenchError
from wanbench.measure.kafka.external import RemoteBrokerHost
from wanbench.measure.labs.base import Host
from wanbench.runs import RawFile

from .base import ExperimentError

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
