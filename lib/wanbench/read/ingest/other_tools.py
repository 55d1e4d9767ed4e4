"""Recognise output that the chosen reader cannot read, and advise what to do instead."""

import re
from functools import cache
from pathlib import Path

from wanbench.errors import RawDataError

from .content import File, as_utf8, decompressed

OPENING_BYTES = 4096
"""Number of bytes at the start of a file in which a tool is recognised."""


@cache
def _tools() -> list[tuple[str, re.Pattern[str], str]]:
    """Return each tool's name, the pattern of its first lines, and advice; the first match counts."""
    lines = Path(__file__).with_name("other_tools.tsv").read_text("utf-8").splitlines()[1:]
    rows = (line.split("\t") for line in lines)
    return [(name, re.compile(pattern, re.MULTILINE), advice) for name, pattern, advice in rows]


def recognised(opening: str, reader: str = "") -> str:
    """
    Describe for an error message which tool the first lines look like, and what to do; "" if no tool is recognised.

    `reader` names the experiment whose reader read the file; that experiment's own tool is not mentioned.

    >>> recognised("sockperf: ====> avg-latency=40.617")[:34]
    ' (this looks like sockperf: write '
    """
    for name, pattern, advice in _tools():
        if pattern.search(opening[:OPENING_BYTES]):
            return "" if f"read_files(paths, {reader!r})" == advice else f" (this looks like {name}: {advice})"
    return ""


def recognised_file(path: File, reader: str) -> str:
    """Describe, as `recognised` does, which tool a file's first lines look like; "" if it cannot be read as text."""
    try:
        with decompressed(path) as (_, file):
            return recognised(as_utf8(file).read(OPENING_BYTES).decode("utf-8", "replace").lstrip("\ufeff"), reader)
    except RawDataError:
        return ""
