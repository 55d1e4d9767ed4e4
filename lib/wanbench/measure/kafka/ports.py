"""Check that a node's ports are free on its host before it starts."""

from __future__ import annotations

import re

from wanbench.measure.labs.base import Host

from .errors import ClusterError
from .placement import BROKER_PORT, CLIENT_PORT, CONTROLLER_PORT, METRICS_PORT, NodePlacement

_EVERYWHERE = ("0.0.0.0", "*", "::", "")


def _ports_of(placement: NodePlacement, metrics: bool) -> tuple[int, ...]:
    """The ports that a node listens on."""
    of_broker = (CLIENT_PORT, BROKER_PORT) + (METRICS_PORT,) * metrics
    return of_broker * placement.is_broker + (CONTROLLER_PORT,) * placement.is_controller


def check_free(placement: NodePlacement, metrics: bool) -> None:
    """ClusterError, with the port and its process, if a port is taken. No check on a host without `ss`."""
    taken = listening(placement.host)
    for port in _ports_of(placement, metrics):
        for address, by in taken.get(port, ()):
            if address in (placement.host.address, *_EVERYWHERE):
                raise ClusterError(
                    f"{placement.name} cannot start: port {port} of {placement.host.address} is in use by {by}."
                )


def listening(host: Host) -> dict[int, list[tuple[str, str]]]:
    """By port: the addresses that the host listens on, and the listening processes."""
    return parsed(host.run(["ss", "-Hltnp"], timeout_s=30, ok=None).stdout.decode(errors="replace").splitlines())


def parsed(lines: list[str]) -> dict[int, list[tuple[str, str]]]:
    """
    The lines of `ss -Hltnp`.

    >>> parsed(['LISTEN 0 50 [::ffff:10.1.0.1]:9092 *:* users:(("java",pid=22,fd=130))', 'LISTEN 0 5 *:80 *:*'])
    {9092: [('10.1.0.1', 'java (process 22)')], 80: [('*', 'another process')]}
    """
    ports = {}
    for line in lines:
        fields = line.split()
        local = re.fullmatch(r"\[?(?:::ffff:)?([^\]%]*)\]?(?:%\w+)?:(\d+)", fields[3]) if len(fields) > 3 else None
        if local:
            process = re.search(r'\("(.*?)",pid=(\d+)', line)
            by = f"{process[1]} (process {process[2]})" if process else "another process"
            ports.setdefault(int(local[2]), []).append((local[1], by))
    return ports
