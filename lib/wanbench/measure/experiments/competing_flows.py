"""
Let iperf3 flows compete on a path, and ping it before and meanwhile. `wanbench.read.ingest.iperf3` and `ping` read
their files; `wanbench.methods.tcp.competition` computes the latency under load and the fairness.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import count
from math import inf
from pathlib import Path
from typing import ClassVar

from wanbench.checks import refusal
from wanbench.errors import LabError
from wanbench.measure.labs.base import Host
from wanbench.runs import RawFile

from .base import ExperimentError, bounded, check_declared
from .iperf3 import Iperf3
from .ping import Ping

_AFTER_START_S = 0.5  # the servers of all flows listen, and on short paths all flows send, by then


@dataclass(frozen=True)
class CompetingFlows:
    """
    Flows that compete on the links of a pair, and the latency without and with them, as in Flent's test rrul.

    `ping` runs on the idle path first, and again once the flows' first `omit_s` seconds are over. Each flow is an
    iperf3 client and server of its own, so a flow has its own congestion control, rate and direction: one with
    `reverse` sends from `target` to `source`. Raw files are ping/<stem>.idle.txt, ping/<stem>.loaded.txt,
    iperf3/<stem>.flow-<n>.json and iperf3/<stem>.burst-<n>-<m>.json; the column `source_file` of tables echoes and
    transfers tells which ping, flow or burst a row belongs to.

    Parameters
    ----------
    flows : tuple of Iperf3
        Greedy flows, all of the same duration and `omit_s` (1 s or more, so that pings meet steady flows); they start
        together.
    on_off : tuple of Iperf3
        Flows that come and go until the greedy ones end. Each sends for its duration, pauses for `off_s`, and starts
        again with a new connection. At most the duration of one burst is added to the test.
    off_s : float
        Pause of on-off flows.
    ping : Ping
        Must end before the greedy flows do.

    Examples
    --------
    >>> up, down = Iperf3(duration_s=10, omit_s=2), Iperf3(duration_s=10, omit_s=2, reverse=True)
    >>> rrul = CompetingFlows(flows=(up,) * 4 + (down,) * 4, ping=Ping(count=80, interval_s=0.1))
    >>> print(rrul)
    competing flows: 4 forward, 4 reverse for 10 s; ping: 80 echoes every 0.1 s, 56 bytes
    """

    flows: tuple[Iperf3, ...] = (Iperf3(duration_s=10, omit_s=1),)
    on_off: tuple[Iperf3, ...] = ()
    off_s: float = bounded(1.0, 0, 3600)
    ping: Ping = field(default_factory=lambda: Ping(count=80, interval_s=0.1))

    name: ClassVar[str] = "competing_flows"

    def __post_init__(self):
        for name in ("flows", "on_off"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
            if not all(isinstance(flow, Iperf3) for flow in getattr(self, name)):
                raise refusal(f"CompetingFlows {name}", getattr(self, name), "a tuple of Iperf3")
        if not self.flows or len({(flow.duration_s, flow.omit_s) for flow in self.flows}) > 1 or not self._omit_s:
            allowed = "one or more flows with equal duration_s and equal omit_s of at least 1"
            raise refusal("CompetingFlows flows", ", ".join(map(str, self.flows)), allowed)
        check_declared(self)
        longest_s = self.flows[0].duration_s - _AFTER_START_S
        if not isinstance(self.ping, Ping) or self.ping.expected_s(0) > longest_s:
            raise refusal("CompetingFlows ping", str(self.ping), f"a Ping that takes at most {longest_s:g} s")

    def __str__(self) -> str:
        reverse = sum(flow.reverse for flow in self.flows)
        flows = [f"{n} {way}" for n, way in ((len(self.flows) - reverse, "forward"), (reverse, "reverse")) if n]
        flows += [f"{len(self.on_off)} on and off"] if self.on_off else []
        return f"competing flows: {', '.join(flows)} for {self.flows[0].duration_s:g} s; {self.ping}"

    def run(self, source: Host, target: Host, folder: Path, stem: str) -> list[RawFile]:
        """
        Ping, start all flows, and ping again. Raise ExperimentError, with all raw files, if a ping or a flow fails.
        """
        files: list[RawFile] = []
        over = threading.Event()

        def measure(experiment, label):
            try:
                files.extend(experiment.run(source, target, folder, f"{stem}.{label}"))
            except LabError as error:
                files.extend(getattr(error, "files", ()))
                raise

        def repeat(flow, label):
            for burst in count(1):
                measure(flow, f"{label}-{burst}")
                if over.wait(self.off_s):
                    return

        try:
            measure(self.ping, "idle")
            with ThreadPoolExecutor(len(self.flows) + len(self.on_off)) as threads:
                try:
                    greedy = [threads.submit(measure, flow, f"flow-{n}") for n, flow in enumerate(self.flows, 1)]
                    others = [threads.submit(repeat, flow, f"burst-{n}") for n, flow in enumerate(self.on_off, 1)]
                    time.sleep(self._omit_s + _AFTER_START_S)
                    measure(self.ping, "loaded")
                    wait(greedy)
                finally:
                    over.set()
            for each in (*greedy, *others):
                each.result()
        except LabError as error:
            raise ExperimentError(str(error), files) from error
        return files

    def expected_s(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """Return the expected duration in s: of the ping on the idle path, and of the flows."""
        return self.ping.expected_s(rtt_ms) + self.flows[0].expected_s(rtt_ms)

    def expected_bytes(self, rtt_ms: float, rate_bps: float | None = None) -> float | None:
        """Return the maximum bytes of pings and flows in both directions; None if they depend on an unknown rate."""
        total = 2 * self.ping.expected_bytes(rtt_ms)
        for reverse in (False, True):
            sent = [flow.expected_bytes(rtt_ms, rate_bps) for flow in self.flows if flow.reverse == reverse]
            if None in sent:
                return None
            most = inf if rate_bps is None else rate_bps * self.flows[0].expected_s(0) / 8
            total += min(sum(sent), most)
        return total

    @property
    def _omit_s(self):
        return self.flows[0].omit_s
