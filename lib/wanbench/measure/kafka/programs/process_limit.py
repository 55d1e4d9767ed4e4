"""
Limit a process to a number of processors, such as 0.5, or its writes to a disk to a rate, until told to stop.

Needs only plain Python on the host: `python process_limit.py --pid-file <file> --share <processors>`, or `--disk
<bytes/s> --folder <folder on the disk>` instead of `--share`. The file holds the process id; when it changes, the new
process is limited instead. With `--credit <bytes>` a disk has full speed until these bytes are used up, as the disks of
small instances do (a token bucket).

The program uses the first of these methods that the kernel allows, and names it in its first line of output. At the end
of a disk's limit it prints a second line, {"written": [[seconds since the limit was set, bytes written], ...]}.

The methods:

- "cgroup v1": a new group below the process's own, or else below the root group, with cpu.cfs_quota_us for each period
  of 100 ms, or with blkio.throttle.write_bps_device. The latter slows only writes that the process waits for (fsync):
  the kernel's own threads write the rest, later and at full speed;
- "cgroup v2": the same with cpu.max or io.max, below the first of these two parents that delegates the controller;
- "duty cycles", for less than 1 processor: SIGSTOP and SIGCONT in periods of 100 ms. The process then stops for part of
  each period even if it is idle, so latencies grow more than under a quota.

If the process's threads run on several processors, they exhaust a quota sooner, and all wait for the next period.

On SIGTERM, or once the file `--stop-file` exists, the program undoes everything. At its start it appends the path of
the group's folder to the file control-groups next to itself, so that the lab can delete the group if the program is
killed (SIGKILL).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import sys
import time
import uuid
from contextlib import suppress
from typing import Any, NamedTuple

PERIOD_S = 0.1  # the kernel's default; much longer than a broker's request, and much shorter than its timeouts
LOOK_S = 0.1
LISTED = "control-groups"
ROOT = "/sys/fs/cgroup"
V1, V2, CYCLES = "cgroup v1", "cgroup v2", "duty cycles"
MOST_COUNTED = 2_000
"""Counts printed of what a disk has written: every count of LOOK_S for three minutes, fewer of a longer limit."""
COUNTED = {V1: ("blkio.throttle.io_service_bytes", "Write "), V2: ("io.stat", ".*wbytes=")}  # bytes written, by disk


def _read(path: str) -> str:
    with open(path) as file:
        return file.read().strip()


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


class Limit(NamedTuple):
    """
    A limit: its controller and the content of its group's files by version of cgroups, and how it is reported.

    `lifted` is the content of the files without the limit, for a disk.
    """

    controllers: dict[str, str]
    files: dict[str, dict[str, str]]
    about: dict[str, Any]
    lifted: dict[str, dict[str, str]] | None = None

    @property
    def refusal(self) -> str:
        """Return what to say if the kernel allows no control group with this limit."""
        ways = " or ".join(f"{way} ({name})" for way, name in self.controllers.items())
        remedy = "run as root or in a container that may write below /sys/fs/cgroup, with that controller delegated"
        return f"the kernel does not allow it by {ways} here; {remedy}"


def processor_limit(share: float) -> Limit:
    period_us = round(PERIOD_S * 1e6)
    quota_us = max(1_000, round(share * period_us))
    v1 = {"cpu.cfs_period_us": str(period_us), "cpu.cfs_quota_us": str(quota_us)}
    files = {V1: v1, V2: {"cpu.max": f"{quota_us} {period_us}"}}
    return Limit({V1: "cpu", V2: "cpu"}, files, {"period_s": PERIOD_S, "share": share})


def disk_limit(bytes_per_s: float, folder: str, credit_bytes: float = 0.0) -> Limit:
    """Limit writes to the disk of a folder. Raise OSError if the folder is not on a disk, as in a tmpfs or overlay."""
    number = os.stat(folder).st_dev
    device = f"{os.major(number)}:{os.minor(number)}"
    if not os.path.exists(block := f"/sys/dev/block/{device}"):
        raise OSError(f"{folder} is not directly on a disk; let TMPDIR name a folder that is")
    if os.path.exists(f"{block}/partition"):  # the kernel limits whole disks only
        device = _read(f"{os.path.realpath(block)}/../dev")
    v1, v2 = "blkio.throttle.write_bps_device", "io.max"
    files = {V1: {v1: f"{device} {bytes_per_s:.0f}"}, V2: {v2: f"{device} wbps={bytes_per_s:.0f}"}}
    lifted = {V1: {v1: f"{device} 0"}, V2: {v2: f"{device} wbps=max"}}
    about = {"device": device, "disk_bytes_per_s": bytes_per_s, "disk_credit_bytes": credit_bytes}
    return Limit({V1: "blkio", V2: "io"}, files, about, lifted)


class Group:
    """A control group with a limit for a process, below the group `parent`. Raise OSError if the kernel refuses it."""

    def __init__(self, way: str, parent: str, limit: Limit, pid: int):
        controller = limit.controllers[way]
        if way == V2 and controller not in _read(f"{parent}/cgroup.subtree_control").split():
            raise OSError(f"{parent} does not delegate the controller {controller}")
        self.way, self.parent = way, parent
        self.folder = f"{parent}/wanbench-{uuid.uuid4().hex[:12]}"
        os.mkdir(self.folder)
        try:
            self.set(limit.files)
            self.add(pid)
        except OSError:
            os.rmdir(self.folder)
            raise

    def set(self, files: dict[str, dict[str, str]]) -> None:
        for name, text in files[self.way].items():
            _write(f"{self.folder}/{name}", text)

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


def group_for(pid: int, limit: Limit) -> Group | None:
    """Return a control group that limits a process; None if the kernel allows none."""
    lines = []
    with suppress(OSError):
        lines = [line.split(":", 2) for line in _read(f"/proc/{pid}/cgroup").splitlines()]
    for number, controllers, path in lines:
        if limit.controllers[V1] in controllers.split(","):
            way, root = V1, f"{ROOT}/{limit.controllers[V1]}"
        elif number == "0" and not controllers:
            way, root = V2, ROOT
        else:
            continue
        for parent in (root + path.rstrip("/"), root):
            with suppress(OSError):
                return Group(way, parent, limit, pid)
    return None


class Writes:
    """
    Count what a group writes to a disk and, if the disk has burst credit, lift its limit until the credit is used up.

    The credit grows by the limit's rate, up to its size. The limit is lifted again once a second's growth is left, or
    half of the credit if that is less. Bytes written beyond the credit, between two looks, are paid back. `counted` has
    the times in s since the start, and the bytes written until then.
    """

    def __init__(self, limit: Limit, group: Group):
        self.limit, self.group, self.limited = limit, group, True
        self.rate, self.left = limit.about["disk_bytes_per_s"], limit.about["disk_credit_bytes"]
        self.least, self.size = min(self.rate, self.left / 2), self.left
        self.start_s, self.counted = time.monotonic(), [(0.0, 0)]

    def look(self) -> None:
        name, before = COUNTED[self.group.way]
        text = _read(f"{self.group.folder}/{name}")
        seen = re.search(f"^{self.limit.about['device']} {before}([0-9]+)", text, re.MULTILINE)
        at_s, written = round(time.monotonic() - self.start_s, 3), int(seen[1]) if seen else 0
        earned = self.rate * (at_s - self.counted[-1][0]) - (written - self.counted[-1][1])
        self.left = min(self.left + earned, self.size)
        self.counted.append((at_s, written))
        if self.limited != (self.left <= (self.least if self.limited else 0)):
            self.limited = not self.limited
            self.group.set(self.limit.files if self.limited else self.limit.lifted or {})


class Slowing:
    """Limit the process whose id is in a pid file, until stopped; `run` restores everything before it returns."""

    def __init__(self, pid_file: str, limit: Limit, way: str | None = None, stop_file: str | None = None):
        self.pid_file, self.limit, self.way, self.stop_file = pid_file, limit, way, stop_file
        self._stopped = False

    @property
    def stopped(self) -> bool:
        return self._stopped or (self.stop_file is not None and os.path.exists(self.stop_file))

    def stop(self, *_: object) -> None:
        self._stopped = True

    def run(self) -> None:
        group = group_for(self._pid(), self.limit) if self.way != CYCLES else None
        if group is None and (self.way not in (None, CYCLES) or "share" not in self.limit.about):
            raise OSError(self.limit.refusal)
        try:
            if group is not None:
                listed = os.path.join(os.path.dirname(os.path.abspath(__file__)), LISTED)
                with open(listed, "a") as file:
                    file.write(group.folder + "\n")
            print(json.dumps({"by": CYCLES if group is None else group.way} | self.limit.about), flush=True)
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
        writes = Writes(self.limit, group) if self.limit.lifted else None
        while not self.stopped:
            if writes is not None:
                writes.look()
            time.sleep(LOOK_S)
            pid = self._pid()
            if pid and str(pid) not in _read(f"{group.folder}/cgroup.procs").split():
                with suppress(OSError):  # the process may just have ended
                    group.add(pid)
        if writes is not None:
            writes.look()
            print(json.dumps({"written": writes.counted[:: 1 + len(writes.counted) // MOST_COUNTED]}), flush=True)

    def _cycle(self) -> None:
        due, share = time.monotonic(), self.limit.about["share"]
        while not self.stopped:
            pid = self._pid()
            self._signal(pid, signal.SIGSTOP)
            try:
                time.sleep((1 - share) * PERIOD_S)
            finally:
                self._signal(pid, signal.SIGCONT)
            due = max(due + PERIOD_S, time.monotonic() + share * PERIOD_S)
            time.sleep(max(0.0, due - time.monotonic()))

    def _signal(self, pid: int, number: int) -> None:
        if pid > 1:
            with suppress(ProcessLookupError):
                os.kill(pid, number)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Limits the processors of a process, or its writes to a disk.")
    parser.add_argument("--pid-file", required=True)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--share", type=float, help="of one processor")
    what.add_argument("--disk", type=float, help="bytes per second that the process may write")
    parser.add_argument("--folder", default=".", help="a folder on the disk; default: the current one")
    parser.add_argument("--credit", type=float, default=0.0, help="bytes at full speed before the limit of a disk")
    parser.add_argument("--way", choices=(V1, V2, CYCLES), help="default: the first that the kernel allows")
    parser.add_argument("--stop-file", help="end once this file exists")
    given = parser.parse_args(arguments)
    try:
        disk = given.disk, given.folder, given.credit
        limit = processor_limit(given.share) if given.disk is None else disk_limit(*disk)
        slowing = Slowing(given.pid_file, limit, given.way, given.stop_file)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, slowing.stop)
        slowing.run()
    except OSError as error:
        print(f"the limit cannot be set: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
