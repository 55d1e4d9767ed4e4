"""
TCP super-packets read from a TUN device, and their segments.

With segmentation offload on, one read from the device yields up to 64 kB that would leave a real network card
as many packets. Each read is a virtio network header (10 bytes, little-endian: flags, type, header length,
segment size, checksum start, checksum offset) followed by an IP packet; see the Virtio specification 1.2,
section 5.1.6, and Linux's `include/uapi/linux/virtio_net.h`.
"""

from __future__ import annotations

import struct

OFFLOAD_BYTES = 10
"""Length of the virtio header in front of every packet."""

_SHORT = struct.Struct("!H")
_LONG = struct.Struct("!I")
_LENGTH_AND_IDENTIFICATION = struct.Struct("!HH")
_FIN_AND_PSH, _CWR = 0x09, 0x80


def shape(packet: bytes) -> tuple[int, int, int]:
    """
    The size of a packet on the wire.

    Parameters
    ----------
    packet : bytes
        virtio header and IPv4 packet.

    Returns
    -------
    segments, header_bytes, segment_bytes : int
        How many packets it is on the wire, the IP and TCP headers that each carries, and the payload of each
        but the last. A packet that is not a super-packet is (1, 0, its length).
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
    Some consecutive segments of a super-packet, as one packet.

    IP length, identification and checksum, TCP sequence number, flags and pseudo-header checksum are set as by a
    network card; FIN and PSH stay on the last segment, CWR on the first. The TCP checksum itself stays to be completed,
    as the virtio header says.

    Parameters
    ----------
    packet : bytes
        The super-packet, virtio header included.
    header_bytes, segment_bytes : int
        Its shape.
    first, count : int
        The first segment wanted, from 0, and how many.
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
    """A sum of 16-bit words in ones' complement; RFC 1624 (equation 3) updates a checksum with such sums."""
    total = (total & 0xFFFF) + (total >> 16)
    return (total & 0xFFFF) + (total >> 16)
