"""Whether the ports of a node are free on its host, asked before it is started."""

from __future__ import annotations

import re

from ..labs.base import Host
from .errors import ClusterError
from .placement import BROKER_PORT, CLIENT_PORT, CONTROLLER_PORT, METRICS_PORT, Seat

_EVERYWHERE = ("0.0.0.0", "*", "::", "")


def ports_of(seat: Seat, metrics: bool) -> tuple[int, ...]:
    """The ports that a node listens on."""
    of_broker = (CLIENT_PORT, BROKER_PORT) + (METRICS_PORT,) * metrics
    return of_broker * seat.is_broker + (CONTROLLER_PORT,) * seat.is_controller


def check_free(seat: Seat, metrics: bool) -> None:
    """ClusterError that names the port and who has it, if one is taken. A host without `ss` is not asked."""
    taken = listening(seat.host)
    for port in ports_of(seat, metrics):
        for address, by in taken.get(port, ()):
            if address in (seat.host.address, *_EVERYWHERE):
                raise ClusterError(
                    f"{seat.name} cannot start: port {port} of {seat.host.address} is in use by {by}."
                )


def listening(host: Host) -> dict[int, list[tuple[str, str]]]:
    """Per port: the addresses on which somebody listens on the host, and who."""
    return parsed(
        host.run(["ss", "-Hltnp"], timeout_s=30, ok=None).stdout.decode(errors="replace").splitlines()
    )


def parsed(lines: list[str]) -> dict[int, list[tuple[str, str]]]:
    """
    The lines of `ss -Hltnp`.

    >>> parsed(['LISTEN 0 50 [::ffff:10.1.0.1]:9092 *:* users:(("java",pid=22,fd=130))', 'LISTEN 0 5 *:80 *:*'])
    {9092: [('10.1.0.1', 'java (process 22)')], 80: [('*', 'another process')]}
    """
    found = {}
    for line in lines:
        words = line.split()
        local = (
            re.fullmatch(r"\[?(?:::ffff:)?([^\]%]*)\]?(?:%\w+)?:(\d+)", words[3]) if len(words) > 3 else None
        )
        if local:
            who = re.search(r'\("(.*?)",pid=(\d+)', line)
            by = f"{who[1]} (process {who[2]})" if who else "another process"
            found.setdefault(int(local[2]), []).append((local[1], by))
    return found
