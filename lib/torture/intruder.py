"""
Disturb iperf3 from inside a region's namespace: `python -m torture.intruder taken|busy SECONDS`.

`taken` listens on every port that a test may use. `busy` occupies each server of iperf3 as soon as it listens.
"""

import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

FIRST, LAST = 5201, 9000  # the ports of `wanbench.measure.experiments.Iperf3`
LISTENS = "0A"  # the state in /proc/net/tcp


def taken() -> list:
    """Listen on the ports; return the sockets."""
    held = []
    for port in range(FIRST, LAST + 1):
        one = socket.socket()
        with suppress(OSError):
            one.bind(("", port))
            one.listen()
        held.append(one)
    return held


def busy(seconds: float) -> None:
    """Be the first client of every server."""
    deadline, held = time.monotonic() + seconds, {}
    while time.monotonic() < deadline:
        for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]:
            _, here, _, state = line.split()[:4]
            address, port = here.split(":")
            if state == LISTENS and here not in held and FIRST <= int(port, 16) <= LAST:
                numbers = bytes.fromhex(address)[::-1]
                with suppress(OSError):
                    held[here] = socket.create_connection((socket.inet_ntoa(numbers), int(port, 16)), 1)
                    held[here].send(b"x" * 36 + b"\0")  # the cookie, with which every client begins
        time.sleep(0.003)


if __name__ == "__main__":
    what, seconds = sys.argv[1], float(sys.argv[2])
    if what == "taken":
        kept = taken()
        time.sleep(seconds)
    else:
        busy(seconds)
