"""
Run the supervisor, the process that owns a local lab's network namespaces and links.

`launch` starts it as the first process of a new PID namespace, by `python -m wanbench.measure.links.lab_supervisor
SOCKET PIDFD`; PIDFD refers to the process that opened the lab. The supervisor makes an unnamed network namespace for
each region and forwards the packets of the links. When the process that opened the lab ends, for whatever reason, the
supervisor exits, because its socket is closed. The kernel then kills all processes of the PID namespace and deletes the
network namespaces. The supervisor removes its scratch folder before it exits; if it is killed, the next supervisor
removes the folder.
"""

import ctypes
import fcntl
import gc
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from wanbench.errors import LATER, LabError

from . import namespaces
from .control import Server
from .relay import Relay

CONGESTION_CONTROL = "net.ipv4.tcp_congestion_control"

FOLDERS = "wanbench-local-"  # Prefix of the names of scratch folders.
_UNLOCKED = "wanbench-new-"  # Their prefix until they are locked, so that `sweep` of another supervisor ignores them.

_PR_SET_TIMERSLACK, _MCL_CURRENT, _MCL_FUTURE = 29, 1, 2
_GROUP_S = 2.0  # timeout for killed processes to leave their control group


class Supervisor:
    """Answer a lab's requests: each method is a verb, and its parameters are the members of the request."""

    def __init__(self):
        self.relay = self.folder = LATER
        self._namespaces = []

    def hello(self) -> None:
        """Do nothing; the answer confirms that the supervisor runs."""

    def scratch(self) -> str:
        """Return the scratch folder, made on the first call; it is locked and, when the supervisor ends, removed."""
        if self.folder is None:
            new = tempfile.mkdtemp(prefix=_UNLOCKED)
            with suppress(OSError):  # a file system without locks: then `sweep` removes nothing
                fcntl.flock(os.open(new, os.O_RDONLY | os.O_CLOEXEC), fcntl.LOCK_EX)
            path = Path(new)  # replace in the name only: the parent's path may contain the same text
            self.folder = str(path.with_name(path.name.replace(_UNLOCKED, FOLDERS)))
            os.rename(new, self.folder)
        return self.folder

    def forget(self) -> None:
        """Kill all other processes of the PID namespace, and remove the scratch folder."""
        if os.getpid() == 1:
            with suppress(OSError):
                os.kill(-1, signal.SIGKILL)
        if self.folder is not None:
            remove(self.folder)

    def open(
        self, *, regions: int, hosts_per_region: int, sysctls: dict[str, str], pairs: list[list[int]], seed: int
    ) -> dict[str, object]:
        """
        Make the namespaces of `regions` regions (numbered from 1) and the links of directed pairs of region numbers.

        Returns "namespaces", this process's file descriptors of the regions' namespaces, in order; "refused", the
        sysctls that the kernel refused, with the reasons; and "congestion_control_by", which is "sysctl", or "route"
        where the kernel refused the sysctl.
        """
        if self.relay is not None:
            raise LabError("the lab is open already.")
        sweep()
        home, refused = namespaces.this_namespace(), {}
        relay = Relay()
        for number in range(1, regions + 1):
            self._namespaces.append(namespaces.make_namespace())
            relay.add_region(number)
            refused = namespaces.set_sysctls(sysctls)
            by_route = sysctls[CONGESTION_CONTROL] if CONGESTION_CONTROL in refused else None
            ipv6 = namespaces.IPV6_OFF not in refused
            namespaces.run_ip(namespaces.commands(number, hosts_per_region, congestion_control=by_route, ipv6=ipv6))
        namespaces.enter(home)
        os.close(home)
        relay.connect([(source, target) for source, target in pairs], seed)
        self.relay = relay
        by = "route" if refused.pop(CONGESTION_CONTROL, None) else "sysctl"
        return {"namespaces": self._namespaces, "refused": refused, "congestion_control_by": by}

    def set(self, *, links: list[list[Any]]) -> None:
        """Give links new settings: a list of [from, to, {the fields of LinkSettings}]."""
        self.relay.set([((source, target), settings) for source, target, settings in links])

    def gateway(self, *, region: int, rate_bps: float | None, queue_bytes: int | None) -> None:
        """Make all links that leave a region share one rate and queue; if `rate_bps` is None, undo this."""
        self.relay.set_gateway(region, rate_bps, queue_bytes)

    def cut(self, *, pairs: list[list[int]], is_cut: bool) -> None:
        self.relay.cut([(source, target) for source, target in pairs], is_cut)

    def counters(self, *, pairs: list[list[int]]) -> list[dict[str, Any]]:
        """Return the counters of the links of these directed pairs, in the same order."""
        return self.relay.counters([(source, target) for source, target in pairs])

    def devices(self) -> list[dict[str, Any]]:
        return self.relay.devices()

    def lateness(self) -> dict[str, float | None]:
        return self.relay.lateness()


def sweep() -> None:
    """Remove the scratch folders that no process has locked: their supervisors were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDERS}*"):
        with suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(descriptor).st_uid == os.geteuid():
                    remove(folder)
            finally:
                os.close(descriptor)


def remove(folder: str | Path) -> None:
    """Delete a scratch folder, and the control groups that are listed in it."""
    remove_control_groups(folder)
    shutil.rmtree(folder, ignore_errors=True)


def remove_control_groups(folder: str | Path) -> None:
    """
    Delete the control groups that are listed in files named "control-groups".

    `wanbench.measure.kafka.programs.process_limit` writes these files, because a control group remains if its
    processes are killed.
    """
    for listed in Path(folder).glob("*/control-groups"):
        for group in listed.read_text().splitlines():
            end = time.monotonic() + _GROUP_S
            while Path(group).name.startswith("wanbench-") and os.path.isdir(group):
                with suppress(OSError):  # a killed process stays in its group until it has ended
                    os.rmdir(group)
                if time.monotonic() > end:
                    break
                time.sleep(0.01)


def hurry(*, locked_later: bool) -> dict[str, bool]:
    """
    Reduce latency: request real-time priority, no timer slack and locked memory, and disable garbage collection.

    Returns which of these the kernel granted. Child processes do not inherit the priority, because they would block a
    machine with one processor. `locked_later` also locks memory that is allocated later; this needs an unlimited amount
    of lockable memory, because otherwise allocations would fail.
    """
    granted = {"real_time_priority": False}
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
        granted["real_time_priority"] = True
    libc = ctypes.CDLL(None, use_errno=True)
    granted["no_timer_slack"] = libc.prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0) == 0
    flags = _MCL_CURRENT | _MCL_FUTURE if locked_later else _MCL_CURRENT
    granted["memory_locked"] = libc.mlockall(flags) == 0
    gc.collect()
    gc.freeze()
    gc.disable()
    return granted


def _gone() -> NoReturn:
    raise EOFError("the lab has ended")


def main() -> None:
    lab, lab_process = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])
    rootless = Path("/proc/self/uid_map").read_text().split() != ["0", "0", "4294967295"]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Mount /proc of the new PID namespace where the kernel allows it; the supervisor also works without it.
    subprocess.run(["mount", "-t", "proc", "proc", "/proc"], capture_output=True, check=False)
    supervisor = Supervisor()
    verbs = ("hello", "scratch", "open", "set", "gateway", "cut", "counters", "devices", "lateness")
    server = Server(
        lab, {**{verb: getattr(supervisor, verb) for verb in verbs}, "hurry": lambda: hurry(locked_later=not rootless)}
    )
    watched = {server.fileno(): server.ready, lab_process: _gone}
    try:
        while supervisor.relay is None:
            for descriptor in select.select(list(watched), (), ())[0]:
                watched[descriptor]()
        supervisor.relay.serve(watched)
    except EOFError:
        return
    finally:
        supervisor.forget()


if __name__ == "__main__":
    main()
