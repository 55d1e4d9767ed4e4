"""Limit a broker to a share of one processor, until ended."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

from wanbench.errors import CommandError
from wanbench.measure.kafka.cluster import Cluster
from wanbench.measure.kafka.programs import processor_share
from wanbench.measure.labs.programs import program_command

from .base import ExperimentError, ended_with

_START_S = 30.0
_END_S = 30.0
"""Timeout for a program to start or end, on a busy machine."""


class Slowness:
    """
    A broker that is slowed until `end`, by `wanbench.measure.kafka.programs.processor_share` on its host.

    Attributes
    ----------
    about : dict
        The program's report: the method ("by"), "share", "period_s".

    Raises
    ------
    ExperimentError
        If the program cannot slow it.
    """

    def __init__(self, cluster: Cluster, node_id: int, share: float, way: str | None = None):
        self.cluster, self.node_id = cluster, node_id
        [self._host] = [each.host for each in cluster.placements if each.node_id == node_id]
        self._stop_file = f"{self._host.scratch}/share-{uuid.uuid4().hex[:8]}.stop"
        pid_file = str(Path(cluster.log_folder(node_id)).parent / "pid")
        words = program_command(self._host, Path(processor_share.__file__))
        words += ["--pid-file", pid_file, "--share", f"{share:g}", "--stop-file", self._stop_file]
        self._process = self._host.start([*words, *(["--way", way] if way else [])])
        try:
            self._process.wait_for_output("\n", _START_S)
            self.about = json.loads(self._process.printed().splitlines()[0])
        except BaseException as error:
            self._process.stop()
            self._thaw()
            if isinstance(error, CommandError):
                raise ExperimentError(f"broker {node_id} cannot be slowed: {error}") from None
            raise

    @property
    def by_cycles(self) -> bool:
        """Whether the process is slowed by duty cycles of SIGSTOP and SIGCONT."""
        return self.about["by"] == processor_share.CYCLES

    def end(self) -> None:
        """Restore the broker's full speed; ExperimentError if that is not certain."""
        try:
            self._host.run(["touch", self._stop_file], timeout_s=_END_S)
            done = self._process.wait(_END_S)
        except CommandError as error:
            self._process.stop()
            raise ExperimentError(f"broker {self.node_id} may still be slow: {error}") from error
        finally:
            self._thaw()
        if done.returncode:
            raise ExperimentError(ended_with(f"the program that slowed broker {self.node_id}", done))

    def _thaw(self) -> None:
        if self.cluster.runs(self.node_id):
            self.cluster.thaw(self.node_id)
