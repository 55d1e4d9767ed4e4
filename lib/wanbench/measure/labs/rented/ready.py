"""Hosts before they are launched, and how they are made ready for measuring once they are."""

from __future__ import annotations

import time
from collections.abc import Mapping
from threading import Event

from wanbench.errors import LabError
from wanbench.measure.labs.base import Host
from wanbench.measure.labs.ssh import SshHost

from .hosts import Wanted
from .resources import tell
from .user_data import HOST_PYTHON, VOLUME_FOLDER

START_S = 600.0
"""Timeout for a host to start and answer by SSH, and again for it to install its packages."""


def not_launched(wanted: Mapping[str, Wanted], first: int) -> dict[str, list[Host]]:
    """
    Hosts by region, numbered from `first`, that have a name and no address yet.

    Clusters are placed on them, and refused, before anything is paid for.
    """
    no_login = {"control_address": "", "user": "", "key_file": "", "known_hosts_file": ""}
    return {
        region: [SshHost(f"{region}/{number}", region, "", **no_login) for number in range(first, first + each.count)]
        for region, each in wanted.items()
    }


def make_ready(host: SshHost, *, sysctls: Mapping[str, str], has_volume: bool, leaving: Event) -> None:
    """
    Wait until a host answers and has finished its first start; set its sysctls, and find the Python made for Kafka.

    If it has a volume, its scratch folder is there, and so are the logs of brokers.

    LabError if it does not answer within `START_S`, or once `leaving` is set and the host closed.
    """
    deadline = time.monotonic() + START_S
    while True:
        try:
            host.open()
            break
        except LabError:
            if time.monotonic() > deadline or leaving.wait(2):
                raise
    if leaving.is_set():
        raise LabError(f"{host.name} is not made ready, as the lab is being left.")
    # Status 2: done, with errors that it could recover from.
    host.run(["cloud-init", "status", "--wait"], timeout_s=START_S, ok=(0, 2))
    if host.run(["test", "-x", HOST_PYTHON], timeout_s=30, ok=None).returncode == 0:
        host.python = HOST_PYTHON
    if has_volume:
        host.run(["mountpoint", "-q", VOLUME_FOLDER], timeout_s=30)
        host.folder = VOLUME_FOLDER
        host.close()
        host.open()
    for name, value in sysctls.items():
        host.run(["sysctl", "-w", f"{name}={value}"], timeout_s=30)


def close(host: Host) -> None:
    """Close the connection to a host that is given back. What goes wrong is only printed: the host must go anyway."""
    try:
        host.close()
    except Exception as error:
        tell(f"wanbench: {host.name}: {error}")
