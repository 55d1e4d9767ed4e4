"""The known public files: `published.csv`, a row each. Imports `errors` only."""

from __future__ import annotations

import csv
import re
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path

import pandas as pd

from ..errors import ParameterError, RawDataError

FILE = Path(__file__).with_name("published.csv")


@dataclass(frozen=True)
class Published:
    """
    A file that somebody published, pinned.

    Attributes
    ----------
    name : str
        What it is called here.
    file : str
        The file's name in the folder where it is kept.
    title, licence : str
        What it is, in words; its licence.
    address, version : str
        Where it can be fetched, and which state of it that is.
    sha256, bytes : str, int
        What identifies it: SHA-256, and length.
    """

    name: str
    file: str
    title: str
    address: str
    version: str
    sha256: str
    bytes: int
    licence: str


def registry() -> dict[str, Published]:
    """All entries of `published.csv`, by name. RawDataError names a line that is none."""
    return _read(FILE)


@cache
def _read(path) -> dict[str, Published]:
    names = [field.name for field in fields(Published)]
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, strict=True))
    if not rows or rows[0] != names:
        raise RawDataError(path, 1, rows[0] if rows else "", f"the columns {', '.join(names)}")
    entries: dict[str, Published] = {}
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(names) or not all(row) or not row[names.index("bytes")].isdecimal():
            raise RawDataError(path, number, ",".join(row), f"{', '.join(names)}, none of them empty")
        values = dict(zip(names, row, strict=True))
        entry = Published(**values | {"bytes": int(values["bytes"])})
        if not re.fullmatch(r"[0-9a-f]{64}", entry.sha256) or Path(entry.file).name != entry.file:
            raise RawDataError(path, number, ",".join(row), "a SHA-256 in hexadecimal and a plain file name")
        if entry.name in entries or entry.file in {other.file for other in entries.values()}:
            raise RawDataError(path, number, entry.name, "a name and a file not given before")
        entries[entry.name] = entry
    return entries


def entry(name: str) -> Published:
    """The entry of this name; ParameterError names those there are."""
    known = registry()
    if not isinstance(name, str) or name not in known:
        raise ParameterError(f"no published file {name!r}; known are {', '.join(known)}")
    return known[name]


def describe() -> pd.DataFrame:
    """
    The known public files, a row each: name, title, version, licence, bytes, address, sha256.

    >>> describe()["name"].tolist()[:2]
    ['intercloud-2022-02', 'intercloud-locations']
    """
    columns = ["name", "title", "version", "licence", "bytes", "address", "sha256"]
    return pd.DataFrame([asdict(each) for each in registry().values()])[columns]
