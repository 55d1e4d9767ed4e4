"""
Parse numbers as Java formats them in any locale, possibly regrouped later.

A mark is a decimal mark if the tool's usual number of digits follows it, if it follows another mark, or if the digits
around it cannot be groups of three. Ambiguous ones ("1,600") are not guessed.
"""

from __future__ import annotations

import re
from math import inf, isfinite

GROUPING = "'’\u00a0\u2009\u202f"
_MARKS = f"[.,{GROUPING}]"
WHOLE = rf"-?(?:\d{{1,3}}(?:{_MARKS}\d{{3}}){{1,5}}|\d{{1,19}})"
REAL = rf"(?:NaN|-?(?:Infinity|∞)|-?\d(?:[\d .,{GROUPING}]{{0,30}}\d)?)"
"""Patterns of a whole number, and of a real one with any number of decimals; neither is sure to be one."""

_DIGITS = re.compile(r"\d+")
_MOST = 2**63 - 1
"""The largest count of a table, and of Java."""


def real_with(decimals: int) -> str:
    """Pattern of a real number with this number of decimals."""
    whole = rf"(?:\d{{1,3}}(?:{_MARKS}\d{{3}}){{1,5}}|\d{{1,19}})"
    return rf"(?:NaN|-?(?:Infinity|∞)|-?{whole}[.,]\d{{{decimals}}})"


def whole(text: str) -> int:
    """
    A whole number; ValueError if it is not one, or needs more than 64 bits.

    >>> whole("20079"), whole("1.000.000"), whole("-12")
    (20079, 1000000, -12)
    """
    if len(text) < 19 and text.isascii() and text.isdigit():
        return int(text)
    sign = -1 if text.startswith("-") else 1
    groups = _DIGITS.findall(text)
    if not groups or (len(groups) > 1 and not _are_groups(groups)) or len(text) > 40:
        raise ValueError(f"{text!r} is not a whole number")
    value = int("".join(groups))
    if value > _MOST:
        raise ValueError(f"{text!r} is more than any count")
    return sign * value


def real(text: str, decimals: int) -> float | None:
    """
    A real number; None for NaN and infinity; ValueError if its marks are ambiguous.

    Parameters
    ----------
    text : str
    decimals : int
        As many as the tool prints.

    Examples
    --------
    >>> real("9986,019573", 6), real("1.234,5", 1), real("1\u202f999,6", 1), real("-0.0000", 4), real("NaN", 2)
    (9986.019573, 1234.5, 1999.6, 0.0, None)
    >>> real("1,600", 1)
    Traceback (most recent call last):
        ...
    ValueError: '1,600' may be a decimal number or one in groups of three
    """
    before, point, fraction = text.partition(".")
    if point and len(fraction) == decimals and text.isascii() and before.isdigit() and fraction.isdigit():
        return float(text)
    if not text[-1:].isdigit():
        return None
    sign = -1.0 if text.startswith("-") else 1.0
    groups = _DIGITS.findall(text)
    marks = _DIGITS.sub("", text.lstrip("-"))
    if len(marks) != len(groups) - 1:
        raise ValueError(f"{text!r} is not a number")
    if _ends_in_decimals(text, groups, marks, decimals):
        *groups, fraction = groups
    else:
        fraction = "0"
    if len(groups) > 1 and (not _are_groups(groups) or len(set(marks[: len(groups) - 1])) > 1):
        raise ValueError(f"{text!r} is not a number in groups of three")
    value = float(f"{''.join(groups)}.{fraction}")
    return sign * value + 0.0 if isfinite(value) and value < inf else None


def _ends_in_decimals(text, groups, marks, decimals) -> bool:
    if not marks or marks[-1] not in ".,":
        return False
    if marks[-1] in marks[:-1]:
        return False
    if len(groups[-1]) == decimals or len(groups[-1]) != 3:
        return True
    if len(marks) > 1 or len(groups[0]) > 3 or groups[0] == "0" or marks == ".":
        return True
    raise ValueError(f"{text!r} may be a decimal number or one in groups of three")


def _are_groups(groups) -> bool:
    return len(groups[0]) <= 3 and all(len(group) == 3 for group in groups[1:])
