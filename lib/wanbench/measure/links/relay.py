"""
Forward packets in user space between the regions' TUN devices, with the delay, jitter, loss and rate of the links.

Each region has one device. The relay reads a packet, finds the link by the destination address, decides when the packet
is due, keeps it in one heap for all links, and writes it to the other region's device when it is due. The relay also
measures how late it writes packets, which shows whether the machine is too slow.
"""

import heapq
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from .link import COUNTED, UNITS, Bottleneck, Event, Link
from .namespaces import DEVICE, IPV6_PREFIX, device_counts, open_device
from .queues import OFFLOAD_BYTES

_IPV6_PREFIX = socket.inet_pton(socket.AF_INET6, f"{IPV6_PREFIX}::")[:7]  # with the first byte of the subnet, always 0
_READ_BYTES = OFFLOAD_BYTES + 65_535
_READS_PER_TURN = 8
_WRITES_PER_TURN = 64


class Relay:
    """All links of a lab, and the loop that forwards their packets."""

    def __init__(self):
        self.links: dict[tuple[int, int], Link] = {}
        self._gateways: dict[int, Bottleneck] = {}
        self.packets_unroutable = 0
        self.longest_turn_s = 0.0
        self._devices, self._rows = {}, {}
        # Reading such a file lists the devices of the namespace in which it was opened.
        self._listings: dict[int, int] = {}
        self._heap, self._count = [], 0
        self._poll = select.epoll()

    def add_region(self, number: int) -> None:
        """Make the TUN device of region `number` (1 to 254) in the network namespace that this process is in."""
        self._devices[number] = device = open_device()
        self._listings[number] = os.open("/proc/thread-self/net/dev", os.O_RDONLY | os.O_CLOEXEC)
        os.set_blocking(device, False)
        self._poll.register(device, select.EPOLLIN)

    def connect(self, pairs: Iterable[tuple[int, int]], seed: int) -> None:
        """Make the links of these pairs; packets of other pairs are dropped. `seed` determines loss and jitter."""
        self.links = {
            (source, target): Link(
                self._devices[target], f"{seed}/{source}/{target}", partial(_answer, self._devices[source])
            )
            for source, target in pairs
        }
        self._rows = {
            device: [self.links.get((number, target)) for target in range(256)]
            for number, device in self._devices.items()
        }

    def set(self, links: Iterable[tuple[tuple[int, int], Mapping[str, Any]]]) -> None:
        """Give links new settings: a sequence of (pair, fields of `LinkSettings`)."""
        for pair, settings in links:
            link = self.links[pair]
            self._keep(link, link.set(**settings, now=time.monotonic()))

    def set_gateway(self, number: int, rate_bps: float | None, queue_bytes: int | None) -> None:
        """Make all links that leave a region share one rate and queue; if `rate_bps` is None, undo this."""
        if rate_bps is None:
            bottleneck = None
            self._gateways.pop(number, None)
        else:
            bottleneck = self._gateways.setdefault(number, Bottleneck())
            bottleneck.set(rate_bps, queue_bytes, time.monotonic())
        for (source, _), link in self.links.items():
            if source == number:
                link.share(bottleneck)

    def cut(self, pairs: Iterable[tuple[int, int]], is_cut: bool) -> None:
        """Cut the links of these pairs if `is_cut`, otherwise heal them; see `LocalLab.cut`."""
        for pair in pairs:
            self.links[pair].is_cut = is_cut

    def counters(self, pairs: Iterable[tuple[int, int]]) -> list[dict[str, Any]]:
        """Return how many packets and bytes each link carried and dropped so far, and how late they arrived."""
        now = time.monotonic()
        return [_counted(self.links[pair], now) for pair in pairs]

    def lateness(self) -> dict[str, float | None]:
        """
        Return how late the relay wrote packets so far.

        "writes" is the number of packets written. "mean_late_ms" and "worst_late_ms" are their mean and maximum time
        after they were due (None if there are none). "longest_turn_ms" is the longest time between two checks for new
        packets. "packets_unroutable" counts packets dropped because no link leads to their destination.
        "packets_overrun" counts packets that the kernel dropped because the relay did not read them in time; no link
        counts these.
        """
        writes = sum(link.writes for link in self.links.values())
        late_s = sum(link.late_sum_s for link in self.links.values())
        return {
            "writes": writes,
            "mean_late_ms": late_s / writes * 1000 if writes else None,
            "worst_late_ms": max(link.late_max_s for link in self.links.values()) * 1000 if writes else None,
            "longest_turn_ms": self.longest_turn_s * 1000,
            "packets_unroutable": self.packets_unroutable,
            "packets_overrun": sum(row["packets_dropped_sending"] for row in self.devices() if row["device"] == DEVICE),
        }

    def devices(self) -> list[dict[str, Any]]:
        """Return the kernel's counters of each region's devices; see `device_counts`."""
        return [
            {"region_number": number, **row}
            for number, listing in self._listings.items()
            for row in device_counts(os.pread(listing, 65_536, 0).decode())
        ]

    def serve(self, watched: dict[int, Callable[[], None]]) -> None:
        """
        Forward packets until a function of `watched` raises an exception. `watched` maps file descriptors to functions,
        which are called when the descriptor can be read.
        """
        # Orphaned processes become children of this one, the first of its PID namespace; the kernel is to reap them.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        for descriptor in watched:
            self._poll.register(descriptor, select.EPOLLIN)
        heap, rows = self._heap, self._rows
        poll, waiter = self._poll.poll, (self._poll.fileno(),)
        monotonic, wait = time.monotonic, select.select
        turn_began = monotonic()
        while True:
            events = poll(0)
            now = monotonic()
            if now - turn_began > self.longest_turn_s:
                self.longest_turn_s = now - turn_began
            if not events:
                left = heap[0][0] - now if heap else None
                if left is None or left > 0:
                    wait(waiter, (), (), left)
                    turn_began = monotonic()
                    if heap and heap[0][0] <= turn_began:
                        self._deliver(_WRITES_PER_TURN)
                    continue
            turn_began = now
            for descriptor, _ in events:
                row = rows.get(descriptor)
                if row is None:
                    watched[descriptor]()
                else:
                    self._collect(descriptor, row)
            self._deliver(_WRITES_PER_TURN)

    def _collect(self, device: int, row: Sequence[Link | None]) -> None:
        heap, read, push, monotonic = self._heap, os.read, heapq.heappush, time.monotonic
        for _ in range(_READS_PER_TURN):
            try:
                packet = read(device, _READ_BYTES)
            except BlockingIOError:
                return
            # Only packets for 10.<region>.0.0/16 and for the region's subnet of `IPV6_PREFIX` have a link.
            link = None
            if len(packet) >= 30 and packet[10] >> 4 == 4:
                link = row[packet[27]] if packet[26] == 10 else None
            elif packet[34:41] == _IPV6_PREFIX and len(packet) >= 50:
                link = row[packet[41]]
            if link is None:
                self.packets_unroutable += 1
                continue
            for due, segments, size, part in link.accept(packet, monotonic()):
                self._count += 1
                push(heap, (due, self._count, link, segments, size, part))

    def _keep(self, link: Link, arriving: Iterable[Event]) -> None:
        for due, segments, size, part in arriving:
            self._count += 1
            heapq.heappush(self._heap, (due, self._count, link, segments, size, part))

    def _deliver(self, most: int) -> None:
        heap, write, pop, monotonic = self._heap, os.write, heapq.heappop, time.monotonic
        for _ in range(most):
            if not heap:
                return
            now = monotonic()
            if heap[0][0] > now:
                return
            due, _, link, segments, size, packet = pop(heap)
            if not segments:
                self._keep(link, link.wake(due, packet))
                continue
            if link.is_cut:
                link.packets_cut += segments
                link.bytes_cut += size
                continue
            try:
                write(link.target, packet)
            except OSError:
                link.packets_device_dropped += segments
                link.bytes_device_dropped += size
                continue
            link.packets_delivered += segments
            link.bytes_delivered += size
            late = now - due
            link.writes += 1
            link.late_sum_s += late
            if late > link.late_max_s:
                link.late_max_s = late


def _answer(device: int, packet: bytes) -> None:
    with suppress(OSError):  # a full or closed device loses it, as a network would
        os.write(device, packet)


def _counted(link: Link, now: float) -> dict[str, Any]:
    packets, size = link.in_flight()
    return {
        **{f"{unit}_{what}": getattr(link, f"{unit}_{what}") for what in COUNTED for unit in UNITS},
        "packets_in_flight": packets,
        "bytes_in_flight": size,
        "rate_bps": link.rate_bps(),
        "packets_marked": link.packets_marked,
        "bytes_backlog": round(link.backlog_bytes(now)),
        "mean_late_ms": link.late_sum_s / link.writes * 1000 if link.writes else None,
        "worst_late_ms": link.late_max_s * 1000 if link.writes else None,
    }
