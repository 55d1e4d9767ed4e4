"""Latency matrices in Markdown, as the clouds' documentation has them."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from os import PathLike
from pathlib import Path

from wanbench.checks import refusal
from wanbench.errors import RawDataError

from .grid import MATRIX, Grid, MatrixTimes, NoMatrixError, read_grid
from .matrix import MAX_COLUMNS, MAX_ROWS, decoded, read_text, tables_of
from .provenance import check_about, source_of_bytes
from .sheet import formatted

TEXT = "(text)"
"""Path shown for a document given as text."""
MAX_TABLES = 2000
"""A hundred times the tables of the longest page of a cloud."""
MAX_CELLS = 400_000
"""Bounds the time that a hostile document can take."""

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
    heading: str | None = None,
    about: Mapping[str, str] | None = None,
) -> dict:
    """
    Tables of all latency matrices in a Markdown document: tests, pings, sources, unread, flags.

    A document may spread a matrix over several tables (a tab for each part of the world) and repeat it for several
    months. All are read: a pair in several tables has as many tests, distinguished by `setting`, which holds the
    headings and the caption over each table. A table that is not a latency matrix is a row of unread with its line,
    in addition to the rows that `read_matrix` writes there. Tables inside fenced code or comments are ignored.

    Parameters
    ----------
    path_or_text : path-like, or str with a line break
        The document, or the text of one (its path is then "(text)").
    heading : str, optional
        Read only tables under a heading (of any level) that contains this text, in any case.
    cloud, statistic, unit, transposed, decimal, about
        As for `read_matrix`.

    Raises
    ------
    RawDataError
        If there is no latency matrix, or no cell can be read; it gives the lines of the other tables.
    ParameterError
        As for `read_matrix`, and if no table stands under such a heading.
    """
    check_about(about)
    path, text, source = _document(path_or_text, about)
    grids = _under(heading, _grids(path, text))
    how = {"cloud": cloud, "statistic": statistic, "unit": unit, "transposed": transposed, "decimal": decimal}
    parts, settings, skipped = [], [], MatrixTimes()
    for headings, grid in grids:
        matrix = MatrixTimes()
        try:
            column = read_grid(grid, matrix, **how)
        except NoMatrixError as error:
            line = grid.lines[0] if grid.lines else None
            skipped.refuse(line, str(error), f"{MATRIX} (this table was left out)")
            continue
        parts.append((column, matrix))
        settings.append("; ".join(filter(None, [*headings[-2:], grid.above])))
    if not parts:
        lines = ", ".join(str(row["line_number"]) for row in skipped.unread[:20])
        raise RawDataError(
            path,
            skipped.unread[0]["line_number"] if skipped.unread else None,
            f"{len(grids)} other tables, at lines {lines}" if grids else "no table",
            f"a Markdown table with {MATRIX}",
        )
    return tables_of(path, source, [*parts, ("mean_rtt_ms", skipped)], [*settings, ""])


def _document(given, about):
    if isinstance(given, str) and "\n" in given:
        data = given.encode("utf-8", "replace")
        return TEXT, decoded(TEXT, data), source_of_bytes(TEXT, data, about)
    if not isinstance(given, str | PathLike):
        raise refusal("path_or_text", given, "a path, or text with a line break")
    return str(given), *read_text(Path(given), about)


def _under(heading, grids):
    if heading is None:
        return grids
    if not isinstance(heading, str) or not heading.strip():
        raise refusal("heading", heading, "part of the text of a heading")
    wanted = heading.strip().lower()
    kept = [(above, grid) for above, grid in grids if any(wanted in title.lower() for title in above)]
    if not kept:
        titles = list(dict.fromkeys(title for above, _ in grids for title in above))
        some = ", ".join(map(repr, titles[:10])) or "none"
        raise refusal("heading", heading, f"part of a heading over a table, of which there are {some}")
    return kept


def _grids(path, text):
    """Every table of the document with the headings it stands under, outermost first."""
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
            headings[level] = _plain(line[title.end() :].strip().rstrip("#"))
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
    """The text without HTML comments, every line where it was."""
    kept, at = [], 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        kept += [text[at:start], "\n" * text.count("\n", start, end)]
        at = end + 3
    return "".join([*kept, text[at:]])


def _is_rule(lines, at):
    """Whether the line separates a table's header from its rows."""
    if at >= len(lines) or "-" not in lines[at]:
        return False
    cells = lines[at].strip().removeprefix("|").removesuffix("|").split("|")
    return all(_RULE.fullmatch(cell.strip()) for cell in cells)


def _cells(line):
    """The cells of a line, without Markdown's marks; a bar with a backslash is part of its cell."""
    line = line.strip().replace("\\|", "\0")
    line = line.removeprefix("|").removesuffix("|")
    return [_plain(cell.replace("\0", "|")) for cell in line.split("|")]


def _plain(text):
    text = html.unescape(formatted(text))
    for pattern, instead in _MARKS:
        text = pattern.sub(instead, text)
    return " ".join(text.split())
