"""
One direction of a pair in the relay: decides when a packet arrives, or whether it is dropped. This module does no input
or output.
"""

import math
import random
import struct

from . import JITTER_CORRELATION_S


class Bottleneck:
    """
    A rate and the drop-tail queue in front of it, of one link or shared by all links that leave a region.

    If `bytes_per_s` is None, there is no queue. `free_at` is the time at which all accepted bytes will have been sent,
    in seconds by the same clock as `now`.
    """

    def __init__(self):
        self.bytes_per_s, self.queue_bytes, self.free_at = None, math.inf, 0.0

    def set(self, rate_bps: float | None, queue_bytes: int | None, now: float) -> None:
        """Set the rate and the queue (None means no limit). Packets that are queued already leave at the new rate."""
        backlog_bytes = self.backlog_bytes(now)
        self.bytes_per_s = None if rate_bps is None else rate_bps / 8
        self.queue_bytes = math.inf if queue_bytes is None else queue_bytes
        self.free_at = now + backlog_bytes / self.bytes_per_s if self.bytes_per_s else now

    def backlog_bytes(self, now: float) -> float:
        """Return the number of queued bytes, including the packet in transmission."""
        return max(0.0, self.free_at - now) * self.bytes_per_s if self.bytes_per_s else 0.0


OFFLOAD_BYTES = 10  # length of the virtio header in front of every packet

_SHORT = struct.Struct("!H")
_LONG = struct.Struct("!I")
_LENGTH_AND_IDENTIFICATION = struct.Struct("!HH")
_FIN_AND_PSH, _CWR = 0x09, 0x80


def shape(packet: bytes) -> tuple[int, int, int]:
    """
    Return how a packet with a virtio header is split on the wire: the number of packets, the bytes of IP and TCP
    headers of each, and the bytes of payload of each packet but the last. For a packet that is not a super-packet,
    return (1, 0, its length).
    """
    if not packet[1]:
        return 1, 0, len(packet) - OFFLOAD_BYTES
    ip_bytes = (packet[OFFLOAD_BYTES] & 15) * 4
    header_bytes = ip_bytes + (packet[OFFLOAD_BYTES + ip_bytes + 12] >> 4) * 4
    segment_bytes = packet[4] | packet[5] << 8
    payload_bytes = len(packet) - OFFLOAD_BYTES - header_bytes
    return max(1, -(-payload_bytes // segment_bytes)), header_bytes, segment_bytes


def piece(packet: bytes, header_bytes: int, segment_bytes: int, first: int, count: int) -> bytes:
    """
    Return `count` consecutive segments of a super-packet, from number `first` (counted from 0), as one packet.

    IP length, identification and checksum, TCP sequence number, flags and pseudo-header checksum are set as a network
    card sets them; only the last segment has FIN and PSH, only the first CWR. As the virtio header says, the receiver
    completes the TCP checksum.
    """
    start = OFFLOAD_BYTES + header_bytes
    begin = start + first * segment_bytes
    payload = packet[begin : begin + count * segment_bytes]
    head = bytearray(packet[:start])
    if len(payload) <= segment_bytes:
        head[1] = head[4] = head[5] = 0

    ip, tcp = OFFLOAD_BYTES, OFFLOAD_BYTES + (packet[OFFLOAD_BYTES] & 15) * 4
    old_length, old_identification = _LENGTH_AND_IDENTIFICATION.unpack_from(head, ip + 2)
    length, identification = header_bytes + len(payload), (old_identification + first) & 0xFFFF
    _LENGTH_AND_IDENTIFICATION.pack_into(head, ip + 2, length, identification)
    changed = (old_length ^ 0xFFFF) + length
    checksum = (_SHORT.unpack_from(head, ip + 10)[0] ^ 0xFFFF) + changed
    checksum += (old_identification ^ 0xFFFF) + identification
    _SHORT.pack_into(head, ip + 10, _folded(checksum) ^ 0xFFFF)

    sequence = _LONG.unpack_from(head, tcp + 4)[0] + first * segment_bytes
    _LONG.pack_into(head, tcp + 4, sequence & 0xFFFFFFFF)
    if begin + len(payload) < len(packet):
        head[tcp + 13] &= ~_FIN_AND_PSH
    if first:
        head[tcp + 13] &= ~_CWR
    pseudo = _SHORT.unpack_from(head, tcp + 16)[0] + changed
    _SHORT.pack_into(head, tcp + 16, _folded(pseudo))
    return bytes(head) + payload


def _folded(total):
    """Reduce a sum to 16 bits in ones' complement; RFC 1624 (equation 3) updates checksums with such sums."""
    total = (total & 0xFFFF) + (total >> 16)
    return (total & 0xFFFF) + (total >> 16)


# A super-packet is split so that no piece takes longer than this to send; otherwise slow links would be bursty.
LONGEST_PIECE_S = 0.001

COUNTED = ("sent", "delivered", "lost", "queue_dropped", "cut", "device_dropped")
UNITS = ("packets", "bytes")


class Link:
    """
    One direction of a pair, with its own rate and queue, or with those of its region's gateway.

    Times are seconds of one clock, which the caller chooses. Counters (`packets_sent`, `bytes_sent` and so on) count
    packets on the wire and their bytes with IP and TCP headers. `target` is the file descriptor of the destination
    region's device; `seed` is the seed of loss and jitter.
    """

    def __init__(self, target: int, seed: int | str = 0):
        for what in COUNTED:
            for unit in UNITS:
                setattr(self, f"{unit}_{what}", 0)
        self.target, self.is_cut = target, False
        self.writes, self.late_sum_s, self.late_max_s = 0, 0.0, 0.0
        # A random generator takes much memory, and most links of a lab need none.
        self._seed, self._random = seed, None
        self._bottleneck = self._own_bottleneck = Bottleneck()
        self._last_due = self._jitter = 0.0
        self._jitter_at = -math.inf
        self._loss = self._burst_ends = None
        self.set(0.0, now=0.0)

    def set(
        self,
        delay_ms: float,
        jitter_ms: float = 0.0,
        loss: float = 0.0,
        rate_bps: float | None = None,
        queue_bytes: int | None = None,
        jitter_correlation_s: float = JITTER_CORRELATION_S,
        mean_loss_burst: float | None = None,
        *,
        now: float,
    ) -> None:
        """
        Apply new settings; see `LinkSettings`, but a `queue_bytes` of None means no limit.

        Queued packets leave at the new rate. Packets in flight still arrive at the time decided before; as packets stay
        in order, packets that are sent after the delay has been shortened wait for them.
        """
        self._own_bottleneck.set(rate_bps, queue_bytes, now)
        self._delay_s, self._jitter_s = delay_ms / 1000, jitter_ms / 1000
        self._correlation_s = jitter_correlation_s
        if (loss or jitter_ms) and self._random is None:
            self._random = random.Random(self._seed)
        ends = 1 / mean_loss_burst if mean_loss_burst else 1 - loss
        if (loss, ends) != (self._loss, self._burst_ends):
            self._loss, self._burst_ends = loss, ends
            self._burst_begins = ends * loss / (1 - loss) if loss < 1 else 1
            self._until_loss = self._draw_until_loss(1 - loss)

    def share(self, bottleneck: Bottleneck | None) -> None:
        """Use a gateway's rate and queue from now on; with None, use the link's own again."""
        self._bottleneck = self._own_bottleneck if bottleneck is None else bottleneck

    def backlog_bytes(self, now: float) -> float:
        """Return the bytes in the link's or the gateway's queue, including the packet in transmission."""
        return self._bottleneck.backlog_bytes(now)

    def in_flight(self) -> tuple[int, int]:
        """Return the number of packets and of bytes that are neither delivered nor dropped yet."""
        return tuple(
            getattr(self, f"{unit}_sent") - sum(getattr(self, f"{unit}_{what}") for what in COUNTED[1:])
            for unit in UNITS
        )

    def accept(self, packet: bytes, now: float):
        """
        Accept a packet; return a list of what will arrive, as (time of arrival, packets on the wire, bytes, packet).

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
        bottleneck = self._bottleneck
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
        return arriving

    def _draw_until_loss(self, delivered):
        """
        Draw the number of packets before the next loss; `delivered` is the probability that the next one arrives.

        Then one packet arrives, and after it a number with a geometric distribution: until the good state ends.
        """
        if self._loss <= 0:
            return math.inf
        if self._loss >= 1 or self._random.random() >= delivered:
            return 0
        if self._burst_begins >= 1:
            return 1
        return 1 + int(math.log(1.0 - self._random.random()) / math.log1p(-self._burst_begins))

    def _due(self, leaves_at):
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
