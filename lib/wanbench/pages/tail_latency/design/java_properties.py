"""Java properties text, as in drivers of the OpenMessaging Benchmark, parsed as Java does."""

from __future__ import annotations

import re
from collections.abc import Mapping

from wanbench.errors import ParameterError

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_UNIT = re.compile(r"[0-9a-fA-F]{4}")
_SPACES = " \t\f"


def read_properties(text: str) -> dict[str, str]:
    r"""
    The properties of a text; of a repeated name the last, as in Java.

    A line that ends with an odd number of backslashes continues in the next; "=", ":" or space ends the name; lines
    that begin with "#" or "!" are comments (java.util.Properties.load).

    >>> read_properties("# a comment\nacks = all\nnames=a,\\\n  b\nlinger.ms:5\nempty\n")
    {'acks': 'all', 'names': 'a,b', 'linger.ms': '5', 'empty': ''}
    """
    found = {}
    for line in _logical_lines(text):
        end, escaped = 0, False
        while end < len(line) and (escaped or line[end] not in f"=:{_SPACES}"):
            escaped = line[end] == "\\" and not escaped
            end += 1
        rest = line[end:].lstrip(_SPACES)
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip(_SPACES)
        found[_plain(line[:end])] = _plain(rest)
    return found


def properties_text(settings: Mapping[str, str]) -> str:
    r"""
    One line for each setting, escaped so that Java reads it back unchanged.

    >>> properties_text({"acks": "all", "a b": " c\\"})
    'acks=all\na\\ b=\\ c\\\\\n'
    """
    return "".join(f"{_escaped(name, True)}={_escaped(value, False)}\n" for name, value in settings.items())


def _logical_lines(text: str):
    begun = ""
    for line in re.split(r"\r\n|\r|\n", text):
        line = line.lstrip(_SPACES)
        if not begun and (not line or line[0] in "#!"):
            continue
        begun += line
        if (len(line) - len(line.rstrip("\\"))) % 2:
            begun = begun[:-1]
            continue
        yield begun
        begun = ""
    if begun:
        yield begun


def _plain(text: str) -> str:
    """Resolve escapes. Surrogate pairs become one character."""
    out, at = [], 0
    while at < len(text):
        char = text[at]
        if char != "\\":
            out.append(char)
            at += 1
        elif text[at + 1 : at + 2] == "u":
            digits = text[at + 2 : at + 6]
            if not _UNIT.fullmatch(digits):
                raise ParameterError(
                    f"a property has the escape \\u{digits!r}; allowed: \\u and four hexadecimal digits."
                )
            out.append(chr(int(digits, 16)))
            at += 6
        else:
            out.append(_ESCAPES.get(text[at + 1 : at + 2], text[at + 1 : at + 2]))
            at += 2
    return "".join(out).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _escaped(text: str, is_name: bool) -> str:
    out = []
    for at, char in enumerate(text):
        if char in "\\" or (is_name and char in "=:#! ") or (not is_name and char == " " and at == 0):
            out.append(f"\\{char}")
        elif " " <= char < "\x7f":
            out.append(char)
        else:
            units = char.encode("utf-16-be", "surrogatepass")
            out += [f"\\u{units[n] << 8 | units[n + 1]:04x}" for n in range(0, len(units), 2)]
    return "".join(out)
