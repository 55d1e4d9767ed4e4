"""
Sample a broker's CPU time, and throttling by its quota.

Runs on the broker's host with nothing but Python: `python processor_samples.py <settings in JSON>` with pid_file,
interval_s, and about, which is printed. Started by `wanbench.measure.experiments.sampling`; read by
`wanbench.read.ingest.processors`.

The first line is JSON with about and ticks_per_s. Each further line is JSON: at_s (Unix s), user_ticks, system_ticks
and starting_ticks of the process (/proc/<pid>/stat; starting_ticks identifies the process), and, if a control group
limits it, the kernel's nr_periods, nr_throttled and throttled_ns. On SIGTERM it samples once more and ends.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time

V1, V2 = "/sys/fs/cgroup/cpu", "/sys/fs/cgroup"


def read(path: str) -> str:
    """A small file's text; "" if it cannot be read."""
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def used(pid: str) -> dict:
    """CPU time of a process; {} if there is none."""
    after_name = read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    if len(after_name) < 20:
        return {}
    ticks = {"user_ticks": after_name[11], "system_ticks": after_name[12], "starting_ticks": after_name[19]}
    return {name: int(text) for name, text in ticks.items()}


def throttled(pid: str) -> dict:
    """The kernel's throttling counters of its control group; {} without one."""
    for line in read(f"/proc/{pid}/cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        own = path.rstrip("/")
        if "cpu" in controllers.split(","):
            folder, limited = V1 + own, read(f"{V1}{own}/cpu.cfs_quota_us").strip() not in ("", "-1")
        elif number == "0" and not controllers:
            folder, limited = V2 + own, read(f"{V2}{own}/cpu.max").split()[:1] not in ([], ["max"])
        else:
            continue
        counted = dict(line.split() for line in read(f"{folder}/cpu.stat").splitlines() if line.count(" ") == 1)
        if limited and "nr_throttled" in counted:
            waited = counted.get("throttled_time") or 1000 * int(counted.get("throttled_usec", 0))
            return {name: int(counted[name]) for name in ("nr_periods", "nr_throttled")} | {"throttled_ns": int(waited)}
    return {}


def sample(pid_file: str) -> dict:
    """One sample."""
    pid = read(pid_file).strip()
    found = used(pid) | throttled(pid) if pid.isdigit() else {}
    return {"at_s": time.time(), **found}


def main() -> None:
    """Sample until SIGTERM."""
    settings, stopped = json.loads(sys.argv[1]), None
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])  # sigtimedwait takes it
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print(json.dumps({**settings["about"], "ticks_per_s": os.sysconf("SC_CLK_TCK")}), flush=True)
    due = time.monotonic()
    while True:
        print(json.dumps(sample(settings["pid_file"])), flush=True)
        if stopped:
            return
        due = max(due + settings["interval_s"], time.monotonic())
        stopped = signal.sigtimedwait([signal.SIGTERM], max(due - time.monotonic(), 0))


if __name__ == "__main__":
    main()
