"""
Limit a process to a number of processors, such as 0.5, until told to stop.

Needs only plain Python on the host: `python processor_share.py --pid-file <file> --share <processors>`. The file holds
the process id; when it changes, the new process is slowed instead.

The program uses the first of these methods that the kernel allows, and names it in its only line of output:

- "cgroup v1": a new group below the process's own, or else below the root group, with cpu.cfs_quota_us for each period
  of 100 ms;
- "cgroup v2": the same with cpu.max, below the first of these two parents that delegates the controller "cpu";
- "duty cycles", for less than 1 processor: SIGSTOP and SIGCONT in periods of 100 ms. The process then stops for part of
  each period even if it is idle, so latencies grow more than under a quota.

If the process's threads run on several processors, they exhaust a quota sooner, and all wait for the next period.

On SIGTERM, or once the file `--stop-file` exists, the program undoes everything. At its start it appends the path of
the group's folder to the file processor-groups next to itself, so that the lab can delete the group if the program is
killed (SIGKILL).
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
import uuid
from contextlib import suppress

PERIOD_S = 0.1  # the kernel's default; much longer than a broker's request, and much shorter than its timeouts
LOOK_S = 0.1
SMALLEST_SHARE = 0.01  # the kernel's minimum quota
LISTED = "processor-groups"
V1_ROOT, V2_ROOT = "/sys/fs/cgroup/cpu", "/sys/fs/cgroup"
V1, V2, CYCLES = "cgroup v1", "cgroup v2", "duty cycles"


def _read(path: str) -> str:
    with open(path) as file:
        return file.read().strip()


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


class Group:
    """
    A control group with a CPU quota for a process, below the group `parent`. Raise OSError if the kernel does not allow
    this.
    """

    def __init__(self, way: str, parent: str, share: float, pid: int):
        if way == V2 and "cpu" not in _read(f"{parent}/cgroup.subtree_control").split():
            raise OSError(f"{parent} does not delegate the controller cpu")
        self.way, self.parent = way, parent
        self.folder = f"{parent}/wanbench-{uuid.uuid4().hex[:12]}"
        period_us = round(PERIOD_S * 1e6)
        quota_us = max(1_000, round(share * period_us))
        os.mkdir(self.folder)
        try:
            if way == V1:
                _write(f"{self.folder}/cpu.cfs_period_us", str(period_us))
                _write(f"{self.folder}/cpu.cfs_quota_us", str(quota_us))
            else:
                _write(f"{self.folder}/cpu.max", f"{quota_us} {period_us}")
            self.add(pid)
        except OSError:
            os.rmdir(self.folder)
            raise

    def add(self, pid: int) -> None:
        _write(f"{self.folder}/cgroup.procs", str(pid))

    def remove(self) -> None:
        """Move all processes back to the parent group, and delete this one."""
        for _ in range(50):
            for pid in _read(f"{self.folder}/cgroup.procs").split():
                try:
                    _write(f"{self.parent}/cgroup.procs", pid)
                except ProcessLookupError:
                    continue
            try:
                os.rmdir(self.folder)
                return
            except OSError:
                time.sleep(0.02)
        os.rmdir(self.folder)


def group_for(pid: int, share: float) -> Group | None:
    """Return a control group that limits a process to `share` processors; None if the kernel allows none."""
    lines = []
    with suppress(OSError):
        lines = [line.split(":", 2) for line in _read(f"/proc/{pid}/cgroup").splitlines()]
    for number, controllers, path in lines:
        if "cpu" in controllers.split(","):
            way, root = V1, V1_ROOT
        elif number == "0" and not controllers:
            way, root = V2, V2_ROOT
        else:
            continue
        for parent in (root + path.rstrip("/"), root):
            with suppress(OSError):
                return Group(way, parent, share, pid)
    return None


class Slowing:
    """Slow the process whose id is in a pid file, until stopped; `run` restores everything before it returns."""

    def __init__(self, pid_file: str, share: float, way: str | None = None, stop_file: str | None = None):
        self.pid_file, self.share, self.way, self.stop_file = pid_file, share, way, stop_file
        self._stopped = False

    @property
    def stopped(self) -> bool:
        return self._stopped or (self.stop_file is not None and os.path.exists(self.stop_file))

    def stop(self, *_) -> None:
        self._stopped = True

    def run(self) -> None:
        pid = self._pid()
        group = group_for(pid, self.share) if self.way != CYCLES else None
        if group is None and self.way not in (None, CYCLES):
            raise OSError(f"this kernel does not allow {self.way}")
        try:
            if group is not None:
                listed = os.path.join(os.path.dirname(os.path.abspath(__file__)), LISTED)
                with open(listed, "a") as file:
                    file.write(group.folder + "\n")
            about = {"by": CYCLES if group is None else group.way, "period_s": PERIOD_S, "share": self.share}
            print(json.dumps(about), flush=True)
            self._cycle() if group is None else self._follow(group)
        finally:
            if group is not None:
                group.remove()

    def _pid(self) -> int:
        try:
            return int(_read(self.pid_file))
        except (OSError, ValueError):
            return 0

    def _follow(self, group: Group) -> None:
        """Keep the process in its group, even after it restarts or is moved to another group."""
        while not self.stopped:
            time.sleep(LOOK_S)
            pid = self._pid()
            if pid and str(pid) not in _read(f"{group.folder}/cgroup.procs").split():
                with suppress(OSError):  # the process may just have ended
                    group.add(pid)

    def _cycle(self) -> None:
        due = time.monotonic()
        while not self.stopped:
            pid = self._pid()
            self._signal(pid, signal.SIGSTOP)
            try:
                time.sleep((1 - self.share) * PERIOD_S)
            finally:
                self._signal(pid, signal.SIGCONT)
            due = max(due + PERIOD_S, time.monotonic() + self.share * PERIOD_S)
            time.sleep(max(0.0, due - time.monotonic()))

    def _signal(self, pid: int, number: int) -> None:
        if pid > 1:
            with suppress(ProcessLookupError):
                os.kill(pid, number)


def main(given=None) -> int:
    parser = argparse.ArgumentParser(description="Gives a process a share of one processor.")
    parser.add_argument("--pid-file", required=True)
    parser.add_argument("--share", type=float, required=True, help="of one processor, below 1")
    parser.add_argument("--way", choices=(V1, V2, CYCLES), help="default: the first that the kernel allows")
    parser.add_argument("--stop-file", help="end once this file exists")
    arguments = parser.parse_args(given)
    slowing = Slowing(arguments.pid_file, arguments.share, arguments.way, arguments.stop_file)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, slowing.stop)
    try:
        slowing.run()
    except OSError as error:
        print(f"the processor share cannot be set: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
