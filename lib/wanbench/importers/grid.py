"""
A table of cells as text into round-trip times between regions. Imports `corner`, `names`, `times`, `sheet`, `errors`.

Shared by `matrix` (CSV) and `markdown`; a grid is a table before anybody knows what it means.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..errors import ParameterError
from .corner import said_transposed
from .names import candidates, check_cloud, cloud_from, region_from
from .sheet import shown
from .times import (
    STATISTICS,
    check_settings,
    decimal_mark,
    milliseconds,
    other_quantity,
    said_statistic,
    said_unit,
)

MOST_HINTS = 20
MATRIX = "names of regions down the first column and along the top"


@dataclass(frozen=True)
class Grid:
    """Rows of cells as text, each with its line; `above` is what stands over them (caption, heading)."""

    rows: Sequence[Sequence[str]]
    lines: Sequence[int]
    above: str = ""


@dataclass
class Found:
    """
    What the cells of a grid say.

    `times` are those between two regions, with line, place (column, from 1), ends (from, to) and time_ms; `within`
    those from a region to itself; `blank` the pairs of which a cell says nothing; `unread` rows of that table.
    """

    times: list[dict] = field(default_factory=list)
    within: list[float] = field(default_factory=list)
    blank: set[frozenset[str]] = field(default_factory=set)
    unread: list[dict] = field(default_factory=list)

    def refuse(self, line: int | None, found: str, expected: str) -> None:
        """A row of unread."""
        self.unread.append({"line_number": line, "found": shown(found), "expected": expected})


class NoMatrixError(ValueError):
    """A grid has no regions along its sides; the message says what was found."""


def read_grid(
    grid: Grid,
    found: Found,
    *,
    cloud: str | None = None,
    statistic: str | None = None,
    unit: str | None = None,
    transposed: bool | None = None,
    decimal: str | None = None,
    comma_likely: bool = False,
) -> str:
    """
    Add to `found` what a grid says; returns the column of table pings that its times belong in.

    Parameters as `read_matrix`. NoMatrixError if the grid is no latency matrix, and then nothing is added;
    ParameterError if nobody says what its times are.
    """
    check_settings(statistic, unit, decimal)
    check_cloud(cloud)
    tops, sides, corner = _labels(grid, cloud)
    column = STATISTICS[statistic] if statistic else said_statistic(corner) or said_statistic(grid.above)
    if column is None:
        raise ParameterError(
            f"statistic is not given, and the table does not say it (its corner is {shown(corner)!r}); "
            f"allowed: {', '.join(map(repr, STATISTICS))}"
        )
    unit = unit or said_unit(corner) or said_unit(grid.above) or "ms"
    transposed = said_transposed(corner) if transposed is None else transposed
    regions = {}
    for line, label in [*((grid.lines[0], top) for top in tops.values()), *sides.values()]:
        if label not in regions:
            regions[label] = _region(label, cloud, line, found)
    body = [(row, *side) for row, side in sides.items()]
    if decimal is None:
        decimal = decimal_mark((cell for row, *_ in body for cell in grid.rows[row]), comma_likely)
    for row, line, side in body:
        _read_row(grid.rows[row], line, side, tops, regions, found, (unit, decimal, transposed))
    return column


def _read_row(cells, line, side, tops, regions, found, how):
    unit, decimal, transposed = how
    first = min(tops)
    for place in range(first, max(len(cells), max(tops) + 1)):
        cell = cells[place] if place < len(cells) else ""
        if place not in tops:
            if cell:
                found.refuse(line, cell, f"nothing at row {side!r} in a column without a region")
            continue
        ends = regions[side], regions[tops[place]]
        if None in ends:
            continue
        try:
            time_ms = milliseconds(cell, unit, decimal)
        except ValueError as error:
            found.refuse(line, cell, f"{error} at row {side!r}, column {tops[place]!r}")
            continue
        if ends[0] == ends[1]:
            found.within += [] if time_ms is None else [time_ms]
        elif time_ms is None:
            found.blank.add(frozenset(ends))
        else:
            ends = ends[::-1] if transposed else ends
            found.times.append({"line": line, "place": place + 1, "ends": ends, "time_ms": time_ms})


def _labels(grid, cloud):
    """Column to name along the top, row to (line, name) down the side, and the text of the corner."""
    rows = grid.rows
    if len(rows) < 2:
        raise NoMatrixError("less than two rows of cells")
    tall = 1 + (len(rows) > 2 and all(_names_regions(row[1:], cloud) for row in rows[:2]))
    second = [row[1] for row in rows[tall:] if len(row) > 1]
    wide = 1 + (len(second) == len(rows) - tall and _names_regions(second, cloud))
    width = max(len(row) for row in rows[:tall])
    heads = [_filled([row[i] if i < len(row) else "" for i in range(wide, width)]) for row in rows[:tall]]
    tops = {wide + i: label for i in range(width - wide) if (label := _joined(head[i] for head in heads))}
    stubs = [_filled([row[i] if i < len(row) else "" for row in rows[tall:]]) for i in range(wide)]
    named = {tall + i: _joined(stub[i] for stub in stubs) for i in range(len(rows) - tall)}
    sides = {row: (grid.lines[row], label) for row, label in named.items()}
    corner = _joined(cell for row in rows[:tall] for cell in row[:wide])
    if other := other_quantity(f"{corner} {grid.above}"):
        raise NoMatrixError(f"a table of {other}, not of round-trip times")
    for what, labels in (("the first line", tops.values()), ("the first column", named.values())):
        known = sum(bool(candidates(label, cloud)) for label in labels)
        if not known or 2 * known < len(labels):
            raise NoMatrixError(f"{what}: {', '.join(filter(None, labels)) or f'only {corner!r}'}"[:300])
    return tops, sides, corner


def _names_regions(cells: Iterable[str], cloud) -> bool:
    """Whether at least half of the cells that are not empty name regions or clouds."""
    cells = [cell for cell in cells if cell]
    known = sum(bool(cloud_from(cell) or candidates(cell, cloud)) for cell in cells)
    return known > 0 and 2 * known >= len(cells)


def _filled(labels):
    """Clouds that stand over several regions (cells joined in a spreadsheet) stand over each."""
    if not all(cloud_from(label) for label in labels if label):
        return labels
    for i in range(1, len(labels)):
        labels[i] = labels[i] or labels[i - 1]
    return labels


def _joined(parts):
    return " | ".join(part for part in parts if part)


def _region(label, cloud, line, found):
    """The region of a label, or None, and then the label is unread; near names are sought for the first few."""
    meant = candidates(label, cloud)
    if len(meant) == 1:
        return meant[0]
    expected = "the name of one region"
    if len(found.unread) < MOST_HINTS:
        try:
            region_from(label, cloud)
        except ParameterError as error:
            expected += f". {error}"
    found.refuse(line, label, expected)
    return None
