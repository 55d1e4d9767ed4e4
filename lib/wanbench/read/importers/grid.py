"""
Read a grid of text cells as RTTs between regions; the grid's top left cell, the corner, can say whether rows or columns
measure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import unescape
from itertools import groupby
from typing import Any

from wanbench.checks import check_choice
from wanbench.errors import ParameterError
from wanbench.regions import CLOUDS

from .region_names import candidates, region_from
from .sheet import formatted
from .times import STATISTICS, UNITS, milliseconds, other_quantity, stated_statistic, stated_unit

SENDS = (
    "from", "source", "src", "origin", "originator", "sender", "sending", "transmitter", "tx", "initiator", "requester",
    "pinger", "prober", "client", "probe", "local", "start", "producer",
)  # fmt: skip
ANSWERS = (
    "to", "destination", "dest", "dst", "target", "receiver", "receiving", "recipient", "rx", "reflector", "responder",
    "replier", "listener", "sink", "pinged", "server", "anchor", "remote", "end", "consumer",
)  # fmt: skip
ROLES = SENDS + ANSWERS
# Words for roles that can also mean any host: they are unclear with an arrow, or alone.
LOOSE = ("client", "probe", "local", "start", "producer", "server", "anchor", "remote", "end", "consumer")
_WORD = re.compile(r"[^\W_]+")
_ARROW = re.compile(r"[-=–—~]+>|<[-=–—~]+|[<>«»‹›→←↔⇒⇐⇔⟶⟵⟷⟹⟸➔➙➜➝➞➡⬅⇨⇦⇾►◄▶◀▸]")
# Two words with a slash between them.
_TWO_LABELS = re.compile(r"[^\W\d_]\W*[/\\]\W*[^\W\d_]")
# Signs and words for an axis of the matrix.
_AXIS = re.compile(
    r"[↓⇓⬇⇩▼▾↑⇑⬆⇧▲▴]|\b(?:rows?|col(?:umn)?s?|down|across|vertical(?:ly)?|horizontal(?:ly)?|left|top|header|axis)\b"
)
MAX_CORNER = 200  # Only so many characters of a corner are read: a longer one is not a label.


def is_transposed(corner: str) -> bool | None:
    """
    Return whether the regions in the first column answer the pings, according to the corner; None if that is unclear.

    The first role that the corner names is that of the first column: "Destination", "From / To", "Source → Target". A
    corner that describes axes, in words or by arrows, is unclear ("From → / To ↓"). Return False, the usual case, for a
    corner without a role.

    >>> is_transposed("To \\\\ From"), is_transposed("Source → Dest"), is_transposed("Latency (ms)")
    (True, False, False)
    >>> is_transposed("From → / To ↓"), is_transposed("Server"), is_transposed("nach / von")
    (None, None, None)
    """
    text = unescape(corner[:MAX_CORNER]).lower()
    all_words = [word if word in ROLES else word.removesuffix("s") for word in _WORD.findall(text)]
    words = [word for word in all_words if word in ROLES]
    roles = [answers for answers, _ in groupby(word in ANSWERS for word in words)]
    loose = any(word in LOOSE for word in words)
    arrow, two_labels = _ARROW.search(text), _TWO_LABELS.search(text)
    if _AXIS.search(text) or len(roles) > 2 or (arrow and two_labels) or (loose and (arrow or "to" in words)):
        return None
    if len(roles) == 2:
        return roles[0]
    if arrow or two_labels:
        return None
    if roles == [True]:
        return None if loose or all_words[0] not in ANSWERS else True
    return False


# Similar names are suggested only for so many unread labels, because the search is slow.
MAX_HINTS = 20
MATRIX = "names of regions down the first column and along the top"


@dataclass(frozen=True)
class Grid:
    """A grid: rows of cells as text, the line number of each row, and `above`, the caption or heading of the grid."""

    rows: Sequence[Sequence[str]]
    lines: Sequence[int]
    above: str = ""


@dataclass
class MatrixTimes:
    """
    The contents of a grid that was read as a latency matrix.

    `column` is the column of table pings for the times, such as mean_rtt_ms. `times` holds times between two regions,
    each with line, column (from 1), ends (from, to) and time_ms. `within` holds times from a region to itself, `blank`
    the pairs with an empty cell, and `unread` the rows for table unread.
    """

    column: str
    times: list[dict[str, Any]] = field(default_factory=list)
    within: list[float] = field(default_factory=list)
    blank: set[frozenset[str]] = field(default_factory=set)
    unread: list[dict[str, Any]] = field(default_factory=list)

    def refuse(self, line: int | None, found: str, expected: str) -> None:
        """Add a row for table unread: what the line contains, and what was expected there."""
        self.unread.append({"line_number": line, "found": formatted(found), "expected": expected})


class NoMatrixError(ValueError):
    """Error: a grid is not a latency matrix; the message says what the grid is instead."""


def read_grid(
    grid: Grid, cloud: str | None, statistic: str | None, unit: str | None, transposed: bool | None, decimal: str | None
) -> MatrixTimes:
    """
    Read the times in a grid's cells; the other parameters are as for `read_matrix`.

    Raise NoMatrixError if the grid is not a latency matrix. Raise ParameterError if neither a parameter nor the grid
    states the statistic, or the direction.
    """
    check_choice("statistic", statistic, STATISTICS, optional=True)
    check_choice("unit", unit, UNITS, optional=True)
    check_choice("decimal", decimal, (".", ","), optional=True)
    check_choice("cloud", cloud, CLOUDS, optional=True)
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
            f"transposed is not given, and the corner of the table, {formatted(corner)!r}, does not say clearly "
            "whether the rows measure or answer; allowed: False (the rows measure), True (the columns measure)."
        )
    matrix, regions = MatrixTimes(column), {}
    for line, label in [*((grid.lines[0], top) for top in tops.values()), *sides.values()]:
        if label not in regions:
            regions[label] = _region(label, cloud, line, matrix)
    for row, (line, side) in sides.items():
        cells = grid.rows[row]
        for place in range(min(tops), max(len(cells), max(tops) + 1)):
            cell = cells[place] if place < len(cells) else ""
            if place not in tops:
                if cell:
                    matrix.refuse(line, cell, f"nothing at row {side!r} in a column without a region")
                continue
            start, end = regions[side], regions[tops[place]]
            if start is None or end is None:
                continue
            try:
                time_ms = milliseconds(cell, unit, decimal)
            except ValueError as error:
                matrix.refuse(line, cell, f"{error} at row {side!r}, column {tops[place]!r}")
                continue
            if start == end:
                matrix.within += [] if time_ms is None else [time_ms]
            elif time_ms is None:
                matrix.blank.add(frozenset((start, end)))
            else:
                ends = (end, start) if transposed else (start, end)
                matrix.times.append({"line": line, "column": place + 1, "ends": ends, "time_ms": time_ms})
    return matrix


def _labels(grid: Grid, cloud: str | None) -> tuple[dict[int, str], dict[int, tuple[int, str]], str]:
    """Return the names along the top by column, (line, name) down the side by row, and the text of the corner."""
    if len(grid.rows) < 2:
        raise NoMatrixError("fewer than two rows of cells")
    (corner, *first), *others = grid.rows
    tops = {column: label for column, label in enumerate(first, 1) if label}
    sides = {row: (grid.lines[row], cells[0]) for row, cells in enumerate(others, 1)}
    if other := other_quantity(f"{corner} {grid.above}"):
        raise NoMatrixError(f"a table of {other}, not of round-trip times")
    named = [label for _, label in sides.values()]
    for what, labels in (("the first line", tops.values()), ("the first column", named)):
        n_regions = sum(bool(candidates(label, cloud)) for label in labels)
        if not n_regions or 2 * n_regions < len(labels):
            raise NoMatrixError(f"{what}: {', '.join(filter(None, labels)) or f'only {corner!r}'}"[:300])
    return tops, sides, corner


def _region(label: str, cloud: str | None, line: int, matrix: MatrixTimes) -> str | None:
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
