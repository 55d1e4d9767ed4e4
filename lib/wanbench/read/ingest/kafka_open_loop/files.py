"""Checked files of one open-loop load: its settings, and each program's output per second."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from wanbench.errors import RawDataError
from wanbench.read.ingest.content import read_bytes
from wanbench.read.ingest.json_values import LARGEST, Members, read_json

LARGEST_BYTES = 1 << 30
"""More than a day of seconds, unpacked."""
MOST_SECONDS = 100_000
"""A day, and an hour of warm-up."""
_OF_PRODUCER = (
    "n_due", "n_handed", "n_answered", "n_failed", "n_sent_in", "n_acknowledged_in", "backlog", "blocked_us",
    "late_max_us", "n_resent_in",
)  # fmt: skip
_OF_CONSUMER = ("n_received", "n_duplicates", "n_negative", "n_received_in")


@dataclass
class Second:
    """Counts of one second by name, and histograms: records by value."""

    counts: dict[str, int] = field(default_factory=dict)
    histograms: dict[str, Counter] = field(default_factory=dict)

    def __getitem__(self, name: str) -> int:
        return self.counts.get(name, 0)

    def add(self, other: Second) -> None:
        """Add the counts of another program; `late_max_us` is the maximum."""
        for name, n in other.counts.items():
            if name == "late_max_us":
                self.counts[name] = max(self[name], n)
            else:
                self.counts[name] = self[name] + n
        for name, counts in other.histograms.items():
            self.histograms.setdefault(name, Counter()).update(counts)


@dataclass
class Printed:
    """Total output of the producing processes, or of one group: seconds by number, errors, version of librdkafka."""

    seconds: dict[int, Second] = field(default_factory=dict)
    errors: Counter = field(default_factory=Counter)
    client: str | None = None

    def second(self, number: int) -> Second:
        """A second of the schedule; empty if nothing was printed of it."""
        return self.seconds.get(number) or Second()

    def total(self, name: str, numbers=None) -> int:
        """The sum of a count over these seconds, or over all."""
        return sum(self.second(n)[name] for n in (self.seconds if numbers is None else numbers))


def open_load(path: Path) -> Members:
    """Read <stem>.load.json."""
    top = Members(path, None, read_json(path, dict, "an open-loop load in JSON"))
    if top.count("format") != 1:
        top.refuse(f"format {top.values.get('format')!r}", "format 1")
    return top


def producers(path: Path, top: Members) -> Printed:
    """Total output of all producing processes."""
    printed = Printed()
    for program in top.list("producers"):
        _read(path, program, "open-loop producer", _OF_PRODUCER, ("late", "publish"), printed)
    return printed


def groups(path: Path, top: Members) -> list[Printed]:
    """Output of each consumer group's process."""
    found = []
    for program in top.list("consumers"):
        found.append(Printed())
        _read(path, program, "open-loop consumer", _OF_CONSUMER, ("latency",), found[-1])
    return found


def _read(path: Path, program: Members, title: str, counts, histograms, printed: Printed) -> None:
    """Add one program's output. A program that failed early has none."""
    about = program.members("file")
    name, sha256 = about.text("name"), about.text("sha256")
    if not name or not sha256 or name != Path(name).name or "\0" in name:
        about.refuse(str(about.values)[:80], "the name of a file in the same folder, and its SHA-256")
    file = path.with_name(name)
    for number, value in _lines(file, sha256):
        line = Members(file, number, value)
        if number == 1:
            if line.text("program") != title or line.count("format") != 1:
                line.refuse(str(value)[:80], f"the first line of an {title}, format 1")
            printed.client = line.text("client")
        elif "error" in value:
            _read_error(line, printed.errors)
        elif "second" in value:
            second = line.count("second")
            if second is None or second >= MOST_SECONDS:
                line.refuse(f"second = {str(second)[:40]}", f"a second below {MOST_SECONDS:,}")
            read = Second({key: n for key in counts if (n := line.count(key)) is not None})
            read.histograms = {key: _histogram(line, key) for key in histograms}
            printed.seconds.setdefault(second, Second()).add(read)


def _read_error(line: Members, errors: Counter) -> None:
    error = line.values["error"]
    if not isinstance(error, list) or [type(part) for part in error] != [str, str, int] or not 0 <= error[2] <= LARGEST:
        line.refuse(str(error)[:80], "name, text and number of an error")
    errors[error[0].encode("utf-8", "replace").decode()] += error[2]


def _histogram(line: Members, name: str) -> Counter:
    values = line.values.get(name)
    if not isinstance(values, list) or len(values) % 2:
        line.refuse(f"{name} = {str(values)[:40]}", "alternating value and count")
    if not all(type(value) is int and 0 <= value <= LARGEST for value in values):
        line.refuse(f"{name} = {str(values)[:40]}", "whole numbers from 0")
    return Counter(dict(zip(values[::2], values[1::2], strict=True)))


def _lines(path: Path, sha256: str) -> list[tuple[int, dict]]:
    """(line number, object) of each line, without a truncated last one."""
    try:
        packed = path.read_bytes()
    except OSError as error:
        raise RawDataError(path, None, error, "a file that can be read") from error
    if (found := hashlib.sha256(packed).hexdigest()) != sha256:
        raise RawDataError(path, None, f"SHA-256 {found}", f"SHA-256 {sha256}, as the load's own file says")
    _, content = read_bytes(path, most_bytes=LARGEST_BYTES)
    lines = []
    for number, text in enumerate(content[: content.rfind(b"\n") + 1].splitlines(), 1):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise RawDataError(path, number, text[:80].decode("utf-8", "replace"), "a line of JSON") from error
        if not isinstance(value, dict):
            raise RawDataError(path, number, str(value)[:80], "a JSON object")
        lines.append((number, value))
    return lines
