"""
Plan transfers with several congestion controls over many paths at once, and set the congestion control of Kafka's
producers.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from wanbench.checks import check_number, refusal
from wanbench.errors import CommandError, LabError
from wanbench.measure.experiments import Iperf3, Ping
from wanbench.measure.experiments.base import ExperimentError, bounded, check_declared
from wanbench.measure.labs import separate_links
from wanbench.measure.labs.base import Host
from wanbench.measure.links import LinkSettings
from wanbench.measure.plan import Plan
from wanbench.measure.plan.plan import Test, shuffled, test_id
from wanbench.runs import RawFile

CONGESTION = "congctl"  # The option of a route that sets the congestion control of connections along it.
SMALLEST_QUEUE_BYTES = 12_000
"""
Eight packets. On a path of a few milliseconds, a queue of one bandwidth-delay product would hold less than one burst of
TCP.
"""


def paths(
    rtts_ms: Sequence[float], settings: Sequence[tuple[Any, ...]], *, rate_bps: float
) -> dict[tuple[str, str], LinkSettings]:
    """
    Return the links of one path per RTT and setting, with equal settings in both directions.

    Each path joins two invented regions that no other path uses. The keys of the result are (from, to).

    Parameters
    ----------
    settings : sequence of (loss, queue) or (loss, queue, more)
        Share of lost packets in each direction, 0 to 1; size of the queue in bandwidth-delay products; and a mapping of
        further fields of `LinkSettings`.

    Examples
    --------
    >>> links = paths([20, 100], [(0, 1), (0.01, 0.5)], rate_bps=10e6)
    >>> [link.queue_bytes for link in links.values()][::2]
    [25000, 12500, 125000, 62500]
    """
    links = []
    for rtt_ms in rtts_ms:
        for loss, queue, *more in settings:
            product = check_number("queue", queue, 0, above=True) * rate_bps / 8 * rtt_ms / 1000
            size = max(SMALLEST_QUEUE_BYTES, round(product))
            links.append(LinkSettings(rtt_ms / 2, loss=loss, rate_bps=rate_bps, queue_bytes=size, **dict(*more)))
    return separate_links(links)


def transfers(
    links: Mapping[tuple[str, str], LinkSettings],
    algorithms: Sequence[str],
    *,
    blocks: int,
    duration_s: int,
    omit_s: int,
    at_once: int,
    seed: int = 0,
) -> Plan:
    """
    Plan one transfer per block, path and congestion control, with up to `at_once` paths in use at the same time.

    Each block measures every path with every algorithm once, in random order. `links` is the result of `paths`. The
    first `omit_s` seconds of a transfer (slow start) are not counted, the next `duration_s` are.

    Examples
    --------
    >>> links = paths([20, 100], [(0, 1)], rate_bps=10e6)
    >>> plan = transfers(links, ["cubic", "bbr"], blocks=3, duration_s=6, omit_s=2, at_once=2)
    >>> len(plan.tests), len(plan.rounds), plan.tests[-1].block
    (12, 6, 3)
    """
    counts = {"blocks": blocks, "at_once": at_once, "number of algorithms": len(algorithms)}
    for name, value in counts.items():
        check_number(name, value, 1, whole=True)
    ways = list(links)[::2]
    about: dict[str, Any] = {"duration_s": duration_s, "omit_s": omit_s, "interval_s": omit_s or 1}
    rng, rounds, number = np.random.default_rng(seed), [], itertools.count(1)
    for block in range(1, blocks + 1):
        orders = {pair: shuffled(list(algorithms), rng) for pair in ways}
        for position in range(len(algorithms)):
            mixed = shuffled(ways, rng)
            for first in range(0, len(ways), at_once):
                tests = []
                for pair in mixed[first : first + at_once]:
                    algorithm, link, rtt_ms = orders[pair][position], links[pair], 2 * links[pair].delay_ms
                    setting = f"{algorithm}, {rtt_ms:g} ms, {link.loss:.3g} lost, queue {link.queue_bytes:,} bytes"
                    experiments = (Iperf3(**about, congestion_control=algorithm),)
                    name = test_id(next(number), *pair)
                    tests.append(Test(name, len(rounds) + 1, pair[0], pair[1], rtt_ms, setting, block, experiments))
                rounds.append(tuple(tests))
    rate_bps = max(link.rate_bps or 0 for link in links.values()) or None
    return Plan(tuple(rounds), (), seed, lower_bound=len(rounds), batch=at_once, rate_bps=rate_bps)


@dataclass(frozen=True)
class CongestionControl:
    """
    Set the congestion control of the connections from source to target that start during a load.

    The algorithm is set on the source's route to the target, because a network namespace may not allow every algorithm
    as its default. Afterwards the former route is restored.
    """

    algorithm: str
    timeout_s: float = bounded(10.0, 1, 600)

    name: ClassVar[str] = "congestion_control"

    def __post_init__(self):
        check_declared(self)

    @contextmanager
    def concurrently(self, source: Host, target: Host, folder: Path, stem: str) -> Generator[list[RawFile]]:
        """
        Change the route, yield an empty list of files, and restore the route on exit.

        Raises ExperimentError: the kernel does not have the algorithm, or has no route to the target.
        """

        def ip(*words: str) -> str:
            return source.run(["ip", "route", *words], timeout_s=self.timeout_s).stdout.decode()

        try:
            former = ip("show", "match", target.address).splitlines()[-1]
            ip("replace", *former.partition(CONGESTION)[0].split(), CONGESTION, self.algorithm)
        except (CommandError, IndexError) as error:
            raise ExperimentError(f"{source.name} cannot use {self.algorithm}: {error}", []) from error
        try:
            yield []
        finally:
            ip("replace", *former.split())


_AFTER_START_S = 0.5  # the servers of all flows listen, and on short paths all flows send, by then


@dataclass(frozen=True)
class CompetingFlows:
    """
    Run flows that compete on the links of a pair, and measure the RTT without and with them, as Flent's test rrul does.

    `ping` runs on the idle path first, and again once the flows' first `omit_s` seconds are over. Each flow has a
    separate iperf3 client and server, and so its own congestion control, rate and direction. A flow with `reverse`
    sends from `target` to `source`. Raw files are ping/<stem>.idle.txt, ping/<stem>.loaded.txt,
    iperf3/<stem>.flow-<n>.json and iperf3/<stem>.burst-<n>-<m>.json; the column `source_file` of tables echoes and
    transfers says to which ping, flow or burst a row belongs.

    Parameters
    ----------
    flows : tuple of Iperf3
        Greedy flows, all of the same duration and `omit_s` (1 s or more, so that pings meet steady flows); they start
        together.
    on_off : tuple of Iperf3
        Flows that start and stop repeatedly until the greedy flows end. Each sends for its duration, pauses for
        `off_s`, and starts again with a new connection. A last burst may outlast the greedy flows.
    off_s : float
        Pause between two bursts of an on-off flow, in s.
    ping : Ping
        The pings of each phase; they must end before the greedy flows do.

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
        Ping, start all flows, ping again, and return the raw files.

        Raises ExperimentError, with the raw files so far, if a ping or a flow fails.
        """
        files: list[RawFile] = []
        over = threading.Event()

        def measure(experiment: Ping | Iperf3, label: str) -> None:
            try:
                files.extend(experiment.run(source, target, folder, f"{stem}.{label}"))
            except LabError as error:
                files.extend(getattr(error, "files", ()))
                raise

        def repeat(flow: Iperf3, label: str) -> None:
            for burst in itertools.count(1):
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
        """Return the expected duration in s: the ping on the idle path, and then the greedy flows."""
        return self.ping.expected_s(rtt_ms) + self.flows[0].expected_s(rtt_ms)

    def expected_bytes(self, rtt_ms: float, rate_bps: float | None = None) -> float | None:
        """Return the maximum bytes of pings and flows in both directions; None if they depend on an unknown rate."""
        total = 2 * self.ping.expected_bytes(rtt_ms)
        for reverse in (False, True):
            sent = [flow.expected_bytes(rtt_ms, rate_bps) for flow in self.flows if flow.reverse == reverse]
            if None in sent:
                return None
            most = inf if rate_bps is None else rate_bps * self.flows[0].expected_s(0) / 8
            total += min(sum(filter(None, sent)), most)
        return total

    @property
    def _omit_s(self):
        return self.flows[0].omit_s
