"""Read a grid of text cells as RTTs between regions; its top left cell, the corner, can say which axis measures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import unescape

from wanbench.errors import ParameterError

from .region_names import candidates, check_cloud, cloud_from, region_from
from .sheet import formatted
from .times import STATISTICS, check_settings, decimal_mark, milliseconds, other_quantity, stated_statistic, stated_unit

SENDS = (
    "from", "source", "src", "origin", "originator", "sender", "sending", "transmitter", "tx", "initiator", "requester",
    "pinger", "prober", "client", "probe", "local", "start", "producer",
)  # fmt: skip
ANSWERS = (
    "to", "destination", "dest", "dst", "target", "receiver", "receiving", "recipient", "rx", "reflector", "responder",
    "replier", "listener", "sink", "pinged", "server", "anchor", "remote", "end", "consumer",
)  # fmt: skip
# Words for roles that can also mean any host: one of them alone proves nothing, nor one that contradicts an arrow.
LOOSE = ("client", "probe", "local", "start", "producer", "server", "anchor", "remote", "end", "consumer")
_NOUNS = re.compile(
    r"(?:regions?|hosts?|zones?|locations?|cit(?:y|ies)|nodes?|sites?|clouds?|servers?|clients?|dcs?|names?|codes?|"
    r"countr(?:y|ies)|places?|instances?|vms?|machines?|data|cent(?:er|re)s?|datacent(?:er|re)s?|providers?|areas?|"
    r"aws|azure|gcp|google|ibm|amazon|\d+)"
)
_MEASURE = re.compile(
    r"\b(?:latency|latencies|rtts?|pings?|round[ -]trips?|times?|delays?|ms|msec|milliseconds|"
    r"min|mean|avg|average|median|max|p\d\d|is|are|in|on|the|at|of)\b"
)
_SIDE_WORDS = r"rows?|down|vertical(?:ly)?"
_TOP_WORDS = r"columns?|cols?|across|horizontal(?:ly)?"
# Other words for the side (the first column) and the top (the first row).
_OTHER_WORDS = (
    (re.compile(r"\b(?:(?:first|left(?:most)?) col(?:umn)?|left|y[ -]axis)\b"), "row"),
    (re.compile(r"\b(?:(?:first|top) (?:row|line)|top|header|x[ -]axis)\b"), "column"),
)
_SIDE = re.compile(rf"[(\[]?\b(?:{_SIDE_WORDS})\b[)\]]?")
_TOP = re.compile(rf"[(\[]?\b(?:{_TOP_WORDS})\b[)\]]?")
_RIGHT, _LEFT = r"[-=–—~]+>|[>»›→⇒⟶⟹➔➙➜➝➞➡⇨⇾►▶▸]", r"<[-=–—~]+|[<«‹←⇐⟵⟸⬅⇦◄◀]"
# From one axis to the other, without a word for a role: "columns → rows".
_BETWEEN_AXES = re.compile(
    rf"\b(?:(?P<top>{_TOP_WORDS})|{_SIDE_WORDS}) ?(?:to|pings?|{_RIGHT}|(?P<left>{_LEFT})) ?"
    rf"(?:{_SIDE_WORDS}|{_TOP_WORDS})\b"
)
# A sign between a role and the word for its axis ("From: rows"), which does not separate two roles.
_AXIS_OF_NAME = re.compile(
    rf"\b((?:{'|'.join(SENDS + ANSWERS)})s?(?:[ _](?:{_NOUNS.pattern}))?[*_`]{{0,3}})\s*[:=–—-]\s*"
    rf"(?=[(\[*_`]{{0,3}}(?:{_SIDE_WORDS}|{_TOP_WORDS})\b(?!\s*[:=]))"
)
_BRACKETED = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
_TOKEN = re.compile(
    r"(?P<word>[^\W_]+)"
    r"|(?P<both><[-=]+>|[↔⇔⟷])"
    rf"|(?P<across>{_RIGHT}|{_LEFT})"
    r"|(?P<down>[↓⇓⬇⇩▼▾↑⇑⬆⇧▲▴])"
    r"|(?P<blank>[^\S\n]|[_*`'\"\ufe0e\ufe0f])"
    r"|(?P<separator>\n|.)"
)
_BETWEEN_LABELS = re.compile(r"[/\\]")
MAX_CORNER = 200  # Only so many characters of a corner are read: a longer one is no label.


def is_transposed(corner: str) -> bool | None:
    """
    Return whether the regions in the first column answer the pings, according to the corner; None if it is unclear.

    The first of two names in a corner labels the first column: "Source → Destination", "From / To", "From to To". Signs
    for an axis take precedence over this order: an arrow down, an arrow that another sign separates from one of the
    names ("From → / To"), or the words row and column. An arrow between names without a role points to the regions that
    answer. Return False, the usual case, for a corner that says nothing about directions.

    >>> is_transposed("To \\\\ From"), is_transposed("Source → Dest"), is_transposed("From → / To ↓")
    (True, False, True)
    >>> is_transposed("Latency (ms)"), is_transposed("Server"), is_transposed("nach / von")
    (False, None, None)
    """
    text = _plain(corner)
    if axes := _BETWEEN_AXES.search(text):
        return bool(axes["top"]) != bool(axes["left"])
    text = _TOP.sub("→", _SIDE.sub("↓", text))
    text = _MEASURE.sub(" ", _BRACKETED.sub(" ", text)).strip(" \t\r\n:;,.-")
    signs, names, words, unknown = _parts(text)
    flow = _flow(text, signs, words)
    roles = {name for name in names if name is not None}
    loose = any(word in LOOSE for word in words)
    if not roles or (loose and len(names) == 2 and names[0] == names[1]):  # only an arrow can tell
        return None if flow is None and unknown and _BETWEEN_LABELS.search(text) else bool(flow)
    if len(names) > 2 or (len(names) == 2 and names[0] == names[1]):
        return None
    answer = _side_answers(signs, names)
    alone = answer and len(roles) == 1 and (loose or unknown)
    against_arrow = loose and flow is not None and flow != answer
    return None if alone or against_arrow else answer


def _side_answers(signs: list[list[str]], names: list[bool | None]) -> bool:
    """Return whether the side has the regions that answer; if its name has no role, the name of the top decides."""
    if len(names) == 1:
        axis = (signs[0] + signs[1])[-1:] if "down" not in signs[0] + signs[1] else ["down"]
        return names[0] != (axis == ["across"])
    first, second = _axes(*signs)
    second_is_side = second == "down" or (first == "across" and second != "across")
    side, top = (1, 0) if second_is_side and first != "down" else (0, 1)
    return not names[top] if names[side] is None else names[side]


def _flow(text: str, signs: list[list[str]], words: list[str]) -> bool | None:
    """Return whether an arrow or "to" between two names points to the side; None without one, or for arrows of axes."""
    arrows = [sign for part in signs for sign in part if sign in ("across", "down")]
    if len(signs) == 3 and arrows == ["across"] and "across" in signs[1]:
        return re.search(_LEFT, text) is not None
    return False if not arrows and "to" in words[1:-1] else None


def _plain(corner: str) -> str:
    text = unescape(corner[:MAX_CORNER]).lower()
    for words, instead in _OTHER_WORDS:
        text = words.sub(instead, text)
    return _AXIS_OF_NAME.sub(r"\1 ", text)


def _parts(text: str) -> tuple[list[list[str]], list[bool | None], list[str], bool]:
    """
    Split a corner; return signs, names, words for roles, and whether a word is unknown.

    `signs` are lists of the signs before, between and after the names. A name is True if it means the regions that
    answer, False if it means those that measure, and None if it has no role.
    """
    signs: list[list[str]] = [[]]
    names: list[bool | None] = []
    words: list[str] = []
    unknown = False
    for token in _TOKEN.finditer(text):
        kind, word = token.lastgroup, token[0]
        if kind == "blank" or (kind == "word" and names and not signs[-1] and _NOUNS.fullmatch(word)):
            continue
        if kind != "word":
            signs[-1].append("separator" if kind == "both" else kind)
            continue
        role = next((name for name in (word, word.removesuffix("s")) if name in SENDS + ANSWERS), None)
        name = None if role is None else role in ANSWERS
        words += [role] if role else []
        unknown |= role is None and not _NOUNS.fullmatch(word)
        if role and names and names[-1] == name and (words[-2] in ("from", "to") or not signs[-1]):
            signs[-1] = []  # "from source", "-to-dest": one name
        elif not names or signs[-1] or (role and (names[-1] is not None or role in ("from", "to"))):
            names.append(name)
            signs.append([])
        elif role:
            names[-1] = name
    return signs, names, words, unknown


def _axes(before: list[str], between: list[str], after: list[str]) -> tuple[str, str]:
    """Return the axis of each of two names ("across", "down" or "") from the signs around them."""
    if _arrows(before):
        return _arrows(before)[-1], (_arrows(between) or [""])[-1]
    if "separator" in between:
        at = between.index("separator")
        first, second = _arrows(between[:at]), _arrows(between[at:]) + _arrows(after)
    else:
        first, second = _arrows(between), _arrows(after)
        if len(first) > 1:
            first, second = first[:1], first[1:]
        if "down" not in first + second and not second:
            return "", ""
    return (first or [""])[0], (second or [""])[0]


def _arrows(signs: list[str]) -> list[str]:
    return [sign for sign in signs if sign != "separator"]


# Similar names are suggested only for so many unread labels, because the search is slow.
MAX_HINTS = 20
MATRIX = "names of regions down the first column and along the top"


@dataclass(frozen=True)
class Grid:
    """Rows of cells as text, the line number of each row, and `above`, the caption or heading of the grid."""

    rows: Sequence[Sequence[str]]
    lines: Sequence[int]
    above: str = ""


@dataclass
class MatrixTimes:
    """
    The contents of a grid.

    `times` are times between two regions, each with line, column (from 1), ends (from, to) and time_ms. `within` are
    times from a region to itself, `blank` pairs with an empty cell, and `unread` rows for table unread.
    """

    times: list[dict] = field(default_factory=list)
    within: list[float] = field(default_factory=list)
    blank: set[frozenset[str]] = field(default_factory=set)
    unread: list[dict] = field(default_factory=list)

    def refuse(self, line: int | None, found: str, expected: str) -> None:
        """Add a row for table unread."""
        self.unread.append({"line_number": line, "found": formatted(found), "expected": expected})


class NoMatrixError(ValueError):
    """A grid is not a latency matrix; the message says what it is instead."""


def read_grid(
    grid: Grid, matrix, *, cloud=None, statistic=None, unit=None, transposed=None, decimal=None, comma_likely=False
) -> str:
    """
    Add the cells of a grid to `matrix`, and return the column of table pings for their statistic.

    The other parameters are as for `read_matrix`. Raise NoMatrixError, before anything is added, if the grid is not a
    latency matrix, and ParameterError if neither a parameter nor the grid says what the statistic or direction is.
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
            f"transposed is not given, and the corner of the table, {formatted(corner)!r}, does not say clearly "
            "whether the rows measure or answer; allowed: False (the rows measure), True (the columns measure)."
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
    """Return the names along the top by column, (line, name) down the side by row, and the text of the corner."""
    rows = grid.rows
    if len(rows) < 2:
        raise NoMatrixError("fewer than two rows of cells")
    # Names can have two lines or columns (cloud and code): the second belongs to them if it names regions, too.
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
    """Return whether at least half of the cells with text name regions or clouds."""
    cells = [cell for cell in cells if cell]
    n_names = sum(bool(cloud_from(cell) or candidates(cell, cloud)) for cell in cells)
    return n_names > 0 and 2 * n_names >= len(cells)


def _filled(labels):
    """Repeat each cloud over all of its regions, if the labels are merged cells of a spreadsheet."""
    if not all(cloud_from(label) for label in labels if label):
        return labels
    for i in range(1, len(labels)):
        labels[i] = labels[i] or labels[i - 1]
    return labels


def _joined(parts):
    return " | ".join(part for part in parts if part)


def _region(label, cloud, line, matrix):
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
