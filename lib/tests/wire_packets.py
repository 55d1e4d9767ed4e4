"""Packets as hosts send them, and one link on a simulated clock."""

import struct
from dataclasses import asdict

from wanbench.measure.links import LinkSettings, queue_in_bytes
from wanbench.measure.links.link import Link
from wanbench.measure.links.queues import OFFLOAD_BYTES

MSS = 1448
HEADER_BYTES = 52
NEEDS_CHECKSUM, TCP_V4, TCP_V6 = 1, 1, 4


def checksum(data: bytes) -> int:
    """RFC 1071, written out: the sum over the whole, not an update of an old one."""
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def packet(payload: bytes, *, sequence=0xFFFFF000, identification=0xFFFE, flags=0x99, ip_options=b"", v6=False):
    """A TCP packet as a TUN device hands it over: larger than a segment, it is a super-packet."""
    addresses = bytes(range(32)) if v6 else bytes([10, 1, 0, 1, 10, 2, 0, 1])
    ip_bytes = (40 if v6 else 20) + len(ip_options)
    tcp_bytes = HEADER_BYTES - 20
    length = ip_bytes + tcp_bytes + len(payload)
    following = 43 if ip_options else 6  # RFC 8200: a routing header, or TCP
    ip = struct.pack("!IHBB32s", 6 << 28, length - 40, following, 64, addresses) + ip_options
    if not v6:
        ip = ipv4_header(addresses, ip_bytes, length, identification, ip_options)
    pseudo = ~checksum(addresses + struct.pack("!II", length - ip_bytes, 6)) & 0xFFFF
    options = bytes(range(tcp_bytes - 20))
    tcp = struct.pack("!HHIIBBHHH", 5201, 40000, sequence, 7, tcp_bytes // 4 << 4, flags, 500, pseudo, 0)
    is_super = len(payload) > MSS
    kind = is_super and (TCP_V6 if v6 else TCP_V4)
    offload = struct.pack("<BBHHHH", NEEDS_CHECKSUM, kind, 0, MSS if is_super else 0, ip_bytes, 16)
    return offload + ip + tcp + options + payload


def ipv4_header(addresses, ip_bytes, length, identification, ip_options) -> bytes:
    ip = struct.pack("!BBHHHBBH8s", 4 << 4 | ip_bytes // 4, 0, length, identification, 0x4000, 64, 6, 0, addresses)
    ip += ip_options
    return ip[:10] + checksum(ip).to_bytes(2, "big") + ip[12:]


def read(raw: bytes) -> dict:
    """The fields that matter, read independently of the code under test."""
    offload, ip = struct.unpack("<BBHHHH", raw[:OFFLOAD_BYTES]), raw[OFFLOAD_BYTES:]
    v6 = ip[0] >> 4 == 6
    ip_bytes = 40 + 8 * (ip[6] == 43) if v6 else (ip[0] & 15) * 4
    tcp, addresses = ip[ip_bytes:], ip[8:40] if v6 else ip[12:20]
    start = (tcp[12] >> 4) * 4
    return {
        "type": offload[1],
        "segment_bytes": offload[3],
        "length": 40 + int.from_bytes(ip[4:6], "big") if v6 else int.from_bytes(ip[2:4], "big"),
        "true_length": len(ip),
        "identification": int.from_bytes(ip[4:6], "big"),
        "ip_checksum_left": 0 if v6 else checksum(ip[:ip_bytes]),
        "pseudo": int.from_bytes(tcp[16:18], "big"),
        "expected_pseudo": ~checksum(addresses + struct.pack("!II", len(tcp), 6)) & 0xFFFF,
        "sequence": int.from_bytes(tcp[4:8], "big"),
        "flags": tcp[13],
        "payload": tcp[start:],
        "options": tcp[20:start],
    }


def link(delay_ms=10.0, seed=0, **settings) -> Link:
    made = Link(target=0, seed=seed)
    settings = LinkSettings(delay_ms, **settings)
    made.set(**asdict(settings) | {"queue_bytes": queue_in_bytes(settings)}, now=0.0)
    return made
