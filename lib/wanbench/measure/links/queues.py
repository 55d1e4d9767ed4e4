"""Queue packets, which leave one by one, and keep the queue short by CoDel."""

import math
import struct
from dataclasses import dataclass

OFFLOAD_BYTES = 10  # length of the virtio header in front of every packet
FULL_PACKET_BYTES = 1500
_SHORT = struct.Struct("!H")


@dataclass(slots=True)
class Waiting:
    """
    A queued packet, of which the segments before number `first` were sent, and those from number `end` on were dropped.

    `size` is the number of bytes of all its segments on the wire.
    """

    packet: bytes
    arrived_at: float
    segments: int
    header_bytes: int
    segment_bytes: int
    size: int
    end: int
    first: int = 0

    def bytes_of(self, count: int) -> int:
        """Return how many bytes the next `count` segments take on the wire."""
        full_bytes = self.header_bytes + self.segment_bytes
        is_last = self.first + count == self.segments
        return self.size - self.first * full_bytes if is_last else count * full_bytes


class CoDel:
    """
    Controlled delay, RFC 8289: drops packets, ever more often, once they have waited longer than the target for an
    interval.
    """

    def __init__(self, target_s: float, interval_s: float):
        self.target_s, self.interval_s = target_s, interval_s
        self._above_from, self._is_dropping, self._next_at = None, False, 0.0
        self._count = self._last_count = 0

    def acts(self, now: float, waited_s: float, bytes_behind: float) -> bool:
        """
        Return whether to drop or mark the packet at the head of the queue, which has waited for `waited_s` (RFC 8289,
        section 5). `bytes_behind` is the number of queued bytes behind this packet.
        """
        if waited_s < self.target_s or bytes_behind <= FULL_PACKET_BYTES:
            self._above_from = None
        elif self._above_from is None:
            self._above_from = now + self.interval_s
        if self._above_from is None or now < self._above_from:
            self._is_dropping = False
            return False
        if self._is_dropping:
            if now < self._next_at:
                return False
            self._count += 1
            self._next_at += self.interval_s / math.sqrt(self._count)
            return True
        # After a short pause, dropping goes on at nearly the frequency that kept the queue short before.
        new, is_recent = self._count - self._last_count, now - self._next_at < 16 * self.interval_s
        self._count = self._last_count = new if new > 1 and is_recent else 1
        self._is_dropping, self._next_at = True, now + self.interval_s / math.sqrt(self._count)
        return True


def marked(packet: bytes) -> bytes | None:
    """
    Return a packet with the mark "congestion experienced" (RFC 3168); None if its sender does not understand marks.

    The checksum of an IPv4 header is updated (RFC 1624, equation 3); that of TCP does not depend on the mark.
    """
    ip, is_4 = OFFLOAD_BYTES, packet[OFFLOAD_BYTES] >> 4 == 4
    mark = 0x03 if is_4 else 0x30
    if not packet[ip + 1] & mark:
        return None
    made = bytearray(packet)
    made[ip + 1] |= mark
    if is_4:
        total = (_SHORT.unpack_from(made, ip + 10)[0] ^ 0xFFFF) + made[ip + 1] - packet[ip + 1]
        _SHORT.pack_into(made, ip + 10, ((total & 0xFFFF) + (total >> 16)) ^ 0xFFFF)
    return bytes(made)
