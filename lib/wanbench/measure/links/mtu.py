"""Answer, as a router does, a packet that is too big for its next link."""

import struct

from .queues import OFFLOAD_BYTES

_ICMP, _ICMPV6 = 1, 58
_QUOTED_BYTES = 8  # of what follows the IP header: the ports, and TCP's sequence number
_QUOTED_BYTES_V6 = 1280 - 48  # as much as fits into the smallest MTU of IPv6


def too_big(packet: bytes, mtu_bytes: int) -> bytes:
    """
    Return the ICMP message for the sender of a packet, with a virtio header.

    In IPv4 it is "fragmentation needed" (RFC 792) with the MTU of the next hop (RFC 1191), in IPv6 "packet too big"
    (RFC 4443). Its source is the highest address of the sender's region, which no host has.
    """
    ip = packet[OFFLOAD_BYTES:]
    if ip[0] >> 4 == 4:
        source, target = ip[12:14] + b"\xff\xff", ip[12:16]
        message = struct.pack("!BBHHH", 3, 4, 0, 0, mtu_bytes) + ip[: (ip[0] & 15) * 4 + _QUOTED_BYTES]
        message = message[:2] + _checksum(message) + message[4:]
        head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(message), 0, 0, 64, _ICMP, 0) + source + target
        head = head[:10] + _checksum(head) + head[12:]
    else:
        source, target = ip[8:22] + b"\xff\xff", ip[8:24]
        message = struct.pack("!BBHI", 2, 0, 0, mtu_bytes) + ip[:_QUOTED_BYTES_V6]
        pseudo = source + target + struct.pack("!II", len(message), _ICMPV6)
        message = message[:2] + _checksum(pseudo + message) + message[4:]
        head = struct.pack("!IHBB", 6 << 28, len(message), _ICMPV6, 64) + source + target
    return bytes(OFFLOAD_BYTES) + head + message


def _checksum(data: bytes) -> bytes:
    """Compute the internet checksum (RFC 1071)."""
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return (total ^ 0xFFFF).to_bytes(2, "big")
