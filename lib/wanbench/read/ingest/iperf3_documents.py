"""
Find iperf3's JSON documents in a file.

The file does not always hold JSON as Python reads it: old versions repeat members under `--bidir`, numbers may
be a bare `-nan` or `inf`, a login banner may come before the JSON and a shell's messages after it, files put together
may lack line ends between documents or lists, a script may put documents inside its own, and with `--json-stream` (from
3.17) every line is a separate event.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from wanbench.errors import RawDataError

from .json_values import check_values

LARGEST_BYTES = 256 << 20
"""About a day of one-second intervals of eight streams."""

BYTES_PER_VALUE = 12
"""iperf3 writes one value in 15 to 25 bytes."""

WANTED = "JSON of an iperf3 client (its option -J), or its text"
_OPENING = re.compile(r"^[ \t\ufeff\[]*+(?=\{)", re.MULTILINE)
_ANOTHER = re.compile(r"[\s\ufeff,\[\]]*+(?=\{)")
_ERROR_BEHIND = re.compile(r"\s*+iperf3: ((?:error|interrupt) - [^\r\n]+)")
_START_EVENT = re.compile(r'\{\s*"event"\s*:\s*"start"')
_NOT_A_NUMBER = r"-?\b(?:nan|inf)\b"
_UP_TO_NOT_A_NUMBER = re.compile(
    rf'((?:"(?:[^"\\\n]++|\\.)*+"?+|[^"nNiI-]++|(?!{_NOT_A_NUMBER}).)*+)({_NOT_A_NUMBER}|\Z)', re.IGNORECASE | re.DOTALL
)
"""Matches each character once, even in an unterminated string, so that no file takes more than a moment."""

_REPEATED_UNCHANGED = ("sock_bufsize", "sndbuf_actual", "rcvbuf_actual")
_REVERSE = "_bidir_reverse"


def has_json(text: str) -> bool:
    """Whether a line begins like a document."""
    return _OPENING.search(text) is not None


def documents(path, text: str) -> Iterator[tuple[int, dict]]:
    """
    The documents in a file, each with the number of its first line; a stream's events make one document.

    The second of two members "sum", "sum_sent" or "sum_received" gets the name that later versions give it, with
    "_bidir_reverse"; `nan` and `inf` become NaN. A truncated stream has an "error" that says so, unless iperf3 gave
    one; after the break only its events "end" and "error" count. RawDataError for a truncated or damaged document, or
    if there is none.
    """
    check_values(path, text, BYTES_PER_VALUE)
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
                text, mended = _UP_TO_NOT_A_NUMBER.sub(_as_python_writes_it, text), True  # keeps every place
                continue
            end = _end_of_line(text, start)
            if stream is None or not _is_cut(text, error, end):
                _refuse(path, text, start, error)
            stream.break_off(text[max(start, end - 60) : end].strip())
            if _START_EVENT.match(text, start):  # what follows belongs to an unknown test
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


def _of_iperf3(value) -> list[dict]:
    """The documents in a value, at any depth, in order."""
    found, left = [], [value]
    while left:
        value = left.pop()
        if isinstance(value, dict) and isinstance(value.get("start"), dict) and "end" in value:
            found.append(value)
        elif isinstance(value, dict | list):
            left += reversed(list(value.values()) if isinstance(value, dict) else value)
    return found


class _Stream:
    """The events of one `--json-stream` test, assembled as iperf3's ordinary document."""

    def __init__(self, line_number: int):
        self.line_number, self.document = line_number, {"start": {}, "intervals": []}
        self.torn_in: str | None = None

    def add(self, event: str, data) -> None:
        """Add an event; unknown ones are ignored, and so are intervals after a break."""
        if event == "interval":
            if self.torn_in is None:
                self.document["intervals"].append(data)
        elif event in ("start", "end", "error") and (self.torn_in is None or event not in self.document):
            self.document[event] = data

    def break_off(self, text: str) -> None:
        """Note that the stream breaks off in this text; the first of several breaks counts."""
        if self.torn_in is None:
            self.torn_in = text

    def whole(self) -> tuple[int, dict]:
        """The document; its error says so if the stream breaks off or lacks its end event."""
        if self.torn_in is not None:
            self.document.setdefault("error", f"the stream breaks off in {self.torn_in!r}")
        elif "end" not in self.document and "error" not in self.document:
            self.document["error"] = "the stream breaks off before its end"
        return self.line_number, self.document


def _end_of_line(text, at):
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _is_cut(text, error, end) -> bool:
    """Whether a line of a stream ends within its JSON."""
    return error.pos >= len(text[:end].rstrip()) or error.msg.startswith("Unterminated string")


def _decode(path, text, start, line_number):
    try:
        return _DECODER.raw_decode(text, start)
    except json.JSONDecodeError:
        raise
    except ValueError as error:
        raise RawDataError(path, line_number, error, WANTED) from None
    except RecursionError:
        raise RawDataError(path, line_number, "JSON nested too deeply", WANTED) from None


def _refuse(path, text, start, error):
    if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
        found = text.rstrip()[-60:].rsplit("\n", 1)[-1].strip()
        raise RawDataError(path, error.lineno, found, "a whole JSON document, which ends with '}'") from None
    found = text[error.pos : error.pos + 60].split("\n")[0]
    raise RawDataError(path, error.lineno, found, f"JSON ({error.msg})") from None


def _as_python_writes_it(match):
    return match[1] + ("NaN".rjust(len(match[2])) if match[2] else "")


def _members(pairs):
    members: dict = {}
    for name, value in pairs:
        if name.startswith("sum") and name in members:
            name += _REVERSE
        if name not in members:
            members[name] = value
        elif name not in _REPEATED_UNCHANGED and members[name] != value:
            raise ValueError(f"member {name!r} twice, with different values")
    return members


_DECODER = json.JSONDecoder(object_pairs_hook=_members)
