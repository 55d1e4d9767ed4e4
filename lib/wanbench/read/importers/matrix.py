"""
Read latency matrices, which have regions down the side and along the top, and an RTT in each cell.

A matrix can be CSV or TSV, from a spreadsheet or a cloud's web page; nested objects in JSON, as from cloudping.co; or
tables in a Markdown document, as in the documentation of clouds.
"""

import csv
import html
import io
import json
import re
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path

from wanbench import tables
from wanbench.checks import refusal
from wanbench.errors import RawDataError
from wanbench.read.ingest import content
from wanbench.read.ingest.other_tools import recognised

from .assemble import finished
from .grid import MATRIX, Grid, MatrixTimes, NoMatrixError, read_grid
from .originals import check_about, read_bytes, source_of_bytes
from .sheet import AS_TEXT, formatted

MAX_BYTES = 1 << 24  # 16 MiB, decompressed: 40 bytes per cell of the largest matrix.
MAX_ROWS = 600  # More than twice the regions of all clouds in the catalogue.
MAX_COLUMNS = 600
DELIMITERS = ("\t", ";", ",", "|")  # Tried in this order: a comma can also be a decimal mark.


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
    Read a latency matrix in CSV, TSV or JSON into tables tests, pings, sources, unread and flags.

    The first column names the regions that measure, the first line the regions that answer, in any form that
    `region_from` reads. Names can have two columns or two lines (cloud and code, or name and code). Cells are times,
    with or without a unit. An empty cell, "-" or "N/A" means that nothing was measured, so a triangular matrix can be
    read, too. Each cell with a time is a test, even if a pair occurs twice. In JSON, an object (or its member `data`)
    maps each measuring region to an object that maps answering regions to times.

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
    delimiter : optional
        Default: the first of tab, semicolon, comma and vertical bar that occurs in at least half of the lines.
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
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n'):
        raise refusal("delimiter", delimiter, "one character, not a quote or line break")
    text, source = read_text(path, about)
    nested = text.lstrip().startswith("{")
    delimiter = delimiter or _delimiter(text)
    grid = _of_json(path, text) if nested else _grid(path, text, delimiter)
    settings = {"cloud": cloud, "unit": unit, "transposed": transposed, "decimal": decimal}
    matrix = MatrixTimes()
    try:
        column = read_grid(grid, matrix, statistic=statistic, **settings)
    except NoMatrixError as error:
        expected = MATRIX + recognised(text)
        raise RawDataError(path, grid.lines[0] if grid.lines else None, error, expected) from None
    return tables_of(path, source, [(column, matrix)])


def read_text(path, about=None) -> tuple[str, dict]:
    """Return the text of a file (UTF-8, or UTF-16 with a byte order mark) and its row of table sources."""
    data = read_bytes(path)
    return decoded_text(path, data), source_of_bytes(path, data, about)


def decoded_text(path, data: bytes) -> str:
    """
    Decompress and decode bytes; raise RawDataError, which names the format or the first bad line, if they are not text.
    """
    text = content.decoded(path, content.unpacked(path, data, most_bytes=MAX_BYTES))
    if "\0" in text:
        raise RawDataError(path, text[: text.index("\0")].count("\n") + 1, "NUL", "text")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _delimiter(text):
    lines = [line for line in text.split("\n")[:50] if line.strip() and not line.startswith("#")][:10]
    for delimiter in DELIMITERS:
        if sum(delimiter in line for line in lines) * 2 >= len(lines) > 0:
            return delimiter
    return ","


def _of_json(path, text):
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


def _grid(path, text, delimiter):
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


def tables_of(path, source: dict, parts: Sequence[tuple[str, MatrixTimes]], settings: Sequence[str] = ()) -> dict:
    """
    Return the tables of the matrices in a file. Raise RawDataError if no matrix has a time between two regions.

    `parts` has, for each matrix, the column of table pings for its times, and its contents. `settings` has a string for
    each matrix. If any pair of regions occurs in several matrices, this string is the setting of the matrix's tests.
    """
    name = Path(path).name
    matrices = [matrix for _, matrix in parts]
    unread = [{"path": str(path)} | row for matrix in matrices for row in matrix.unread]
    unread.sort(key=lambda row: row["line_number"] or 0)
    within = [time_ms for matrix in matrices for time_ms in matrix.within]
    given = {frozenset(time["ends"]) for matrix in matrices for time in matrix.times}
    blank = set().union(*(matrix.blank for matrix in matrices)) - given
    if not given:
        if not unread:
            raise RawDataError(path, None, "no time between two regions", "a latency matrix")
        found = f"{unread[0]['found']} (and no time between two regions)"
        raise RawDataError(path, unread[0]["line_number"], found, unread[0]["expected"])
    if within:
        found = f"values from a region to itself: {len(within)}, {min(within):g} to {max(within):g} ms"
        unread.append({"path": str(path), "found": found, "expected": "times between two regions"})
    if blank:
        pairs = sorted(" and ".join(sorted(pair)) for pair in blank)
        more = f", {len(pairs) - 3} more" if len(pairs) > 3 else ""
        found = f"pairs without a value in either direction: {len(pairs)} ({', '.join(pairs[:3])}{more})"
        unread.append({"path": str(path), "found": found, "expected": "a time"})
    seen = [ends for matrix in matrices for ends in {time["ends"] for time in matrix.times}]
    several = len(seen) != len(set(seen))
    tests, pings = [], []
    for k, (column, matrix) in enumerate(parts):
        setting = (settings[k] or None) if settings and several else None
        for time in matrix.times:
            test = {"run_id": name, "test_id": f"{name}:{time['line']}:{time['column']}", "attempt": 1}
            test |= {"from_region": time["ends"][0], "to_region": time["ends"][1]}
            tests.append(test | {"setting": setting, "outcome": "done"})
            pings.append(test | {"source_file": str(path), column: time["time_ms"]})
    rows = {"tests": tests, "pings": pings, "sources": [source], "unread": unread}
    return finished({table: tables.from_rows(table, values) for table, values in rows.items()})


TEXT = "(text)"  # The path in tables for a document that was given as text.
MAX_TABLES = 2000  # A hundred times the number on the longest page of a cloud.
MAX_CELLS = 400_000  # Limits the time for a malicious document.

_RULE = re.compile(r":?-+:?")
_HEADING = re.compile(r" {0,3}(#{1,6})(?=\s|$)")
_QUOTED = re.compile(r"^ {0,3}(?:> ?)+")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_CAPTION = re.compile(r"\{:.*?\bcaption\s*=\s*\"([^\"]*)\"")
_MARKS = (
    (re.compile(r"<br\s*/?>|\\n(?=\s|$)", re.IGNORECASE), " "),
    (re.compile(r"<[^<>]{0,200}>"), ""),
    (re.compile(r"\{:[^{}]{0,200}\}|\[\^[^\[\]]{1,50}\]"), ""),
    (re.compile(r"!?\[([^\[\]]{0,200})\]\([^()]{0,500}\)"), r"\1"),
    (re.compile(r"(\*{1,3}|`+|(?<!\w)__?(?=\S)|(?<=\S)__?(?!\w))"), ""),
)


def read_markdown(
    path_or_text,
    *,
    cloud: str | None = None,
    statistic: str | None = None,
    unit: str | None = None,
    transposed: bool | None = None,
    decimal: str | None = None,
    about: Mapping[str, str] | None = None,
) -> dict:
    """
    Read all latency matrices in a Markdown document into tables tests, pings, sources, unread and flags.

    `path_or_text` is a path, or the text of a document if it has a line break; tables then name the file "(text)". The
    other parameters are as for `read_matrix`.

    A document can split a matrix into several tables, for example one per part of the world, and repeat it for several
    months. All these tables are read. A pair in several tables has a test for each table; `setting` is then the
    headings and the caption of the table. Tables that are not latency matrices are listed in table unread. Tables
    inside fenced code or comments are ignored.

    Raise RawDataError, which names the lines of other tables, if there is no latency matrix or no cell can be read.
    Raise ParameterError as for `read_matrix`.
    """
    check_about(about)
    path, text, source = _document(path_or_text, about)
    grids = _grids(path, text)
    how = {"cloud": cloud, "statistic": statistic, "unit": unit, "transposed": transposed, "decimal": decimal}
    parts, settings, skipped = [], [], MatrixTimes()
    for headings, grid in grids:
        matrix = MatrixTimes()
        try:
            column = read_grid(grid, matrix, **how)
        except NoMatrixError as error:
            line = grid.lines[0] if grid.lines else None
            skipped.refuse(line, str(error), f"{MATRIX} (this table was skipped)")
            continue
        parts.append((column, matrix))
        settings.append("; ".join(filter(None, [*headings[-2:], grid.above])))
    if not parts:
        lines = [row["line_number"] for row in skipped.unread]
        found = f"{len(grids)} other tables, at lines {', '.join(map(str, lines[:20]))}" if grids else "no table"
        raise RawDataError(path, next(iter(lines), None), found, f"a Markdown table with {MATRIX}")
    return tables_of(path, source, [*parts, ("mean_rtt_ms", skipped)], [*settings, ""])


def _document(given, about):
    if isinstance(given, str) and "\n" in given:
        data = given.encode("utf-8", "replace")
        return TEXT, decoded_text(TEXT, data), source_of_bytes(TEXT, data, about)
    if not isinstance(given, str | PathLike):
        raise refusal("path_or_text", given, "a path, or text with a line break")
    return str(given), *read_text(Path(given), about)


def _grids(path, text):
    """Return every table of the document, with the headings above it, from the highest level down."""
    lines = [_QUOTED.sub("", line) for line in _uncommented(text).split("\n")]
    grids, headings, fence, at, cells = [], {}, None, 0, 0
    while at < len(lines):
        line = lines[at]
        if opening := _FENCE.match(line):
            if fence is None:
                fence = opening[1]
            elif line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                fence = None
        elif fence is None and (title := _HEADING.match(line)):
            level = len(title[1])
            headings = {depth: text for depth, text in headings.items() if depth < level}
            headings[level] = _unmarked(line[title.end() :].strip().rstrip("#"))
        elif fence is None and "|" in line and _is_rule(lines, at + 1):
            end = at + 2
            while end < len(lines) and "|" in lines[end] and not lines[end].lstrip().startswith("{:"):
                end += 1
            rows = [at, *range(at + 2, end)]
            width = max(lines[row].count("|") + 1 for row in rows)
            cells += len(rows) * width
            if len(rows) > MAX_ROWS or width > MAX_COLUMNS or cells > MAX_CELLS:
                limit = f"at most {MAX_ROWS} rows and {MAX_COLUMNS} columns a table, {MAX_CELLS:,} cells in all"
                raise RawDataError(path, at + 1, f"{len(rows)} rows of up to {width} cells", limit)
            split = [_cells(lines[row]) for row in rows]
            caption = _CAPTION.match(lines[end].lstrip()[:1000]) if end < len(lines) else None
            filled = [(at_line + 1, row) for at_line, row in zip(rows, split, strict=True) if any(row)]
            over = [text for _, text in sorted(headings.items()) if text]
            grid = Grid([row for _, row in filled], [line for line, _ in filled], caption[1] if caption else "")
            grids.append((over, grid))
            if len(grids) > MAX_TABLES:
                raise RawDataError(path, at + 1, "more tables", f"at most {MAX_TABLES} tables")
            at = end - 1
        at += 1
    return grids


def _uncommented(text):
    """Return the text without HTML comments, with the same line numbers."""
    kept, at = [], 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        kept += [text[at:start], "\n" * text.count("\n", start, end)]
        at = end + 3
    return "".join([*kept, text[at:]])


def _is_rule(lines, at):
    """Return whether a line separates a table's header from its rows."""
    if at >= len(lines) or "-" not in lines[at]:
        return False
    cells = lines[at].strip().removeprefix("|").removesuffix("|").split("|")
    return all(_RULE.fullmatch(cell.strip()) for cell in cells)


def _cells(line):
    """Return the cells of a line without Markdown's marks; an escaped bar belongs to its cell."""
    line = line.strip().replace("\\|", "\0")
    line = line.removeprefix("|").removesuffix("|")
    return [_unmarked(cell.replace("\0", "|")) for cell in line.split("|")]


def _unmarked(text):
    text = html.unescape(formatted(text))
    for pattern, instead in _MARKS:
        text = pattern.sub(instead, text)
    return " ".join(text.split())
