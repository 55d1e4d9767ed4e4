"""
Read and check the output of an experiment's programs.

The experiment's own JSON file names the file of each program, which has a JSON value per line.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from wanbench.errors import RawDataError

from .content import unpacked
from .json_values import Members, are_counts, fits, is_count, is_text, is_time, is_us, read_json, text

LARGEST_BYTES = 2_000_000_000
LATEST_S = 4_102_444_800
"""Latest possible time, in the year 2100."""
LATEST_NS = LATEST_S * 10**9
ROLES = ("producer", "consumer", "watch", "groups", "log", "probe")
LONGEST_NAME = 255
SAMPLED = ("region", "at_s", "took_s", "node_id", "topic", "partition", "leader", "isr", "n_isr", "error")
"""Columns of table cluster_samples."""


@dataclass(frozen=True)
class Program:
    """A program of an experiment, as the experiment's own file describes it."""

    role: str
    number: int
    region: str
    host: str
    started_at_s: float
    ended_at_s: float | None
    killed: bool
    path: Path
    sha256: str

    def lines(self) -> list[tuple[int, Any]]:
        """Return the line number and the value of each line, without a truncated last line."""
        return json_lines(self.path, self.sha256)

    def events(self, name: str) -> tuple[int, Iterator[tuple[int, Any]]]:
        """
        Check that the first line identifies program `name`; return the origin of the program's times (Unix ns), and the
        number and value of each further line.
        """
        lines = self.lines()
        first = lines[0][1] if lines else None
        told = first if isinstance(first, dict) else {}
        valid, origin_ns = told.get("program") == name and told.get("format") == 1, told.get("origin_ns", -1)
        valid = valid and is_count(origin_ns) and origin_ns < LATEST_NS
        self.check(1, first, valid, f"the first line of a {name}, with origin_ns")
        return origin_ns, iter(lines[1:])

    def check(self, number: int, value: object, valid: bool, expected: str) -> None:
        """Raise RawDataError, with the line's number and value and what was expected, unless `valid` is true."""
        if not valid:
            raise RawDataError(self.path, number, text(str(value)[:100]), expected)

    def error(self, origin_ns: int, number: int, line: list[Any]) -> dict[str, Any]:
        """Check a line ["error", µs since the origin, kind, message], and return it as a row of table fault_errors."""
        self.check(number, line, fits(line, "error", is_us, is_text, is_text), "time, name and text of an error")
        about = {"role": self.role, "client": self.number, "at_s": origin_ns / 1e9 + line[1] / 1e6}
        return about | {"kind": text(line[2]), "message": text(line[3])}

    def cluster_samples(self, partitions: int | None = None) -> list[tuple[Any, ...]]:
        """
        Return rows of `SAMPLED` from the output of an observer of the cluster.

        A line is [at_s, took_s, kind of error, message] or [at_s, took_s, node_id, brokers, state]. The state maps each
        topic to the leaders and in-sync replicas of its partitions; it is null if unchanged. An observer of a single
        topic with `partitions` partitions prints [at_s, took_s, node_id, state of the topic].
        """
        rows, state, length = [], None, 5 if partitions is None else 4
        for number, line in self.lines():
            valid = isinstance(line, list) and len(line) in (4, length) and all(map(is_time, line[:2]))
            self.check(number, line, valid, "a sample of the cluster")
            at_s, took_s, node_id, *_, seen = line
            about = self.region, at_s, took_s
            if isinstance(node_id, str):
                self.check(number, line, len(line) == 4 and isinstance(seen, str), "the message of an error")
                rows.append((*about, *[None] * 6, text(f"{node_id}: {seen}")))
                continue
            self.check(number, line, len(line) == length and is_count(node_id), "the node that answered")
            if seen is not None:
                topics = seen if partitions is None else {None: seen}
                valid = isinstance(topics, dict) and all(_are_states(states, partitions) for states in topics.values())
                self.check(number, line, valid, "leader and in-sync replicas of each partition")
                state = [
                    (topic and text(topic), partition, leader, ",".join(map(str, isr)), len(isr))
                    for topic, states in topics.items()
                    for partition, (leader, isr) in enumerate(states)
                ]
            self.check(number, line, state is not None, "a state, in the first sample")
            rows += [(*about, node_id, *row, None) for row in state or [[None] * 5]]
        return rows


def _are_states(value: object, most: int | None) -> bool:
    shape = (lambda leader: leader is None or is_count(leader)), are_counts
    return isinstance(value, list) and all(fits(one, *shape) for one in value) and (most is None or len(value) <= most)


def whole_lines(path: Path, sha256: str) -> list[bytes]:
    """Read the complete lines of a file with this SHA-256, compressed or not."""
    try:
        packed = path.read_bytes()
    except OSError as error:
        raise RawDataError(path, None, error.strerror or error, "a file that can be read") from error
    if (found := hashlib.sha256(packed).hexdigest()) != sha256:
        raise RawDataError(path, None, f"SHA-256 {found}", f"SHA-256 {sha256}, as recorded by the experiment")
    content = unpacked(path, packed, most_bytes=LARGEST_BYTES)
    return content[: content.rfind(b"\n") + 1].splitlines()


def json_lines(path: Path, sha256: str) -> list[tuple[int, Any]]:
    """Read the line number and the JSON value of each complete line of a file with this SHA-256."""
    values = []
    for number, line in enumerate(whole_lines(path, sha256), 1):
        try:
            values.append((number, _DECODER.decode(line.decode())))
        except (ValueError, RecursionError) as error:
            raise RawDataError(path, number, line[:80].decode("utf-8", "replace"), "a line of JSON") from error
    return values


def named_file(one: Members, path: Path) -> tuple[Path, str]:
    """
    Return the path and the SHA-256 of the file that the member `file` of a JSON object names.

    `path` is the path of the experiment's own file; the named file must be in the same folder.
    """
    file = one.members("file")
    name, sha256 = file.text("name"), file.text("sha256")
    if not name or not sha256 or len(name) > LONGEST_NAME or name != Path(name).name or "\0" in name:
        found = f"{file.where} = {str(file.values)[:80]}"
        one.refuse(found, "the name of a file in the same folder, and its SHA-256")
    return path.with_name(name), sha256


def open_document(path: Path, expected: str) -> Members:
    """Read an experiment's own file, a JSON object with format 1; raise RawDataError for anything else."""
    top = Members(path, None, read_json(path, dict, expected))
    if top.count("format") != 1:
        top.refuse(f"format {top.values.get('format')!r}", "format 1")
    return top


def programs(top: Members, path: Path) -> list[Program]:
    """Return the programs that an experiment's own file describes."""
    programs = []
    for one in top.list("programs"):
        file, sha256 = named_file(one, path)
        values = {"role": one.text("role", ROLES), "number": one.count("number"), "killed": one.flag("killed")}
        values |= {"region": one.text("region"), "host": one.text("host")}
        values["started_at_s"] = one.number("started_at_s", most=LATEST_S)
        if None in values.values():
            one.refuse(str(one.values)[:80], "role, number, region, host, started_at_s and killed of a program")
        ended_at_s = one.number("ended_at_s", most=LATEST_S)
        programs.append(Program(**values, ended_at_s=ended_at_s, path=file, sha256=sha256))
    return programs


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
