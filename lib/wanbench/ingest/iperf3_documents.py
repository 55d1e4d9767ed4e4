"""
Finds iperf3's JSON in a file. `iperf3` uses it; imports `errors` only.

What stands there is not always JSON as Python reads it: old versions repeat members under `--bidir`, numbers may
be a bare `-nan` or `inf`, the text of a login banner stands before it or a shell's words behind it, and with
`--json-stream` (from 3.17) every line is an event of its own.
"""

from __future__ import annotations

import json
import re

from ..errors import RawDataError

LARGEST_BYTES = 256 << 20
WANTED = "JSON of an iperf3 client (its option -J)"
_OPENING = re.compile(r"^[ \t]*(?=\{)", re.MULTILINE)
_STRING_OR_NOT_A_NUMBER = re.compile(r'"(?:[^"\\\n]|\\.)*"|-?\b(?:nan|inf)\b', re.IGNORECASE)
_REPEATED_UNCHANGED = ("sock_bufsize", "sndbuf_actual", "rcvbuf_actual")
_REVERSE = "_bidir_reverse"


def documents(path, data: bytes) -> list[tuple[int, dict]]:
    """
    All documents in a file, each with the number of its first line; a stream's events make one document.

    The second of two members "sum", "sum_sent" or "sum_received" gets the name that later versions give it,
    with "_bidir_reverse"; numbers that are none are NaN. RawDataError for a document that is cut or damaged,
    or where there is none.
    """
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    found, line_number, counted, end = [], 1, 0, 0
    while opening := _OPENING.search(text, end):
        line_number += text.count("\n", counted, opening.end())
        counted = opening.end()
        try:
            document, end = _decode(path, text, opening.end(), line_number)
        except json.JSONDecodeError:
            text = _STRING_OR_NOT_A_NUMBER.sub(_as_python_writes_it, text)  # keeps every place
            try:
                document, end = _decode(path, text, opening.end(), line_number)
            except json.JSONDecodeError as error:
                _refuse(path, text, opening.end(), error)
        found.append((line_number, document))
    if not found:
        lines = text.split("\n")
        first = next((n for n, line in enumerate(lines) if line.strip()), None)
        if first is None:
            raise RawDataError(path, None, "an empty file", WANTED)
        raise RawDataError(path, first + 1, lines[first].strip(), WANTED)
    return _joined(path, found)


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
        found = text[start:].rstrip().rsplit("\n", 1)[-1].strip()[-60:]
        raise RawDataError(path, error.lineno, found, "a whole JSON document, which ends with '}'") from None
    found = text[error.pos : error.pos + 60].split("\n")[0]
    raise RawDataError(path, error.lineno, found, f"JSON ({error.msg})") from None


def _as_python_writes_it(match):
    token = match[0]
    return token if token.startswith('"') else "NaN".rjust(len(token))


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


def _joined(path, found):
    """The documents, with the events of a stream put together as iperf3 would have written them at once."""
    whole: list[tuple[int, dict]] = []
    stream: tuple[int, dict] | None = None
    for line_number, value in found:
        event = value.get("event")
        if not isinstance(event, str) or "data" not in value:
            if stream and stream[1]["start"] == value.get("start"):
                stream = None  # --json-stream-full-output repeats the stream as one document
            whole.append((line_number, value))
            continue
        if event == "start" and stream:
            whole.append(_ended(path, stream))
        if event == "start" or stream is None:
            stream = (line_number, {"start": {}, "intervals": []})
        if event == "interval":
            stream[1]["intervals"].append(value["data"])
        elif event in ("start", "end", "error"):
            stream[1][event] = value["data"]
    if stream:
        whole.append(_ended(path, stream))
    return whole


def _ended(path, stream):
    line_number, document = stream
    if "end" not in document and "error" not in document:
        raise RawDataError(path, line_number, "a JSON stream without its end", "an event 'end' or 'error'")
    return line_number, document
