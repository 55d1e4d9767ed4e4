"""
A file of rows, read as text and checked column by column, so that a bad cell costs its row and no other.

CSV, JSON lines and Parquet. Imports `provenance` and `errors`.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from ..errors import RawDataError
from ..ingest import content
from .provenance import LARGEST_BYTES, read_bytes, source_of_bytes

NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?"
ZONE = r".*(?:Z|[+-][0-9]{2}:?[0-9]{2})"
MISSING = ("", "nan", "none", "null", "na", "n/a", "-")
LONGEST_FOUND = 200
MOST_COLUMNS = 10_000


class Sheet:
    """
    Rows of a file as columns of text.

    Attributes
    ----------
    path : str
        The file, as it was given.
    source : dict
        Its row of table sources.
    lines : ndarray
        The line (of Parquet: the row) at which each row stands, from 1.
    header_line : int or None
        The line of the header; None where rows name their own columns.
    good : ndarray of bool
        The rows that no check has refused so far.
    """

    def __init__(self, path, source: dict, columns: Mapping[str, Sequence], lines, header_line=None):
        self.path, self.source, self.header_line = str(path), source, header_line
        self.lines = np.asarray(lines, dtype="int64")
        self._columns = dict(columns)
        self._checked: dict[str, pd.Series] = {}
        self._unread: dict[int, dict] = {}
        self.good = np.ones(len(self.lines), dtype=bool)

    def __len__(self):
        return len(self.lines)

    @property
    def names(self) -> list[str]:
        """The columns there are, in order."""
        return list(self._columns)

    def need(self, *columns: str | tuple[str, ...]) -> None:
        """RawDataError unless each column is there, or one of each group; it names those found and expected."""
        groups = [(column,) if isinstance(column, str) else column for column in columns]
        lacking = [group for group in groups if not any(name in self._columns for name in group)]
        if lacking:
            wanted = ", ".join(" or ".join(group) for group in groups)
            missing = ", ".join(" or ".join(group) for group in lacking)
            found = ", ".join(self.names)[:LONGEST_FOUND] or "none"
            expected = f"the columns {wanted} (missing: {missing})"
            raise RawDataError(self.path, self.header_line, f"columns {found}", expected)

    def first(self, *names: str) -> str | None:
        """The first of these columns that there is."""
        return next((name for name in names if name in self._columns), None)

    def text(self, name: str | None) -> pd.Series:
        """A column's texts without space around them; "" where a cell is empty or there is no such column."""
        if name is None or name not in self._columns:
            return pd.Series("", index=range(len(self)), dtype="str")
        if name not in self._checked:
            self._checked[name] = pd.Series(self._columns[name], dtype="str").str.strip()
        return self._checked[name]

    def replace(self, name: str, texts: pd.Series) -> None:
        """Put other texts in place of a column's, or add a column."""
        self._columns[name] = self._checked[name] = texts

    def matching(self, name: str, pattern: str, expected: str) -> pd.Series:
        """A column's texts, all of which the pattern matches as a whole."""
        texts = self.text(name)
        self.refuse(~texts.str.fullmatch(pattern), texts, f"{name}: {expected}")
        return texts

    def number(
        self,
        name: str | None,
        *,
        decimal: str = ".",
        least: float | None = 0,
        most: float | None = None,
        whole: bool = False,
        missing: Sequence[str] = MISSING,
    ) -> pd.Series:
        """A column's numbers; NaN where a cell is empty. A cell that is no number, or outside, costs its row."""
        texts = self.text(name)
        empty = texts.str.lower().isin(missing) | (texts == "")
        plain = (
            texts.str.replace(".", "?", regex=False).str.replace(decimal, ".") if decimal != "." else texts
        )
        numeric = plain.str.fullmatch(NUMBER) & ~empty
        values = plain.where(numeric, "nan").astype("float64")
        bounds = "" if least is None else f" from {least:g}"
        bounds += "" if most is None else f" to {most:g}"
        wrong = ~empty & ~(numeric & np.isfinite(values))
        if least is not None:
            wrong |= values < least
        if most is not None:
            wrong |= values > most
        if whole:
            wrong |= values.notna() & ((values % 1 != 0) | (values.abs() > 2**53))
        self.refuse(wrong, texts, f"{name}: a {'whole ' * whole}number{bounds}, or nothing")
        return values.where(~wrong)

    def time(self, name: str | None, zone: str | None = None, form: str | None = None) -> pd.Series:
        """
        A column's times, in UTC; NaT where a cell is empty.

        Without `form` (as of `strptime`) they are ISO 8601; one without its own zone is of the given one, and
        refused if none is given.
        """
        texts = self.text(name)
        empty = texts.str.lower().isin(MISSING)
        zoned = texts.str.fullmatch(ZONE) if form is None else pd.Series("%z" in form, index=texts.index)
        times = pd.Series(pd.NaT, index=texts.index, dtype="datetime64[us, UTC]")
        how = {"errors": "coerce", "format": form or "ISO8601"}
        if (zoned & ~empty).any():
            times[zoned & ~empty] = pd.to_datetime(texts[zoned & ~empty], utc=True, **how).dt.as_unit("us")
        if zone is not None and (~zoned & ~empty).any():
            local = pd.to_datetime(texts[~zoned & ~empty], **how).dt.as_unit("us")
            local = local.dt.tz_localize(zone, ambiguous="NaT", nonexistent="NaT")
            times[~zoned & ~empty] = local.dt.tz_convert("UTC")
        form = form or "ISO 8601"
        self.refuse(~empty & times.isna(), texts, f"{name}: a time ({form}) with its zone, or nothing")
        return times

    def refuse(self, wrong, found, expected: str) -> None:
        """Refuse the rows where `wrong`: each becomes a row of unread, once, with what was found there."""
        wrong = np.asarray(wrong, dtype=bool) & self.good
        for row in np.flatnonzero(wrong):
            self._refuse(int(self.lines[row]), found.iloc[row], expected)
        self.good &= ~wrong

    def _refuse(self, line, found, expected):
        self._unread.setdefault(
            line,
            {"path": self.path, "line_number": line, "found": shown(found), "expected": expected},
        )

    def unread(self) -> list[dict]:
        """A row of table unread for each row refused, in order; RawDataError if none was left."""
        rows = [self._unread[line] for line in sorted(self._unread)]
        if not self.good.any():
            first = rows[0] if rows else {"line_number": None, "found": "no rows", "expected": "rows of data"}
            more = f" (and {len(rows) - 1:,} more such rows: none can be read)" if len(rows) > 1 else ""
            raise RawDataError(self.path, first["line_number"], first["found"] + more, first["expected"])
        return rows


def shown(found) -> str:
    """What was found, as text that UTF-8 can hold, shortened."""
    text = str(found).encode("utf-8", "replace").decode()
    return text if len(text) <= LONGEST_FOUND else text[: LONGEST_FOUND - 3] + "..."


def read_csv(path, *, delimiter: str = ",", comment: str | None = None, about=None) -> Sheet:
    """
    A CSV file with a header; every line is a row (a quoted field holds no line break).

    Lines without anything, and those that begin with `comment`, are passed over. A column that stands several
    times must say the same each time. RawDataError if there is no header.
    """
    data = read_bytes(path)
    kept, bad, header, header_line = [], [], None, None
    text = _decoded(path, data)
    plain = text.isascii() and '"' not in text and "\0" not in text
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or (comment and line.lstrip().startswith(comment)):
            continue
        fields, fault = (line.split(delimiter), None) if plain else _fields(line, delimiter)
        if header is None:
            if fault or len(fields) > MOST_COLUMNS:
                raise RawDataError(path, number, shown(line), fault or f"at most {MOST_COLUMNS:,} columns")
            header, header_line = [field.strip() for field in fields], number
        elif fault or len(fields) != len(header):
            bad.append((number, line, fault or f"{len(header)} fields, as in the header"))
        else:
            kept.append((number, fields))
    if header is None:
        raise RawDataError(path, None, "nothing" if not data else "no header", "CSV with a header")
    return _sheet(path, data, header, header_line, kept, bad, about)


def _sheet(path, data, header, header_line, kept, bad, about):
    """Columns of the rows; those that stand several times are compared."""
    columns = list(zip(*(fields for _, fields in kept), strict=True)) or [()] * len(header)
    places: dict[str, list[int]] = {}
    for place, name in enumerate(header):
        places.setdefault(name, []).append(place)
    sheet = Sheet(
        path,
        source_of_bytes(path, data, about),
        {name: columns[where[0]] for name, where in places.items() if name},
        [number for number, _ in kept],
        header_line,
    )
    for number, line, expected in bad:
        sheet._refuse(number, line, expected)
    for name, (one, *others) in places.items():
        if others and kept and name:
            first = np.array(columns[one], dtype=object)
            differs = np.any([np.array(columns[place], dtype=object) != first for place in others], axis=0)
            sheet.refuse(differs, sheet.text(name), f"{name}: the same in all its {len(others) + 1} columns")
    return sheet


def _decoded(path, data: bytes) -> str:
    """
    The text of a file's bytes, decompressed, its lines ended by \\n; bytes that are not UTF-8 are kept as surrogates.

    RawDataError names the format of what is no text.
    """
    data = content.unpacked(path, data, most_bytes=LARGEST_BYTES)
    encoding, mark = content.encoding_of(path, data[: content.OPENING_BYTES])
    text = data[mark:].decode(encoding, "surrogateescape" if encoding == "utf-8" else "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _fields(line, delimiter):
    """The fields of a line, and what is wrong with it."""
    if not line.isascii() and re.search("[\ud800-\udfff]", line):
        return [], "text in UTF-8"
    if "\0" in line:
        return [], "text without NUL"
    if '"' not in line:
        return line.split(delimiter), None
    try:
        return next(csv.reader([line], delimiter=delimiter, skipinitialspace=True, strict=True)), None
    except (csv.Error, StopIteration):
        return [], "fields whose quotes are closed"


def read_jsonl(path, *, about=None) -> Sheet:
    """
    JSON objects, one or several to a line; an object inside one gives columns as `from_region`.

    Numbers keep the digits they were written with.
    """
    data = read_bytes(path)
    decoder = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str)
    rows, lines, bad = [], [], []
    for number, line in enumerate(_decoded(path, data).split("\n"), 1):
        rest = line.strip()
        while rest:
            try:
                value, end = decoder.raw_decode(rest)
                rows.append(_flat(value))
                lines.append(number)
            except (ValueError, RecursionError):
                bad.append((number, rest, "a JSON object of texts and numbers, or of objects of such"))
                break
            rest = rest[end:].strip()
    names = list(dict.fromkeys(name for row in rows for name in row))
    if len(names) > MOST_COLUMNS:
        raise RawDataError(path, None, f"{len(names):,} names", f"at most {MOST_COLUMNS:,}")
    columns = {name: [row.get(name, "") for row in rows] for name in names}
    sheet = Sheet(path, source_of_bytes(path, data, about), columns, lines)
    for number, rest, expected in bad:
        sheet._refuse(number, rest, expected)
    return sheet


def _flat(value, prefix=""):
    if not isinstance(value, dict):
        raise ValueError
    row = {}
    for name, inner in value.items():
        if isinstance(inner, dict) and not prefix:
            row |= _flat(inner, f"{name}_")
        elif isinstance(inner, dict | list):
            raise ValueError
        else:
            row[prefix + name] = "" if inner is None else str(inner)
    "".join([*row, *row.values()]).encode()  # a lone surrogate is a ValueError, too
    return row


def read_parquet(path, *, about=None) -> Sheet:
    """A Parquet file of plain columns; a row counts as a line. RawDataError if it is none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = read_bytes(path)
    try:
        table = pq.read_table(pa.BufferReader(data))
        columns = {name: [_text(value) for value in table[name].to_pylist()] for name in table.column_names}
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise RawDataError(path, None, error, "a Parquet file of plain columns") from error
    return Sheet(path, source_of_bytes(path, data, about), columns, range(1, table.num_rows + 1))


def _text(value):
    if value is None:
        return ""
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
