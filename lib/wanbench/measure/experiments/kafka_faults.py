"""How each fault of `KafkaFault` begins and is healed, and damage that is planted in its output."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

from wanbench.measure.kafka.cluster import Cluster
from wanbench.measure.labs.base import Host

from .base import ExperimentError, links_of

NONE = "none"
ON_LINKS = ("cut", "cut-out", "cut-in", "slow")
ON_BROKERS = ("kill", "freeze")
FAULTS = (*ON_LINKS, *ON_BROKERS, NONE)
CONTROLLER, CONSUMERS = "controller", "consumers"
"""
Roles instead of names of regions: the region of the active controller, and the region whose consumers have the most
partitions.
"""
SLOW_DELAY_MS, SLOW_LOSS = 2_000.0, 0.05
"""Delay one way, and the share of packets lost."""


class Fault:
    """
    A fault at some regions, of which `nodes` are the brokers: `begin`, then `heal`, which undoes whatever `begin` did,
    even if that failed half-way. A second call retries only what failed or was interrupted in the first.

    Raises ExperimentError if the lab has no emulated links, or the cluster's brokers cannot be killed or frozen.
    """

    def __init__(self, kind: str, host: Host, regions: Sequence[str], nodes: Sequence[int]):
        self.kind, self.regions, self.nodes = kind, tuple(regions), tuple(nodes)
        self._cluster, self._undo = host.cluster, []
        check_possible(kind, host)
        self._links = links_of(host) if kind in ON_LINKS else None

    def begin(self) -> None:
        """Begin the fault; returns once the lab has confirmed it."""
        if self.kind == "cut":
            self._at_each(self.regions, self._links.cut_region, self._links.heal_region)
        elif self.kind in ("cut-out", "cut-in"):
            one_way = {"one_way": True}
            self._at_each(
                self._pairs(),
                lambda pair: self._links.cut(*pair, **one_way),
                lambda pair: self._links.heal(*pair, **one_way),
            )
        elif self.kind == "slow":
            before = {pair: asdict(self._links.links[pair]) for pair in self._pairs()}
            self._at_each(
                list(before),
                lambda pair: self._links.set_link(*pair, delay_ms=SLOW_DELAY_MS, loss=SLOW_LOSS),
                lambda pair: self._links.set_link(*pair, **before[pair]),
            )
        elif self.kind == "kill":
            self._at_each(self.nodes, self._cluster.kill, self._start)
        elif self.kind == "freeze":
            self._at_each(self.nodes, self._cluster.freeze, self._cluster.thaw)

    def heal(self) -> None:
        """Undo everything; errors are raised only after all was tried."""
        errors = []
        for undo in list(self._undo):
            try:
                undo()
            except BaseException as error:
                errors.append(error)
            else:
                self._undo.remove(undo)
        if errors:
            raise min(errors, key=lambda error: isinstance(error, Exception))  # an interruption first

    def _at_each(self, things, do: Callable, undo: Callable) -> None:
        """Run `do` on all of them at once, because two regions are to fail together; `undo` is for `heal`."""
        self._undo += [lambda thing=thing: undo(thing) for thing in things]
        if things:
            with ThreadPoolExecutor(len(things)) as threads:
                for done in [threads.submit(do, thing) for thing in things]:
                    done.result()

    def _pairs(self) -> list[tuple[str, str]]:
        """The affected directions of links: leaving the regions, entering them, or (slow) both."""
        leaving = [pair for pair in self._links.links if pair[0] in self.regions]
        entering = [pair for pair in self._links.links if pair[1] in self.regions]
        if self.kind == "slow":
            return list(dict.fromkeys([*leaving, *entering]))
        return leaving if self.kind == "cut-out" else entering

    def _start(self, node_id: int) -> None:
        if not self._cluster.runs(node_id):
            self._cluster.start(node_id, wait=False)


def check_possible(kind: str, host: Host) -> None:
    """ExperimentError if the lab or its cluster cannot produce this kind of fault."""
    if kind in ON_LINKS:
        links_of(host)
    if kind in ON_BROKERS and not isinstance(host.cluster, Cluster):
        raise ExperimentError(
            f"the brokers of {host.name}'s cluster cannot be {'killed' if kind == 'kill' else 'frozen'}: it was not "
            "started by this lab"
        )


KINDS = ("drop", "duplicate", "reorder", "alter")
_RECEIVED = b'["received"'


def damaged(printed: bytes, kind: str) -> tuple[bytes, dict | None]:
    """
    A consumer's output with one record dropped, duplicated, swapped with the next of its producer and partition, or
    altered; and that record. None if no record qualifies.

    The record is from the middle and was received once.

    >>> damaged(b'["received",0,5,1,7,100,false]\\n', "alter")
    (b'["received",null,null,1,7,100,true]\\n', {'kind': 'alter', 'producer': 0, 'sequence': 5})
    """
    lines = printed.splitlines(keepends=True)
    receipts = {
        n: json.loads(line) for n, line in enumerate(lines) if line.startswith(_RECEIVED) and line.endswith(b"\n")
    }
    times = {}
    for receipt in receipts.values():
        times[_record(receipt)] = times.get(_record(receipt), 0) + 1
    once = [n for n, receipt in receipts.items() if times[_record(receipt)] == 1 and receipt[1] is not None]
    for n in once[len(once) // 2 :] + once[: len(once) // 2]:
        receipt = receipts[n]
        about = {"kind": kind, "producer": receipt[1], "sequence": receipt[2]}
        if kind == "drop":
            lines[n] = b""
        elif kind == "duplicate":
            lines[n] *= 2
        elif kind == "alter":
            lines[n] = _line([receipt[0], None, None, *receipt[3:6], True])
        else:
            later = (m for m in once if m > n and _stream(receipts[m]) == _stream(receipt))
            if (m := next(later, None)) is None:
                continue
            lines[n], lines[m] = lines[m], lines[n]
        return b"".join(lines), about
    return printed, None


def _record(receipt):
    return tuple(receipt[1:3])


def _stream(receipt):
    """Producer and partition of a record: within them order is kept."""
    return receipt[1], receipt[3]


def _line(value):
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"
