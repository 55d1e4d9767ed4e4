"""
Count record batches per second in a broker's log, from batch headers alone.

``python count_batches.py <log folder> <topic>...`` prints a JSON object. Its "rows" are [topic, partition, second
(Unix), batches, records, bytes]. The rows do not count transaction markers, or incomplete batches at the end, which are
still being written and whose size is "cut_bytes".

A batch belongs to the second of its largest timestamp: the time of appending if the topic uses LogAppendTime, otherwise
the creation time of its youngest record. Format: https://kafka.apache.org/documentation/#recordbatch. Imports only the
standard library, because it is copied to hosts.
"""

from __future__ import annotations

import json
import mmap
import struct
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

HEADER = struct.Struct(">qiibIhiqqqhii")  # from base offset to the number of records: 61 bytes
BEFORE_LENGTH = 12  # bytes of a batch that the length in its header does not include
MAGIC = 2
CONTROL = 1 << 5  # the attribute of batches that hold markers of transactions, not records


class LogError(Exception):
    """A log segment is not in Kafka's format."""


def count(folder: Path, topics: Sequence[str]) -> dict[str, object]:
    """
    Return the counts for partitions of `topics` in a log folder, in the form that the program prints.

    Raise LogError if the folder does not exist, or a segment contains anything but batches of format 2.
    """
    counts: dict[tuple[str, int, int], list[int]] = {}
    cut = 0
    for topic, partition, path in segments(Path(folder), topics):
        for second, records, size, is_control in batches(path):
            if second is None:
                cut += size
            elif not is_control:
                row = counts.setdefault((topic, partition, second), [0, 0, 0])
                row[0] += 1
                row[1] += records
                row[2] += size
    rows = [[*key, *row] for key, row in sorted(counts.items())]
    return {"rows": rows, "cut_bytes": cut}


def segments(folder: Path, topics: Sequence[str]) -> Iterator[tuple[str, int, Path]]:
    """Yield topic, partition and path of each log segment, sorted by path; raise LogError without a folder."""
    if not folder.is_dir():
        raise LogError(f"{folder} does not exist.")
    wanted = set(topics)
    for log in sorted(folder.iterdir()):
        topic, _, partition = log.name.rpartition("-")
        if topic in wanted and partition.isdigit():
            for path in sorted(log.glob("*.log")):
                yield topic, int(partition), path


def batches(path: Path) -> Iterator[tuple[int | None, int, int, bool]]:
    """
    Yield (Unix second, records, bytes, whether it is a control batch) for each batch of a segment. For an incomplete
    last batch, the second is None.
    """
    with open(path, "rb") as file:
        try:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:  # an empty file cannot be mapped
            return
        with content:
            position, end = 0, len(content)
            while position + HEADER.size <= end:
                header = HEADER.unpack_from(content, position)
                length, magic, attributes, latest_ms, records = (header[k] for k in (1, 3, 5, 8, 12))
                if length == 0 and not any(content[position : position + HEADER.size]):
                    return  # space that was allocated in advance
                if magic != MAGIC or length < HEADER.size - BEFORE_LENGTH or latest_ms < 0 or records < 0:
                    raise LogError(f"{path}: expected a batch of format {MAGIC} with timestamps at byte {position}.")
                size = BEFORE_LENGTH + length
                if position + size > end:
                    break
                yield latest_ms // 1000, records, size, bool(attributes & CONTROL)
                position += size
            if position < end:
                yield None, 0, end - position, False


def main(arguments: Sequence[str]) -> int:
    """Print the counts; return 1, with the reason on stderr, if a log cannot be read."""
    try:
        counted = count(Path(arguments[0]), arguments[1:])
    except (LogError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    json.dump(counted, sys.stdout, separators=(",", ":"))
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
