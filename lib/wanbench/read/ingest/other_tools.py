"""Tools whose output is recognised but not read, or read under another name: what they are, and what to do instead."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from wanbench.errors import RawDataError

from .content import as_utf8, decompressed

OPENING_BYTES = 4096
"""A tool shows itself in its first lines."""


@cache
def _tools() -> list[tuple[str, re.Pattern, str]]:
    """Each tool's name, the pattern in its opening, and what to do; the first that matches counts."""
    lines = Path(__file__).with_name("other_tools.tsv").read_text("utf-8").splitlines()[1:]
    rows = (line.split("\t") for line in lines)
    return [(name, re.compile(pattern, re.MULTILINE), advice) for name, pattern, advice in rows]


def recognised(opening: str, reader: str = "") -> str:
    """
    What the opening of a file looks like and what to do with it, as an addition to an error; "" if nothing is known.

    `reader` is the experiment as which the file was read: its own tool is not named.

    >>> recognised("sockperf: ====> avg-latency=40.617")[:32]
    ' (this looks like sockperf: put '
    """
    for name, pattern, advice in _tools():
        if pattern.search(opening[:OPENING_BYTES]):
            return "" if f"read_files(paths, {reader!r})" == advice else f" (this looks like {name}: {advice})"
    return ""


def recognised_file(path, reader: str) -> str:
    """As `recognised`, for the opening of a file; "" if it cannot be read as text."""
    try:
        with decompressed(path) as (_, file):
            return recognised(as_utf8(file).read(OPENING_BYTES).decode("utf-8", "replace").lstrip("\ufeff"), reader)
    except RawDataError:
        return ""
