"""Read JSON of other programs, and check the types of its members."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NoReturn, TypeGuard, TypeVar

import msgspec
from msgspec import inspect

from wanbench.errors import RawDataError

from .content import File, Source, read_bytes, read_text

LARGEST = 10**18
"""Largest allowed number; no tool prints larger ones, and smaller whole numbers fit into 64 bits."""

LATEST_S = 1e11
"""Largest allowed Unix time in seconds; larger numbers may be milliseconds."""

LONGEST_US = 10**13
"""Maximum run time of a program: four months."""

T = TypeVar("T")
LARGEST_BYTES = 256 << 20
"""Size of the largest allowed file; the largest files, with the batch counts of a long load, have a few MB."""

FREE_VALUES = 200_000
"""Number of values allowed in any file; each takes 50 to 100 bytes of memory."""


def check_values(path: File, text: str, bytes_per_value: int) -> None:
    """Raise RawDataError if long JSON has more than one value per `bytes_per_value` characters, to save memory."""
    most = max(FREE_VALUES, len(text) // bytes_per_value)
    if len(text) > most and (n := sum(map(text.count, ",[{"))) > most:
        found = f"{n:,} values in {len(text):,} characters"
        raise RawDataError(path, None, found, f"at most {most:,} values in a file of this size")


def text(value: str) -> str:
    """Return the text, and replace characters that UTF-8 cannot encode."""
    return value.encode("utf-8", "replace").decode()


def is_time(value: object) -> bool:
    """Return whether the value is a Unix time in seconds."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LATEST_S  # so not NaN


def fits(value: object, *shape: object) -> bool:
    """
    Return whether a value is a list whose elements match `shape`, which has, for each element, either the required
    value or a function that returns whether the element is valid.
    """
    return (
        isinstance(value, list)
        and len(value) == len(shape)
        and all(part(one) if callable(part) else part == one for one, part in zip(value, shape, strict=True))
    )


def is_count(value: object) -> TypeGuard[int]:
    """Return whether a value is a whole number from 0 that fits into 64 bits."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def are_counts(value: object) -> bool:
    return isinstance(value, list) and all(map(is_count, value))


def is_text(value: object) -> bool:
    return isinstance(value, str)


def is_us(value: object) -> bool:
    """Return whether a value can be a time in µs since a program's `origin_ns`, as programs print it in their lines."""
    return is_count(value) and value < LONGEST_US


def members_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a dict, as json's `object_pairs_hook`; raise ValueError if a member is repeated with different values."""
    members = dict(pairs)
    if len(members) < len(pairs) and any(members[name] != value for name, value in pairs):
        raise ValueError("a member is repeated with different values")
    return members


def read_json(path: str | Path, kind: type[T], expected: str) -> T:
    """
    Read the object or list (`kind`: dict or list) in a JSON file of this library; raise RawDataError for anything else.
    """
    path, data = read_bytes(Path(path), most_bytes=LARGEST_BYTES)
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise RawDataError(path, None, error, expected) from error
    if not isinstance(content, kind):
        raise RawDataError(path, None, str(content)[:200], expected)
    return content


def read_objects(source: Source, expected: str) -> list[Members]:
    """
    Read JSON of another program: an object, a list of objects, or an object per line; raise RawDataError otherwise.
    """
    path, content = read_text(source, most_bytes=LARGEST_BYTES)
    check_values(path, content, bytes_per_value=6)
    try:
        values = json.loads(content)
    except (ValueError, RecursionError) as error:
        try:
            values = [json.loads(line) for line in content.splitlines() if line.strip()]
        except (ValueError, RecursionError):
            raise RawDataError(path, getattr(error, "lineno", None), error, expected) from None
    values = values if isinstance(values, list) else [values]
    if not values or not all(isinstance(value, dict) for value in values):
        raise RawDataError(path, None, content.strip()[:80] or "an empty file", expected)
    return [Members(path, None, value) for value in values]


def object_of_line(path: File, line_number: int, line: bytes, expected: str) -> Members:
    """Read the JSON object in a line; raise RawDataError for anything else."""
    try:
        content = json.loads(line)
        if not isinstance(content, dict):
            raise ValueError("not an object")
    except (ValueError, RecursionError):
        raise RawDataError(path, line_number, line.decode("utf-8", "replace").strip(), expected) from None
    return Members(path, line_number, content)


class Members:
    """
    A JSON object in a file, whose members are read by type. A member that is missing, null or NaN is read as None, or
    as an empty object or list.

    Raise RawDataError, which names the member, if a value has the wrong type, is negative, or is too large.
    """

    __slots__ = ("line_number", "path", "values", "where")

    def __init__(self, path: File, line_number: int | None, values: dict[str, Any], where: str = ""):
        self.path, self.line_number, self.values, self.where = path, line_number, values, where

    def of(self, values: dict[str, Any]) -> Members:
        """Return an object with these values, whose errors name the same line of the file as this object's."""
        return Members(self.path, self.line_number, values, self.where)

    def refuse(self, found: str, expected: str) -> NoReturn:
        """Raise RawDataError for this object's line, with what was found and what was expected."""
        raise RawDataError(self.path, self.line_number, found, expected)

    def members(self, name: str) -> Members:
        """Return a member that is an object; an empty object if it is missing."""
        values = self._typed(name, dict, "an object") or {}
        return Members(self.path, self.line_number, values, self._place(name))

    def list(self, name: str) -> list[Members]:
        """Return a member that is a list of objects; an empty list if it is missing."""
        values = self._typed(name, list, "a list of objects") or []
        for value in values:
            if not isinstance(value, dict):
                self._refuse(name, value, "a list of objects")
        place = self._place(name)
        return [Members(self.path, self.line_number, value, f"{place}[{n}]") for n, value in enumerate(values)]

    def text(self, name: str, allowed: tuple[str, ...] = ()) -> str | None:
        """Return a member that is text, and one of `allowed` if given; characters invalid in UTF-8 are replaced."""
        value = self._typed(name, str, "text")
        if allowed and value is not None and value not in allowed:
            self._refuse(name, value, " or ".join(allowed))
        return None if value is None else text(value)

    def flag(self, name: str) -> bool | None:
        """Return a member that is true or false."""
        return self._typed(name, bool, "true or false")

    def number(self, name: str, *, unknown: float | None = None, most: float = LARGEST) -> float | None:
        """
        Return the member `name`, a number from 0 to `most`; None if the member is missing or equals `unknown`, the
        program's code for an unknown value. Raise RawDataError for any other value.
        """
        value = self.values.get(name)
        if value is None or value != value or value == unknown:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
            self._refuse(name, value, f"a number from 0 to {most:g}")
        return float(value)

    def count(self, name: str, *, unknown: int | None = None, minimum: int | None = 0) -> int | None:
        """
        Return a member that must be a whole number from 0, as `number` does. If `minimum` is None, a negative number
        is allowed and returned as None.
        """
        value = self.values.get(name)
        if value is None or value != value or value == unknown:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
            self._refuse(name, value, f"a whole number from 0 to {LARGEST:g}")
        if not math.isfinite(value) or value != int(value) or (value < 0 and minimum is not None):
            self._refuse(name, value, "a whole number from 0")
        return int(value) if value >= 0 else None

    def _typed(self, name: str, kind: type[T], expected: str) -> T | None:
        value = self.values.get(name)
        if value is not None and not isinstance(value, kind):
            self._refuse(name, value, expected)
        return value

    def _place(self, name: str) -> str:
        return f"{self.where}.{name}" if self.where else name

    def _refuse(self, name: str, value: object, expected: str) -> NoReturn:
        shown = repr(value) if not isinstance(value, int) or abs(value) < LARGEST * 10 else "a huge number"
        self.refuse(f"{self._place(name)} = {shown[:80]}", expected)


def typed(members: Members, kind: type[T]) -> T:
    """
    Convert an object to the Struct `kind`. A member that is missing, null or NaN keeps its default. A negative count
    that the Struct allows means unknown: it is kept, or becomes None. A RawDataError names the first invalid member.
    """
    try:
        return msgspec.convert(members.values, kind)
    except (msgspec.ValidationError, UnicodeEncodeError):
        return _by_members(members, inspect.type_info(kind))


def _by_members(members: Members, declared: Any) -> Any:
    values = {field.name: _member(members, field.name, field.type) for field in declared.fields}
    return declared.cls(**{name: value for name, value in values.items() if value is not None})


def _member(members: Members, name: str, declared: Any) -> Any:
    null = isinstance(declared, inspect.UnionType)
    declared = declared.types[0] if null else declared
    match declared:
        case inspect.StructType():
            absent = null and name not in members.values
            return None if absent else _by_members(members.members(name), declared)
        case inspect.ListType():
            return [_by_members(part, declared.item_type) for part in members.list(name)]
        case inspect.IntType():
            least = declared.ge or 0
            return members.count(name, unknown=min(least, -1), minimum=0 if least >= -1 else None)
        case inspect.FloatType():
            return members.number(name, most=declared.le or LARGEST)
        case inspect.BoolType():
            return members.flag(name)
        case inspect.LiteralType():
            return members.text(name, tuple(map(str, declared.values)))
        case _:
            return members.text(name)
