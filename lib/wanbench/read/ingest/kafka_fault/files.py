"""Checked files of one fault episode: settings, times, and lines of its programs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from wanbench.errors import RawDataError
from wanbench.read.ingest.content import unpacked
from wanbench.read.ingest.json_values import Members, read_json

LARGEST_BYTES = 2_000_000_000
MOST_RECORDS = 10_000_000
"""Maximum number of records of one producer: more than a day at 100 records/s."""
LATEST_NS = 4_102_444_800 * 10**9
"""The year 2100: no episode was later."""
LONGEST_US = 10**13
"""Four months: no program ran for so long."""
ROLES = ("producer", "consumer", "watch", "groups", "log", "probe")
LONGEST_NAME = 255


@dataclass(frozen=True)
class Program:
    """A program of an episode, as described in the episode's file."""

    role: str
    number: int
    region: str
    host: str
    started_at_s: float
    ended_at_s: float | None
    killed: bool
    path: Path
    sha256: str

    def lines(self) -> list[tuple[int, object]]:
        """(line number, value) of each line, without a truncated last one."""
        values = []
        for number, text in enumerate(whole_lines(self.path, self.sha256), 1):
            try:
                values.append((number, _DECODER.decode(text.decode())))
            except (ValueError, RecursionError) as error:
                shown = text[:80].decode("utf-8", "replace")
                raise RawDataError(self.path, number, shown, "a line of JSON") from error
        return values

    def events(self, name: str) -> tuple[int, Iterator[tuple[int, object]]]:
        """The origin of its times in Unix ns, and its lines after the first, which must be the program's."""
        lines = self.lines()
        first = lines[0][1] if lines else None
        well = isinstance(first, dict) and first.get("program") == name and first.get("format") == 1
        origin_ns = first.get("origin_ns") if well else None
        self.check(
            1, first, is_count(origin_ns) and origin_ns < LATEST_NS, f"the first line of a {name}, with origin_ns"
        )
        return origin_ns, iter(lines[1:])

    def check(self, number: int, value, well: bool, expected: str) -> None:
        """Raise RawDataError for a line unless it is `well`."""
        if not well:
            shown = str(value)[:100].encode("utf-8", "replace").decode()
            raise RawDataError(self.path, number, shown, expected)


def whole_lines(path: Path, sha256: str) -> list[bytes]:
    """The complete lines of a compressed file with this SHA-256."""
    try:
        packed = path.read_bytes()
    except OSError as error:
        raise RawDataError(path, None, error.strerror or error, "a file that can be read") from error
    if (found := hashlib.sha256(packed).hexdigest()) != sha256:
        raise RawDataError(path, None, f"SHA-256 {found}", f"SHA-256 {sha256}, as the episode's file says")
    content = unpacked(path, packed, most_bytes=LARGEST_BYTES)
    return content[: content.rfind(b"\n") + 1].splitlines()


def named_file(one: Members, path: Path) -> tuple[Path, str]:
    """The file in the same folder named by a member of the episode's file, and its SHA-256."""
    file = one.members("file")
    name, sha256 = file.text("name"), file.text("sha256")
    if not name or not sha256 or len(name) > LONGEST_NAME or name != Path(name).name or "\0" in name:
        found = f"{file.where} = {str(file.values)[:80]}"
        one.refuse(found, "the name of a file in the same folder, and its SHA-256")
    return path.with_name(name), sha256


def programs(top: Members, path: Path) -> list[Program]:
    """The programs that the file of an episode names."""
    found = []
    for one in top.list("programs"):
        file, sha256 = named_file(one, path)
        started_at_s, killed = one.number("started_at_s", most=LATEST_NS / 1e9), one.flag("killed")
        number, region, host = one.count("number"), one.text("region"), one.text("host")
        role = one.text("role", ROLES)
        if None in (role, number, region, host, started_at_s, killed):
            one.refuse(str(one.values)[:80], "role, number, region, host, started_at_s and killed of a program")
        found.append(
            Program(
                role,
                number,
                region,
                host,
                started_at_s,
                one.number("ended_at_s", most=LATEST_NS / 1e9),
                killed,
                file,
                sha256,
            )
        )
    return found


def open_episode(path: Path) -> tuple[Members, list[Program]]:
    """Read <stem>.fault.json: its content, and the programs that it names."""
    top = Members(path, None, read_json(path, dict, "a fault episode in JSON"))
    if top.count("format") != 1:
        top.refuse(f"format {top.values.get('format')!r}", "format 1")
    return top, programs(top, path)


def is_count(value) -> bool:
    """Whether it is a whole number from 0 that fits into 64 bits."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def is_time(value) -> bool:
    """Whether it is a time in a program's line: microseconds since its origin."""
    return is_count(value) and value < LONGEST_US


def is_number(value) -> bool:
    """Whether it is a number in the range of Unix s."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < LATEST_NS / 1e9


def text(value: str) -> str:
    """Text with characters invalid in UTF-8 replaced."""
    return value.encode("utf-8", "replace").decode()


def _refuse_constant(name):
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
