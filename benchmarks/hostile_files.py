"""
Measure what reading hostile or large files costs: `python benchmarks/hostile_files.py`.

Makes each file in a temporary folder and reads it in a separate process. Prints the processor time per MB, by how many
times the file's size the process grew, and the result. The goal is at most 1 s per MB and at most 10 times the
size. Other work on the processors makes times longer, so the load is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "lib" / "tests" / "samples"
MOST_S_PER_MB, MOST_TIMES = 1.0, 10.0
OWN_MB = 20
"""What pandas and pyarrow load on first use, whatever the file."""

WINDOW = "9998 records sent, 1999.6 records/sec (1.91 MB/sec), 28.5 ms avg latency, 432.0 ms max latency."
CONSUMER = (
    "time, threadId, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, "
    "fetch.MB.sec, fetch.nMsg.sec"
)
CONSUMED = "2026-08-01 05:53:11:678, 0, 19.1500, 59.4722, 20079, 62357.1429, 203, 119, 160.9247, 168731.0924"
WARNING = "[2026-03-01 12:00:00,000] WARN [Producer clientId=perf-producer-client] Got error response (Sender)\n"
ECHO = "64 bytes from 203.0.113.107: icmp_seq=1 ttl=57 time=40.1 ms"
PING = f"""PING 203.0.113.107 (203.0.113.107) 56(84) bytes of data.
{"".join(f"{ECHO.replace('seq=1', f'seq={k}')}{chr(10)}" for k in range(1, 5))}
--- 203.0.113.107 ping statistics ---
4 packets transmitted, 4 received, 0% packet loss, time 3004ms
rtt min/avg/max/mdev = 40.100/40.100/40.100/0.000 ms
"""
DISKS = '{"sysstat":{"hosts":[{"statistics":[{"timestamp":{"date":"2026-11-21","time":"17:46:48","utc":1},"disk":['
LOSSY_PING = re.sub(".*seq=3.*\n", "", PING).replace("4 received, 0%", "3 received, 25%")


def intervals(size: int) -> str:
    """Return the JSON of an iperf3 test that repeats one interval, in about `size` bytes."""
    document = json.loads((SAMPLES / "iperf3" / "v3.12_tcp_p3_omit1_cubic.json").read_text())
    one = document["intervals"][1]
    return json.dumps(document | {"intervals": [one] * (size // len(json.dumps(one)))})


def sysstat(size: int) -> str:
    """Return output of `sadf -j` that repeats one sample as it was printed, in about `size` bytes."""
    text = (SAMPLES / "host_metrics" / "sysstat-12.6.1_a.sadf.json").read_text()
    first, second = (found.start() for found in list(re.finditer(r'\{\s*"timestamp"', text))[:2])
    return text[:first] + text[first:second] * (size // (second - first)) + text[second:]


def windows(size: int) -> str:
    """Return a result of the OpenMessaging Benchmark of about `size` bytes, but not more than its reader allows."""
    names = [
        f"{what}Latency{which}"
        for what in ("publish", "publishDelay", "endToEnd")
        for which in ("Avg", "50pct", "75pct", "95pct", "99pct", "999pct", "9999pct", "Max")
    ]
    each = [3.169] * (min(size, 15_000_000) // (8 * len(names)))
    return json.dumps(dict.fromkeys(["publishRate", "consumeRate", "backlog", *names], each))


FILES = {
    # name: (reader, what makes the text), or (reader, beginning, text that recurs, end) where {n} is counted up
    "iperf3, intervals": ("iperf3", intervals),
    "iperf3, unclosed string": ("iperf3", '{"start": "', "x", ""),
    "iperf3, unclosed string of escapes": ("iperf3", '{"start": "', '\\"', ""),
    "iperf3, empty lists": ("iperf3", '{"start": [', "[],", "1]}"),
    "iperf3, -nan": ("iperf3", '{"start": [', "          -nan,", "1]}"),
    "iperf3, empty documents": ("iperf3", "", "{}\n", ""),
    "Kafka, windows": ("kafka_load", "", f"{WINDOW}\n", ""),
    "Kafka, windows together": ("kafka_load", "", WINDOW, ""),
    "Kafka, consumer's windows": ("kafka_load", f"{CONSUMER}\n", f"{CONSUMED}\n", ""),
    "Kafka, warnings": ("kafka_load", f"{WINDOW}\n", WARNING, ""),
    "Kafka, empty lines": ("kafka_load", f"{WINDOW}\n", "\n", ""),
    "Kafka, metrics": ("kafka_load", "", "producer-metrics:batch-size-avg:{client-id=a} : 16220.100\n", ""),
    "Prometheus, many series": ("broker_metrics", "", 'node_cpu_seconds_total{{cpu="{n}",mode="idle"}} 362812\n', ""),
    "Prometheus, many times": ("broker_metrics", "", 'http_requests_total{{code="200"}} 7 {n}\n', ""),
    "Prometheus, short lines": ("broker_metrics", "", "a 1 {n}\n", ""),
    "Prometheus, unclosed label": ("broker_metrics", 'a{l="', '\\"x', ""),
    "OpenMessaging, numbers": ("openmessaging", '{"publishRate": [', "1.5,", "1]}"),
    "OpenMessaging, windows": ("openmessaging", windows),
    "sadf, samples": ("host_metrics", sysstat),
    "sadf, a name per value": ("host_metrics", DISKS, '{{"disk-device":"d{n}","tps":1}},', "1]}]}]}}"),
    "sadf, empty lists": ("host_metrics", '{"sysstat": [', "[],", "1]}"),
    "ping, empty lines": ("ping", "", "\n", ""),
    "ping, lines of spaces": ("ping", "", " \r\n", ""),
    "ping, pings of 4 echoes": ("ping", "", PING, ""),
    "ping, pings that lost echoes": ("ping", "", LOSSY_PING, ""),
    "ping, echoes together": ("ping", "PING 203.0.113.107 (203.0.113.107) 56(84) bytes of data.\n", ECHO, ""),
}  # fmt: skip


def main() -> int:
    """Measure each file, and print a table; return 1 if a file exceeds the goal."""
    from measured import record  # here, because each job starts this file again

    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0].strip())
    options.add_argument("--megabytes", type=int, default=20, help="size of each file (default: %(default)s)")
    options.add_argument("--only", default="", help="files whose names contain this")
    asked = options.parse_args()
    print(f"load {os.getloadavg()[0]:.1f} before, Python {sys.version.split()[0]}", flush=True)
    print(f"{'':38} {'MB':>5} {'s/MB':>8} {'times':>6}  result")
    within, worst = True, {}
    for name in FILES:
        if asked.only not in name:
            continue
        command = [sys.executable, __file__, "--job", name, str(asked.megabytes * 1_000_000)]
        found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
        per_mb, times = found["s"] / found["mb"], max(0.0, found["more_mb"] - OWN_MB) / found["mb"]
        fits = per_mb <= MOST_S_PER_MB and times <= MOST_TIMES
        within &= fits
        worst[name] = per_mb, times
        mark = " " if fits else "!"
        print(f"{name:38} {found['mb']:5.0f} {per_mb:8.3f} {times:6.1f} {mark} {found['what']}", flush=True)
    for k, (unit, most) in enumerate((("s per MB", MOST_S_PER_MB), ("times its size in memory", MOST_TIMES))):
        name = max(worst, key=lambda name, k=k: worst[name][k])
        what = f"the costliest of {len(worst)} hostile files, {unit}"
        if not asked.only:
            record(what, worst[name][k], f"({name})", bound=f"at most {most:g}")
    print(f"Goal, {MOST_S_PER_MB:g} s per MB and {MOST_TIMES:g} times the size: {'met' if within else 'missed'}.")
    return 0 if within else 1


def write(path: Path, size: int, beginning, recurs: str = "", end: str = "") -> None:
    """Write a file of about `size` bytes: by a function of the size, or a beginning, a recurring text and an end."""
    if callable(beginning):
        path.write_text(beginning(size))
        return
    with path.open("w") as file:
        file.write(beginning)
        written, n = 0, 0
        while written < size:
            part = "".join([recurs.format(n=n + k) for k in range(1000)]) if "{n}" in recurs else recurs * 1000
            written, n = written + file.write(part), n + 1000
        file.write(end)


def job(name: str, size: str) -> dict:
    """Make one file, and read it; return its size (MB), processor time (s), growth of memory (MB) and the result."""
    from wanbench.errors import RawDataError
    from wanbench.read.ingest import broker_metrics, host_metrics, iperf3, kafka_load, openmessaging, ping

    readers = {"iperf3": iperf3, "kafka_load": kafka_load, "broker_metrics": broker_metrics}
    readers |= {"openmessaging": openmessaging, "host_metrics": host_metrics, "ping": ping}
    reader, *parts = FILES[name]
    with tempfile.TemporaryDirectory(prefix="wanbench-hostile-") as folder:
        path = Path(folder, "a.sadf.json" if reader == "host_metrics" else "a.txt")
        write(path, int(size), *parts)
        before, start = _peak_mb(), time.process_time()
        try:
            what = f"{sum(map(len, readers[reader].read(path).values())):,} rows"
        except RawDataError as error:
            what = f"refused: expected {error.expected[:70]}"
        spent = time.process_time() - start
        return {"mb": path.stat().st_size / 1e6, "s": spent, "more_mb": _peak_mb() - before, "what": what}


def _peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    if sys.argv[1:2] == ["--job"]:
        print(json.dumps(job(*sys.argv[2:])))
    else:
        sys.exit(main())
