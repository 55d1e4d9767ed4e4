"""What a host is, and what it lacks for measuring."""

from __future__ import annotations

import csv
import json
import re
import shlex
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

from wanbench.errors import LabError
from wanbench.measure.labs.base import Host

from .programs import facts

SYSCTLS = (
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_available_congestion_control",
    "net.core.default_qdisc",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_slow_start_after_idle",
)
"""What decides how TCP fills a path."""
PATHS, KAFKA = "paths", "Kafka"
NEEDS = {"iperf3": PATHS, "ping": PATHS, "java": KAFKA, "sar": KAFKA, "sadf": KAFKA, "ss": KAFKA}
"""Programs, and what they are needed for."""
MODULES = {"kafka": "kafka-python", "confluent_kafka": "confluent-kafka"}
"""Modules that Kafka's experiments import on a host, and the packages that hold them."""
OLDEST_JAVA = 17
"""Oldest version that Kafka 4's brokers need, as in `wanbench.measure.kafka.java_commands`."""
_TIMEOUT_S = 120.0


def facts_of(host: Host, python: str, sysctls: Iterable[str] = (), peer: str | None = None) -> dict:
    """
    Kernel, processors, sysctls, tools and modules of a host, as `programs/facts.py` prints them.

    `peer` is an address to which the congestion control is asked for.

    Raises
    ------
    LabError
        If the host cannot say.
    """
    program = f"{host.scratch}/{Path(facts.__file__).name}"
    host.put(Path(facts.__file__), program)
    asked = [python, program, host.address, peer or host.address, *dict.fromkeys([*SYSCTLS, *sysctls])]
    done = host.run(asked, timeout_s=_TIMEOUT_S)
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise LabError(f"{host.name} cannot say what it is: {done.stdout[-200:]!r}.") from None


def lacking(found: dict, needed_for: str) -> list[str]:
    """The programs that a host lacks; a Java that is too old counts as none."""
    tools = dict(found["tools"])
    version = re.search(r'version "(?:1\.)?(\d+)', tools.get("java", ""))
    if not version or int(version[1]) < OLDEST_JAVA:
        tools.pop("java", None)
    return [name for name, purpose in NEEDS.items() if purpose == needed_for and name not in tools]


def install_command(found: dict, programs: Iterable[str]) -> str:
    """The command that installs programs there, by its package manager; their names where that is not known."""
    column = {"apt-get": "debian", "dnf": "fedora", "yum": "fedora"}.get(found["manager"])
    if column is None:
        return f"install {', '.join(programs)}"
    packages = []
    for name in programs:
        packages += _packages().get(name, {"debian": "iproute2", "fedora": "iproute"})[column].split()
    return f"sudo {found['manager']} install -y {shlex.join(dict.fromkeys(packages))}"


def module_command(python: str, modules: Iterable[str]) -> str:
    """The command that installs Python modules there."""
    return f"{python} -m pip install {' '.join(MODULES[name] for name in modules)}"


def _packages():
    text = files("wanbench").joinpath("programs.csv").read_text(encoding="utf-8")
    return {row["program"]: row for row in csv.DictReader(text.splitlines())}
