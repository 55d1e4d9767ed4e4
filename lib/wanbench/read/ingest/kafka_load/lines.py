"""
Lines of Kafka's tools, robust against changes to the file.

Known: \\r\\n, a last line without its end, and digits of any script.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from wanbench.errors import RawDataError

LARGEST_BYTES = 64 << 20
"""The tools print less than 1 MB in an hour; an hour of nothing but errors stays below this, too."""

OTHERWISE = "cp1252"
"""Text other than UTF-8 or UTF-16 is decoded as the Windows code page for Western Europe."""

LONGEST_LINE = 10_000
"""Longer ones are read in pieces, so that no line of a damaged file takes more than a moment."""

FREE_LINES = 100_000
"""Lines allowed in any file: each takes 5 to 20 µs."""

CHARACTERS_PER_LINE = 40
"""A larger file may have one line per this many characters; the tools print lines of 60 and more."""

SEPARATORS = {"٫": ".", "٬": "'"}


class Line(NamedTuple):
    """
    One line: its number from 1, its text as printed, the same with digits 0 to 9, and its time.

    `whole` is False for a truncated last line: the tool was stopped while writing. `printed` and `text` have the same
    length.
    """

    number: int
    printed: str
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
    """The table for `str.translate`: each character's digit, looked up once."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        self[code] = SEPARATORS.get(character) or str(unicodedata.decimal(character, character))
        return self[code]


_DIGITS = _Digits()


def lines(path, text: str, printed_at_s: list[float] | None = None) -> Iterator[Line]:
    """
    The lines, with their times if known; one longer than `LONGEST_LINE` in pieces.

    RawDataError if there are more than a file of this size may have.

    >>> [(line.number, line.printed, line.whole) for line in lines("a.txt", "one\\r\\ntwo")]
    [(1, 'one', True), (2, 'two', False)]
    """
    n, most = text.count("\n"), max(FREE_LINES, len(text) // CHARACTERS_PER_LINE)
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
            printed = text[start : min(start + LONGEST_LINE, last)]
            yield Line(number, printed, plain_digits(printed), is_whole or start + LONGEST_LINE < last, at_s)
        at = end + 1


def must_search(matches: dict, name, at: int) -> bool:
    """Whether to search (again) from `at` on: there was no search, or its match begins before `at`."""
    return name not in matches or (matches[name] is not None and matches[name][0] < at)
