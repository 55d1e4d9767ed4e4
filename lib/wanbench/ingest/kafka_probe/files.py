"""Checked files of one probe: settings, clocks, and lines of its programs."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ...errors import RawDataError
from ..content import read_bytes
from ..json_values import Members, read_json

LARGEST_BYTES = 4_000_000_000
"""More than `MOST_RECORDS` records with all their lines take."""

MOST_RECORDS = 10_000_000
"""Several days of 20 records/s; each takes some hundred bytes of memory."""

LATEST_NS = 4_102_444_800 * 10**9
"""The year 2100: no probe was later."""

LONGEST_NAME = 255
"""Bytes of a file's name on Linux."""


@dataclass(frozen=True)
class About:
    """
    The content of <stem>.probe.json.

    `not_started` is why the probe did not start, None if it did. Records go round-robin to the `producers` (None:
    unknown), and to the partitions, whose `leaders` are brokers (empty: unknown).
    """

    record_bytes: int
    offset_ms: float | None
    error_ms: float | None
    method: str
    producer: tuple[str, str] | None
    consumers: tuple[tuple[str, str], ...]
    not_started: str | None = None
    interval_s: float | None = None
    producers: int | None = None
    leaders: tuple[int | None, ...] = ()


def open_probe(path: Path) -> About:
    """Read <stem>.probe.json."""
    top = Members(path, None, read_json(path, dict, "a probe in JSON"))
    if top.count("format") != 1:
        top.refuse(f"format {top.values.get('format')!r}", "format 1")
    clock, files = top.members("clock"), top.members("files")
    offset_ms = clock.values.get("offset_ms")
    if offset_ms is not None and not (_is_number(offset_ms) and abs(offset_ms) < 1e12):
        clock.refuse(f"clock.offset_ms = {str(offset_ms)[:80]}", "a number or null")
    settings, not_started = top.members("settings"), top.text("not_started")
    record_bytes, interval_s = settings.count("record_bytes"), settings.number("interval_s")
    if record_bytes is None or (not_started is not None and interval_s is None):
        top.refuse("settings without record_bytes or interval_s", "settings of a probe")
    partitions = top.members("topic").list("partitions")
    producer = files.members("producer")
    return About(
        record_bytes=record_bytes,
        offset_ms=None if offset_ms is None else float(offset_ms),
        error_ms=clock.number("error_ms"),
        method=clock.text("method") or "not known",
        producer=_named(producer) if producer.values else None,
        consumers=tuple(_named(file) for file in files.list("consumers")),
        not_started=not_started,
        interval_s=interval_s,
        producers=settings.count("producers", minimum=1) or None,
        leaders=tuple(partition.count("leader") for partition in partitions),
    )


@dataclass
class Programs:
    """
    Output lines of the producer and the consumers.

    Attributes
    ----------
    due : int
        Send times that had come when the producer ended; of one that was killed, those it got to.
    """

    start_ns: int
    interval_ns: int
    due: int
    happened: dict[str, dict[int, tuple]]
    received: list[tuple]
    n_damaged: int = 0

    @classmethod
    def open(cls, path: Path, about: About) -> Programs:
        """
        Read the programs' files, which must be in the folder of `path` and named in it. They are empty if the probe did
        not start.
        """
        if about.not_started is not None:
            happened = {"sent": {}, "acknowledged": {}, "failed": {}}
            return cls(0, round(about.interval_s * 1e9), 0, happened, [])
        if about.producer is None:
            raise RawDataError(path, None, "no producer", "the file of a producer: the probe did not start")
        name, sha256 = about.producer
        file = path.with_name(name)
        lines = [line for line in _lines(file, sha256) if not _is_waiting(line[1])]
        first = Members(file, 1, lines[0][1]) if lines and isinstance(lines[0][1], dict) else None
        if first is None or first.text("program") != "probe producer":
            raise RawDataError(file, 1, str(lines[0][1])[:80] if lines else "", "the schedule of a producer")
        records, interval_ns = first.count("records"), first.count("interval_ns")
        start_ns = first.values.get("start_ns")
        _check(file, 1, start_ns, _is_time(start_ns), "start_ns, a time in ns")
        if not records or not interval_ns or records > MOST_RECORDS or interval_ns * records > LATEST_NS:
            first.refuse(f"{records} records, one in {interval_ns} ns", "a schedule")
        self = cls(start_ns, interval_ns, 0, {"sent": {}, "acknowledged": {}, "failed": {}}, [])
        self._read_producer(file, lines[1:], records)
        for group, (name, sha256) in enumerate(about.consumers):
            self._read_consumer(path.with_name(name), group, _lines(path.with_name(name), sha256), records)
        return self

    def sent(self) -> pd.DataFrame:
        """A row per due send time."""
        rows = pd.DataFrame({"sequence": range(self.due)})
        rows["intended_ns"] = self.start_ns + rows.sequence * self.interval_ns
        for what, column in (("sent", "sent_ns"), ("acknowledged", "acknowledged_ns")):
            times = {sequence: values[0] for sequence, values in self.happened[what].items()}
            rows[column] = rows.sequence.map(times).astype("Int64")
        answered = {
            sequence: values[0]
            for what in ("failed", "acknowledged")
            for sequence, values in self.happened[what].items()
        }
        rows["answered_ns"] = rows.sequence.map(answered).astype("Int64")
        failed = {sequence: values[1] for sequence, values in self.happened["failed"].items()}
        rows["error"] = rows.sequence.map(failed).astype("str").where(rows.sequence.isin(list(failed)), None)
        return rows

    def receipts(self) -> pd.DataFrame:
        """A row per receipt, in the order of each group's program; sequence null if unknown."""
        columns = ["group", "sequence", "received_ns", "partition", "offset", "damaged"]
        places = {values[1:]: sequence for sequence, values in self.happened["acknowledged"].items()}
        rows = []
        for group, sequence, at_ns, partition, offset, damaged in self.received:
            sequence = places.get((partition, offset)) if sequence is None else sequence
            rows.append((group, sequence, at_ns, partition, offset, damaged))
        frame = pd.DataFrame(rows, columns=columns)
        kinds = {name: "Int64" for name in columns if name != "damaged"}
        return frame.astype({**kinds, "damaged": "boolean"})

    def _read_producer(self, file, lines, records):
        kinds = {"sent": 4, "acknowledged": 5, "failed": 4}
        for number, line in lines:
            if isinstance(line, dict):
                if "ended" in line:
                    self.due = self._due(file, number, line, records)
                continue
            well = isinstance(line, list) and bool(line) and isinstance(line[0], str) and line[0] in kinds
            well = well and len(line) == kinds[line[0]] and _is_count(line[1]) and line[1] < records
            _check(file, number, line, well and _is_time(line[2]), "a line of a probe's producer")
            what, sequence, at_ns, *more = line
            if what == "sent":
                _check(file, number, line, _is_number(more[0]), "milliseconds after it was due")
            elif what == "failed":
                _check(file, number, line, isinstance(more[0], str), "a reason in text")
                more = [more[0].encode("utf-8", "replace").decode()]
            else:
                _check(file, number, line, all(map(_is_whole, more)), "partition and offset")
                more = [number if number >= 0 else None for number in more]
            self.happened[what].setdefault(sequence, (at_ns, *more))
        self.due = max(
            [self.due, *(1 + sequence for sequences in self.happened.values() for sequence in sequences)]
        )

    def _due(self, file, number, line, records) -> int:
        """The number of send times due when the producer ended."""
        stopped_ns = line.get("stopped_ns")
        if stopped_ns is None:
            return records
        _check(file, number, line, _is_time(stopped_ns), "a time")
        return min(max(0, -(-(stopped_ns - self.start_ns) // self.interval_ns)), records)

    def _read_consumer(self, file, group, lines, records):
        for number, line in lines:
            if isinstance(line, dict):
                continue
            well = isinstance(line, list) and len(line) == 7 and line[0] == "received"
            _check(file, number, line, well, "a line of a probe's consumer")
            _, sequence, intended_ns, at_ns, partition, offset, right = line
            well = isinstance(right, bool) and _is_time(at_ns) and _is_count(partition) and _is_count(offset)
            _check(file, number, line, well, "time, partition, offset and whether the checksum is right")
            if not right:
                self.n_damaged += 1
                sequence = None
            else:
                well = _is_count(sequence) and sequence < records
                well = well and intended_ns == self.start_ns + sequence * self.interval_ns
                _check(file, number, line, well, "a sequence with the intended time of the schedule")
                self.due = max(self.due, sequence + 1)
            self.received.append((group, sequence, at_ns, partition, offset, not right))


def _is_waiting(value) -> bool:
    """Whether a line reports what a program waits for before it is ready."""
    return isinstance(value, dict) and "waits_for" in value


def _named(member: Members) -> tuple[str, str]:
    name, sha256 = member.text("name"), member.text("sha256")
    if not name or not sha256 or len(name) > LONGEST_NAME or name != Path(name).name or "\0" in name:
        member.refuse(
            f"{member.where} = {str(member.values)[:80]}",
            "the name of a file in the same folder, and its SHA-256",
        )
    return name, sha256


def _lines(path: Path, sha256: str) -> list[tuple[int, object]]:
    """(line number, value) of each line, without a truncated last one."""
    _, content = read_bytes(path, most_bytes=LARGEST_BYTES)
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise RawDataError(path, None, f"SHA-256 {found}", f"SHA-256 {sha256}, as the probe's own file says")
    whole = content[: content.rfind(b"\n") + 1].splitlines()
    values = []
    for number, text in enumerate(whole, 1):
        try:
            values.append((number, _DECODER.decode(text.decode())))
        except (ValueError, RecursionError) as error:
            shown = text[:80].decode("utf-8", "replace")
            raise RawDataError(path, number, shown, "a line of JSON") from error
    return values


def _refuse_constant(name):
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _check(path, number, line, well: bool, expected: str) -> None:
    if not well:
        raise RawDataError(path, number, str(line)[:100].encode("utf-8", "replace").decode(), expected)


def _is_whole(value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63


def _is_count(value) -> bool:
    return _is_whole(value) and value >= 0


def _is_time(value) -> bool:
    return _is_count(value) and value < LATEST_NS


def _is_number(value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15
