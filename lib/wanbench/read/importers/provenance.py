"""Where a file came from: its bytes, its hash, and its row of table `sources`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from os import PathLike
from pathlib import Path

from wanbench.checks import refusal
from wanbench.errors import RawDataError

from .originals import registry

MAX_BYTES = 1 << 29
"""512 MiB: a larger file would not fit into memory several times over, as bytes, text and columns."""
ABOUT = ("title", "address", "version", "licence")


def read_bytes(path) -> bytes:
    """All bytes of a file; RawDataError if it cannot be read or is larger than `MAX_BYTES`."""
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
        Hash and number of the bytes that were read.
    about : mapping, optional
        title, address, version, licence, as far as known. For a file with the hash of an original file,
        `original_files.csv` fills the rest. Without either, the title is the file's name.

    Raises
    ------
    ParameterError
        If `about` holds anything else.
    """
    stated = check_about(about)
    for original in registry().values():
        if original.sha256 == sha256:
            stated = {name: getattr(original, name) for name in ABOUT} | stated
    return {"path": str(path), "title": Path(path).name, "sha256": sha256, "bytes": size} | stated


def source_of_bytes(path, data: bytes, about: Mapping[str, str] | None = None) -> dict:
    """A row of table sources for bytes that were read from a path."""
    return source(path, hashlib.sha256(data).hexdigest(), len(data), about)


def check_about(about) -> dict[str, str]:
    """A description of a file, checked: texts under title, address, version, licence."""
    if about is None:
        return {}
    fits = isinstance(about, Mapping) and all(
        name in ABOUT and isinstance(text, str) and text.strip() for name, text in about.items()
    )
    if not fits:
        raise refusal("about", about, f"a mapping of {', '.join(ABOUT)} to text (a date or number in quotes)")
    return dict(about)
