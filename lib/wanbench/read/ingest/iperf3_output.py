"""
Find the tests in a file of iperf3's output, and convert text output into the structure of its JSON output.

A file is often not plain JSON: old versions repeat members with `--bidir`; numbers may be `-nan` or `inf`; a login
banner may come before the JSON and a shell's messages after it; concatenated files may lack line breaks; a script may
wrap documents in its own JSON; and with `--json-stream` (from 3.17) every line is a separate event.
"""

import json
import re
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Any, NoReturn

import msgspec

from wanbench.errors import RawDataError

from .content import File
from .json_values import check_values
from .kafka_load.lines import lines_of

LARGEST_BYTES = 256 << 20
"""Size of about a day of one-second intervals with eight streams."""

BYTES_PER_VALUE = 12
"""A larger file may have at most one value per this many bytes; iperf3 writes one per 15 to 25 bytes."""

WANTED = "JSON of an iperf3 client (its option -J), or its text"
_OPENING = re.compile(r"^[ \t\ufeff\[]*+(?=\{)", re.MULTILINE)
_ANOTHER = re.compile(r"[\s\ufeff,\[\]]*+(?=\{)")
_ERROR_BEHIND = re.compile(r"\s*+iperf3: ((?:error|interrupt) - [^\r\n]+)")
_START_EVENT = re.compile(r'\{\s*"event"\s*:\s*"start"')
_NOT_A_NUMBER = r"-?\b(?:nan|inf)\b"
_UP_TO_NOT_A_NUMBER = re.compile(
    rf'((?:"(?:[^"\\\n]++|\\.)*+"?+|[^"nNiI-]++|(?!{_NOT_A_NUMBER}).)*+)({_NOT_A_NUMBER}|\Z)', re.IGNORECASE | re.DOTALL
)
"""This pattern matches each character only once, even in an unterminated string, so its time is linear."""

_REPEATED_UNCHANGED = ("sock_bufsize", "sndbuf_actual", "rcvbuf_actual")
REVERSE = "_bidir_reverse"


def has_json(text: str) -> bool:
    """Return whether any line of the text begins like a JSON document."""
    return _OPENING.search(text) is not None


def json_documents(path: File, text: str) -> Iterator[tuple[int | None, dict[str, Any]]]:
    """
    Yield the documents in a file, each with the number of its first line; the events of a stream form one document.

    A repeated member "sum", "sum_sent" or "sum_received" is renamed with "_bidir_reverse", as in later versions; `nan`
    and `inf` become NaN. The "error" of a truncated stream says that it is truncated, unless iperf3 printed an error;
    after the truncation, only the events "end" and "error" count. Raise RawDataError for a truncated or damaged
    document, or if there is none.
    """
    check_values(path, text, BYTES_PER_VALUE)
    if (document := _only_document(text)) is not None:
        yield text.count("\n", 0, text.find("{")) + 1, document
        return
    stream: _Stream | None = None
    mended = False
    line_number, counted, end = 1, 0, 0
    while opening := (end and _ANOTHER.match(text, end)) or _OPENING.search(text, end):
        start = opening.end()
        line_number += text.count("\n", counted, start)
        counted = start
        try:
            value, end = _decode(path, text, start, line_number)
        except json.JSONDecodeError as error:
            if not mended and re.match(_NOT_A_NUMBER, text[error.pos : error.pos + 5], re.IGNORECASE):
                text, mended = _UP_TO_NOT_A_NUMBER.sub(_as_python_writes_it, text), True  # keeps all positions
                continue
            end = _end_of_line(text, start)
            if stream is None or not _is_cut(text, error, end):
                _refuse(path, text, error)
            stream.break_off(text[max(start, end - 60) : end].strip())
            if _START_EVENT.match(text, start):  # the following events belong to an unknown test
                yield stream.whole()
                stream = None
            continue
        if value.get("end") == {} and (error := _ERROR_BEHIND.match(text, end)):
            value.setdefault("error", error[1])
        event = value.get("event")
        if isinstance(event, str) and "data" in value:
            if stream and event == "start":
                yield stream.whole()
            if stream is None or event == "start":
                stream = _Stream(line_number)
            stream.add(event, value["data"])
        elif stream and stream.document.get("start") == value.get("start"):
            stream = None  # --json-stream-full-output repeats the stream as one document
            yield line_number, value
        else:
            if stream and stream.torn_in is not None:
                yield stream.whole()
                stream = None
            for document in _of_iperf3(value) or [value]:
                yield line_number, document
    if stream:
        yield stream.whole()
    if not end:
        first = re.search(r"\S", text)
        if first is None:
            raise RawDataError(path, None, "an empty file", WANTED)
        line = text[first.start() : _end_of_line(text, first.start())].strip()
        raise RawDataError(path, text.count("\n", 0, first.start()) + 1, line, WANTED)


def _only_document(text: str) -> dict[str, Any] | None:
    """
    Return the document of a file with one JSON document without repeated members: three times as fast as the general
    way.
    """
    try:
        value = msgspec.json.decode(text)
        repeated = text.count(":") - msgspec.json.encode(value).count(b":")
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    start = text.partition('"intervals"')[0] if repeated else ""
    if repeated != sum(max(start.count(f'"{name}"') - 1, 0) for name in _REPEATED_UNCHANGED):
        return None
    return value if isinstance(value, dict) and "event" not in value and _of_iperf3(value) == [value] else None


def _of_iperf3(value: object) -> list[dict[str, Any]]:
    found, left = [], [value]
    while left:
        value = left.pop()
        if isinstance(value, dict) and isinstance(value.get("start"), dict) and "end" in value:
            found.append(value)
        elif isinstance(value, dict | list):
            left += reversed(list(value.values()) if isinstance(value, dict) else value)
    return found


class _Stream:
    """Combine the events of one `--json-stream` test into iperf3's ordinary document."""

    def __init__(self, line_number: int | None):
        self.line_number, self.document = line_number, {"start": {}, "intervals": []}
        self.torn_in: str | None = None

    def add(self, event: str, data: object) -> None:
        """Add an event; unknown events, and intervals after a truncation, are ignored."""
        if event == "interval":
            if self.torn_in is None:
                self.document["intervals"].append(data)
        elif event in ("start", "end", "error") and (self.torn_in is None or event not in self.document):
            self.document[event] = data

    def break_off(self, text: str) -> None:
        self.torn_in = text if self.torn_in is None else self.torn_in

    def whole(self) -> tuple[int | None, dict[str, Any]]:
        """Return the line number and the document; the document's error says if the stream is truncated."""
        if self.torn_in is not None:
            self.document.setdefault("error", f"the stream is truncated in {self.torn_in!r}")
        elif "end" not in self.document and "error" not in self.document:
            self.document["error"] = "the stream is truncated before its end"
        return self.line_number, self.document


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _is_cut(text: str, error: json.JSONDecodeError, end: int) -> bool:
    return error.pos >= len(text[:end].rstrip()) or error.msg.startswith("Unterminated string")


def _decode(path: File, text: str, start: int, line_number: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, start)
    except json.JSONDecodeError:
        raise
    except ValueError as error:
        raise RawDataError(path, line_number, error, WANTED) from None
    except RecursionError:
        raise RawDataError(path, line_number, "JSON nested too deeply", WANTED) from None


def _refuse(path: File, text: str, error: json.JSONDecodeError) -> NoReturn:
    if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
        found = text.rstrip()[-60:].rsplit("\n", 1)[-1].strip()
        raise RawDataError(path, error.lineno, found, "a complete JSON document, which ends with '}'") from None
    found = text[error.pos : error.pos + 60].split("\n")[0]
    raise RawDataError(path, error.lineno, found, f"JSON ({error.msg})") from None


def _as_python_writes_it(match: re.Match[str]) -> str:
    return match[1] + ("NaN".rjust(len(match[2])) if match[2] else "")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    members = {}
    for name, value in pairs:
        if name.startswith("sum") and name in members:
            name += REVERSE
        if name not in members:
            members[name] = value
        elif name not in _REPEATED_UNCHANGED and members[name] != value:
            raise ValueError(f"member {name!r} twice, with different values")
    return members


_DECODER = json.JSONDecoder(object_pairs_hook=_members)


TEXT_LINE = "a line of iperf3's intervals or summaries"
BEGINNING = "'Connecting to host', the beginning of a test"
_N = r"[0-9]{1,15}(?:\.[0-9]{1,6})?"
_LINE = re.compile(
    rf"\[ *+(?P<stream>[0-9]{{1,9}}|SUM)\](?:\[(?P<role>[TR]X)-C\])? ++(?P<start>{_N})- *+(?P<end>{_N}) ++sec ++"
    rf"(?P<size>{_N}) (?P<size_unit>[KMGT]?Bytes) ++(?P<rate>{_N}) (?P<rate_unit>[KMGT]?(?:bits|Bytes))/sec\s*+"
    r"(?:(?P<jitter>[0-9]{1,9}\.[0-9]{1,6}) ms ++(?P<lost>-?[0-9]{1,15})/(?P<total>[0-9]{1,15}) \([^()]{1,20}\)|"
    rf"(?P<count>[0-9]{{1,15}})(?: ++(?P<cwnd>{_N}) (?P<cwnd_unit>[KMGT]?Bytes))?)?\s*+"
    r"(?P<of>sender|receiver)?\s*+(?P<omitted>\(omitted\))?\s*+$"
)
_ABOUT = re.compile(
    rf"\biperf (?P<version>3[\w.+-]{{1,40}})|Time: (?P<time>.{{1,40}} GMT)|TCP MSS: (?P<mss>[0-9]{{1,9}})|"
    rf"Target Bitrate: (?P<target>[0-9]{{1,15}})|Starting Test: protocol: (?P<protocol>[A-Z]{{1,9}}), [0-9]+ streams, "
    rf"(?P<block>[0-9]{{1,9}}) byte|CPU Utilization: [a-z/]+ (?P<host>{_N})%[^,]*, [a-z/]+ (?P<remote>{_N})%|"
    r"snd_tcp_congestion (?P<congestion>\w{1,40})"
)
_CONNECTING = re.compile(r"Connecting to host ")
_CONNECTED = re.compile(r"\[ *([0-9]{1,9})\] local (\S+) port [0-9]+ connected to ")
_ERROR = re.compile(r"iperf3: ((?:error|interrupt) - .*)")
_OF_SERVER = re.compile(r"Server listening on |Accepted connection from ")
_HEADING = r"\[ ID\](?:\[Role\])? Interval {11}Transfer"  # iperf2 has fewer spaces
_RECOGNISED = re.compile(f"{_CONNECTING.pattern}|{_OF_SERVER.pattern}|{_ERROR.pattern}|{_HEADING}")
_NOT_CONNECTED = "unable to connect"


def is_text(text: str) -> bool:
    """Return whether the text has a line that iperf3 prints without -J, that is, not in JSON."""
    return _RECOGNISED.search(text) is not None


def text_documents(path: File, text: str) -> Iterator[tuple[int | None, dict[str, Any]]]:
    """Yield the tests in text output, each with the number of its first line, as documents like `json_documents`."""
    test, about, error, is_of_server = None, {}, None, False
    for number, line, is_whole, _ in lines_of(path, text):
        if found := _ERROR.search(line):
            message = found[1].removeprefix("error - ")
            if test is None and _NOT_CONNECTED in message:
                yield number, {"start": {}, "intervals": [], "end": {}, "error": message}
            elif test is None:  # stderr may come before buffered stdout
                error = message
            else:
                test.error = message
        elif _CONNECTING.search(line):
            if test:
                yield test.whole()
            test, about, error, is_of_server = _TextTest(number, about, error), {}, None, False
        elif line.startswith("Server output:"):
            is_of_server = test is not None
        elif "iperf Done." in line and test:
            yield test.whole()
            test = None
        elif is_of_server:
            continue
        elif _OF_SERVER.search(line):
            raise RawDataError(path, number, line, "output of the client (this is the server's)")
        elif found := _ABOUT.search(line):
            if found["version"] and test:
                yield test.whole()
                test = None
            values = {name: value for name, value in found.groupdict().items() if value}
            (about if test is None else test.about).update(values)
        elif " sec " in line and "Bytes" in line and (is_whole or line.endswith(("sender", "receiver"))):
            figures = _LINE.search(line)
            if test is None or figures is None:
                raise RawDataError(path, number, line.strip(), TEXT_LINE if test else BEGINNING)
            test.add(figures)
        elif test:
            test.read(line)
    if test:
        yield test.whole()
    elif error:
        yield 1, {"start": {}, "intervals": [], "end": {}, "error": error}


class _TextTest:
    def __init__(self, line_number: int | None, about: dict[str, str], error: str | None):
        self.line_number, self.about, self.error = line_number, about, error
        self.is_reverse = self.is_bidir = self.is_udp = self.in_summary = False
        self.sockets: list[dict[str, Any]] = []
        self.intervals: list[dict[str, Any]] = []
        self.sums: dict[str, dict[str, Any]] = {}

    def read(self, line: str) -> None:
        if connected := _CONNECTED.search(line):
            self.sockets.append({"socket": int(connected[1]), "local_host": connected[2]})
        elif "[ ID]" in line:
            self.is_udp |= "Datagrams" in line
            self.is_bidir |= "[Role]" in line
            self.in_summary = bool(self.intervals)
        else:
            self.is_reverse |= "Reverse mode, " in line

    def add(self, line: re.Match[str]) -> None:
        """Add the figures of an interval or of a summary."""
        start, end = float(line["start"]), float(line["end"])
        row = {"start": start, "end": end, "seconds": end - start}
        row["bytes"] = round(_bits(line["size"], line["size_unit"]) / 8)
        row["bits_per_second"] = _bits(line["rate"], line["rate_unit"])
        if line["total"]:
            counts = {"lost_packets": int(line["lost"]), "packets": int(line["total"])}
            row |= counts | {"jitter_ms": float(line["jitter"])}
        elif line["count"]:
            row["packets" if self.is_udp else "retransmits"] = int(line["count"])
        if self.in_summary or line["of"]:
            self._add_sum(line, row)
        elif line["stream"] != "SUM":
            row |= {"socket": int(line["stream"]), "omitted": line["omitted"] is not None}
            row |= {"sender": line["role"] != "RX"} if line["role"] else {}
            row |= {"snd_cwnd": round(_bits(line["cwnd"], line["cwnd_unit"]) / 8)} if line["cwnd"] else {}
            self.intervals.append({"streams": [row]})

    def _add_sum(self, line: re.Match[str], row: dict[str, Any]) -> None:
        """Keep a summary; the summary of all streams comes last, and replaces those of single streams."""
        row["is_sum"] = line["stream"] == "SUM"
        suffix = REVERSE if line["role"] == "RX" else ""
        if line["of"] != "receiver":
            self.sums["sum_sent" + suffix] = row
        if line["of"] != "sender":
            self.sums["sum_received" + suffix] = row
        if not line["of"] and row.get("packets"):
            arrived = min(max(1 - row["lost_packets"] / row["packets"], 0), 1)
            both = {name: round(row[name] * arrived) for name in ("bytes", "bits_per_second")}
            self.sums["sum_received" + suffix] = row | both

    def whole(self) -> tuple[int | None, dict[str, Any]]:
        about = self.about
        n = max(len(self.sockets) // (1 + self.is_bidir), 1)
        sums = {name: row for name, row in self.sums.items() if n == 1 or row["is_sum"]}
        test = {"protocol": about.get("protocol", "UDP" if self.is_udp else "TCP"), "num_streams": n}
        test |= {"reverse": int(self.is_reverse), "bidir": int(self.is_bidir), "blksize": int(about.get("block", 0))}
        start = {"connected": self.sockets, "test_start": test}
        start |= {"version": about.get("version"), "target_bitrate": int(about.get("target", 0))}
        start |= {"tcp_mss": int(about.get("mss", 0)), "timestamp": {"timesecs": _unix_s(about.get("time"))}}
        cpu = {f"{name}_total": float(about[name]) for name in ("host", "remote") if name in about}
        end = sums | {"cpu_utilization_percent": cpu, "sender_tcp_congestion": about.get("congestion")}
        error = self.error or (None if sums else "the output ends before the summary")
        return self.line_number, {"start": start, "intervals": self.intervals, "end": end, "error": error}


def _bits(figure: str, unit: str) -> float:
    """Return an amount or a rate in bits; prefixes of bits are powers of 1,000, those of bytes powers of 1,024."""
    power = "KMGT".find(unit[0]) + 1
    return float(figure) * (1000**power if unit.endswith("bits") else 8 * 1024**power)


def _unix_s(time: str | None) -> float | None:
    try:
        return None if time is None else max(parsedate_to_datetime(time).timestamp(), 0)
    except (TypeError, ValueError, OverflowError):
        return None
