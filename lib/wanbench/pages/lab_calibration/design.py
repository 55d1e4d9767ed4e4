"""Plan and run measurements that calibrate a lab: links with special settings, and links that change during pings."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any, ClassVar

from wanbench.errors import CommandError
from wanbench.measure.experiments.base import ExperimentError, bounded, check_declared, keep, links_of
from wanbench.measure.experiments.iperf3 import Iperf3
from wanbench.measure.experiments.ping import Ping
from wanbench.measure.experiments.sampling import gzipped
from wanbench.measure.labs import separate_links
from wanbench.measure.labs.base import Host
from wanbench.measure.links import LinkSettings
from wanbench.measure.plan import Plan
from wanbench.measure.plan.plan import Test, test_id
from wanbench.runs import RawFile, write_raw
from wanbench.runs.journal import now_utc

# Link settings, and the experiment that tests each of them, by the name of the part.
Parts = Mapping[str, tuple[Sequence[LinkSettings], object]]


_DEEP: dict[str, Any] = {
    "queue_bytes": 2_000_000,
    "codel_target_ms": 5,
}  # CoDel in front of a queue that never overflows


def codel_links(rtts_ms: Sequence[float]) -> list[LinkSettings]:
    """
    Return two links of 20 Mbit/s with CoDel per round-trip time: CoDel drops packets on the first, marks on the second.
    """
    return [LinkSettings(rtt / 2, rate_bps=20e6, **_DEEP, ecn=ecn) for rtt in rtts_ms for ecn in (None, True)]


def overloaded(rate_bps: float) -> LinkSettings:
    """Return the settings of a link with CoDel and this rate, for tests that send faster than the rate."""
    return LinkSettings(10, rate_bps=rate_bps, **_DEEP)


def mtu_links(mtu_bytes: int) -> list[LinkSettings]:
    """Return two links with this MTU: the first answers packets above the MTU with an error, the second drops them."""
    return [LinkSettings(10, mtu_bytes=mtu_bytes, mtu_black_hole=silent) for silent in (None, True)]


def plan_of(rounds: Sequence[Parts], *, seed: int = 0) -> tuple[Plan, dict[tuple[str, str], LinkSettings]]:
    """
    Plan one test of every link, each between two regions invented for it, and return the plan and the links.

    rounds: Each round maps the names of its parts to (links of the part, experiment to run on each). All tests of a
        round run concurrently, and rounds one after another. The name of a part becomes the setting of its tests.

    >>> near, far = LinkSettings(5), LinkSettings(20)
    >>> plan, links = plan_of([{"rtt": ([near, far], Ping())}, {"cut": ([near], Cut())}])
    >>> [[(test.setting, test.from_region, test.rtt_ms) for test in tests] for tests in plan.rounds]
    [[('rtt', 'lab:a1', 10), ('rtt', 'lab:a2', 40)], [('cut', 'lab:a3', 10)]]
    """
    links = separate_links([link for parts in rounds for settings, _ in parts.values() for link in settings])
    pairs, planned = enumerate(list(links)[::2], 1), []
    for position, parts in enumerate(rounds, 1):
        tests = []
        for name, (settings, experiment) in parts.items():
            for link, (number, pair) in zip(settings, pairs, strict=False):
                about = (2 * link.delay_ms, name, 1, (experiment,))
                tests.append(Test(test_id(number, *pair), position, *pair, *about))
        planned.append(tuple(tests))
    return Plan(tuple(planned), (), seed, lower_bound=len(planned)), links


_PROBE, _PROBE_PORT = str(Path(__file__).with_name("probe.py")), 9999
_MARGIN_S = 30.0  # Time that the first echo, and the end of ping, may take


class _PingDuringChange:
    """Base class of experiments that ping while a link is changed and restored; `_change` makes the change."""

    name: ClassVar[str]
    interval_s: float
    before_s: float

    def _lasts_s(self) -> float:
        raise NotImplementedError

    def _change(self, source: Host, target: Host) -> AbstractContextManager[dict[str, float]]:
        """Apply the change, yield the times of its commands, and undo the change on exit."""
        raise NotImplementedError

    def _ping(self) -> Ping:
        return Ping(count=max(1, round(self._lasts_s() / self.interval_s)), interval_s=self.interval_s)

    def run(self, source: Host, target: Host, folder: Path, stem: str) -> list[RawFile]:
        """
        Ping while the link is changed; write <name>/<stem>.txt and, if the change has times, <stem>.<name>.json.

        The change is always undone. Raises ExperimentError if no emulated link joins the hosts, or if ping fails.
        """
        links_of(source)
        process = source.start(self._ping().command(target.address))
        try:
            with ExitStack() as stack:
                process.wait_for_output("bytes from", self.before_s + _MARGIN_S)
                time.sleep(self.before_s)
                times = stack.enter_context(self._change(source, target))
                done = process.wait(self._lasts_s() + _MARGIN_S)
        except CommandError as error:
            raise ExperimentError(str(error), keep(folder, self.name, stem, "txt", process.stop())) from error
        finally:
            process.stop()
        files = keep(folder, self.name, stem, "txt", done)
        if times:
            about = {"command": [self.name, source.region, target.region], "returncode": 0}
            about |= {"started_at_utc": done.started_at_utc, "ended_at_utc": now_utc()}
            content = json.dumps(times, indent=1).encode() + b"\n"
            files.append(write_raw(folder, self.name, f"{stem}.{self.name}.json", content, **about))
        return files

    def expected_s(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """Return the expected duration in s: the time to send all echoes, and one RTT for the first reply."""
        return self._ping().expected_s(rtt_ms) + rtt_ms / 1000

    def expected_bytes(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """Return the expected bytes of all requests and replies."""
        return self._ping().expected_bytes(rtt_ms)


@dataclass(frozen=True)
class Cut(_PingDuringChange):
    """
    Ping every `interval_s`; meanwhile cut the link of the pair in both directions for `cut_s`, then heal it.

    Requires emulated links. Writes ping's output as cut/<stem>.txt (read by `wanbench.read.ingest.ping`), and the times
    of the commands to cut and to heal, and of the lab's answers, as cut/<stem>.cut.json (read by `lab.read_cut` there).
    """

    before_s: float = bounded(1.0, 0.1, 3600)
    cut_s: float = bounded(1.0, 0.1, 3600)
    after_s: float = bounded(1.0, 0.1, 3600)
    interval_s: float = bounded(0.005, 0.001, 3600)

    name: ClassVar[str] = "cut"

    def __post_init__(self):
        check_declared(self)
        self._ping()

    def __str__(self) -> str:
        return f"cut: an echo every {self.interval_s:g} s, the link cut after {self.before_s:g} s for {self.cut_s:g} s"

    def _lasts_s(self) -> float:
        return self.before_s + self.cut_s + self.after_s

    @contextmanager
    def _change(self, source: Host, target: Host) -> Generator[dict[str, float]]:
        links, times = links_of(source), {}

        def timed(command: Callable[[str, str], object], event: str) -> None:
            times[f"{event}_at_s"] = time.time()
            command(source.region, target.region)
            times[f"{event}_answered_at_s"] = time.time()

        try:
            timed(links.cut, "cut")
            time.sleep(self.cut_s)
        finally:
            timed(links.heal, "healed")
        yield times


@dataclass(frozen=True)
class Shorten(_PingDuringChange):
    """
    Ping every `interval_s`; after `before_s`, shorten the delay of the link in both directions to `delay_ms`.

    Tests whether an echo overtakes an earlier one when the delay drops. After `after_s` the original delay is restored.
    Requires emulated links. `wanbench.read.ingest.ping` reads the output.
    """

    delay_ms: float = bounded(MISSING, 0, 10_000)
    before_s: float = bounded(1.0, 0.1, 3600)
    after_s: float = bounded(1.0, 0.1, 3600)
    interval_s: float = bounded(0.005, 0.001, 3600)

    name: ClassVar[str] = "shorten"

    def __post_init__(self):
        check_declared(self)

    def __str__(self) -> str:
        return f"shorten: an echo every {self.interval_s:g} s, the delay {self.delay_ms:g} ms after {self.before_s:g} s"

    def _lasts_s(self) -> float:
        return self.before_s + self.after_s

    @contextmanager
    def _change(self, source: Host, target: Host) -> Generator[dict[str, float]]:
        links = links_of(source)
        ways = [(source.region, target.region), (target.region, source.region)]
        if not all(way in links.links for way in ways):
            raise ExperimentError(f"{source.name} and {target.name} are not linked both ways")
        with ExitStack() as undoing:
            for way in ways:
                undoing.callback(links.set_link, *way, delay_ms=links.links[way].delay_ms)
                links.set_link(*way, delay_ms=self.delay_ms)
            yield {}


@dataclass(frozen=True)
class Probes:
    """
    Send `count` numbered UDP packets of `packet_bytes` (with headers) through the link of the pair, one every
    `interval_us`.

    Requires emulated links of a lab whose hosts share a clock. `load` is an experiment that starts together with the
    packets. With `restart`, the link's schedule of changes starts anew just before the first packet. Writes
    probes/<stem>.txt.gz, which `wanbench.read.ingest.probes` reads, and the files of `load`.
    """

    count: int = bounded(1000, 1, 1_000_000)
    interval_us: int = bounded(1000, 20, 1_000_000)
    packet_bytes: int = bounded(100, 40, 1500)
    restart: bool = False
    load: Iperf3 | None = None

    name: ClassVar[str] = "probes"

    def __post_init__(self):
        check_declared(self)

    def __str__(self) -> str:
        return f"probes: {self.count} packets, one per {self.interval_us} µs" + (
            f", under {self.load}" * bool(self.load)
        )

    def run(self, source: Host, target: Host, folder: Path, stem: str) -> list[RawFile]:
        """
        Run receiver, load and sender, and return the raw files.

        Raises ExperimentError, with the output so far, if one of them fails.
        """
        links, files, began_us = links_of(source), [], 0
        if self.restart:
            before_s = time.time()
            links.set_link(source.region, target.region)
            began_us = round((before_s + time.time()) / 2 * 1e6)
        numbers = (_PROBE_PORT, self.count, self.interval_us, self.packet_bytes, began_us)
        about = [target.address, *map(str, numbers)]
        receiver = target.start([sys.executable, _PROBE, "receive", *about])
        try:
            receiver.wait_for_output("listening", _MARGIN_S)
            with ThreadPoolExecutor(1) as threads:
                loading = self.load and threads.submit(self.load.run, source, target, folder, stem)
                source.run([sys.executable, _PROBE, "send", *about], timeout_s=self._lasts_s() + _MARGIN_S)
                done = receiver.wait(_MARGIN_S)
                files += keep(folder, self.name, stem, "txt.gz", gzipped(done))
                files += loading.result() if loading else []
        except CommandError as error:
            raise ExperimentError(str(error), files + keep(folder, self.name, stem, "txt", receiver.stop())) from error
        finally:
            receiver.stop()
        return files

    def _lasts_s(self):
        return self.count * self.interval_us / 1e6

    def expected_s(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """Return the maximum duration in s: of sending, of the load, and 2 s until the receiver ends."""
        return self._lasts_s() + 2 + (self.load.expected_s(rtt_ms, rate_bps) if self.load else 0)

    def expected_bytes(self, rtt_ms: float, rate_bps: float | None = None) -> float | None:
        """Return the bytes of all numbered packets; those of the load are not included."""
        return self.count * self.packet_bytes
