"""Fields of the OpenMessaging Benchmark's files: types, checks and serialisation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, field, fields
from pathlib import Path

from wanbench.checks import check_choice, check_flag, check_number, refusal
from wanbench.errors import ParameterError
from wanbench.files import replace_file

from .flat_yaml import Scalar, flat_text, read_flat
from .java_properties import read_properties

LARGEST_INT, LARGEST_LONG = 2**31 - 1, 2**63 - 1
"""Ranges of Java's int and long, the benchmark's whole numbers."""
_MOST_ENTRIES = 10_000
"""Maximum length of a list."""


def kept(kind: str, default=MISSING, *, shown: bool = True, **more):
    """Declare a field of a file, of a type that `_check_value` knows. Without default it is required."""
    metadata = {"kind": kind, **more}
    return field(default=default, repr=shown, metadata=metadata)


class FlatFile:
    """Base of both file types: a dataclass with the file's fields; None for a missing one."""

    def __post_init__(self):
        for each in fields(self):
            value = getattr(self, each.name)
            object.__setattr__(self, each.name, _check_value(type(self), each, value))

    @classmethod
    def of_mapping(cls, values: Mapping):
        """
        Build from names and values as in a file.

        Raises
        ------
        ParameterError
            If a name is unknown or missing, or a value has the wrong type; the error names what is allowed.
        """
        if not isinstance(values, Mapping):
            raise refusal(cls.__name__, values, "a mapping of its fields")
        _check_names(cls, values)
        return cls(**values)

    def as_mapping(self) -> dict[str, object]:
        """The present fields, in file order."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    def text(self) -> str:
        """The file's content."""
        return flat_text(self.as_mapping())

    def write(self, path) -> Path:
        """Write the file atomically; returns its path. The benchmark requires an extension such as .yaml."""
        path = Path(path)
        if path.suffix not in (".yaml", ".yml"):
            raise refusal("path", str(path), "a name that ends in .yaml or .yml")
        replace_file(path, self.text().encode())
        return path


def read_file(cls, path, required=None):
    """Read a file of this type; `required` are its required names, by default those without a default."""
    entries = read_flat(path)
    known = {each.name: each for each in fields(cls)}
    in_order = sorted(entries, key=lambda name: name not in known or known[name].metadata["kind"] != "choice")
    values: dict[str, object] = dict.fromkeys(known)  # of those that are required none is missing
    for name in in_order:  # choices first: other fields may depend on them, as on the system of a driver
        given = entries[name]
        try:
            _check_names(cls, [name], ())
            values[name] = _check_value(cls, known[name], _as_kind(known[name], given))
        except ParameterError as error:
            line = f", line {given.line}" if isinstance(given, Scalar) else ""
            raise ParameterError(f"{path}{line}: {error}") from None
    _check_names(cls, entries, required, place=f"{path}: ")
    return cls(**values)


def _as_kind(each, given):
    """Convert an entry; text fields accept any scalar except null, as in the benchmark."""
    if not isinstance(given, Scalar):
        return given
    is_text = each.metadata["kind"] in ("text", "properties", "choice")
    return given.text if is_text and given.value is not None else given.value


def _check_names(cls, given, required=None, place=""):
    names = [each.name for each in fields(cls)]
    if required is None:
        required = {each.name for each in fields(cls) if each.default is MISSING}
    for name in given:
        if name not in names:
            raise ParameterError(
                f"{place}{cls.__name__} has no field {str(name)[:100]!r}; allowed: {', '.join(names)}."
            )
    if missing := [name for name in names if name in required and name not in given]:
        raise ParameterError(f"{place}{cls.__name__} lacks {', '.join(missing)}.")


def _check_value(cls, each, value):
    label, kind = f"{cls.__name__} {each.name}", each.metadata["kind"]
    if value is None and (each.default is None or each.name == "name"):
        return None
    if kind == "whole":
        return check_number(label, value, 0, each.metadata.get("high", LARGEST_INT), whole=True)
    if kind == "share":
        return float(check_number(label, value, 0, 1))
    if kind == "flag":
        return check_flag(label, value)
    if kind == "choice":
        return check_choice(label, value, each.metadata["allowed"])
    if kind == "text":
        if not isinstance(value, str) or not value.isprintable():
            raise refusal(label, value, "one line of text")
        return value
    if kind == "properties":
        return _check_properties(label, value)
    if not isinstance(value, list | tuple) or len(value) > _MOST_ENTRIES:
        raise refusal(label, value, f"a list of up to {_MOST_ENTRIES:,} entries")
    if kind == "texts":
        if not all(isinstance(entry, str) and entry.isprintable() for entry in value):
            raise refusal(label, value, "a list of names")
        return tuple(value)
    if kind == "rows":
        if not all(isinstance(row, list | tuple) and len(row) in (2, 3) for row in value):
            raise refusal(label, value, "a list of [minutes, rate] or [hour, minute, rate]")
        return tuple(tuple(_whole(label, number) for number in row) for row in value)
    return tuple(_whole(label, number) for number in value)


def _whole(label, number):
    return check_number(f"a number in {label}", number, 0, LARGEST_INT, whole=True)


def _check_properties(label, value):
    """Check for printable characters, tabs and line ends; errors do not show the text."""
    fault = None
    if not isinstance(value, str):
        fault = f"a {type(value).__name__}"
    elif not value.replace("\n", "").replace("\t", "").isprintable():
        fault = "text with characters that cannot be printed"
    if fault:
        raise ParameterError(f"{label} is {fault}; allowed: the text of a Java properties file.")
    try:
        read_properties(value)
    except ParameterError as error:
        raise ParameterError(f"{label}: {error}") from None
    return value
