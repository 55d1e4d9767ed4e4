"""Ping across a link that is cut and healed meanwhile. Read by `wanbench.read.ingest.cut`."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from wanbench.checks import check_fields
from wanbench.errors import CommandError
from wanbench.measure.experiments.base import ExperimentError, keep, links_of
from wanbench.measure.experiments.ping import Ping
from wanbench.measure.labs.base import Host
from wanbench.runs import RawFile, write_raw
from wanbench.runs.journal import now_utc

_MARGIN_S = 10.0
"""Time for the first echo, and for ping to end."""


@dataclass(frozen=True)
class Cut:
    """
    Ping while the link of the pair is cut in both directions and healed.

    Only for labs with emulated links (`Host.links`). Besides ping's output it leaves cut.json with the time of each
    command and of the lab's confirmation.

    Parameters
    ----------
    before_s, cut_s, after_s : float
        Duration of echoes before the cut, during it, and after healing.
    interval_s : float
        Interval between echoes.
    """

    before_s: float = 1.0
    cut_s: float = 1.0
    after_s: float = 1.0
    interval_s: float = 0.005

    name: ClassVar[str] = "cut"

    def __post_init__(self):
        check_fields(self, *((name, 0.1, 3600) for name in ("before_s", "cut_s", "after_s")))
        check_fields(self, ("interval_s", 0.001, 3600))
        self._ping()

    def __str__(self) -> str:
        return f"cut: an echo every {self.interval_s:g} s, the link cut after {self.before_s:g} s for {self.cut_s:g} s"

    def _ping(self) -> Ping:
        lasts_s = self.before_s + self.cut_s + self.after_s
        return Ping(count=max(1, round(lasts_s / self.interval_s)), interval_s=self.interval_s)

    def run(self, source: Host, target: Host, folder: Path, stem: str) -> list[RawFile]:
        """
        Ping, cut, heal; returns ping's output and the times of the commands as raw files.

        Raises
        ------
        ExperimentError
            If the hosts are not joined by an emulated link, or ping fails. The link is healed in any case.
        """
        links, ping, times = links_of(source), self._ping(), {}
        process = source.start(ping.command(target.address))
        try:
            process.wait_for_output("bytes from", self.before_s + _MARGIN_S)
            time.sleep(self.before_s)
            try:
                _timed(links.cut, "cut", source, target, times)
                time.sleep(self.cut_s)
            finally:
                _timed(links.heal, "healed", source, target, times)
            done = process.wait(self.before_s + self.cut_s + self.after_s + _MARGIN_S)
        except CommandError as error:
            raise ExperimentError(str(error), keep(folder, self.name, stem, "txt", process.stop())) from error
        finally:
            process.stop()
        about = {
            "command": ["cut", source.region, target.region],
            "returncode": 0,
            "started_at_utc": done.started_at_utc,
            "ended_at_utc": now_utc(),
        }
        content = json.dumps(times, indent=1).encode() + b"\n"
        return [
            *keep(folder, self.name, stem, "txt", done),
            write_raw(folder, self.name, f"{stem}.cut.json", content, **about),
        ]

    def expected_s(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """Expected duration: that of its echoes, and the wait for the first."""
        return self._ping().expected_s(rtt_ms) + rtt_ms / 1000

    def expected_bytes(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """Bytes on the wire, requests and replies."""
        return self._ping().expected_bytes(rtt_ms)


def _timed(command, event, source, target, times):
    times[f"{event}_at_s"] = time.time()
    command(source.region, target.region)
    times[f"{event}_answered_at_s"] = time.time()
