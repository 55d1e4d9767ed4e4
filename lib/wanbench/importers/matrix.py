"""
Latency matrices: regions down the side and along the top, a round-trip time in each cell.

Wide CSV or TSV, as spreadsheets, grids of measurements and the clouds' own pages give them; `markdown` finds such
tables in a document. Imports `grid`, `provenance`, `assemble`, `tables`, `errors`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from .. import tables
from ..errors import ParameterError, RawDataError
from ..ingest import content
from .assemble import finished
from .grid import MATRIX, Found, Grid, NoMatrixError, read_grid
from .provenance import check_about, read_bytes, source_of_bytes

MOST_BYTES = 1 << 24
MOST_ROWS = MOST_COLUMNS = 600
DELIMITERS = ("\t", ";", ",", "|")


def read_matrix(
    path,
    *,
    cloud: str | None = None,
    statistic: str | None = None,
    unit: str | None = None,
    transposed: bool | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    about: Mapping[str, str] | None = None,
) -> dict:
    """
    Tables of a latency matrix in CSV or TSV: tests, pings, sources, unread, flags.

    The first column holds the region that measures, the first line those that answer, as `names.region_from`
    knows them. Names may take two columns or two lines (cloud and code, or name and code). Cells are times, alone or
    with their unit; empty ones, "-" or "N/A" mean that nothing was measured, so a triangle is enough. Every time is
    a test of its own, also where a pair stands twice.

    Not silent: a cell that is no time, and a name that is no region or could be several, are rows of unread and the
    others are read; so is, in one row each, how many values lead from a region to itself (they are no pairs), and
    which pairs have no value in either direction.

    Parameters
    ----------
    path : path-like
    cloud : "aws", "gcp", "azure" or "ibm", optional
        Whose regions these are; needed where a name could be another cloud's.
    statistic : "min", "mean", "median", "p50", "p90", "p95", "p99" or "max", optional
        What the times are. Needed unless the corner of the table says it ("Average latency (ms)").
    unit : "ms", "s" or "us", optional
        Of cells without their own. Default: what the corner says, else ms.
    transposed : bool, optional
        Whether the first column holds the regions that answer and the first line those that measure. Default: what
        the corner says ("To \\ From"), else not.
    delimiter : optional
        Default: the first of tab, semicolon, comma and bar that separates the lines.
    decimal : "." or ",", optional
        Default: told by the cells.
    about : mapping, optional
        title, address, version, licence of the file.

    Raises
    ------
    RawDataError
        If the file cannot be read or is no such matrix, or not one cell of it can be read.
    ParameterError
        If a parameter is not known, or nobody says what the times are.
    """
    check_about(about)
    if delimiter is not None and (
        not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n'
    ):
        raise ParameterError(f"delimiter is {delimiter!r}; allowed is one character")
    text, source = read_text(path, about)
    delimiter = delimiter or _delimiter(text)
    grid = _grid(path, text, delimiter)
    settings = {"cloud": cloud, "unit": unit, "transposed": transposed, "decimal": decimal}
    found = Found()
    try:
        column = read_grid(grid, found, statistic=statistic, comma_likely=delimiter == ";", **settings)
    except NoMatrixError as error:
        raise RawDataError(path, grid.lines[0] if grid.lines else None, error, MATRIX) from None
    return tables_of(path, source, [(column, found)])


def read_text(path, about=None) -> tuple[str, dict]:
    """The text of a file in UTF-8 (or UTF-16 with its mark) and its row of table sources; RawDataError if none."""
    data = read_bytes(path)
    return decoded(path, data), source_of_bytes(path, data, about)


def decoded(path, data: bytes) -> str:
    """The text that bytes are, decompressed; RawDataError names the first line that is none, or the format."""
    text = content.decoded(path, content.unpacked(path, data, most_bytes=MOST_BYTES))
    if "\0" in text:
        raise RawDataError(path, text[: text.index("\0")].count("\n") + 1, "NUL", "text")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _delimiter(text):
    lines = [line for line in text.split("\n")[:50] if line.strip() and not line.startswith("#")][:10]
    for delimiter in DELIMITERS:
        if sum(delimiter in line for line in lines) * 2 >= len(lines) > 0:
            return delimiter
    return ","


def _grid(path, text, delimiter):
    """Rows that say anything; what stands above the matrix in a single cell, and comments, are its caption."""
    rows, lines, above, at = [], [], [], 0
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=delimiter, strict=True, skipinitialspace=True
    )
    try:
        for cells in reader:
            line, at = at + 1, reader.line_num
            cells = [cell.strip() for cell in cells]
            filled = [cell for cell in cells if cell]
            comment = bool(filled) and filled[0].startswith("#") and (filled[0] != "#" or len(filled) == 1)
            if comment or (not rows and len(filled) == 1 and cells[0]):
                above.append(" ".join(filled))
            elif filled:
                rows.append(cells)
                lines.append(line)
            if len(rows) > MOST_ROWS or len(cells) > MOST_COLUMNS:
                raise RawDataError(path, line, "more", f"at most {MOST_ROWS} rows and {MOST_COLUMNS} columns")
    except csv.Error as error:
        raise RawDataError(path, at + 1, error, "CSV whose quotes are closed") from None
    return Grid(rows, lines, " ".join(above))


def tables_of(path, source: dict, parts: Sequence[tuple[str, Found]], settings: Sequence[str] = ()) -> dict:
    """
    The tables of what was found in a file: for each part the column of its times and, where several parts know a
    pair, its setting.

    RawDataError if there is not one time between two regions.
    """
    name = Path(path).name
    unread = [{"path": str(path)} | row for _, found in parts for row in found.unread]
    unread.sort(key=lambda row: row["line_number"] or 0)
    within = [time_ms for _, found in parts for time_ms in found.within]
    given = {frozenset(time["ends"]) for _, found in parts for time in found.times}
    blank = set().union(*(found.blank for _, found in parts)) - given
    if not given:
        first = unread[0] if unread else {"line_number": None, "found": "no time between two regions"}
        found = f"{first['found']} (and not one time between two regions)" if unread else first["found"]
        raise RawDataError(path, first["line_number"], found, first.get("expected", "a latency matrix"))
    if within:
        unread.append(
            {
                "path": str(path),
                "found": f"values from a region to itself: {len(within)}, {min(within):g} to {max(within):g} ms",
                "expected": "two regions: these are no pairs",
            }
        )
    if blank:
        some = sorted(" and ".join(sorted(pair)) for pair in blank)
        more = f", {len(some) - 3} more" if len(some) > 3 else ""
        unread.append(
            {
                "path": str(path),
                "found": f"pairs without a value in either direction: {len(some)} ({', '.join(some[:3])}{more})",
                "expected": "a time",
            }
        )
    seen = [ends for _, found in parts for ends in {time["ends"] for time in found.times}]
    several = len(seen) != len(set(seen))
    tests, pings = [], []
    for number, (column, found) in enumerate(parts):
        setting = (settings[number] or None) if settings and several else None
        for time in found.times:
            test = {
                "run_id": name,
                "test_id": f"{name}:{time['line']}:{time['place']}",
                "attempt": 1,
                "from_region": time["ends"][0],
                "to_region": time["ends"][1],
            }
            tests.append(test | {"setting": setting, "outcome": "done"})
            pings.append(test | {"source_file": str(path), column: time["time_ms"]})
    rows = {"tests": tests, "pings": pings, "sources": [source], "unread": unread}
    return finished({table: tables.from_rows(table, values) for table, values in rows.items()})
