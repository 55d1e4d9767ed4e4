"""Where a file came from: rows of table `sources`. Imports `published`, `errors`, `tables`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from os import PathLike
from pathlib import Path

from ..errors import ParameterError, RawDataError
from .published import registry

LARGEST_BYTES = 1 << 29
ABOUT = ("title", "address", "version", "licence")


def read_bytes(path) -> bytes:
    """All bytes of a file; RawDataError if it cannot be read, or is larger than 512 MiB; ParameterError if no path."""
    if not isinstance(path, str | PathLike):
        raise ParameterError(f"path is {path!r}; allowed: the path of a file")
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST_BYTES + 1)
    except (OSError, ValueError) as error:
        found = getattr(error, "strerror", None) or error
        raise RawDataError(path, None, found, "a file that can be read") from error
    if len(data) > LARGEST_BYTES:
        raise RawDataError(path, None, "a larger file", f"at most {LARGEST_BYTES:,} bytes")
    return data


def file_sha256(path) -> str:
    """SHA-256 of a file of any size; RawDataError if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise RawDataError(path, None, error.strerror or error, "a file that can be read") from error


def source(path, sha256: str, size: int, about: Mapping[str, str] | None = None) -> dict:
    """
    A row of table sources.

    Parameters
    ----------
    path : path-like
        The file, as it was given.
    sha256, size : str, int
        Of the bytes that were read.
    about : mapping, optional
        title, address, version, licence, as far as known. What `published.csv` says of a file with this very
        hash fills the rest; without either, the title is the file's name.

    Raises
    ------
    ParameterError
        If `about` holds anything else.
    """
    said = check_about(about)
    for entry in registry().values():
        if entry.sha256 == sha256:
            said = {name: getattr(entry, name) for name in ABOUT} | said
    return {"path": str(path), "title": Path(path).name, "sha256": sha256, "bytes": size} | said


def source_of_bytes(path, data: bytes, about: Mapping[str, str] | None = None) -> dict:
    """A row of table sources for bytes that were read from a path."""
    return source(path, hashlib.sha256(data).hexdigest(), len(data), about)


def check_about(about) -> dict[str, str]:
    """What is said about a file, checked: texts under title, address, version, licence."""
    if about is None:
        return {}
    if not isinstance(about, Mapping):
        raise ParameterError(f"what is said about a file must be a mapping, not {about!r}")
    unknown = sorted(str(name) for name in about if name not in ABOUT)
    if unknown:
        raise ParameterError(f"about a file: unknown {', '.join(unknown)}; allowed: {', '.join(ABOUT)}")
    wrong = sorted(name for name, value in about.items() if not isinstance(value, str) or not value.strip())
    if wrong:
        raise ParameterError(f"about a file: {', '.join(wrong)} must be text (a date or number in quotes)")
    return dict(about)
