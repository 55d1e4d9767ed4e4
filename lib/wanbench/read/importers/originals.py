"""Original files that other people published: `original_files.csv`, a row per file, pinned by address and hash."""

from __future__ import annotations

import csv
import re
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path

import pandas as pd

from wanbench.checks import check_choice
from wanbench.errors import RawDataError

FILE = Path(__file__).with_name("original_files.csv")
SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class OriginalFile:
    """
    One file as its authors published it.

    Attributes
    ----------
    name : str
        Its name in this catalogue.
    file : str
        Its file name in the folder of downloads.
    title, licence : str
        Its description; its licence.
    address, version : str
        Where to fetch it, and which version lies there.
    sha256, bytes : str, int
        Hash and length, which identify it.
    """

    name: str
    file: str
    title: str
    address: str
    version: str
    sha256: str
    bytes: int
    licence: str


def registry() -> dict[str, OriginalFile]:
    """All rows of `original_files.csv`, by name. RawDataError names a bad line."""
    return _read(FILE)


@cache
def _read(path) -> dict[str, OriginalFile]:
    names = [field.name for field in fields(OriginalFile)]
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, strict=True))
    if not rows or rows[0] != names:
        raise RawDataError(path, 1, rows[0] if rows else "", f"the columns {', '.join(names)}")
    originals: dict[str, OriginalFile] = {}
    for line, row in enumerate(rows[1:], 2):
        if len(row) != len(names) or not all(row) or not row[names.index("bytes")].isdecimal():
            raise RawDataError(path, line, ",".join(row), f"{', '.join(names)}, none of them empty")
        values = dict(zip(names, row, strict=True))
        original = OriginalFile(**values | {"bytes": int(values["bytes"])})
        if not SHA256.fullmatch(original.sha256) or Path(original.file).name != original.file:
            raise RawDataError(path, line, ",".join(row), "a SHA-256 in hexadecimal and a plain file name")
        if original.name in originals or original.file in {other.file for other in originals.values()}:
            raise RawDataError(path, line, original.name, "a name and a file not given before")
        originals[original.name] = original
    return originals


def original_file(name: str) -> OriginalFile:
    """The original file of this name; ParameterError lists the known names."""
    return registry()[check_choice("name of an original file", name, registry())]


def original_files() -> pd.DataFrame:
    """
    The known original files, one row each: name, title, version, licence, bytes, address, sha256.

    >>> original_files()["name"].tolist()[:2]
    ['intercloud-2022-02', 'intercloud-locations']
    """
    columns = ["name", "title", "version", "licence", "bytes", "address", "sha256"]
    return pd.DataFrame([asdict(original) for original in registry().values()])[columns]
