"""
Send numbered UDP packets, or receive them: `probe.py send|receive ADDRESS PORT COUNT INTERVAL_US BYTES BEGAN_US`.

The receiver prints "listening". Once no more packets come, it prints:

- "probes COUNT BYTES BEGAN_US FIRST_US", where FIRST_US is the send time of the first packet that arrived, in
  microseconds since 1970;
- for each packet its number, its send time minus FIRST_US, and the delay until the kernel received it, both in
  microseconds;
- "end" and three numbers, from the first arrival to the last: the processor time of process 1 (in a local lab, the
  relay) and the elapsed time, both in microseconds, and the number of packets marked "congestion experienced".

BEGAN_US, the time at which the link's schedule began, is only printed again; 0 means that there is none.

It needs nothing but Python.
"""

import socket
import struct
import sys
import time
from pathlib import Path

_HEAD = struct.Struct("!IQ")
_SO_RCVBUFFORCE, _SO_TIMESTAMPNS = 33, 35  # asm-generic/socket.h
_TIME = struct.Struct("qq")
_BUFFER_BYTES = 64 << 20  # what may wait while the receiver does not run
_QUIET_S = 2.0


def send(address: str, port: int, count: int, interval_us: int, size: int) -> None:
    """Send `count` packets of `size` bytes (with headers) at equal intervals; an overdue packet is sent at once."""
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.connect((address, port))
    payload, began_ns = bytes(size - 28 - _HEAD.size), time.time_ns()  # 28 bytes are headers of IPv4 and UDP
    for number in range(count):
        due_ns = began_ns + number * interval_us * 1000
        while (left_ns := due_ns - time.time_ns()) > 0:
            time.sleep(left_ns / 1e9)
        end.send(_HEAD.pack(number, time.time_ns()) + payload)


def receive(address: str, port: int, count: int, size: int, began_us: int) -> None:
    """Receive `count` packets, or fewer if 2 s pass without one, and print the lines that the module describes."""
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
    end.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    end.bind((address, port))
    end.settimeout(60)
    print("listening", flush=True)
    rows, before = [], None
    try:
        while len(rows) < count:
            data, ancillary, *_ = end.recvmsg(size, 64)
            if before is None:
                before = _used()
                end.settimeout(_QUIET_S)
            rows.append((data, ancillary[0][2]))
    except TimeoutError:
        pass
    used = [now - then for now, then in zip(_used(), before or _used(), strict=True)]
    first_us = _HEAD.unpack_from(rows[0][0])[1] // 1000 if rows else 0
    print("probes", count, size, began_us, first_us)
    for data, at in rows:
        number, sent_ns = _HEAD.unpack_from(data)
        seconds, ns = _TIME.unpack(at)
        print(number, sent_ns // 1000 - first_us, seconds * 1_000_000 + (ns - sent_ns) // 1000)
    if len(rows) < count:  # the time at the end when nothing came any more
        used[1] -= round(_QUIET_S * 1e6)
    print("end", *used)


def _used():
    names, values = (
        line.split() for line in Path("/proc/net/netstat").read_text().splitlines() if line.startswith("IpExt:")
    )
    marked = int(dict(zip(names, values, strict=True))["InCEPkts"])
    return int(Path("/proc/1/schedstat").read_text().split()[0]) // 1000, time.monotonic_ns() // 1000, marked


if __name__ == "__main__":
    what, where, *numbers = sys.argv[1:]
    at_port, how_many, every_us, packet_bytes, schedule_began_us = map(int, numbers)
    if what == "send":
        send(where, at_port, how_many, every_us, packet_bytes)
    else:
        receive(where, at_port, how_many, packet_bytes, schedule_began_us)
