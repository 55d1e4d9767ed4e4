"""Read a file of rows (CSV, JSON lines) as text, and check columns: a bad cell excludes only its row."""

import csv
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from wanbench.errors import RawDataError
from wanbench.read.ingest.content import OPENING_BYTES, File, encoding_of, unpacked
from wanbench.read.ingest.json_values import members_once

from .originals import MAX_BYTES, About, read_bytes, source_of_bytes

Mask = np.ndarray | pd.Series  # of bool
NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?"
ZONE = r".*(?:Z|[+-][0-9]{2}:?[0-9]{2})"
MISSING = ("", "nan", "none", "null", "na", "n/a", "-")
MAX_SHOWN = 200  # Characters of a bad cell or header that table unread and errors show.
MAX_COLUMNS = 10_000  # Limits the memory that a malicious header can use.
OBJECT = "a JSON object of texts and numbers, or of objects of these, with no name twice"
# Arguments of JSONDecoder that keep numbers as written, and refuse duplicate names.
AS_TEXT = {"parse_float": str, "parse_int": str, "parse_constant": str, "object_pairs_hook": members_once}


class Sheet:
    """
    The rows of a file as columns of text, with checks. A row that fails a check is *refused*: listed in table unread.

    `source` is the file's row in table sources. `lines` has the line number of each row, from 1, and `header_line` is
    the line number of the header, if there is one. `good` is a mask of the rows that are not refused. `missing` has the
    texts, in small letters, of empty cells.
    """

    missing: tuple[str, ...] = MISSING
    header_line: int | None = None

    def __init__(self, source: dict[str, Any], columns: Mapping[str, Sequence[str]], lines: Sequence[int]):
        self.path, self.source = str(source["path"]), source
        self.lines = np.asarray(lines, dtype="int64")
        self._columns = dict(columns)
        self._checked: dict[str, pd.Series] = {}
        self._unread: dict[int, dict[str, Any]] = {}
        self.good = np.ones(len(self.lines), dtype=bool)

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def names(self) -> list[str]:
        """Return the names of the columns in order."""
        return list(self._columns)

    def need(self, *columns: str | tuple[str, ...]) -> None:
        """Raise RawDataError unless each of `columns` exists or, for a tuple, at least one column of the tuple."""
        groups = [(column,) if isinstance(column, str) else column for column in columns]
        missing = [group for group in groups if self.first(*group) is None]
        if missing:
            wanted, lacking = (", ".join(" or ".join(group) for group in some) for some in (groups, missing))
            names = ", ".join(self.names)[:MAX_SHOWN] or "none"
            expected = f"the columns {wanted} (missing: {lacking})"
            raise RawDataError(self.path, self.header_line, f"columns {names}", expected)

    def first(self, *names: str) -> str | None:
        """Return the first of these columns that exists; None if there is none."""
        return next((name for name in names if name in self._columns), None)

    def text(self, name: str | None) -> pd.Series:
        """Return a column's stripped texts; "" for empty cells, and if the column does not exist."""
        if name is None or name not in self._columns:
            return pd.Series("", index=range(len(self)), dtype="str")
        if name not in self._checked:
            self._checked[name] = pd.Series(self._columns[name], dtype="str").str.strip()
        return self._checked[name]

    def replace(self, name: str, texts: pd.Series) -> None:
        """Replace a column's texts, or add a column."""
        self._columns[name] = self._checked[name] = texts

    def matching(self, name: str, pattern: str, expected: str) -> pd.Series:
        """Return a column's texts, and refuse rows where the pattern does not match the whole text."""
        texts = self.text(name)
        self.refuse(~texts.str.fullmatch(pattern), texts, f"{name}: {expected}")
        return texts

    def number(
        self, name: str | None, *, decimal: str = ".", minimum: float = 0, maximum: float = np.inf, whole: bool = False
    ) -> pd.Series:
        """Return a column's numbers (NaN for empty cells), and refuse rows with other texts or numbers out of range."""
        texts = self.text(name)
        empty = texts.str.lower().isin(self.missing) | (texts == "")
        plain = texts
        if decimal != ".":  # a point must then not be accepted as decimal mark
            plain = texts.str.replace(".", "?", regex=False).str.replace(decimal, ".")
        numeric = plain.str.fullmatch(NUMBER) & ~empty
        values = plain.where(numeric, "nan").astype("float64")
        bounds = f" from {minimum:g}" + (f" to {maximum:g}" if np.isfinite(maximum) else "")
        wrong = (~empty & ~(numeric & np.isfinite(values))) | (values < minimum) | (values > maximum)
        if whole:  # above 2^53, a float does not represent every integer
            wrong |= values.notna() & ((values % 1 != 0) | (values.abs() > 2**53))
        self.refuse(wrong, texts, f"{name}: a {'whole ' * whole}number{bounds}, or nothing")
        return values.where(~wrong)

    def time(self, name: str | None, zone: str | None = None, form: str | None = None) -> pd.Series:
        """
        Return a column's times in UTC; NaT for empty cells.

        `form` is a format for `strptime`; the default is ISO 8601. Times that state no zone are in `zone`; without
        `zone`, such rows are refused.
        """
        texts = self.text(name)
        empty = texts.str.lower().isin(self.missing)
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

    def refuse(self, wrong: Mask, found: pd.Series, expected: str) -> None:
        """Refuse the rows where the mask `wrong` is true; `found` has the text of each row to show in table unread."""
        wrong = np.asarray(wrong, dtype=bool) & self.good
        for row in np.flatnonzero(wrong):
            self.refuse_line(int(self.lines[row]), found.iloc[row], expected)
        self.good &= ~wrong

    def refuse_line(self, line: int, found: object, expected: str) -> None:
        """Add a line to table unread; further faults of the same line are ignored."""
        row = {"path": self.path, "line_number": line, "found": formatted(found), "expected": expected}
        self._unread.setdefault(line, row)

    def unread(self) -> list[dict[str, Any]]:
        """Return the rows of table unread in order of lines. Raise RawDataError if no row of the file can be read."""
        rows = [self._unread[line] for line in sorted(self._unread)]
        if not self.good.any():
            first = rows[0] if rows else {"line_number": None, "found": "no rows", "expected": "rows of data"}
            more = f" (and {len(rows) - 1:,} more such rows: none can be read)" if len(rows) > 1 else ""
            raise RawDataError(self.path, first["line_number"], first["found"] + more, first["expected"])
        return rows


def formatted(found: object) -> str:
    """Return any object as text of at most `MAX_SHOWN` characters that UTF-8 can encode."""
    text = str(found).encode("utf-8", "replace").decode()
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 3] + "..."


def read_csv(
    path: File, *, delimiter: str = ",", comment: str = "", header: Sequence[str] | None = None, about: About = None
) -> Sheet:
    """
    Read a CSV file. Its first line is the header, unless `header` names the columns.

    Empty lines and lines that begin with `comment` are skipped. Quoted fields cannot contain line breaks. If a column
    name occurs several times, all columns of that name must have the same values. Raise RawDataError if there is no
    header.
    """
    data = read_bytes(path)
    kept, bad, header_line = [], [], None
    text = decoded(path, data)
    plain = text.isascii() and '"' not in text and "\0" not in text
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or (comment and line.lstrip().startswith(comment)):
            continue
        fields, fault = (line.split(delimiter), None) if plain else _fields(line, delimiter)
        if header is None:
            if fault or len(fields) > MAX_COLUMNS:
                raise RawDataError(path, number, formatted(line), fault or f"at most {MAX_COLUMNS:,} columns")
            header, header_line = [field.strip() for field in fields], number
        elif fault or len(fields) != len(header):
            bad.append((number, line, fault or f"{len(header)} fields, as in the header"))
        else:
            kept.append((number, fields))
    if header is None:
        raise RawDataError(path, None, "nothing" if not data else "no header", "CSV with a header")
    columns = list(zip(*(fields for _, fields in kept), strict=True)) or [()] * len(header)
    places: dict[str, list[int]] = {}
    for place, name in enumerate(header):
        places.setdefault(name, []).append(place)
    named = {name: columns[where[0]] for name, where in places.items() if name}
    lines = [number for number, _ in kept]
    sheet = Sheet(source_of_bytes(path, data, about), named, lines)
    sheet.header_line = header_line
    for number, line, expected in bad:
        sheet.refuse_line(number, line, expected)
    for name, (one, *others) in places.items():
        if others and kept and name:
            first = np.array(columns[one], dtype=object)
            differs = np.any([np.array(columns[place], dtype=object) != first for place in others], axis=0)
            sheet.refuse(differs, sheet.text(name), f"{name}: the same in all its {len(others) + 1} columns")
    return sheet


def read_rows(path: File, *, format: str = "csv", about: About = None, **how: Any) -> Sheet:
    """Read a file in the format "csv" (`how` are arguments of `read_csv`) or "jsonl" (a JSON object per line)."""
    return read_csv(path, about=about, **how) if format == "csv" else read_jsonl(path, about=about)


def decoded(path: File, data: bytes) -> str:
    """
    Decompress and decode the bytes of a file, with lines that end in \\n; bytes that are not UTF-8 become surrogates.

    Raise RawDataError, which names the format, if the file is not text.
    """
    data = unpacked(path, data, most_bytes=MAX_BYTES)
    encoding, mark = encoding_of(path, data[:OPENING_BYTES])
    text = data[mark:].decode(encoding, "surrogateescape" if encoding == "utf-8" else "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _fields(line: str, delimiter: str) -> tuple[list[str], str | None]:
    """Return the fields of a line, and what was expected if the line is damaged, or else None."""
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


def read_jsonl(path: File, *, about: About = None) -> Sheet:
    """
    Read a file with one or more JSON objects per line, or with one list of objects; the line number of an object in a
    list is its position. Members of an inner object become columns such as `from_region`. Numbers are kept as written.
    """
    data = read_bytes(path)
    text, decoder = decoded(path, data), json.JSONDecoder(**AS_TEXT)
    rows, lines, bad = [], [], []
    if text.lstrip().startswith("["):
        try:
            rows = [_flat(value) for value in json.loads(text, **AS_TEXT)]
        except (ValueError, RecursionError) as error:
            expected = f"a list with {OBJECT}"
            raise RawDataError(path, getattr(error, "lineno", None), formatted(error), expected) from None
        text, lines = "", [*range(1, len(rows) + 1)]
    for number, line in enumerate(text.split("\n"), 1):
        rest = line.strip()
        while rest:
            try:
                value, end = decoder.raw_decode(rest)
                rows.append(_flat(value))
                lines.append(number)
            except (ValueError, RecursionError):
                bad.append((number, rest, OBJECT))
                break
            rest = rest[end:].strip()
    if bad and not rows:
        raise RawDataError(path, bad[0][0], formatted(bad[0][1]), f"a line with {OBJECT}")
    names = list(dict.fromkeys(name for row in rows for name in row))
    if len(names) > MAX_COLUMNS:
        raise RawDataError(path, None, f"{len(names):,} names", f"at most {MAX_COLUMNS:,}")
    columns = {name: [row.get(name, "") for row in rows] for name in names}
    sheet = Sheet(source_of_bytes(path, data, about), columns, lines)
    for number, rest, expected in bad:
        sheet.refuse_line(number, rest, expected)
    return sheet


def _flat(value: object, prefix: str = "") -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError(f"{formatted(value)} instead of an object")
    row = {}
    for name, inner in value.items():
        if isinstance(inner, dict) and not prefix:
            row |= _flat(inner, f"{name}_")
        elif isinstance(inner, dict | list):
            raise ValueError(f"{name}: {formatted(inner)}")
        else:
            row[prefix + name] = "" if inner is None else str(inner)
    "".join([*row, *row.values()]).encode()  # a lone surrogate is a ValueError, too
    return row
