"""
Read latency matrices, which have regions down the side and along the top, and an RTT in each cell.

A matrix can be CSV or TSV, from a spreadsheet or a cloud's web page; nested objects in JSON, as from cloudping.co; or a
table in Markdown, as in the documentation of clouds.
"""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pandas as pd

from wanbench import tables
from wanbench.errors import RawDataError
from wanbench.read.ingest import content
from wanbench.read.ingest.other_tools import recognised

from .assemble import finished
from .grid import MATRIX, Grid, MatrixTimes, NoMatrixError, read_grid
from .originals import About, check_about, read_bytes, source_of_bytes
from .sheet import AS_TEXT

MAX_BYTES = 1 << 24  # 16 MiB, decompressed: 40 bytes per cell of the largest matrix.
MAX_ROWS = 600  # More than twice the regions of all clouds in the catalogue.
MAX_COLUMNS = 600
DELIMITERS = ("\t", ";", ",", "|")  # Tried in this order: a comma can also be a decimal mark.
RULE = re.compile(r"\|?(?:\s*:?-+:?\s*\|)+(?:\s*:?-+:?)?")  # The line below the names of a table in Markdown.


def read_matrix(
    path: str | Path,
    *,
    cloud: str | None = None,
    statistic: str | None = None,
    unit: str | None = None,
    transposed: bool | None = None,
    decimal: str | None = None,
    about: About = None,
) -> dict[str, pd.DataFrame]:
    """
    Read a latency matrix in CSV, TSV, JSON or Markdown into tables tests, pings, sources, unread and flags.

    The first column names the regions that measure, the first line the regions that answer, in any form that
    `region_from` reads. Cells are times, with or without a unit. An empty cell, "-" or "N/A" means that nothing was
    measured, so a triangular matrix can be read, too. Each cell with a time is a test, even if a pair occurs twice. In
    JSON, an object (or its member `data`) maps each measuring region to an object that maps answering regions to times.
    In Markdown, the file must have one table only. In other text, cells are separated by the first of tab, semicolon,
    comma and vertical bar that occurs in at least half of the lines.

    Table unread lists what was skipped: each cell that is not a time, and each name that is not exactly one region. One
    row counts the values from a region to itself, and one the pairs without a value in either direction.

    Parameters
    ----------
    path : path-like
    cloud : "aws", "gcp", "azure" or "ibm", optional
        The cloud of the regions; needed if regions of several clouds have the same name.
    statistic : "min", "mean", "median", "p50", "p90", "p95", "p99" or "max", optional
        The statistic of the times. Needed unless the corner of the table names it ("Average latency (ms)").
    unit : "ms", "s" or "us", optional
        Unit of cells without one. Default: the unit in the corner, or else ms.
    transposed : bool, optional
        Whether the first column has the regions that answer, and the first line the regions that measure. Default: what
        the corner says ("To \\ From", "Server / Client"), or else False; an unclear corner is an error.
    decimal : "." or ",", optional
        Needed if cells have commas, because 1,204 can mean 1.204 or 1204.
    about : mapping, optional
        title, address, version and licence of the file.

    Raises
    ------
    RawDataError
        If the file cannot be read, is not such a matrix, or has no cell that can be read.
    ParameterError
        If the value of a parameter is not allowed, or the statistic or direction is unclear.
    """
    check_about(about)
    text, source = _text(path, about)
    if text.lstrip().startswith("{"):
        grid = _of_json(path, text)
    elif any(RULE.fullmatch(line.strip()) for line in text.split("\n")):
        grid = _grid(path, _without_bars(text), "|")
    else:
        grid = _grid(path, text, _delimiter(text))
    try:
        matrix = read_grid(grid, cloud, statistic, unit, transposed, decimal)
    except NoMatrixError as error:
        expected = MATRIX + recognised(text)
        raise RawDataError(path, grid.lines[0] if grid.lines else None, error, expected) from None
    return _tables(path, source, matrix)


def _text(path: str | Path, about: About) -> tuple[str, dict[str, Any]]:
    """Return the text of a file (UTF-8, or UTF-16 with a byte order mark) and its row of table sources."""
    data = read_bytes(path)
    text = content.decoded(path, content.unpacked(path, data, most_bytes=MAX_BYTES))
    if "\0" in text:
        raise RawDataError(path, text[: text.index("\0")].count("\n") + 1, "NUL", "text")
    return text.replace("\r\n", "\n").replace("\r", "\n"), source_of_bytes(path, data, about)


def _without_bars(text: str) -> str:
    """Return a table in Markdown without bars at the ends of lines and without its rule, with the same line numbers."""
    lines = (line.strip() for line in text.split("\n"))
    return "\n".join("" if RULE.fullmatch(line) else line.removeprefix("|").removesuffix("|") for line in lines)


def _delimiter(text: str) -> str:
    lines = [line for line in text.split("\n")[:50] if line.strip() and not line.startswith("#")][:10]
    for delimiter in DELIMITERS:
        if sum(delimiter in line for line in lines) * 2 >= len(lines) > 0:
            return delimiter
    return ","


def _of_json(path: str | Path, text: str) -> Grid:
    """Read nested objects as a grid; texts in the member `metadata` become its caption."""
    wanted = "an object of regions to objects of regions to times"
    try:
        found = json.loads(text, **AS_TEXT)
    except (ValueError, RecursionError) as error:
        raise RawDataError(path, getattr(error, "lineno", None), error, "a latency matrix in JSON") from None
    cells = found.get("data", found)
    if not isinstance(cells, dict) or not all(isinstance(row, dict) for row in cells.values()):
        raise RawDataError(path, 1, text, wanted)
    tops = list(dict.fromkeys(top for row in cells.values() for top in row))
    if len(tops) >= MAX_COLUMNS or len(cells) >= MAX_ROWS:
        raise RawDataError(path, 1, "more", f"at most {MAX_ROWS} rows and {MAX_COLUMNS} columns")
    rows = [["", *tops]]
    rows += [[side, *("" if row.get(top) is None else str(row[top]) for top in tops)] for side, row in cells.items()]
    about = found.get("metadata")
    texts = about.values() if isinstance(about, dict) else ()
    above = " ".join(f"({value.replace('_', '')})" for value in texts if isinstance(value, str))
    return Grid(rows, [1] * len(rows), above)


def _grid(path: str | Path, text: str, delimiter: str) -> Grid:
    """Read CSV as a grid without empty rows; comments and single cells above the matrix become its caption."""
    rows, lines, above, at = [], [], [], 0
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True, skipinitialspace=True)
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
            if len(rows) > MAX_ROWS or len(cells) > MAX_COLUMNS:
                raise RawDataError(path, line, "more", f"at most {MAX_ROWS} rows and {MAX_COLUMNS} columns")
    except csv.Error as error:
        raise RawDataError(path, at + 1, error, "CSV whose quotes are closed") from None
    return Grid(rows, lines, " ".join(above))


def _tables(path: str | Path, source: dict[str, Any], matrix: MatrixTimes) -> dict[str, pd.DataFrame]:
    """Return the tables of a matrix; raise RawDataError if it has no time between two regions."""
    name = Path(path).name
    unread: list[dict[str, Any]] = [row | {"path": str(path)} for row in matrix.unread]
    unread.sort(key=lambda row: row["line_number"] or 0)
    given = {frozenset(time["ends"]) for time in matrix.times}
    blank = matrix.blank - given
    if not given:
        if not unread:
            raise RawDataError(path, None, "no time between two regions", "a latency matrix")
        found = f"{unread[0]['found']} (and no time between two regions)"
        raise RawDataError(path, unread[0]["line_number"], found, unread[0]["expected"])
    if within := matrix.within:
        found = f"values from a region to itself: {len(within)}, {min(within):g} to {max(within):g} ms"
        unread.append({"path": str(path), "found": found, "expected": "times between two regions"})
    if blank:
        pairs = sorted(" and ".join(sorted(pair)) for pair in blank)
        more = f", {len(pairs) - 3} more" if len(pairs) > 3 else ""
        found = f"pairs without a value in either direction: {len(pairs)} ({', '.join(pairs[:3])}{more})"
        unread.append({"path": str(path), "found": found, "expected": "a time"})
    tests, pings = [], []
    for time in matrix.times:
        test = {"run_id": name, "test_id": f"{name}:{time['line']}:{time['column']}", "attempt": 1}
        test |= {"from_region": time["ends"][0], "to_region": time["ends"][1]}
        tests.append(test | {"outcome": "done"})
        pings.append(test | {"source_file": str(path), matrix.column: time["time_ms"]})
    rows = {"tests": tests, "pings": pings, "sources": [source], "unread": unread}
    return finished({table: tables.from_rows(table, values) for table, values in rows.items()})
