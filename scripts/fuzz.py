"""
Damage files for each reader of raw files, and read them: `python scripts/fuzz.py --minutes 10 --seed 1`.

Each file ends in rows or in a RawDataError, within 1 s of processor time per MB and 10 times its size in memory. A file
that does not is kept in lib/tests/corpus/<reader>/, which `make test` reads again, and the status is 1.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import random
import resource
import sys
import tempfile
import time
import zlib
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT / "lib/tests/corpus"
SAMPLES = {"broker_pauses": "kafka_cluster", "kafka_load": "kafka_perf"}
MOST_S_PER_MB, MOST_TIMES = 1.0, 10
OWN_S, OWN_MB = 1.0, 30
"""What a small file may take: a pause of the machine, and libraries that load on first use."""
LARGEST_SEED, LARGE = 200_000, 1_000_000
ODD = [
    b"\x00", b"\xff\xfe", b"\xe2\x80\xae", b"\r", b"\n\n", b"-1", b"1e308", b"nan", b"-inf", b"99999999999999999999",
    b'"', b"{", b"}", b"[", b"]]", b"null", b"true", b"\\ud800", b"\x1f\x8b\x08\x00", b"BZh9", b"\xfd7zXZ\x00", b"0x10",
    b"9" * 400, b"\t", b",", b"\xef\xbb\xbf", b"\x1b[31m", b"PK\x03\x04",
]  # fmt: skip


def seeds(name: str, pattern: str | None) -> list[tuple[str, bytes]]:
    """Return names and contents of the files of a reader: samples, recordings, and the corpus."""
    places = (ROOT / "lib/tests/samples" / SAMPLES.get(name, name), CORPUS / name)
    found = [path for place in places for path in sorted(place.rglob("*"))]
    recorded = sorted((ROOT / "data/samples/raw").glob(f"*/*/{name}/*"))
    found += random.Random(1).sample(recorded, min(40, len(recorded)))
    files = [path for path in found if path.is_file() and 0 < path.stat().st_size <= LARGEST_SEED]
    of_reader = [path for path in files if pattern is None or fnmatch(path.name.removesuffix(".gz"), pattern)]
    return [(path.name, path.read_bytes()) for path in of_reader or files] or [("a.txt", b"{}")]


def damaged(chance: random.Random, data: bytes, others: list[tuple[str, bytes]]) -> bytes:
    """Cut, flip, repeat, splice or exchange parts of a file, one to five times; sometimes make it large."""
    for _ in range(chance.randint(1, 5)):
        at, end = sorted(chance.randrange(len(data) + 1) for _ in range(2))
        how = chance.randrange(9)
        if how == 0:
            data = data[:at] + data[end:] if chance.random() < 0.3 else data[:at] + data[at + 1 + (end - at) % 40 :]
        elif how == 1 and data:
            at = min(at, len(data) - 1)
            data = data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]
        elif how in (2, 3):
            data = data[:at] + chance.choice(ODD) + data[at + chance.randrange(4) :]
        elif how == 4:
            digits = [n for n in range(at, min(at + 200, len(data))) if data[n : n + 1].isdigit()]
            place = chance.choice(digits) if digits else at
            data = data[:place] + chance.choice(ODD) + data[place + 1 :]
        elif how == 5:
            other = chance.choice(others)[1]
            data = data[:at] + other[chance.randrange(len(other)) :]
        elif how == 6:
            data = data[:at] + data[at:end][:5000] * chance.randint(2, 5) + data[end:]
        else:
            lines = data.split(b"\n")
            one, other = (chance.randrange(len(lines)) for _ in range(2))
            lines[one], lines[other] = lines[other], lines[one] if how == 7 else b""
            data = b"\n".join(lines)
    if chance.random() < 0.01:
        at = chance.randrange(len(data) + 1)
        part = data[at : at + chance.choice((1, 8, 100, 2000))]
        data = data[:at] + part * (LARGE // max(1, len(part))) + data[at:]
    return data[: 2 * LARGE]


def unpacked(path: Path) -> int:
    """Count the bytes that a gzip file unpacks to, up to where it is damaged; 0 for another file."""
    total = 0
    with suppress(OSError, EOFError, zlib.error), gzip.open(path) as file:
        while part := file.read(100_000):
            total += len(part)
    return total


def problem(read, path: Path) -> str:
    """Read a file; return what is wrong with how that went, or "" if nothing is."""
    from wanbench.errors import RawDataError

    size_mb = max(path.stat().st_size, unpacked(path)) / 1e6
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000, time.process_time()
    try:
        read(path)
    except RawDataError as error:
        if not error.expected:
            return "an error that does not say what was expected"
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:200]
    spent, grown = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000 - before
    if spent > OWN_S + MOST_S_PER_MB * size_mb:
        return f"{spent:.1f} s for {size_mb:.2f} MB"
    return f"{grown:.0f} MB for {size_mb:.2f} MB" if grown > OWN_MB + MOST_TIMES * size_mb else ""


def fuzz(name: str, reader, seconds: float, seed: int, folder: Path) -> tuple[int, int]:
    """Damage files for one reader for some seconds of processor time; return how many were read and how many kept."""
    chance = random.Random(f"{seed} {name} {reader.pattern}")
    files, tried, kept, until = seeds(name, reader.pattern), 0, set(), time.process_time() + seconds
    while time.process_time() < until:
        given, data = chance.choice(files)
        path = folder / given
        path.write_bytes(damaged(chance, data, files))
        wrong, tried = problem(reader.read, path), tried + 1
        if wrong and wrong[:40] not in kept:
            kept.add(wrong[:40])
            content = path.read_bytes()
            target = CORPUS / name / f"{hashlib.sha256(content).hexdigest()[:8]}.{given}"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            print(f"  {target.relative_to(ROOT)}: {wrong}", flush=True)
        path.unlink()
    return tried, len(kept)


def main() -> int:
    """Fuzz the readers in turn, and print how many files each read; return 1 if a file was kept."""
    from wanbench.read.ingest.readers import READERS

    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0].strip())
    options.add_argument("--minutes", type=float, default=10, help="of processor time, for all readers (default: 10)")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--only", default="", help="readers whose names contain this")
    asked = options.parse_args()
    each = [(name, one) for name, of in READERS.items() for one in ([of] if hasattr(of, "read") else of)]
    distinct = {one.read: (name, one) for name, one in reversed(each)}
    chosen = sorted((name, one.pattern or "", one) for name, one in distinct.values() if asked.only in name)
    failed = 0
    with tempfile.TemporaryDirectory(prefix="wanbench-fuzz-") as folder:
        for name, pattern, one in chosen:
            tried, kept = fuzz(name, one, 60 * asked.minutes / len(chosen), asked.seed, Path(folder))
            print(f"{name:18} {pattern:24} {tried:>9,} files, {kept} kept", flush=True)
            failed += kept
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
