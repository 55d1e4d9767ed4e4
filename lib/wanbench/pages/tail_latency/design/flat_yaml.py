"""Strict reader and writer of flat YAML: names with scalars, or lists of numbers and text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import yaml

from wanbench.errors import ParameterError

LARGEST_BYTES = 64 << 10
"""Maximum size of a file: far above the largest known workload or driver file, 3 kB."""
DEEPEST = 3
"""Maximum depth: a list of lists in a mapping."""
_NULLS = ("", "~", "null", "Null", "NULL")
_FLAGS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9_]{0,24})")
_NUMBER = re.compile(r"[-+]?(?=.*[.eE])([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][-+]?[0-9]{1,3})?")


@dataclass(frozen=True)
class Scalar:
    """A scalar: its text, whether it is unquoted, and its line, from 1."""

    text: str
    plain: bool
    line: int

    @property
    def value(self) -> object:
        """
        None, a bool, int, float or str. Octal, hexadecimal, sexagesimal numbers and dates of YAML 1.1 stay text, as
        parsers disagree on them.
        """
        if not self.plain:
            return self.text
        if self.text in _NULLS:
            return None
        if self.text in _FLAGS:
            return _FLAGS[self.text]
        if _WHOLE.fullmatch(self.text):
            return int(self.text)
        return float(self.text) if _NUMBER.fullmatch(self.text) else self.text


def read_flat(path) -> dict[str, Scalar | list]:
    """
    The entries of a file by name: a Scalar, or a list of scalars or lists of scalars.

    Raises
    ------
    ParameterError
        If the file cannot be read, has more than `LARGEST_BYTES`, is not YAML, or has more than one document, a name
        twice, a tag, an anchor or alias, or a deeper structure; names file and line.
    """
    path = Path(path)
    try:
        if not path.is_file():
            raise ParameterError(f"{path} is not a file; allowed: a YAML file.")
        with open(path, "rb") as file:
            content = file.read(LARGEST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise ParameterError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    if len(content) > LARGEST_BYTES:
        raise ParameterError(f"{path} has more than {LARGEST_BYTES:,} bytes; allowed: a smaller file.")
    try:
        return _entries(path, content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ParameterError(f"{path} is not UTF-8; allowed: text in UTF-8.") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise ParameterError(
            f"{path}{line}: {getattr(error, 'problem', None) or 'this is not YAML'}; allowed: YAML."
        ) from None


def _entries(path: Path, text: str) -> dict[str, Scalar | list]:
    entries: dict[str, Scalar | list] = {}
    name, open_lists, documents, in_mapping = None, [], 0, False
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        line = event.start_mark.line + 1 if event.start_mark else 1

        def refuse(what, allowed, line=line):
            raise ParameterError(f"{path}, line {line}: there is {what}; allowed: {allowed}.")

        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            refuse("an anchor or alias", "values written out")
        if getattr(event, "tag", None):
            refuse(f"the tag {event.tag[:60]!r}", "values without tags")
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                refuse("a second document", "one")
        elif isinstance(event, yaml.MappingStartEvent):
            if in_mapping:
                refuse("a mapping in the mapping", "scalars and lists")
            in_mapping = True
        elif isinstance(event, yaml.SequenceStartEvent):
            if name is None or len(open_lists) + 2 > DEEPEST:
                refuse("a list in this place", "names with scalars, or lists of scalars or of such lists")
            made: list = []
            if open_lists:
                open_lists[-1].append(made)
            else:
                entries[name] = made
            open_lists.append(made)
        elif isinstance(event, yaml.SequenceEndEvent):
            open_lists.pop()
            name = name if open_lists else None
        elif isinstance(event, yaml.ScalarEvent):
            scalar = Scalar(event.value, event.implicit[0], line)
            if not in_mapping:
                refuse(f"the text {event.value[:60]!r}", "names with values")
            if open_lists:
                open_lists[-1].append(scalar.value)
            elif name is None:
                name = event.value
                if name in entries:
                    refuse(f"{name[:60]!r} twice", "each name once")
            else:
                entries[name], name = scalar, None
    if not in_mapping:
        raise ParameterError(f"{path} is empty; allowed: names with values.")
    return entries


def flat_text(entries: dict[str, object]) -> str:
    r"""
    The text of a file with these entries, which `read_flat` reads back.

    >>> print(flat_text({"name": "a", "topics": 1, "rates": [[0, 5]], "config": "a=1\nb=2\n"}), end="")
    name: "a"
    topics: 1
    rates: [[0, 5]]
    config: |
      a=1
      b=2
    """
    return "".join(f"{name}: {_written(value)}\n" for name, value in entries.items())


def _written(value) -> str:
    if isinstance(value, str) and _fits_block(value):
        return "|\n" + "\n".join(f"  {line}" if line else "" for line in value.split("\n")[:-1])
    return _inline(value)


def _fits_block(text: str) -> bool:
    """Whether a literal block represents it exactly: no leading space, and one line end at the end."""
    return text[-1:] == "\n" and not text[:1].isspace() and text[-2:-1] != "\n" and "\t" not in text


def _inline(value) -> str:
    """A value on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_inline, value))}]"
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'
