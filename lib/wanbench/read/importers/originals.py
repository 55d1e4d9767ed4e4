"""
List, find, fetch and cite files that other people published.

`original_files.csv` has a row per known file, with its address and its SHA-256.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from html import escape
from os import PathLike
from pathlib import Path

import pandas as pd

from wanbench.checks import check_choice, check_table, refusal
from wanbench.errors import RawDataError, WanbenchError
from wanbench.folders import downloads_folder, root, shared_folder

FILE = Path(__file__).with_name("original_files.csv")
SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class OriginalFile:
    """A file as its authors published it: its address, and the hash and length that identify it."""

    name: str
    file: str
    title: str
    address: str
    version: str
    sha256: str
    bytes: int
    licence: str


def registry() -> dict[str, OriginalFile]:
    """Return all rows of `original_files.csv` by name."""
    return _read(FILE)


@cache
def _read(path) -> dict[str, OriginalFile]:
    return {row["name"]: OriginalFile(**row) for row in pd.read_csv(path).to_dict("records")}


def original_file(name: str) -> OriginalFile:
    """Return the original file of this name; the ParameterError for an unknown name lists the known ones."""
    return registry()[check_choice("name of an original file", name, registry())]


def original_files() -> pd.DataFrame:
    """
    Return the known original files, one per row: name, title, version, licence, bytes, address, sha256.

    >>> original_files()["name"].tolist()[:2]
    ['intercloud-2022-02', 'intercloud-locations']
    """
    columns = ["name", "title", "version", "licence", "bytes", "address", "sha256"]
    return pd.DataFrame(map(asdict, registry().values()))[columns]


MAX_BYTES = 1 << 29  # 512 MiB: a file is in memory several times, as bytes, text and columns.
ABOUT = ("title", "address", "version", "licence")


def read_bytes(path) -> bytes:
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


def file_sha256(path) -> str:
    """Return the SHA-256 of a file of any size; raise RawDataError if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise RawDataError(path, None, error.strerror or error, "a file that can be read") from error


def source_of_bytes(path, data: bytes, about: Mapping[str, str] | None = None) -> dict:
    """Return a row of table sources for the bytes that were read from a path; see `source`."""
    return source(path, hashlib.sha256(data).hexdigest(), len(data), about)


def source(path, sha256: str, size: int, about: Mapping[str, str] | None = None) -> dict:
    """
    Return a row of table sources for a file with this hash and number of bytes.

    `about` has title, address, version and licence, if known; raise ParameterError if it has other keys. If the hash is
    that of an original file, keys that `about` lacks come from `original_files.csv`. The default title is the file's
    name.
    """
    stated = check_about(about)
    for original in registry().values():
        if original.sha256 == sha256:
            stated = {name: getattr(original, name) for name in ABOUT} | stated
    return {"path": str(path), "title": Path(path).name, "sha256": sha256, "bytes": size} | stated


def check_about(about) -> dict[str, str]:
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


TIMEOUT_S = 10  # Maximum time to wait for a server that does not answer.


class NotFetchedError(WanbenchError, OSError):
    """An original file is not on this machine and cannot be fetched."""


def available(name: str, folder=None) -> Path | None:
    """
    Return the path of an original file on this machine, or None if it is not here; check the file's hash.

    `folder` (default: `folders.downloads_folder()`) is searched first, then `folders.shared_folder()` and the folders
    below it. Raise ParameterError if there is no original file of this name, and RawDataError, which shows the expected
    and the actual hash, if the file in `folder` has a different hash.
    """
    original = original_file(name)
    kept = _folder(folder) / original.file
    if kept.exists():
        sha256 = file_sha256(kept)
        if sha256 != original.sha256:
            raise _wrong_hash(kept, original, sha256)
        return kept
    same_name = sorted(path for path in shared_folder().rglob(original.file) if path.is_file())
    same_size = (path for path in same_name if path.stat().st_size == original.bytes)
    return next((path for path in same_size if file_sha256(path) == original.sha256), None)


def fetch(name: str, folder=None) -> Path:
    """
    Return the path of an original file; if `available` does not find the file, download it with one request.

    `name` is in `importers.original_files()`. By default, `folder` is the value of WANBENCH_DOWNLOADS, or else
    `data/external`. Raise NotFetchedError, which says what to download by hand and where to put it, if the address
    cannot be reached. Raise RawDataError if the file has a different hash; a wrong download is deleted.
    """
    path = available(name, folder)
    return _retrieve(original_file(name), _folder(folder)) if path is None else path


def _retrieve(original: OriginalFile, folder: Path) -> Path:
    import pooch
    import requests

    pooch.get_logger().setLevel("ERROR")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = pooch.retrieve(
            original.address,
            known_hash=f"sha256:{original.sha256}",
            fname=original.file,
            path=folder,
            downloader=pooch.HTTPDownloader(timeout=TIMEOUT_S),
        )
    except (requests.RequestException, OSError) as error:
        reason = type(error).__name__ if isinstance(error, requests.ConnectionError) else error
        raise NotFetchedError(
            f"{original.name} was not fetched ({reason}). Download {original.address} by hand and save it in "
            f"{_from_checkout(folder)} as {original.file} ({original.bytes:,} bytes, SHA-256 {original.sha256})."
        ) from None
    except ValueError as error:  # pooch: the hash does not match, and the download was deleted
        hashes = [word for word in re.findall(r"[0-9a-f]{64}", str(error)) if word != original.sha256]
        raise _wrong_hash(original.address, original, hashes[-1] if hashes else str(error)) from error
    return Path(path)


def _from_checkout(folder: Path) -> str:
    top = root()
    full = folder.resolve()
    return full.relative_to(top).as_posix() if full.is_relative_to(top) else str(folder)


def _folder(folder) -> Path:
    return downloads_folder() if folder is None else Path(folder)


def _wrong_hash(where, original: OriginalFile, sha256: str) -> RawDataError:
    return RawDataError(where, None, f"SHA-256 {sha256}", f"{original.title}, SHA-256 {original.sha256}")


@dataclass(frozen=True, repr=False)
class Citations:
    """Citations, one sentence per file: title, version, licence, address, size and SHA-256."""

    sentences: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(self.sentences) or "No file from another source was used."

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{escape(sentence)}</li>" for sentence in self.sentences)
        return f'<ul class="sources">{items}</ul>' if items else f"<p>{escape(str(self))}</p>"


def cite(tables: Mapping[str, pd.DataFrame]) -> Citations:
    """
    Cite the files in table `sources`, without their paths on this machine; raise ParameterError if there is no such
    table.
    """
    sources = check_table("sources", tables)
    return Citations(tuple(_sentence(row) for row in sources.itertuples(index=False)))


def _sentence(row) -> str:
    parts = [
        row.title,
        row.version,
        f"licence {row.licence}" if isinstance(row.licence, str) else "licence not known",
        row.address if isinstance(row.address, str) else "address not known",
        f"{row.bytes:,} bytes, SHA-256 {row.sha256}",
    ]
    return "; ".join(part for part in parts if isinstance(part, str)) + "."
