"""
Lines of text that Kafka's tools printed, whatever has become of the file since. Imports `content` and `errors`.

Known: \\r\\n, a last line without its end, and digits of any script.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from typing import NamedTuple

from ..errors import RawDataError
from .content import plain_name

LARGEST_BYTES = 64 << 20
"""The tools print less than 1 MB in an hour, and a log of errors all the while less than this."""

OTHERWISE = "cp1252"
"""What is not UTF-8 or UTF-16 is taken as the Windows code page for Western Europe."""

LONGEST_LINE = 10_000
"""Longer ones are read in pieces, so that no line of a damaged file takes more than a moment."""

FREE_LINES, LEAST_BYTES = 100_000, 40
"""
A file may hold so many lines, or one in so many of its characters if that is more: each line takes 5 to 20 µs, and the
tools print 60 characters and more in one.
"""

LATEST_S = 1e11
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


def plain_digits(text: str) -> str:
    """
    The text with digits of other scripts as 0 to 9, character by character.

    >>> plain_digits("٣٫٥ ms, ５ records")
    '3.5 ms, 5 records'
    """
    return text if text.isascii() else text.translate(_DIGITS)


class _Digits(dict):
    """What `str.translate` looks up: each character's digit, worked out once."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        self[code] = SEPARATORS.get(character) or str(unicodedata.decimal(character, character))
        return self[code]


_DIGITS = _Digits()


def lines(path, text: str, printed_at_s: list[float] | None = None) -> Iterator[Line]:
    """
    The lines, with the time each came where that is known; one longer than `LONGEST_LINE` in pieces.

    RawDataError if there are more than a file of this size may hold.

    >>> [(line.number, line.said, line.whole) for line in lines("a.txt", "one\\r\\ntwo")]
    [(1, 'one', True), (2, 'two', False)]
    """
    n, most = text.count("\n"), max(FREE_LINES, len(text) // LEAST_BYTES)
    if n > most:
        found = f"{n:,} lines in {len(text):,} characters"
        raise RawDataError(path, None, found, f"at most {most:,} lines in a file of this size")
    return _lines(text, printed_at_s or [])


def _lines(text: str, times: list[float]) -> Iterator[Line]:
    number, at = 0, 0
    while at < len(text):
        end = text.find("\n", at)
        is_whole = end >= 0
        end = end if is_whole else len(text)
        number += 1
        at_s = times[number - 1] if number <= len(times) else None
        last = end - 1 if text[end - 1 : end] == "\r" and end > at else end
        for start in range(at, max(last, at + 1), LONGEST_LINE):
            said = text[start : min(start + LONGEST_LINE, last)]
            yield Line(number, said, plain_digits(said), is_whole or start + LONGEST_LINE < last, at_s)
        at = end + 1


def is_behind(known: dict, what, at: int) -> bool:
    """Whether a search must be made again from a place on: it was not made yet, or what it found begins before."""
    return what not in known or (known[what] is not None and known[what][0] < at)


def times_beside(source) -> list[float] | None:
    """
    When each line of `<stem>.txt` came, from `<stem>.lines.json` beside it; None if there is no such file.

    RawDataError if it is no object with `lines`, a list of Unix times that do not go back.
    """
    if isinstance(source, bytes | bytearray) or Path(plain_name(source)).suffix != ".txt":
        return None
    path = Path(plain_name(source)).with_suffix(".lines.json")
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
