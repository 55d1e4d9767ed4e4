"""
Print facts about this host: python facts.py ADDRESS PEER [SYSCTL ...]. Needs only Python.

The output is a JSON object: kernel, processors, the values of the sysctls (null if there is no such sysctl), the first
line that each tool prints about its version, the available Python modules, the package manager, the congestion control
of connections to PEER, and whether the host itself has ADDRESS.
"""

import importlib.util
import json
import os
import platform
import shutil
import socket
import subprocess
import sys

TOOLS = {"iperf3": "--version", "ping": "-V", "java": "-version", "sar": "-V", "sadf": "-V", "ip": "-V", "ss": "-V"}
MODULES = ("kafka", "confluent_kafka", "wanbench")
MANAGERS = ("apt-get", "dnf", "yum")


def version(tool: str, option: str):
    """Return the first line that a tool prints about its version; None if the tool cannot be run."""
    try:
        done = subprocess.run([tool, option], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = done.stdout.decode(errors="replace").strip().splitlines()
    return lines[0] if lines else tool


def machine():
    """Return system, kernel, architecture, and the number of processors that this process may use."""
    about = {"system": platform.system(), "kernel": platform.release(), "architecture": platform.machine()}
    return dict(about, processors=len(os.sched_getaffinity(0)))


def sysctl(name: str):
    """Return the value of a sysctl; None if it cannot be read."""
    try:
        with open("/proc/sys/" + name.replace(".", "/")) as file:
            return " ".join(file.read().split())
    except OSError:
        return None


def is_own(address: str) -> bool:
    """Return whether the host has this address itself, so that servers can listen on it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


def congestion_control(address: str, peer: str):
    """Return the congestion control of connections to the peer, whose route may override the sysctl."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.bind((address, 0))
            probe.connect_ex((peer, 9))  # the peer need not answer
            return probe.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).split(b"\0")[0].decode()
        except OSError:
            return None


def main(address: str, peer: str, *sysctls: str) -> None:
    """Print the facts about this host as one JSON object."""
    sys.path = [folder for folder in sys.path if folder]
    facts = {
        **machine(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "python": platform.python_version(),
        "congestion_control": congestion_control(address, peer),
        "sysctls": {name: sysctl(name) for name in sysctls},
        "tools": {tool: line for tool, option in TOOLS.items() for line in [version(tool, option)] if line},
        "modules": [name for name in MODULES if importlib.util.find_spec(name)],
        "manager": next((name for name in MANAGERS if shutil.which(name)), None),
        "has_address": is_own(address),
    }
    print(json.dumps(facts))


if __name__ == "__main__":
    main(*sys.argv[1:])
