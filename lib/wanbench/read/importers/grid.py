"""
A table of cells as text, read as round-trip times between regions.

Shared by `matrix` (CSV) and `markdown`: a grid is a table before its cells have a meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from wanbench.errors import ParameterError

from .corner import is_transposed
from .region_names import candidates, check_cloud, cloud_from, region_from
from .sheet import formatted
from .times import STATISTICS, check_settings, decimal_mark, milliseconds, other_quantity, stated_statistic, stated_unit

MAX_HINTS = 20
"""Similar names are sought for the first unread labels only: the search is slow, and a page shows no more."""
MATRIX = "names of regions down the first column and along the top"


@dataclass(frozen=True)
class Grid:
    """Rows of cells as text, each with its line; `above` is the caption or heading over them."""

    rows: Sequence[Sequence[str]]
    lines: Sequence[int]
    above: str = ""


@dataclass
class MatrixTimes:
    """
    What the cells of a grid hold.

    `times` are times between two regions, each with line, column (from 1), ends (from, to) and time_ms; `within` are
    times from a region to itself; `blank` are pairs with an empty cell; `unread` are rows of that table.
    """

    times: list[dict] = field(default_factory=list)
    within: list[float] = field(default_factory=list)
    blank: set[frozenset[str]] = field(default_factory=set)
    unread: list[dict] = field(default_factory=list)

    def refuse(self, line: int | None, found: str, expected: str) -> None:
        """Add a row of unread."""
        self.unread.append({"line_number": line, "found": formatted(found), "expected": expected})


class NoMatrixError(ValueError):
    """A grid has no regions along its sides; the message says what stands there."""


def read_grid(
    grid: Grid,
    matrix: MatrixTimes,
    *,
    cloud: str | None = None,
    statistic: str | None = None,
    unit: str | None = None,
    transposed: bool | None = None,
    decimal: str | None = None,
    comma_likely: bool = False,
) -> str:
    """
    Add the cells of a grid to `matrix`; returns the column of table pings that holds their statistic.

    Parameters as for `read_matrix`. Raises NoMatrixError, with nothing added, if the grid is not a latency matrix;
    ParameterError if neither a parameter nor the table names the statistic, or the direction is open.
    """
    check_settings(statistic, unit, decimal)
    check_cloud(cloud)
    tops, sides, corner = _labels(grid, cloud)
    column = STATISTICS[statistic] if statistic else stated_statistic(corner) or stated_statistic(grid.above)
    if column is None:
        raise ParameterError(
            f"statistic is not given, and the corner of the table, {formatted(corner)!r}, does not name it; "
            f"allowed: {', '.join(map(repr, STATISTICS))}."
        )
    unit = unit or stated_unit(corner) or stated_unit(grid.above) or "ms"
    transposed = is_transposed(corner) if transposed is None else transposed
    if transposed is None:
        raise ParameterError(
            f"transposed is not given, and the corner of the table, {formatted(corner)!r}, does not say clearly whether "
            "its rows measure or answer; allowed: False (the rows measure), True (the columns do)."
        )
    regions = {}
    for line, label in [*((grid.lines[0], top) for top in tops.values()), *sides.values()]:
        if label not in regions:
            regions[label] = _region(label, cloud, line, matrix)
    if decimal is None:
        decimal = decimal_mark((cell for row in sides for cell in grid.rows[row]), comma_likely)
    for row, (line, side) in sides.items():
        cells = grid.rows[row]
        for place in range(min(tops), max(len(cells), max(tops) + 1)):
            cell = cells[place] if place < len(cells) else ""
            if place not in tops:
                if cell:
                    matrix.refuse(line, cell, f"nothing at row {side!r} in a column without a region")
                continue
            ends = regions[side], regions[tops[place]]
            if None in ends:
                continue
            try:
                time_ms = milliseconds(cell, unit, decimal)
            except ValueError as error:
                matrix.refuse(line, cell, f"{error} at row {side!r}, column {tops[place]!r}")
                continue
            if ends[0] == ends[1]:
                matrix.within += [] if time_ms is None else [time_ms]
            elif time_ms is None:
                matrix.blank.add(frozenset(ends))
            else:
                ends = ends[::-1] if transposed else ends
                matrix.times.append({"line": line, "column": place + 1, "ends": ends, "time_ms": time_ms})
    return column


def _labels(grid, cloud):
    """Column to name along the top, row to (line, name) down the side, and the text of the corner."""
    rows = grid.rows
    if len(rows) < 2:
        raise NoMatrixError("less than two rows of cells")
    # Names may take two lines or two columns (cloud and code): if the second names regions too, it belongs to them.
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
        n_regions = sum(bool(candidates(label, cloud)) for label in labels)
        if not n_regions or 2 * n_regions < len(labels):
            raise NoMatrixError(f"{what}: {', '.join(filter(None, labels)) or f'only {corner!r}'}"[:300])
    return tops, sides, corner


def _names_regions(cells: Iterable[str], cloud) -> bool:
    """Whether at least half of the cells that are not empty name regions or clouds."""
    cells = [cell for cell in cells if cell]
    n_names = sum(bool(cloud_from(cell) or candidates(cell, cloud)) for cell in cells)
    return n_names > 0 and 2 * n_names >= len(cells)


def _filled(labels):
    """Labels with each cloud repeated over all of its regions, where a spreadsheet had joined the cells."""
    if not all(cloud_from(label) for label in labels if label):
        return labels
    for i in range(1, len(labels)):
        labels[i] = labels[i] or labels[i - 1]
    return labels


def _joined(parts):
    return " | ".join(part for part in parts if part)


def _region(label, cloud, line, matrix):
    """The region of a label; None if it is not one region, and then the label is unread."""
    meant = candidates(label, cloud)
    if len(meant) == 1:
        return meant[0]
    expected = "the name of one region"
    if len(matrix.unread) < MAX_HINTS:
        try:
            region_from(label, cloud)
        except ParameterError as error:
            expected += f". {error}"
    matrix.refuse(line, label, expected)
    return None
