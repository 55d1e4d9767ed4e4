"""
The user-space relay: carries packets between the regions' TUN devices with the delay, loss and rate asked for.

Each region has one device; the relay reads a packet, finds the link by the destination address, decides when
the packet is due, keeps it in one heap over all links, and writes it to the other region's device on time.
It also counts how late it was, so that a machine that is too slow shows. Imported by `keeper`.
"""

from __future__ import annotations

import heapq
import math
import os
import random
import select
import time
from collections.abc import Callable, Iterable

from wanbench.links.namespaces import open_device
from wanbench.links.segments import OFFLOAD_BYTES, piece, shape

_LONGEST_PIECE_S = 0.001
"""A super-packet is cut so that no piece takes longer than this to send: a slow link is not to be bursty."""

_READ_BYTES = OFFLOAD_BYTES + 65_535
_READS_PER_TURN = 8
_WRITES_PER_TURN = 64

COUNTED = ("sent", "delivered", "lost", "dropped_queue", "dropped_cut", "dropped_device")
UNITS = ("packets", "bytes")


class Link:
    """
    One direction of a pair: when a packet that comes now is due, or why it never is.

    Counts are of packets as the wire would see them, and of their bytes with IP and TCP headers.
    """

    __slots__ = (
        *(f"{what}_{unit}" for what in COUNTED for unit in UNITS),
        "_bytes_per_s",
        "_correlation_s",
        "_delay_s",
        "_free_at",
        "_jitter_at",
        "_jitter_s",
        "_jitter_x",
        "_last_due",
        "_loss",
        "_queue_bytes",
        "_random",
        "_until_loss",
        "is_cut",
        "late_max_s",
        "late_sum_s",
        "target",
        "writes",
    )

    def __init__(self, target: int, seed: int | str):
        for what in COUNTED:
            setattr(self, f"{what}_packets", 0)
            setattr(self, f"{what}_bytes", 0)
        self.target = target
        self.is_cut = False
        self.writes, self.late_sum_s, self.late_max_s = 0, 0.0, 0.0
        self._random = random.Random(seed)
        self._bytes_per_s = None
        self._free_at = self._last_due = self._jitter_at = self._jitter_x = 0.0
        self._loss = -1.0
        self.set(0.0, 0.0, 0.0, None, None, 1.0, now=0.0)

    def set(self, delay_ms, jitter_ms, loss, rate_bps, queue_bytes, jitter_correlation_s, *, now):
        """Take new settings. What waits keeps its place; what is on its way keeps its time."""
        backlog = self.backlog_bytes(now)
        self._delay_s, self._jitter_s = delay_ms / 1000, jitter_ms / 1000
        self._correlation_s = jitter_correlation_s
        self._bytes_per_s = None if rate_bps is None else rate_bps / 8
        self._queue_bytes = math.inf if queue_bytes is None else queue_bytes
        self._free_at = now + backlog / self._bytes_per_s if rate_bps and backlog else now
        if loss != self._loss:
            self._loss = loss
            self._until_loss = self._draw_until_loss()

    def backlog_bytes(self, now: float) -> float:
        """Bytes that wait for the rate."""
        return max(0.0, self._free_at - now) * self._bytes_per_s if self._bytes_per_s else 0.0

    def in_flight(self) -> tuple[int, int]:
        """Packets and bytes that are neither delivered nor dropped yet."""
        return tuple(
            getattr(self, f"sent_{unit}") - sum(getattr(self, f"{what}_{unit}") for what in COUNTED[1:])
            for unit in UNITS
        )

    def accept(self, packet: bytes, now: float):
        """
        Take a packet in.

        Returns
        -------
        list of (due, packets, bytes, packet)
            What will arrive and when, in order of time; empty if nothing does.
        """
        segments, header_bytes, segment_bytes = shape(packet)
        size = len(packet) - OFFLOAD_BYTES + (segments - 1) * header_bytes
        self.sent_packets += segments
        self.sent_bytes += size
        if self.is_cut:
            self.dropped_cut_packets += segments
            self.dropped_cut_bytes += size
            return ()
        rate = self._bytes_per_s
        if rate:
            start = self._free_at if self._free_at > now else now
            sending_s = size / rate
            if (
                (segments > 1 and (sending_s > _LONGEST_PIECE_S or self._until_loss < segments))
                or (start - now) * rate + size > self._queue_bytes
            ):  # fmt: skip
                return self._accept_segments(packet, segments, header_bytes, segment_bytes, size, start, now)
            self._free_at = leaves_at = start + sending_s
        else:
            leaves_at = now
            if segments > 1 and self._until_loss < segments:
                return self._accept_segments(packet, segments, header_bytes, segment_bytes, size, now, now)
        if self._until_loss < 1:
            self._lose(1, size)
            return ()
        self._until_loss -= segments
        return ((self._due(leaves_at), segments, size, packet),)

    def _accept_segments(self, packet, segments, header_bytes, segment_bytes, size, start, now):
        """The careful way: segment by segment, those that remain put together again where they are neighbours."""
        rate, arriving = self._bytes_per_s, []
        first, count, run_bytes, limit = 0, 0, 0, segments
        if rate:
            limit = max(1, int(_LONGEST_PIECE_S * rate / (header_bytes + segment_bytes)))
        leaves_at = run_leaves_at = start
        full_bytes = header_bytes + segment_bytes
        for number in range(segments):
            if segments == 1:
                bytes_here = size
            else:
                bytes_here = full_bytes if number < segments - 1 else size - full_bytes * number
            keep = True
            if rate:
                waiting = (leaves_at - now) * rate
                if waiting > 0 and waiting + bytes_here > self._queue_bytes:
                    self.dropped_queue_packets += 1
                    self.dropped_queue_bytes += bytes_here
                    keep = False
                else:
                    leaves_at += bytes_here / rate
            if keep:
                if self._until_loss < 1:
                    self._lose(1, bytes_here)
                    keep = False
                else:
                    self._until_loss -= 1
            if count and (not keep or count == limit):
                arriving.append((run_leaves_at, first, count, run_bytes))
                count = 0
            if keep:
                if not count:
                    first, run_bytes = number, 0
                count += 1
                run_bytes += bytes_here
                run_leaves_at = leaves_at
        if count:
            arriving.append((run_leaves_at, first, count, run_bytes))
        self._free_at = leaves_at
        return [
            (
                self._due(at),
                count,
                run_bytes,
                packet if count == segments else piece(packet, header_bytes, segment_bytes, first, count),
            )
            for at, first, count, run_bytes in arriving
        ]

    def _lose(self, packets, size):
        self.lost_packets += packets
        self.lost_bytes += size
        self._until_loss = self._draw_until_loss()

    def _draw_until_loss(self):
        """How many packets pass before the next is lost: geometric, so each is lost independently."""
        if self._loss <= 0:
            return math.inf
        if self._loss >= 1:
            return 0
        return int(math.log(1.0 - self._random.random()) / math.log1p(-self._loss))

    def _due(self, leaves_at):
        delay = self._delay_s
        if self._jitter_s:
            keep = math.exp(-max(0.0, leaves_at - self._jitter_at) / self._correlation_s)
            self._jitter_at = leaves_at
            self._jitter_x = keep * self._jitter_x + math.sqrt(1 - keep * keep) * self._random.gauss(0.0, 1.0)
            delay += min(delay, max(-delay, self._jitter_s * self._jitter_x))
        due = leaves_at + delay
        if due < self._last_due:
            due = self._last_due
        self._last_due = due
        return due


class Relay:
    """All links of a lab between TUN devices, and the loop that serves them."""

    def __init__(self):
        self.links: dict[tuple[int, int], Link] = {}
        self.unroutable_packets = 0
        self.longest_turn_s = 0.0
        self._devices, self._rows = {}, {}
        self._heap, self._count = [], 0
        self._poll = select.epoll()

    def add_region(self, number: int) -> None:
        """Make the region's device in the network namespace that this process is in; numbers are 1 to 254."""
        self._devices[number] = device = open_device()
        os.set_blocking(device, False)
        self._poll.register(device, select.EPOLLIN)

    def connect(self, pairs: Iterable[tuple[int, int]], seed: int) -> None:
        """Make the links. Packets for any other pair are dropped; `seed` is that of all loss and jitter."""
        self.links = {
            (source, target): Link(self._devices[target], f"{seed}/{source}/{target}")
            for source, target in pairs
        }
        self._rows = {
            device: [self.links.get((number, target)) for target in range(256)]
            for number, device in self._devices.items()
        }

    def set(self, pair: tuple[int, int], settings: dict) -> None:
        """Give a link new settings (the fields of `LinkSettings`)."""
        self.links[pair].set(**settings, now=time.monotonic())

    def cut(self, pair: tuple[int, int], is_cut: bool) -> None:
        """Cut or heal a link. What is on its way when it would arrive during the cut is lost as well."""
        self.links[pair].is_cut = is_cut

    def counters(self, pair: tuple[int, int]) -> dict:
        """What the link carried and dropped so far, and how late the relay was."""
        link = self.links[pair]
        counted = {f"{what}_{unit}": getattr(link, f"{what}_{unit}") for what in COUNTED for unit in UNITS}
        packets, size = link.in_flight()
        return {
            **counted,
            "in_flight_packets": packets,
            "in_flight_bytes": size,
            "backlog_bytes": round(link.backlog_bytes(time.monotonic())),
            "mean_late_ms": link.late_sum_s / link.writes * 1000 if link.writes else None,
            "worst_late_ms": link.late_max_s * 1000 if link.writes else None,
        }

    def lateness(self) -> dict:
        """How late packets left the relay, over all links, and the longest time it did not look for new ones."""
        writes = sum(link.writes for link in self.links.values())
        late_s = sum(link.late_sum_s for link in self.links.values())
        return {
            "packets": writes,
            "mean_late_ms": late_s / writes * 1000 if writes else None,
            "worst_late_ms": max(link.late_max_s for link in self.links.values()) * 1000 if writes else None,
            "longest_turn_ms": self.longest_turn_s * 1000,
            "unroutable_packets": self.unroutable_packets,
        }

    def serve(self, watched: dict[int, Callable[[], None]]) -> None:
        """
        Carry packets for ever.

        Parameters
        ----------
        watched : dict of int to callable
            Descriptors, and what to call when one can be read. An exception from there ends the loop.
        """
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

    def _collect(self, device, row):
        heap, read, push, monotonic = self._heap, os.read, heapq.heappush, time.monotonic
        for _ in range(_READS_PER_TURN):
            try:
                packet = read(device, _READ_BYTES)
            except BlockingIOError:
                return
            # Version 4 and a destination in 10.<region>.0.0/16, else there is no link for it.
            link = (
                row[packet[27]] if len(packet) >= 30 and packet[10] >> 4 == 4 and packet[26] == 10 else None
            )
            if link is None:
                self.unroutable_packets += 1
                continue
            for due, segments, size, part in link.accept(packet, monotonic()):
                self._count += 1
                push(heap, (due, self._count, link, segments, size, part))

    def _deliver(self, most):
        heap, write, pop, monotonic = self._heap, os.write, heapq.heappop, time.monotonic
        for _ in range(most):
            if not heap:
                return
            now = monotonic()
            if heap[0][0] > now:
                return
            due, _, link, segments, size, packet = pop(heap)
            if link.is_cut:
                link.dropped_cut_packets += segments
                link.dropped_cut_bytes += size
                continue
            try:
                write(link.target, packet)
            except OSError:
                link.dropped_device_packets += segments
                link.dropped_device_bytes += size
                continue
            link.delivered_packets += segments
            link.delivered_bytes += size
            late = now - due
            link.writes += 1
            link.late_sum_s += late
            if late > link.late_max_s:
                link.late_max_s = late
