"""Whether this machine can run a local lab, by trying each step."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from .launch import search_path, unshare_arguments

# Program: its package on Debian and Ubuntu, on Fedora.
PROGRAMS = {
    "unshare": ("util-linux", "util-linux"),
    "nsenter": ("util-linux", "util-linux"),
    "setsid": ("util-linux", "util-linux"),
    "mount": ("mount", "util-linux"),
    "ip": ("iproute2", "iproute"),
    "ping": ("iputils-ping", "iputils"),
    "iperf3": ("iperf3", "iperf3"),
}
_TRIAL_S = 20


def missing_programs() -> str | None:
    """The missing programs and how to install them, as a sentence; None if none is missing."""
    missing = [program for program in PROGRAMS if shutil.which(program, path=search_path()) is None]
    if not missing:
        return None
    debian, fedora = (" ".join(dict.fromkeys(PROGRAMS[program][k] for program in missing)) for k in (0, 1))
    return (
        f"programs are missing: {', '.join(missing)} (Debian, Ubuntu: apt-get install {debian}; "
        f"Fedora: dnf install {fedora})."
    )


def why_not() -> str | None:
    """Why no local lab can be opened here, as a sentence; None if one can."""
    if not sys.platform.startswith("linux"):
        return f"the local lab needs Linux (network namespaces); this is {sys.platform}."
    if reason := missing_programs():
        return reason
    if not Path("/proc/self/task").is_dir() or not list(Path("/proc/self/task").glob("*/children")):
        return "the kernel does not list a process's children (CONFIG_PROC_CHILDREN), or /proc is not mounted."
    if reason := _trial("true"):
        return f"namespaces cannot be made here: {reason}.{_hint()}"
    return tun_why_not()


def tun_why_not() -> str | None:
    """Why the relay cannot run here, by making a TUN device in a scratch namespace; None if it can."""
    device = Path("/dev/net/tun")
    if not device.exists():
        return "the relay needs /dev/net/tun, which is missing (modprobe tun; docker --device /dev/net/tun)."
    try:
        device.open("r+b", buffering=0).close()
    except OSError as error:
        mode = oct(device.stat().st_mode & 0o777)[2:]
        return f"the relay needs /dev/net/tun, which cannot be opened: {error.strerror} (its mode is {mode})."
    reason = _trial("ip", "tuntap", "add", "dev", "wan0", "mode", "tun")
    return f"the relay cannot make a TUN device: {reason}." if reason else None


def _trial(*command):
    try:
        done = subprocess.run(
            [*unshare_arguments(), *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TRIAL_S,
            check=False,
            env={**os.environ, "PATH": search_path()},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if not done.returncode:
        return None
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[0].rstrip(".") if lines else f"{command[0]} ended with status {done.returncode}"


def _hint():
    if os.geteuid() == 0:
        return " Root lacks CAP_SYS_ADMIN, as it does in most containers (docker run --privileged)."
    for name, forbids in (
        ("kernel/unprivileged_userns_clone", "0"),
        ("user/max_user_namespaces", "0"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1"),
    ):
        path = Path("/proc/sys", name)
        if path.exists() and path.read_text().strip() == forbids:
            return f" The sysctl {name.replace('/', '.')} is {forbids}: only root may make them."
    return " Being root helps."
