"""
Decide when a packet arrives over one direction of a pair, or whether it is dropped. This module does no input or
output.

A super-packet holds several TCP segments, which the kernel hands over in one piece (segmentation offload).
"""

import math
import random
import struct
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from wanbench.checks import LATER

from . import CODEL_INTERVAL_MS, DEVICE_MTU_BYTES, LinkSettings
from .mtu import too_big
from .queues import OFFLOAD_BYTES, CoDel, Waiting, marked

Steps = Sequence[Mapping[str, Any]] | None  # a schedule, with the fields of `Step`
Burst = tuple[float | None, float | None]
Event = tuple[float, int, int, bytes | Iterator[object] | None]  # see `Link.accept`
_NO_LIMIT = 1 << 62  # packets


class Bottleneck:
    """
    A rate limit and the drop-tail queue in front of it, of one link or shared by all links that leave a region.

    If `bytes_per_s` is None, there is no queue. `free_at` is the time at which all accepted bytes will have been sent,
    in seconds by the same clock as `now`. With burst credit (a token bucket), `bytes_per_s` is the burst's rate while
    credit is left, and the baseline otherwise.
    """

    def __init__(self):
        self.bytes_per_s, self.queue_bytes, self.free_at = None, math.inf, 0.0
        self._baseline = self._burst = self._most_credit = self._credit = self._paid_at = 0.0

    def set(self, rate_bps: float | None, queue_bytes: int | None, now: float, burst: Burst = (None, None)) -> None:
        """
        Set the rate and the queue (None means no limit) and the burst's rate in bit/s and size in bytes, and fill the
        credit. Packets already in the queue leave at the new rate.
        """
        self._baseline, self._burst = (rate_bps or 0) / 8, (burst[0] or 0) / 8
        self._most_credit, self._credit, self._paid_at = burst[1] or 0, burst[1] or 0, now
        self.queue_bytes = math.inf if queue_bytes is None else queue_bytes
        self._change_rate((self._burst or self._baseline) or None, now)

    def _change_rate(self, bytes_per_s: float | None, now: float) -> None:
        self.free_at = now + self.backlog_bytes(now) / bytes_per_s if bytes_per_s else now
        self.bytes_per_s = bytes_per_s

    def pay(self, size: int, now: float) -> None:
        """Subtract accepted bytes from the credit, which grows at the baseline, and set the rate that it allows."""
        if self._burst:
            self._credit = min(self._most_credit, self._credit + (now - self._paid_at) * self._baseline) - size
            self._paid_at = now
            self._change_rate(self._burst if self._credit > 0 else self._baseline, now)

    def backlog_bytes(self, now: float) -> float:
        """Return the number of queued bytes, including the packet in transmission."""
        return max(0.0, self.free_at - now) * self.bytes_per_s if self.bytes_per_s else 0.0


_SHORT = struct.Struct("!H")
_LONG = struct.Struct("!I")
_LENGTH_AND_IDENTIFICATION = struct.Struct("!HH")
_FIN_AND_PSH, _CWR = 0x09, 0x80
_IPV6_BYTES = 40  # IPv6's length leaves out this header


def shape(packet: bytes) -> tuple[int, int, int]:
    """
    Return how a packet with a virtio header is split on the wire: the number of packets, the bytes of IP and TCP
    headers of each, and the bytes of payload of each packet but the last. For a packet that is not a super-packet,
    return (1, 0, its length).
    """
    if not packet[1]:
        return 1, 0, len(packet) - OFFLOAD_BYTES
    ip_bytes = packet[6] | packet[7] << 8  # the checksum to complete begins with TCP's header
    header_bytes = ip_bytes + (packet[OFFLOAD_BYTES + ip_bytes + 12] >> 4) * 4
    segment_bytes = packet[4] | packet[5] << 8
    payload_bytes = len(packet) - OFFLOAD_BYTES - header_bytes
    return max(1, -(-payload_bytes // segment_bytes)), header_bytes, segment_bytes


def piece(packet: bytes, header_bytes: int, segment_bytes: int, first: int, count: int) -> bytes:
    """
    Return `count` consecutive segments of a super-packet, from number `first` (counted from 0), as one packet.

    IP length (in IPv4 also identification and checksum), TCP sequence number, flags and pseudo-header checksum are set
    as a network card sets them; only the last segment has FIN and PSH, only the first CWR. As the virtio header says,
    the receiver completes the TCP checksum.
    """
    start = OFFLOAD_BYTES + header_bytes
    begin = start + first * segment_bytes
    payload = packet[begin : begin + count * segment_bytes]
    head = bytearray(packet[:start])
    if len(payload) <= segment_bytes:
        head[1] = head[4] = head[5] = 0

    ip, tcp = OFFLOAD_BYTES, OFFLOAD_BYTES + (packet[6] | packet[7] << 8)
    if packet[ip] >> 4 == 4:
        old_length, old_identification = _LENGTH_AND_IDENTIFICATION.unpack_from(head, ip + 2)
        length, identification = header_bytes + len(payload), (old_identification + first) & 0xFFFF
        _LENGTH_AND_IDENTIFICATION.pack_into(head, ip + 2, length, identification)
        changed = (old_length ^ 0xFFFF) + length
        checksum = (_SHORT.unpack_from(head, ip + 10)[0] ^ 0xFFFF) + changed
        checksum += (old_identification ^ 0xFFFF) + identification
        _SHORT.pack_into(head, ip + 10, _folded(checksum) ^ 0xFFFF)
    else:
        old_length, length = _SHORT.unpack_from(head, ip + 4)[0], header_bytes - _IPV6_BYTES + len(payload)
        _SHORT.pack_into(head, ip + 4, length)
        changed = (old_length ^ 0xFFFF) + length

    sequence = _LONG.unpack_from(head, tcp + 4)[0] + first * segment_bytes
    _LONG.pack_into(head, tcp + 4, sequence & 0xFFFFFFFF)
    if begin + len(payload) < len(packet):
        head[tcp + 13] &= ~_FIN_AND_PSH
    if first:
        head[tcp + 13] &= ~_CWR
    pseudo = _SHORT.unpack_from(head, tcp + 16)[0] + changed
    _SHORT.pack_into(head, tcp + 16, _folded(pseudo))
    return bytes(head) + payload


def _folded(total: int) -> int:
    """Reduce a sum to 16 bits in ones' complement; RFC 1624 (equation 3) updates checksums with such sums."""
    total = (total & 0xFFFF) + (total >> 16)
    return (total & 0xFFFF) + (total >> 16)


def _steps(
    schedule: Sequence[Mapping[str, Any]], repeat_s: float | None, start: float
) -> Iterator[tuple[float, dict[str, Any]]]:
    """Yield the time and the changes of each step of a schedule; with `repeat_s`, the schedule repeats forever."""
    while True:
        for step in schedule:
            changes = {name: value for name, value in step.items() if name != "at_s" and value is not None}
            yield start + step["at_s"], changes
        if repeat_s is None:
            return
        start += repeat_s


# A super-packet is split so that no piece takes longer than this to send; otherwise slow links would be bursty.
LONGEST_PIECE_S = 0.001

COUNTED = ("sent", "delivered", "lost", "queue_dropped", "cut", "device_dropped", "too_big")
UNITS = ("packets", "bytes")


class Link:
    """
    One direction of a pair, with its own rate and queue, or with those of its region's gateway.

    Times are seconds of one clock, which the caller chooses. Counters (`packets_sent`, `bytes_sent` and so on) count
    packets on the wire and their bytes with IP and TCP headers. `target` is the file descriptor of the destination
    region's device; `seed` is the seed of loss and jitter; `answer` sends a packet to the source region.
    """

    def __init__(self, target: int, seed: int | str = 0, answer: Callable[[bytes], None] = LATER):
        for what in COUNTED:
            for unit in UNITS:
                setattr(self, f"{unit}_{what}", 0)
        self.target, self.is_cut, self._answer = target, False, answer
        self.writes, self.late_sum_s, self.late_max_s = 0, 0.0, 0.0
        # A random generator takes much memory, and most links of a lab need none.
        self._seed, self._random = seed, LATER
        self._bottleneck = self._own_bottleneck = Bottleneck()
        self._last_due = self._jitter = 0.0
        self._jitter_at = -math.inf
        self._loss = self._burst_ends = math.nan
        # A queue from which packets leave one by one, where their leaving cannot be decided when they arrive.
        self._queue = LATER
        self._queued_packets = self._queued_bytes = self.packets_marked = 0
        self._sending = self._codel = self._steps = LATER
        self.set(0.0, now=0.0)

    def set(
        self, delay_ms: float, *, schedule: Steps = (), repeat_s: float | None = None, now: float, **settings: Any
    ) -> list[Event]:
        """
        Apply new settings; see `LinkSettings`, but a `queue_bytes` of None means no limit. The schedule begins now.

        Queued packets leave at the new rate. Packets in flight still arrive at the time decided before; as packets stay
        in order, packets that are sent after the delay has been shortened wait for them. Returns what `wake` returns.
        """
        self._steps = _steps(schedule, repeat_s, now) if schedule else None
        self._settings = LinkSettings(delay_ms, **settings)
        if schedule and self._queue is None:
            self._queue = deque()
        return self._apply(now) + self._next_step()

    def _apply(self, now: float) -> list[Event]:
        link, loss = self._settings, self._settings.loss
        self._mtu_bytes, self._answers = link.mtu_bytes or DEVICE_MTU_BYTES, not link.mtu_black_hole
        self._own_bottleneck.set(link.rate_bps, link.queue_bytes, now, (link.burst_rate_bps, link.burst_bytes))
        self._delay_s, self._jitter_s = link.delay_ms / 1000, link.jitter_ms / 1000
        self._correlation_s = link.jitter_correlation_s
        if (loss or link.jitter_ms) and self._random is None:
            self._random = random.Random(self._seed)
        ends = 1 / link.mean_loss_burst if link.mean_loss_burst else 1 - loss
        if (loss, ends) != (self._loss, self._burst_ends):
            self._loss, self._burst_ends = loss, ends
            self._burst_begins = ends * loss / (1 - loss) if loss < 1 else 1
            self._until_loss = self._draw_until_loss(1 - loss)
        self._queue_packets, self._marks = link.queue_packets or _NO_LIMIT, link.ecn
        if link.codel_target_ms is None:
            self._codel = None
        else:
            times = link.codel_target_ms / 1000, (link.codel_interval_ms or CODEL_INTERVAL_MS) / 1000
            if self._codel is None or times != (self._codel.target_s, self._codel.interval_s):
                self._codel = CoDel(*times)
        if self._queue is None and (link.queue_packets or self._codel):
            self._queue = deque()
        return [(self._own_bottleneck.free_at, 0, 0, None)] if self._sending else []

    def _next_step(self) -> list[Event]:
        self._step = next(self._steps, LATER) if self._steps else LATER
        return [(self._step[0], 0, 0, self._steps)] if self._step else []

    def share(self, bottleneck: Bottleneck | None) -> None:
        """Use a gateway's rate and queue from now on; with None, use the link's own again."""
        self._bottleneck = self._own_bottleneck if bottleneck is None else bottleneck

    def backlog_bytes(self, now: float) -> float:
        """Return the bytes in the link's or the gateway's queue, including the packet in transmission."""
        return self._queued_bytes + self._bottleneck.backlog_bytes(now)

    def rate_bps(self) -> float | None:
        """Return the present rate of the link or the gateway in bit/s; None means no limit."""
        return self._bottleneck.bytes_per_s and self._bottleneck.bytes_per_s * 8

    def in_flight(self) -> tuple[int, int]:
        """Return the number of packets and of bytes that are neither delivered nor dropped yet."""
        packets, size = (
            getattr(self, f"{unit}_sent") - sum(getattr(self, f"{unit}_{what}") for what in COUNTED[1:])
            for unit in UNITS
        )
        return packets, size

    def accept(self, packet: bytes, now: float) -> Sequence[Event]:
        """
        Accept a packet; return a list of what will arrive, as (time of arrival, packets on the wire, bytes, packet). An
        entry with 0 packets asks the caller to call `wake` with its time and its last member.

        An idle link accepts a packet of any size; otherwise a packet that does not fit into the queue is dropped. A
        super-packet arrives in pieces if some of its segments are dropped, or if it takes longer than a millisecond to
        send.
        """
        segments, header_bytes, segment_bytes = shape(packet)
        size = len(packet) - OFFLOAD_BYTES + (segments - 1) * header_bytes
        self.packets_sent += segments
        self.bytes_sent += size
        if self.is_cut:
            self.packets_cut += segments
            self.bytes_cut += size
            return ()
        if header_bytes + segment_bytes > self._mtu_bytes:
            self.packets_too_big += segments
            self.bytes_too_big += size
            if self._answers:
                self._answer(too_big(packet, self._mtu_bytes))
            return ()
        bottleneck = self._bottleneck
        if self._queue is not None and bottleneck is self._own_bottleneck:
            return self._enqueue(Waiting(packet, now, segments, header_bytes, segment_bytes, size, segments))
        bottleneck.pay(0, now)
        rate, leaves_at, fits, most = bottleneck.bytes_per_s, now, segments, segments
        full_bytes = header_bytes + segment_bytes
        if rate:
            leaves_at = max(now, bottleneck.free_at)
            room = bottleneck.queue_bytes - (leaves_at - now) * rate
            if size > room:
                fits = int(max(0, room) // full_bytes)
                if not fits and leaves_at == now:
                    fits = 1
                if fits < segments:
                    self.packets_queue_dropped += segments - fits
                    self.bytes_queue_dropped += size - fits * full_bytes
            most = max(1, int(LONGEST_PIECE_S * rate / full_bytes))
        arriving, position = [], 0
        while position < fits:
            count = min(fits - position, most, self._until_loss)
            is_lost = count < 1
            if is_lost:
                count = 1
            bytes_here = count * full_bytes if position + count < segments else size - position * full_bytes
            if rate:
                leaves_at += bytes_here / rate
            if is_lost:
                self.packets_lost += 1
                self.bytes_lost += bytes_here
                self._until_loss = self._draw_until_loss(self._burst_ends)
            else:
                self._until_loss -= count
                whole = count == segments
                part = packet if whole else piece(packet, header_bytes, segment_bytes, position, count)
                arriving.append((self._due(leaves_at), count, bytes_here, part))
            position += count
        bottleneck.free_at = leaves_at
        bottleneck.pay(size if fits == segments else fits * full_bytes, now)
        return arriving

    def _enqueue(self, packet: Waiting) -> Sequence[Event]:
        is_idle, full_bytes = self._sending is None, packet.header_bytes + packet.segment_bytes
        room_bytes = self._own_bottleneck.queue_bytes - self.backlog_bytes(packet.arrived_at)
        fits = packet.segments if packet.size <= room_bytes else int(max(0, room_bytes) // full_bytes)
        fits = max(is_idle, min(fits, self._queue_packets - self._queued_packets))
        self._drop(packet.segments - fits, packet.size - fits * full_bytes)
        if not fits:
            return ()
        packet.end = fits
        self._queue.append(packet)
        self._queued_packets += fits
        self._queued_bytes += min(packet.size, fits * full_bytes)
        return self._send_next(packet.arrived_at) if is_idle else ()

    def _drop(self, packets: int, size: int) -> None:
        if packets:
            self.packets_queue_dropped += packets
            self.bytes_queue_dropped += size

    def wake(self, at: float, steps: Iterator[object] | None = None) -> list[Event]:
        """
        Apply the next step of the schedule if `steps` is given; otherwise end the transmission of a packet, and begin
        to send the next one. Return a list of what will arrive, as `accept` does.
        """
        if steps is not None:
            if steps is not self._steps:
                return []
            self._settings = replace(self._settings, **self._step[1])
            return self._apply(at) + self._next_step()
        if self._sending is None or at != self._own_bottleneck.free_at:  # the rate has changed since
            return []
        count, size, part = self._sending
        if self._until_loss < 1:
            self.packets_lost += count
            self.bytes_lost += size
            self._until_loss, arriving = self._draw_until_loss(self._burst_ends), []
        else:
            self._until_loss -= count
            arriving = [(self._due(at), count, size, part)]
        return arriving + self._send_next(at)

    def _send_next(self, at: float) -> list[Event]:
        """Begin to send segments of the next packet, for at most a millisecond; all of them are lost, or none."""
        bottleneck, self._sending = self._own_bottleneck, None
        while self._queue:
            head = self._queue[0]
            at, size = max(at, bottleneck.free_at, head.arrived_at), head.bytes_of(1)
            rate, count, part = bottleneck.bytes_per_s, 1, None
            acts = self._codel and self._codel.acts(at, at - head.arrived_at, self._queued_bytes - size)
            if not acts:
                most = max(1, int(LONGEST_PIECE_S * rate / size)) if rate else head.end
                count = min(head.end - head.first, most, max(1, self._until_loss))
            if not acts or self._marks:
                whole = count == head.segments
                shape_of = head.header_bytes, head.segment_bytes, head.first, count
                part = head.packet if whole else piece(head.packet, *shape_of)
                if acts:
                    part = marked(part)
                    self.packets_marked += part is not None
            size = head.bytes_of(count)
            head.first += count
            self._queued_packets -= count
            self._queued_bytes -= size
            if head.first >= head.end:
                self._queue.popleft()
            if part is None:
                self._drop(1, size)
                continue
            bottleneck.free_at = at + size / rate if rate else at
            self._sending = count, size, part
            return [(bottleneck.free_at, 0, 0, None)]
        return []

    def _draw_until_loss(self, delivered: float) -> int:
        """
        Draw the number of packets before the next loss; `delivered` is the probability that the next packet arrives.

        If it arrives, the length in packets of the good state that follows has a geometric distribution.
        """
        if self._loss <= 0:
            return _NO_LIMIT
        if self._loss >= 1 or self._random.random() >= delivered:
            return 0
        if self._burst_begins >= 1:
            return 1
        return 1 + int(math.log(1.0 - self._random.random()) / math.log1p(-self._burst_begins))

    def _due(self, leaves_at: float) -> float:
        delay = self._delay_s
        if self._jitter_s:
            kept = math.exp(-max(0.0, leaves_at - self._jitter_at) / self._correlation_s)
            self._jitter_at = leaves_at
            self._jitter = kept * self._jitter + math.sqrt(1 - kept * kept) * self._random.gauss(0.0, 1.0)
            # Limited symmetrically, so that the mean stays `delay_ms`.
            delay += min(delay, max(-delay, self._jitter_s * self._jitter))
        due = leaves_at + delay
        if due < self._last_due:
            due = self._last_due
        self._last_due = due
        return due
