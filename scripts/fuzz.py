"""
Damage files for each reader of raw files, guided by coverage: `python scripts/fuzz.py --minutes 10 --seed 1`.

atheris (libFuzzer) changes the samples, keeps what reaches new branches in build/fuzz/, and changes that again, also in
the next run. Each file ends in rows or in a RawDataError, within 1 s of processor time per MB and 10 times its size in
memory. A file that does not is kept in lib/tests/corpus/<reader>/, which `make test` reads again, and the status is 1.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT / "lib/tests/corpus"
REACHED = ROOT / "build/fuzz"
COUNTS = ROOT / "build/fuzz.csv"
SAMPLES = {"broker_pauses": "kafka_cluster", "kafka_load": "kafka_perf", "route": "mtr"}
MOST_S_PER_MB, MOST_TIMES = 1.0, 10
OWN_S, OWN_MB = 1.0, 30
"""What a small file may take: a pause of the machine, and libraries that load on first use."""
HANGS_S, MOST_S, PING_LINE = 20, 600, 64
LARGEST_SEED, LARGE = 50_000, 1_000_000
ODD = [
    "\\x00", "\\xff\\xfe", "\\xe2\\x80\\xae", "\\x0d", "\\x0a\\x0a", "-1", "1e308", "nan", "-inf", "999999999999999999",
    "\\x22", "{", "}", "[", "]]", "null", "true", "\\\\ud800", "\\x1f\\x8b\\x08\\x00", "BZh9", "\\xfd7zXZ\\x00", "0x10",
    "\\x09", ",", "\\xef\\xbb\\xbf", "\\x1b[31m", "PK\\x03\\x04", "[[[[[[[[[[[[[[[[",
]  # fmt: skip


def seeds(name: str, pattern: str) -> list[tuple[str, bytes]]:
    """Return names and contents of the files of a reader: samples, recordings, corpus; packed ones also unpacked."""
    places = (ROOT / "lib/tests/samples" / SAMPLES.get(name, name), CORPUS / name)
    found = [path for place in places for path in sorted(place.rglob("*"))]
    recorded = sorted((ROOT / "data/samples/raw").glob(f"*/*/{name}/*"))
    found += random.Random(1).sample(recorded, min(40, len(recorded)))
    files = [path for path in found if path.is_file() and 0 < path.stat().st_size <= LARGEST_SEED]
    of_reader = [
        path
        for path in files
        if any(fnmatch(given, pattern or "*") for given in (path.name, path.name.removesuffix(".gz")))
    ] or files
    contents = [(path.name, path.read_bytes()) for path in of_reader]
    for given, data in contents.copy():
        with suppress(OSError, EOFError, zlib.error):
            contents.append((given.removesuffix(".gz"), gzip.decompress(data)))
    return contents or [("a.txt", b"{}")]


def unpacked(path: Path) -> int:
    """Count the bytes that a gzip file unpacks to, up to where it is damaged; for counts of echoes, of ping's lines."""
    total = 0
    if path.name.endswith(".counts.parquet"):
        with suppress(pa.ArrowException, OSError, TypeError, KeyError):
            total = PING_LINE * sum(pq.read_table(path, partitioning=None)["n"].to_pylist())
    with suppress(OSError, EOFError, zlib.error), gzip.open(path) as file:
        while part := file.read(100_000):
            total += len(part)
    return total


def hangs(*_) -> None:
    """End a reader that goes on and on."""
    raise TimeoutError(f"still reading after {HANGS_S} s")


def problem(read, path: Path, times: float = 1) -> str:
    """Read a file; return what is wrong with how that went, or "". Time may be `times` what is allowed."""
    from wanbench.errors import RawDataError

    size_mb = max(path.stat().st_size, unpacked(path)) / 1e6
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000, time.process_time()
    signal.signal(signal.SIGVTALRM, hangs)
    signal.setitimer(signal.ITIMER_VIRTUAL, min(times * (HANGS_S + size_mb), MOST_S))
    try:
        read(path)
    except RawDataError as error:
        if not error.expected:
            return "an error that does not say what was expected"
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:200]
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    spent, grown = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000 - before
    if spent > times * (OWN_S + MOST_S_PER_MB * size_mb):
        return f"{spent:.1f} s for {size_mb:.2f} MB"
    return f"{grown:.0f} MB for {size_mb:.2f} MB" if grown > OWN_MB + MOST_TIMES * size_mb else ""


def chosen() -> list[tuple[str, str, object]]:
    """Return experiment or tool, pattern of files, and function of each reader."""
    from wanbench.read.ingest.readers import READERS, readers

    distinct = {one.read: (name, one.pattern or "") for name in reversed(list(READERS)) for one in readers(name)}
    return sorted(((*named, read) for read, named in distinct.items()), key=lambda one: one[:2])


def fuzz(number: int, seconds: float, seed: int, folder: Path) -> None:
    """Let atheris change the files of one reader for some seconds of processor time, print the counts, and exit."""
    import atheris

    with atheris.instrument_imports(include=["wanbench.read", "wanbench.plain_yaml", "wanbench.checks"]):
        name, pattern, read = chosen()[number]
    given = seeds(name, pattern)
    names = sorted({file for file, _ in given})[:256]
    start = folder / "seeds"
    start.mkdir()
    for at, (file, data) in enumerate(given):
        if file in names:
            (start / str(at)).write_bytes(bytes([names.index(file)]) + data)
    words = folder / "words"
    words.write_text("".join(f'"{word}"\n' for word in ODD))
    reached = REACHED / f"{name} {pattern}".strip().replace("*", "")
    reached.mkdir(parents=True, exist_ok=True)
    tried, kept, until = 0, set(), time.process_time() + seconds

    def change(data, longest, chance):
        """Change a file, and make one in three hundred large."""
        changed = atheris.Mutate(data, min(longest, LARGE))
        if chance % 300:
            return changed
        at, length = chance // 1200 % len(changed), (1, 8, 100, 2000)[chance // 300 % 4]
        part = changed[at : at + length] or b"["
        return changed[:at] + part * (LARGE // len(part)) + changed[at:]

    def one(data):
        """Read one file; its first byte chooses its name."""
        nonlocal tried
        if time.process_time() > until:
            print(f"{name:18} {pattern:24} {tried:>9,} files, {len(kept)} kept", flush=True)
            with COUNTS.open("a") as counts:
                counts.write(f"{name},{pattern},{seed},{seconds / 60:.3g},{tried},{len(kept)}\n")
            shutil.rmtree(folder)
            os._exit(1 if kept else 0)
        if not data:
            return
        path = folder / names[data[0] % len(names)]
        path.write_bytes(data[1:])
        tried += 1
        wrong = problem(read, path, times=3)
        if wrong and wrong[:40] not in kept and (wrong := _alone(number, path)):
            kept.add(wrong[:40])
            target = CORPUS / name / f"{hashlib.sha256(data[1:]).hexdigest()[:8]}.{path.name}"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data[1:])
            print(f"  {target.relative_to(ROOT)}: {wrong}", flush=True)
        path.unlink()

    quiet = [
        "-verbosity=0",
        f"-seed={seed}",
        "-timeout=1000000",
        "-report_slow_units=1000000",
        "-rss_limit_mb=0",
        "-len_control=0",
        f"-max_len={2 * LARGE}",
    ]
    atheris.Setup([sys.argv[0], *quiet, f"-dict={words}", str(reached), str(start)], one, custom_mutator=change)
    atheris.Fuzz()


def _alone(number: int, path: Path) -> str:
    """Return what is wrong with a file in a process of its own, which counts no branches."""
    command = [sys.executable, __file__, "--reader", str(number), "--read", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def main() -> int:
    """Fuzz the readers in turn, and print how many files each read; return 1 if a file was kept."""
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0].strip())
    options.add_argument("--minutes", type=float, default=10, help="of processor time, for all readers (default: 10)")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--only", default="", help="readers whose names contain this")
    options.add_argument("--reader", type=int, help=argparse.SUPPRESS)
    options.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.read:
        print(problem(chosen()[asked.reader][2], asked.read))
        return 0
    if asked.reader is None:
        numbers = [number for number, (name, *_) in enumerate(chosen()) if asked.only in name]
        each = ["--minutes", str(asked.minutes / len(numbers)), "--seed", str(asked.seed)]
        REACHED.mkdir(parents=True, exist_ok=True)
        COUNTS.write_text("reader,pattern,seed,processor_min,files,wrong\n")
        with (REACHED / "errors.txt").open("w") as errors:
            begin = [[sys.executable, __file__, *each, "--reader", str(number)] for number in numbers]
            try:
                codes = [subprocess.call(command, stderr=errors) for command in begin]
            except KeyboardInterrupt:
                return 130
        return int(any(codes))
    with tempfile.TemporaryDirectory(prefix="wanbench-fuzz-") as folder:
        fuzz(asked.reader, 60 * asked.minutes, asked.seed, Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
