"""
Identify and cite files that other people published.

`original_files.csv` has a row per file as its authors published it, with its address and its SHA-256.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from wanbench.checks import check_table, refusal
from wanbench.errors import RawDataError

FILE = Path(__file__).with_name("original_files.csv")


def registry() -> dict[str, dict[str, Any]]:
    """Return all rows of `original_files.csv` by SHA-256."""
    return _read(FILE)


@cache
def _read(path: Path) -> dict[str, dict[str, Any]]:
    return {row["sha256"]: row for row in pd.read_csv(path).to_dict("records")}


About = Mapping[str, str] | None  # title, address, version and licence of a file
MAX_BYTES = 1 << 29  # 512 MiB: a file is in memory several times, as bytes, text and columns.
ABOUT = ("title", "address", "version", "licence")


def read_bytes(path: str | Path) -> bytes:
    """Return the bytes of a file. Raise RawDataError if it cannot be read or is larger than `MAX_BYTES`."""
    if not isinstance(path, str | PathLike):
        raise refusal("path", path, "the path of a file")
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise RawDataError(path, None, reason, "a file that can be read") from error
    if len(data) > MAX_BYTES:
        raise RawDataError(path, None, "a larger file", f"at most {MAX_BYTES:,} bytes")
    return data


def source_of_bytes(path: str | Path, data: bytes, about: About = None) -> dict[str, Any]:
    """Return a row of table sources for the bytes that were read from a path; see `source`."""
    return source(path, hashlib.sha256(data).hexdigest(), len(data), about)


def source(path: str | Path, sha256: str, size: int, about: About = None) -> dict[str, Any]:
    """
    Return a row of table sources for a file with this hash and number of bytes.

    `about` has title, address, version and licence, if known; raise ParameterError if it has other keys. If the hash is
    that of an original file, keys that `about` lacks come from `original_files.csv`. The default title is the file's
    name.
    """
    stated = check_about(about)
    if original := registry().get(sha256):
        stated = {name: original[name] for name in ABOUT} | stated
    return {"path": str(path), "title": Path(path).name, "sha256": sha256, "bytes": size} | stated


def check_about(about: About) -> dict[str, str]:
    """
    Check a description of a file: it may have only title, address, version and licence, each a string.

    Return a copy.
    """
    if about is None:
        return {}
    fits = isinstance(about, Mapping) and all(
        name in ABOUT and isinstance(text, str) and text.strip() for name, text in about.items()
    )
    if not fits:
        raise refusal("about", about, f"a mapping of {', '.join(ABOUT)} to text (with quotes around a date or number)")
    return dict(about)


@dataclass(frozen=True, repr=False)
class Citations:
    """Citations, one sentence per file: title, version, licence, address, size and SHA-256."""

    sentences: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(self.sentences) or "No file from another source was used."

    __repr__ = __str__

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{escape(sentence)}</li>" for sentence in self.sentences)
        return f'<ul class="sources">{items}</ul>' if items else f"<p>{escape(str(self))}</p>"


def cite(tables: Mapping[str, pd.DataFrame]) -> Citations:
    """
    Cite the files in table `sources`, without their paths on this machine; raise ParameterError if there is no such
    table.
    """
    sources = check_table("sources", tables)
    return Citations(tuple(_sentence(row) for row in sources.to_dict("records")))


def _sentence(row: Mapping[str, Any]) -> str:
    parts = [
        row["title"],
        row["version"],
        f"licence {row['licence']}" if isinstance(row["licence"], str) else "licence not known",
        row["address"] if isinstance(row["address"], str) else "address not known",
        f"{row['bytes']:,} bytes, SHA-256 {row['sha256']}",
    ]
    return "; ".join(part for part in parts if isinstance(part, str)) + "."
