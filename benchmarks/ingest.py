"""
Measure how fast logs become tables, compared with `wc -l`, jc and pingparsing: `python benchmarks/ingest.py`.

Makes a ping log (10 million lines, about 840 MB) and 2,000 iperf3 files in a temporary folder, reads them by each
reader in turn, and prints a table. Each reader runs in a separate process, so its peak memory is its own. Files have
just been written, so they are read from the page cache. The slow peers read a slice of the log, whose size is stated;
wanbench reads the slice, too, for comparison.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
IPERF3_SAMPLE = ROOT / "lib" / "tests" / "samples" / "iperf3" / "v3.12_tcp_p3_omit1_cubic.json"
GOAL_LINES, LEAST_MB_PER_S, MOST_MB = 10_000_000, 350, 500
MOST_OF_JSON = 1.5  # time to read iperf3's files, over that of reading and parsing their JSON


def main() -> int:
    """Measure each reader, and print a table; return 1 if wanbench misses a goal."""
    from measured import record  # here, because a test imports this file from elsewhere

    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0].strip())
    options.add_argument("--lines", type=int, default=10_000_000, help="lines of the ping log (default: %(default)s)")
    options.add_argument("--slice", type=int, default=25_000, help="lines that slow peers read (default: %(default)s)")
    options.add_argument("--files", type=int, default=2000, help="iperf3 files (default: %(default)s)")
    options.add_argument("--folder", help="where to put the temporary folder (default: the system's)")
    asked = options.parse_args()
    load, processors = os.getloadavg()[0], len(os.sched_getaffinity(0))
    print(f"{processors} processors, load {load:.1f} before, Python {sys.version.split()[0]}", flush=True)
    with tempfile.TemporaryDirectory(prefix="wanbench-ingest-", dir=asked.folder) as folder:
        log, part, files = (Path(folder, "ping.txt"), Path(folder, "slice.txt"), Path(folder, "iperf3"))
        expected = _run("make_log", log, asked.lines)["rows"]
        part_rows = _run("make_log", part, min(asked.slice, asked.lines))["rows"]
        expected_iperf3 = _run("make_iperf3", files, asked.files)["rows"]
        print(f"{'':44} {'MB':>7} {'s':>7} {'MB/s':>7} {'process s':>10} {'CPU s':>7} {'peak MB':>8} {'rows':>11}")
        _show("wc -l", log, _wc(log))
        lines = _show("Python, for line in file", log, _run("read_lines", log))
        whole = _show("wanbench ping.convert, to Parquet", log, _run("convert", log), expected)
        _show("wanbench ping.read, slice", part, _run("read_ping", part), part_rows)
        _show("wanbench ping.read (careful), slice", part, _run("read_ping_carefully", part), part_rows)
        jc = _show("jc --ping-s, slice", part, _run("read_jc_stream", part))
        _show("jc --ping, slice", part, _run("read_jc", part))
        pingparsing = _show("pingparsing, slice", part, _run("read_pingparsing", part))
        _show("wc -l, iperf3 files", files, _wc(*sorted(files.iterdir())))
        turns = []  # interleaved, because the machine's speed changes
        for _ in range(3):
            parsed = _show("json.loads only, iperf3 files", files, _run("read_json", files))
            ours = _show("wanbench ingest.read_files, iperf3 files", files, _run("read_iperf3", files), expected_iperf3)
            turns.append((ours["seconds"] / parsed["seconds"], ours["seconds"], parsed["seconds"]))
    ratio, ours_s, json_s = sorted(turns)[1]
    bound = f"at most {MOST_OF_JSON:g} x json"
    record(f"reading {asked.files:,} iperf3 files", ours_s, "s", bound=bound, peer="json.loads", of_peer=json_s)
    print(f"iperf3 files: {ratio:.2f} times json.loads; goal {MOST_OF_JSON:g}")
    if asked.lines < GOAL_LINES:
        print(f"The goal is about {GOAL_LINES:,} lines.")
        return 0
    about, of_log = f"at least {LEAST_MB_PER_S}", f"a ping log of {asked.lines:,} lines to Parquet"
    record(of_log, whole["mb_per_s"], "MB/s", bound=about, peer="jc, on a slice", of_peer=jc["mb_per_s"])
    peer = {"peer": "pingparsing, on a slice", "of_peer": pingparsing["mb_per_s"]}
    record(f"{of_log}, beside pingparsing", whole["mb_per_s"], "MB/s", bound=about, **peer)
    peer = {"peer": "`for line in file` of Python", "of_peer": lines["mb_per_s"]}
    record(f"{of_log}, beside counting lines", whole["mb_per_s"], "MB/s", bound=about, **peer)
    record(f"{of_log}, memory", whole["peak_mb"], "MB", bound=f"under {MOST_MB}")
    met = whole["mb_per_s"] >= LEAST_MB_PER_S and whole["peak_mb"] < MOST_MB
    print(f"Goal for the log, at least {LEAST_MB_PER_S} MB/s in less than {MOST_MB} MB: {'met' if met else 'missed'}.")
    return 0 if met and ratio <= MOST_OF_JSON else 1


def _run(job, *arguments):
    """Do a job in a separate process; return what it reports, with its wall time and peak memory."""
    return _timed([sys.executable, __file__, "--job", job, *map(str, arguments)])


def _wc(*paths):
    done = _timed(["wc", "-l", *map(str, paths)])
    return done | {"seconds": done["process_s"], "rows": int(done["text"].split(b"\n")[-2].split()[0])}


def _timed(command):
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        text = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command[:4])} ended with status {process.returncode}")
    about = {
        "process_s": time.perf_counter() - start,
        "cpu_s": used.ru_utime + used.ru_stime,
        "peak_mb": used.ru_maxrss / 1024,
        "text": text,
    }
    return about | (json.loads(text) if text.startswith(b"{") else {})


def _show(name, path, done, expected=None):
    """Print a row; refuse a result that has lost rows."""
    if expected is not None and done["rows"] != expected:
        raise SystemExit(f"{name}: {done['rows']:,} rows, expected {expected:,}")
    size_mb = sum(file.stat().st_size for file in (path.iterdir() if path.is_dir() else [path])) / 1e6
    done["mb_per_s"] = size_mb / done["seconds"]
    times = f"{done['seconds']:7.2f} {done['mb_per_s']:7.1f} {done['process_s']:10.2f} {done['cpu_s']:7.2f}"
    print(f"{name:44} {size_mb:7.1f} {times} {done['peak_mb']:8.0f} {done['rows']:11,}", flush=True)
    return done


def make_log(path, lines):
    """Write a log of `ping -D -O` with a footer: 0.1 % of echoes are lost, 0.02 % are duplicated, 0.02 % are late."""
    lines, chance, received, again = int(lines), random.Random(1), 0, 0
    odd: list[tuple[int, str]] = []  # lines to come that are not in their turn, by time in microseconds
    with open(path, "w") as file:
        file.write("PING 203.0.113.107 (203.0.113.107) 56(84) bytes of data.\n")
        for first in range(1, lines + 1, 100_000):
            text = []
            for echo in range(first, min(first + 100_000, lines + 1)):
                at, tenths, kind = echo * 10_000, int(400 + chance.gammavariate(2, 20)), chance.random()
                while odd and odd[0][0] <= at:
                    text.append(heapq.heappop(odd)[1])
                reply = f"64 bytes from 203.0.113.107: icmp_seq={echo % 65536} ttl=57 time="
                if kind < 0.0012:
                    text.append(f"{_stamp(at)} no answer yet for icmp_seq={echo % 65536}")
                    if kind >= 0.001:
                        heapq.heappush(odd, (at + 2_000_000, f"{_stamp(at + 2_000_000)} {reply}2040 ms"))
                else:
                    text.append(f"{_stamp(at)} {reply}{tenths // 10}.{tenths % 10} ms")
                if 0.5 < kind < 0.5002:
                    text.append(f"{_stamp(at + 3000)} {reply}{tenths // 10 + 3}.{tenths % 10} ms (DUP!)")
                    again += 1
                received += kind >= 0.001
            file.write("\n".join(text) + "\n")
        file.writelines(f"{line}\n" for _, line in sorted(odd))
        loss = 100 * (lines - received) / lines
        counts = f"{lines} packets transmitted, {received} received, +{again} duplicates, {loss:g}% packet loss"
        file.write(f"\n--- 203.0.113.107 ping statistics ---\n{counts}\n")
    return {"rows": lines + again}


def _stamp(microseconds):
    return f"[{1_795_244_928 + microseconds // 1_000_000}.{microseconds % 1_000_000:06d}]"


def make_iperf3(folder, files):
    """Write copies of a recorded file, each with its own cookie."""
    text = IPERF3_SAMPLE.read_text()
    cookie = json.loads(text)["start"]["cookie"]
    Path(folder).mkdir()
    for n in range(int(files)):
        Path(folder, f"{n:05d}.json").write_text(text.replace(cookie, f"{n:036d}"))
    return {"rows": int(files)}


def convert(path):
    """Convert a ping log to Parquet by wanbench, which is what the goal is for."""
    import pyarrow.parquet as pq

    from wanbench.read.ingest import ping

    target = Path(path).with_suffix(".parquet")
    start = time.perf_counter()
    rows = ping.convert(path, target)
    seconds = time.perf_counter() - start
    if pq.read_metadata(target).num_rows != rows:
        raise SystemExit("the Parquet file has lost rows")
    return {"seconds": seconds, "rows": rows}


def read_lines(path):
    """Read lines without parsing them: no reader in plain Python is faster."""
    with open(path, "rb") as lines:
        return _clocked(lambda: range(sum(1 for _ in lines)))


def read_ping(path):
    """Read a ping log into an Arrow table by wanbench."""
    from wanbench.read.ingest import ping

    return _clocked(lambda: ping.read(path)["echoes"])


def read_ping_carefully(path):
    """Read a ping log by wanbench's slower parser, which takes a line at a time."""
    from wanbench.read.ingest import ping

    return _clocked(lambda: ping.read(path, fast=False)["echoes"])


def read_jc(path):
    """Read a ping log by jc's parser."""
    import jc

    return _clocked(lambda: jc.parse("ping", Path(path).read_text(), quiet=True)["responses"])


def read_jc_stream(path):
    """Read a ping log by jc's streaming parser."""
    import jc

    with open(path) as lines:
        return _clocked(lambda: list(jc.parse("ping_s", lines, quiet=True)))


def read_pingparsing(path):
    """Read a ping log by pingparsing."""
    from pingparsing import PingParsing

    return _clocked(lambda: PingParsing().parse(Path(path).read_text()).icmp_replies)


def read_json(folder):
    """Parse the JSON of iperf3 files into dicts, without making tables."""
    return _clocked(lambda: [json.loads(path.read_bytes()) for path in sorted(Path(folder).iterdir())])


def read_iperf3(folder):
    """Read iperf3 files into tables by wanbench."""
    from wanbench.read import ingest

    return _clocked(lambda: ingest.read_files(sorted(Path(folder).iterdir()), "iperf3")["transfers"])


def _clocked(read):
    start = time.perf_counter()
    rows = len(read())
    return {"seconds": time.perf_counter() - start, "rows": rows}


JOBS = (
    make_log,
    make_iperf3,
    convert,
    read_lines,
    read_ping,
    read_ping_carefully,
    read_jc,
    read_jc_stream,
    read_pingparsing,
    read_json,
    read_iperf3,
)

if __name__ == "__main__":
    if sys.argv[1:2] == ["--job"]:
        job = {job.__name__: job for job in JOBS}[sys.argv[2]]
        print(json.dumps(job(*sys.argv[3:])))
    else:
        sys.exit(main())
