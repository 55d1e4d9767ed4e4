"""
Lines of text that Kafka's tools printed, whatever has become of the file since. Imports `errors` only.

Known: UTF-8 with and without byte order mark, UTF-16 (PowerShell redirects), Windows code pages, \\r\\n, a last line
without its end, and digits of any script.
"""

from __future__ import annotations

import json
import unicodedata
from math import isfinite
from pathlib import Path
from typing import NamedTuple

from ..errors import RawDataError

LARGEST_BYTES = 256 << 20
LONGEST_LINE = 10_000
"""Longer ones are read in pieces, so that no line of a damaged file takes more than a moment."""

LATEST_S = 1e11
BYTE_ORDER_MARKS = {b"\xef\xbb\xbf": "utf-8", b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
SEPARATORS = {"٫": ".", "٬": "'"}


class Line(NamedTuple):
    """
    One line: its number from 1, what it says, the same in digits 0 to 9, and when it came.

    `whole` is False for a last line without its end: the tool was stopped while it wrote. `said` and `text` have
    the same length.
    """

    number: int
    said: str
    text: str
    whole: bool
    printed_at_s: float | None


def read_bytes(source) -> tuple[object, bytes]:
    """The path ("<bytes>" for bytes) and the content; RawDataError if there is none, or too much."""
    if isinstance(source, bytes | bytearray):
        path, data = "<bytes>", bytes(source)
    else:
        path = source
        try:
            with open(source, "rb") as file:
                data = file.read(LARGEST_BYTES + 1)
        except (OSError, ValueError) as error:
            found = getattr(error, "strerror", None) or error
            raise RawDataError(source, None, found, "a file that can be read") from error
    if len(data) > LARGEST_BYTES:
        raise RawDataError(path, None, "a larger file", f"at most {LARGEST_BYTES:,} bytes")
    return path, data


def decoded(data: bytes) -> str:
    """
    The text; what is not UTF-8 is taken as the Windows code page for Western Europe.

    >>> decoded("5 ms".encode("utf-16")), decoded(b"1\\xa0000 records")
    ('5 ms', '1\\xa0000 records')
    """
    for mark, name in BYTE_ORDER_MARKS.items():
        if data.startswith(mark):
            return data[len(mark) :].decode(name, "replace")
    if data[1:2] == b"\0" and data[:1] != b"\0":
        return data.decode("utf-16-le", "replace")
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def plain_digits(text: str) -> str:
    """
    The text with digits of other scripts as 0 to 9, character by character.

    >>> plain_digits("٣٫٥ ms, ５ records")
    '3.5 ms, 5 records'
    """
    if text.isascii():
        return text
    return "".join(
        SEPARATORS.get(character) or str(unicodedata.decimal(character, character)) for character in text
    )


def lines(data: bytes, printed_at_s: list[float] | None = None) -> list[Line]:
    """
    The lines, with the time each came where that is known; one longer than `LONGEST_LINE` in pieces.

    >>> [(line.number, line.said, line.whole) for line in lines(b"one\\r\\ntwo")]
    [(1, 'one', True), (2, 'two', False)]
    """
    parts = decoded(data).split("\n")
    times = printed_at_s or []
    found = []
    for number, part in enumerate(parts, start=1):
        if number == len(parts) and not part:
            break
        said = part.removesuffix("\r")
        text = plain_digits(said)
        at_s = times[number - 1] if number <= len(times) else None
        for start in range(0, len(said) or 1, LONGEST_LINE):
            end = start + LONGEST_LINE
            whole = number < len(parts) or end < len(said)
            found.append(Line(number, said[start:end], text[start:end], whole, at_s))
    return found


def times_beside(source) -> list[float] | None:
    """
    When each line of `<stem>.txt` came, from `<stem>.lines.json` beside it; None if there is no such file.

    RawDataError if it is no object with `lines`, a list of Unix times that do not go back.
    """
    if isinstance(source, bytes | bytearray) or Path(source).suffix != ".txt":
        return None
    path = Path(source).with_suffix(".lines.json")
    content = beside(path, "the times of lines: an object in JSON", dict)
    if content is None:
        return None
    times = content.get("lines")
    if not isinstance(times, list) or not all(map(is_time, times)) or times != sorted(times):
        raise RawDataError(path, None, times, "lines: a list of Unix times in order")
    return [float(time) for time in times]


def beside(path: Path, expected: str, kind: type):
    """What a JSON file beside another holds; None if it is not there; RawDataError if it holds anything else."""
    try:
        if not path.is_file():
            return None
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise RawDataError(path, None, error, expected) from error
    if not isinstance(content, kind):
        raise RawDataError(path, None, content, expected)
    return content


def is_time(value) -> bool:
    """Whether it is a Unix time in seconds."""
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return known and abs(value) < LATEST_S and isfinite(value)
