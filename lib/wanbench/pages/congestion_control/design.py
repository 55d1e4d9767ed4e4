"""Plan transfers with several congestion controls over many paths at once, and set the one of Kafka's producers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from wanbench.checks import check_number
from wanbench.errors import CommandError
from wanbench.measure.experiments import Iperf3
from wanbench.measure.experiments.base import ExperimentError, bounded, check_declared
from wanbench.measure.labs import separate_links
from wanbench.measure.labs.base import Host
from wanbench.measure.links import LinkSettings
from wanbench.measure.plan import Plan
from wanbench.measure.plan.plan import Test, shuffled, test_id
from wanbench.runs import RawFile

CONGESTION = "congctl"  # The option of a route that sets the congestion control of connections along it.
SMALLEST_QUEUE_BYTES = 12_000
"""Eight packets. On a path of a few milliseconds, one bandwidth-delay product would hold less than one burst of TCP."""


def paths(
    rtts_ms: Sequence[float], settings: Sequence[tuple], *, rate_bps: float
) -> dict[tuple[str, str], LinkSettings]:
    """
    Make one path per RTT and setting, each between two invented regions of its own, equal in both directions.

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

    Each block has every path with every algorithm once, in random order. `links` are those that `paths` makes;
    `duration_s` seconds count, after `omit_s` seconds of slow start.

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
    ways, about = list(links)[::2], {"duration_s": duration_s, "omit_s": omit_s, "interval_s": omit_s or 1}
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
                    tests.append(Test(name, len(rounds) + 1, *pair, rtt_ms, setting, block, experiments))
                rounds.append(tuple(tests))
    rate_bps = max(link.rate_bps or 0 for link in links.values()) or None
    return Plan(tuple(rounds), (), seed, lower_bound=len(rounds), batch=at_once, rate_bps=rate_bps)


@dataclass(frozen=True)
class CongestionControl:
    """
    Set the congestion control of the connections from source to target that start during a load.

    The source's route to the target carries the setting, because a namespace may not have every algorithm as its
    default. Afterwards the former route is restored.
    """

    algorithm: str
    timeout_s: float = bounded(10.0, 1, 600)

    name: ClassVar[str] = "congestion_control"

    def __post_init__(self):
        check_declared(self)

    @contextmanager
    def concurrently(self, source: Host, target: Host, folder: Path, stem: str) -> Iterator[list[RawFile]]:
        """Change the route, yield no files, and restore the route; ExperimentError if the kernel refuses."""

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
