"""
Sample the processor time of a machine, and of each program of the measurement on it.

Runs with nothing but Python: `python processor_use.py <settings in JSON>` with interval_s, and about, which is printed.
Started by `wanbench.measure.experiments.sampling`; read by `wanbench.read.ingest.processors`.

The first line is JSON with about, ticks_per_s and boot_id. Each further line is JSON: at_s (Unix s); machine, the
numbers of the line "cpu" of /proc/stat (user, nice, system, idle, iowait, irq, softirq, steal, in ticks since boot);
and programs, the ticks that each program has used since the first sample, by name: the main class of Java, the module
of a Python program, otherwise the command. Where the lab holds all processes that it sees (the first one is its
supervisor), every program is named; elsewhere only Kafka's, iperf3 and this library's. On SIGTERM it samples once more and
ends.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import Counter

OURS = ("wanbench", "kafka", "openmessaging", "iperf3")
MACHINE = 8
"""Numbers of /proc/stat's first line that are kept; those after them are parts of the first two."""


def read(path: str) -> str:
    """A small file's text; "" if it cannot be read."""
    try:
        with open(path, errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def name_of(words: list[str], command: str) -> str:
    """
    The name of a program, from its arguments and the kernel's name of it.

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
    """Ticks of every program so far, those of ended processes included up to their last sample."""

    def __init__(self):
        self._holds_all = "wanbench.measure.links.lab_supervisor" in read("/proc/1/cmdline")
        self._used: dict[tuple[str, str], int] | None = None
        self.total: Counter = Counter()

    def sample(self) -> dict[str, int]:
        """Ticks by name. The first sample is the origin; what starts later counts from its start."""
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
                if self._holds_all or any(part in word for part in OURS for word in words):
                    self.total[name_of(words, stat.partition("(")[2].rpartition(")")[0])] += grown
        self._used = used
        return dict(self.total)


def main() -> None:
    """Sample until SIGTERM."""
    settings, stopped, programs = json.loads(sys.argv[1]), None, Programs()
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])  # sigtimedwait takes it
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    boot_id = read("/proc/sys/kernel/random/boot_id").strip()
    first = {**settings["about"], "ticks_per_s": os.sysconf("SC_CLK_TCK"), "boot_id": boot_id}
    print(json.dumps(first), flush=True)
    due = time.monotonic()
    while True:
        machine = [int(number) for number in read("/proc/stat").split("\n")[0].split()[1 : 1 + MACHINE]]
        line = {"at_s": time.time(), "machine": machine, "programs": programs.sample()}
        print(json.dumps(line), flush=True)
        if stopped:
            return
        due = max(due + settings["interval_s"], time.monotonic())
        stopped = signal.sigtimedwait([signal.SIGTERM], max(due - time.monotonic(), 0))


if __name__ == "__main__":
    main()
