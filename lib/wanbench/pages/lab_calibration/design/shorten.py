"""Shorten a link's delay while echoes cross it. Its output is read by `wanbench.read.ingest.ping`."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from wanbench.checks import check_fields
from wanbench.errors import CommandError
from wanbench.measure.experiments.base import ExperimentError, keep, links_of
from wanbench.measure.experiments.ping import Ping
from wanbench.measure.labs.base import Host
from wanbench.runs import RawFile

_MARGIN_S = 30.0
"""Time for the first echo, and for ping to end."""


@dataclass(frozen=True)
class Shorten:
    """
    Ping, and meanwhile shorten the delay of the link between the two regions in both directions.

    No echo may overtake an earlier one when the delay drops. The original delay is restored afterwards.

    Parameters
    ----------
    delay_ms : float
        One-way delay after the change.
    before_s, after_s : float
        Duration of echoes before and after the change.
    interval_s : float
        Interval between echoes.
    """

    delay_ms: float
    before_s: float = 1.0
    after_s: float = 1.0
    interval_s: float = 0.005

    name: ClassVar[str] = "shorten"

    def __post_init__(self):
        check_fields(self, ("delay_ms", 0, 10_000), ("before_s", 0.1, 3600), ("after_s", 0.1, 3600))
        check_fields(self, ("interval_s", 0.001, 3600))

    def __str__(self) -> str:
        return f"shorten: an echo every {self.interval_s:g} s, the delay {self.delay_ms:g} ms after {self.before_s:g} s"

    def _ping(self) -> Ping:
        lasts_s = self.before_s + self.after_s
        return Ping(count=max(1, round(lasts_s / self.interval_s)), interval_s=self.interval_s)

    def run(self, source: Host, target: Host, folder: Path, stem: str) -> list[RawFile]:
        """
        Ping, and change the delay; leave shorten/<stem>.txt in the run folder.

        Raises
        ------
        ExperimentError
            If the hosts are not joined by an emulated link, or ping fails.
        """
        links = links_of(source)
        ways = [(source.region, target.region), (target.region, source.region)]
        if not all(way in links.links for way in ways):
            raise ExperimentError(f"{source.name} and {target.name} are not linked both ways")
        delays_ms = {way: links.links[way].delay_ms for way in ways}
        process = source.start(self._ping().command(target.address))
        try:
            process.wait_for_output("bytes from", self.before_s + _MARGIN_S)
            time.sleep(self.before_s)
            for way in ways:
                links.set_link(*way, delay_ms=self.delay_ms)
            done = process.wait(self.before_s + self.after_s + _MARGIN_S)
        except CommandError as error:
            raise ExperimentError(str(error), keep(folder, self.name, stem, "txt", process.stop())) from error
        finally:
            process.stop()
            for way in ways:
                links.set_link(*way, delay_ms=delays_ms[way])
        return keep(folder, self.name, stem, "txt", done)

    def expected_s(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """Expected duration: that of its echoes, and the wait for the first."""
        return self._ping().expected_s(rtt_ms) + rtt_ms / 1000

    def expected_bytes(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """Bytes on the wire, requests and replies."""
        return self._ping().expected_bytes(rtt_ms)
