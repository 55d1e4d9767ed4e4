"""
Sample the processor time of a machine and of its programs, or of one broker.

Needs only plain Python on the host: `python processor_use.py <settings in JSON>`. The settings are `interval_s`,
`about` (which is printed) and, for a broker, `pid_file`. Started by `wanbench.measure.experiments.sampling`; read by
`wanbench.read.ingest.processors`.

The first line is JSON with the content of `about`, ticks_per_s and boot_id. Each further line is JSON with at_s (Unix
s) and a sample. On SIGTERM the program samples once more and ends.

A sample of a machine holds `machine`, the numbers of the line "cpu" of /proc/stat (user, nice, system, idle, iowait,
irq, softirq and steal, in ticks since boot), and `programs`, the ticks that each program has used since the first
sample. The name of a program is the main class if it is a Java program, the module if it is a Python program, and
otherwise the command. If all visible processes belong to the lab (process 1 is its supervisor), every program is named;
otherwise only those of Kafka, iperf3 and this library are.

A sample of a broker holds user_ticks, system_ticks and starting_ticks of its process (from /proc/<pid>/stat;
starting_ticks identifies the process) and, if a control group limits it, the kernel's nr_periods, nr_throttled and
throttled_ns.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import Counter

V1, V2 = "/sys/fs/cgroup/cpu", "/sys/fs/cgroup"
OUR_PROGRAMS = ("wanbench", "kafka", "openmessaging", "iperf3")
MACHINE = 8  # the first numbers of /proc/stat's first line; the later ones are parts of the first two


def read(path: str) -> str:
    """Return the text of a small file, or "" if it cannot be read."""
    try:
        with open(path, errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def name_of(words: list[str], command: str) -> str:
    """
    Return the name of a program, from its arguments and the kernel's name of its command.

    >>> name_of(["java", "-Xmx1g", "-cp", "a.jar", "kafka.Kafka", "server.properties"], "java")
    'kafka.Kafka'
    >>> name_of(["python", "-P", "-m", "wanbench.measure.kafka.programs.open_loop_producer", "--rate", "5"], "python")
    'open_loop_producer'
    >>> name_of(["python", "/tmp/wanbench-1/processor_use.py", "{}"], "python"), name_of([], "sar")
    ('processor_use', 'sar')
    """
    for word in words[1:]:
        if word.startswith("wanbench.") and word.replace(".", "").replace("_", "").isalnum():
            return word.rpartition(".")[2]
        if word.endswith(".py"):
            return os.path.basename(word)[:-3]
        if word.startswith(("kafka.", "org.apache.kafka.", "io.openmessaging.")) and "=" not in word:
            return word
    return command


class Programs:
    """Count the ticks of every program; a process that has ended counts up to the last sample in which it was seen."""

    def __init__(self):
        self._holds_all = "wanbench.measure.links.lab_supervisor" in read("/proc/1/cmdline")
        self._used: dict[tuple[str, str], int] | None = None
        self.total: Counter[str] = Counter()

    def sample(self) -> dict[str, object]:
        """Return the ticks of the machine since boot, and of programs since the first sample."""
        machine = [int(number) for number in read("/proc/stat").split("\n")[0].split()[1 : 1 + MACHINE]]
        used: dict[tuple[str, str], int] = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            stat = read(f"/proc/{pid}/stat")
            fields = stat.rpartition(")")[2].split()
            if len(fields) < 20:
                continue
            key, ticks = (pid, fields[19]), int(fields[11]) + int(fields[12])
            used[key] = ticks
            grown = 0 if self._used is None else ticks - self._used.get(key, 0)
            if grown > 0:
                words = read(f"/proc/{pid}/cmdline").split("\0")
                if self._holds_all or any(part in word for part in OUR_PROGRAMS for word in words):
                    self.total[name_of(words, stat.partition("(")[2].rpartition(")")[0])] += grown
        self._used = used
        return {"machine": machine, "programs": dict(self.total)}


def processor_time(pid: str) -> dict[str, int]:
    """Return a process's user, system and starting ticks; {} if there is no such process."""
    after_name = read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    if len(after_name) < 20:
        return {}
    ticks = {"user_ticks": after_name[11], "system_ticks": after_name[12], "starting_ticks": after_name[19]}
    return {name: int(text) for name, text in ticks.items()}


def throttled(pid: str) -> dict[str, int]:
    """Return nr_periods, nr_throttled and throttled_ns of a process's control group, or {} if no group limits it."""
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


def sample_broker(pid_file: str) -> dict[str, int]:
    """Return a sample of the process whose id is in a file."""
    pid = read(pid_file).strip()
    return processor_time(pid) | throttled(pid) if pid.isdigit() else {}


def main() -> None:
    settings, stopped, programs = json.loads(sys.argv[1]), None, Programs()
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])  # sigtimedwait takes it
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    boot_id = read("/proc/sys/kernel/random/boot_id").strip()
    print(json.dumps({**settings["about"], "ticks_per_s": os.sysconf("SC_CLK_TCK"), "boot_id": boot_id}), flush=True)
    due = time.monotonic()
    while True:
        at_s = time.time()
        sample = sample_broker(settings["pid_file"]) if "pid_file" in settings else programs.sample()
        print(json.dumps({"at_s": at_s, **sample}), flush=True)
        if stopped:
            return
        due = max(due + settings["interval_s"], time.monotonic())
        stopped = signal.sigtimedwait([signal.SIGTERM], max(due - time.monotonic(), 0))


if __name__ == "__main__":
    main()
