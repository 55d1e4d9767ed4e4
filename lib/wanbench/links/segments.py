"""
TCP super-packets as a TUN device hands them over, and their pieces. Imports nothing of wanbench.

With segmentation offload on, one read from the device yields up to 64 kB that would leave a real network card
as many packets. Each read is a virtio network header (10 bytes: flags, type, header length, segment size,
checksum start, checksum offset) followed by an IP packet; see the Virtio specification 1.2, section 5.1.6, and
Linux `include/uapi/linux/virtio_net.h`.
"""

from __future__ import annotations

import struct

OFFLOAD_BYTES = 10
"""Length of the virtio header in front of every packet."""

_WORDS_OF_IP_HEADER = struct.Struct("!10H")
_FIN_AND_PSH = 0x09
_CWR = 0x80


def shape(packet: bytes) -> tuple[int, int, int]:
    """
    What a packet is on the wire.

    Parameters
    ----------
    packet : bytes
        virtio header and IPv4 packet.

    Returns
    -------
    segments, header_bytes, segment_bytes : int
        How many packets it is on the wire, the IP and TCP header that each carries, and the payload of each
        but the last. A packet that is not a super-packet is (1, 0, its length).
    """
    if not packet[1]:
        return 1, 0, len(packet) - OFFLOAD_BYTES
    ip_bytes = (packet[OFFLOAD_BYTES] & 15) * 4
    header_bytes = ip_bytes + (packet[OFFLOAD_BYTES + ip_bytes + 12] >> 4) * 4
    segment_bytes = packet[4] | packet[5] << 8
    payload = len(packet) - OFFLOAD_BYTES - header_bytes
    return max(1, -(-payload // segment_bytes)), header_bytes, segment_bytes


def piece(packet: bytes, header_bytes: int, segment_bytes: int, first: int, count: int) -> bytes:
    """
    Some consecutive segments of a super-packet, as a packet of their own.

    IP length, identification and checksum, TCP sequence number, flags and the partial checksum are those that
    the network card would have given them; FIN and PSH stay on the last segment, CWR on the first.

    Parameters
    ----------
    packet : bytes
        The super-packet, virtio header included.
    header_bytes, segment_bytes : int
        Its shape.
    first, count : int
        The first segment wanted (from 0) and how many.
    """
    start = OFFLOAD_BYTES + header_bytes
    begin = start + first * segment_bytes
    payload = packet[begin : begin + count * segment_bytes]
    ip_bytes = (packet[OFFLOAD_BYTES] & 15) * 4
    head = bytearray(packet[:start])
    if len(payload) <= segment_bytes:
        head[1:6] = bytes(5)

    old_length = head[12] << 8 | head[13]
    new_length = header_bytes + len(payload)
    head[12:14] = new_length.to_bytes(2, "big")
    identification = ((head[14] << 8 | head[15]) + first) & 0xFFFF
    head[14:16] = identification.to_bytes(2, "big")
    head[20:22] = b"\0\0"
    head[20:22] = _ip_checksum(head, ip_bytes).to_bytes(2, "big")

    tcp = OFFLOAD_BYTES + ip_bytes
    sequence = int.from_bytes(head[tcp + 4 : tcp + 8], "big") + first * segment_bytes
    head[tcp + 4 : tcp + 8] = (sequence & 0xFFFFFFFF).to_bytes(4, "big")
    if begin + len(payload) < len(packet):
        head[tcp + 13] &= ~_FIN_AND_PSH
    if first:
        head[tcp + 13] &= ~_CWR
    partial = (head[tcp + 16] << 8 | head[tcp + 17]) + new_length + (~old_length & 0xFFFF)
    head[tcp + 16 : tcp + 18] = _fold(partial).to_bytes(2, "big")
    return bytes(head) + payload


def _ip_checksum(packet, ip_bytes):
    total = sum(_WORDS_OF_IP_HEADER.unpack_from(packet, OFFLOAD_BYTES))
    for position in range(OFFLOAD_BYTES + 20, OFFLOAD_BYTES + ip_bytes, 2):
        total += packet[position] << 8 | packet[position + 1]
    return ~_fold(total) & 0xFFFF


def _fold(total):
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total
