"""
Measure how soon a Kafka cluster serves, and what it uses and leaves: `python benchmarks/kafka_cluster.py [3|9 ...]`.

Starts three brokers in three regions (15, 20 and 35 ms apart one way), and nine, three per region, with both sets of
JVM flags; then three without the archive of Java classes. An argument selects a number of brokers. All takes about
three minutes on two processors. "serves s" is the time from opening the lab until a record has been produced to every
broker, with acks=all, and consumed. "left" counts processes and folders that remain at the end. Other work on this
machine makes all slower, so the load before each start is printed.
"""

import os
import sys
import time
from contextlib import suppress
from itertools import permutations
from pathlib import Path

from measured import record

from wanbench.measure.kafka import Cluster, unavailable
from wanbench.measure.kafka.java_commands import Jars
from wanbench.measure.labs.local import LocalLab
from wanbench.measure.links import LinkSettings

REGIONS = ("a", "b", "c")
ONE_WAY_MS = {frozenset("ab"): 15, frozenset("ac"): 20, frozenset("bc"): 35}
ALLOWED_S = {3: 20, 9: 90}
CASES = (
    (3, "load", True),
    (3, "functional", True),
    (9, "load", True),
    (9, "functional", True),
    (3, "load", False),
    (3, "functional", False),
)


def processes(folder):
    """Return processor time (s) and memory (MiB) of each Java process of a lab, by process number."""
    found = {}
    for process in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError, IndexError):
            arguments = Path("/proc", process, "cmdline").read_bytes()
            if folder.encode() not in arguments or not arguments.startswith(b"java\0"):
                continue
            stat = Path("/proc", process, "stat").read_text().rsplit(")", 1)[1].split()
            cpu_s = (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")
            found[process] = cpu_s, int(stat[21]) * os.sysconf("SC_PAGESIZE") / 2**20
    return found


def run(brokers, profile, with_archive):
    """Print a row of the table; return seconds until the cluster served."""
    if not with_archive:
        Jars.archive = lambda self, host: []
    links = {pair: LinkSettings(ONE_WAY_MS[frozenset(pair)]) for pair in permutations(REGIONS, 2)}
    load, began = os.getloadavg()[0], time.monotonic()
    with LocalLab(REGIONS, links, hosts_per_region=3) as lab:
        folder = str(Path(lab.host("a").scratch).parent)
        with Cluster(lab, (REGIONS * 3)[:brokers], profile=profile):
            serves_s = time.monotonic() - began
            used = processes(folder).values()
            began = time.monotonic()
        down_s = time.monotonic() - began
    left = len(processes(folder)) + os.path.exists(folder)
    cpu_s, memory_mb = (sum(each) for each in zip(*used, strict=True))
    print(
        f"{brokers:7}  {profile:<10}  {'yes' if with_archive else 'no':<7}  {serves_s:8.1f}  {ALLOWED_S[brokers]:9}"
        f"  {cpu_s / brokers:17.1f}  {memory_mb / brokers:13.0f}  {down_s:6.1f}  {left:4}  {load:5.1f}",
        flush=True,
    )
    return serves_s


def main():
    if reason := unavailable():
        sys.exit(reason)
    wanted = sys.argv[1:]
    cases = [case for case in CASES if not wanted or str(case[0]) in wanted]
    print("brokers  JVM flags   archive  serves s  allowed s  CPU s per broker  MiB per broker  down s  left   load")
    serves_s = {case: run(*case) for case in cases}
    for (brokers, profile, with_archive), took_s in serves_s.items():
        plain_s = serves_s.get((brokers, profile, False))
        peer = {"peer": "without the class archive", "of_peer": plain_s} if plain_s else {}
        if with_archive:
            what = f'{brokers} Kafka brokers in three regions serve, profile "{profile}"'
            record(what, took_s, "s", bound=f"at most {ALLOWED_S[brokers]}", **peer)
    return int(any(took_s > ALLOWED_S[case[0]] for case, took_s in serves_s.items() if case[2]))


if __name__ == "__main__":
    sys.exit(main())
