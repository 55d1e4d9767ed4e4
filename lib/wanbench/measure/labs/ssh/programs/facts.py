"""
Says what a host is: python facts.py ADDRESS PEER [SYSCTL ...]. Needs nothing but Python.

Prints a JSON object: kernel, processors, what the sysctls are set to (null: not there), the first line of each
tool's own word on its version, which Python modules there are, which package manager, and whether the address is the
host's own.
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


def version(tool, option):
    """The first line that a tool prints about its version; None if it is not there or cannot be asked."""
    try:
        done = subprocess.run([tool, option], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = done.stdout.decode(errors="replace").strip().splitlines()
    return lines[0] if lines else tool


def machine():
    """System, kernel, architecture, and processors that may be used."""
    about = {"system": platform.system(), "kernel": platform.release(), "architecture": platform.machine()}
    return dict(about, processors=len(os.sched_getaffinity(0)))


def sysctl(name):
    """What a sysctl is set to."""
    try:
        with open("/proc/sys/" + name.replace(".", "/")) as file:
            return " ".join(file.read().split())
    except OSError:
        return None


def is_own(address):
    """Whether the host has this address itself, so that servers can listen on it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as tried:
        try:
            tried.bind((address, 0))
        except OSError:
            return False
    return True


def congestion_control(address, peer):
    """Return what a connection to the peer would use: its route may override the sysctl. The peer need not answer."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tried:
        tried.setblocking(False)
        try:
            tried.bind((address, 0))
            tried.connect_ex((peer, 9))
            return tried.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).split(b"\0")[0].decode()
        except OSError:
            return None


def main(address, peer, *sysctls):
    """Print everything."""
    sys.path = [folder for folder in sys.path if folder]
    facts = {
        **machine(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "python": platform.python_version(),
        "congestion_control": congestion_control(address, peer),
        "sysctls": {name: sysctl(name) for name in sysctls},
        "tools": {tool: said for tool, option in TOOLS.items() for said in [version(tool, option)] if said},
        "modules": [name for name in MODULES if importlib.util.find_spec(name)],
        "manager": next((name for name in MANAGERS if shutil.which(name)), None),
        "has_address": is_own(address),
    }
    print(json.dumps(facts))


if __name__ == "__main__":
    main(*sys.argv[1:])
