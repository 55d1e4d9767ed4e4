"""
Files that other people published: which are known, where they lie, where they came from, how to cite them.

`original_files.csv` holds a row per known file, pinned by address and hash.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
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
    """One file as its authors published it: where to fetch it, and the hash and length that identify it."""

    name: str
    file: str
    title: str
    address: str
    version: str
    sha256: str
    bytes: int
    licence: str


def registry() -> dict[str, OriginalFile]:
    """All rows of `original_files.csv`, by name."""
    return _read(FILE)


@cache
def _read(path) -> dict[str, OriginalFile]:
    return {row["name"]: OriginalFile(**row) for row in pd.read_csv(path).to_dict("records")}


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
    return pd.DataFrame(map(asdict, registry().values()))[columns]


MAX_BYTES = 1 << 29  # 512 MiB: a larger file would not fit into memory several times over, as bytes, text and columns.
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


def source_of_bytes(path, data: bytes, about: Mapping[str, str] | None = None) -> dict:
    """A row of table sources for bytes that were read from a path: see `source`."""
    return source(path, hashlib.sha256(data).hexdigest(), len(data), about)


def source(path, sha256: str, size: int, about: Mapping[str, str] | None = None) -> dict:
    """
    A row of table sources for a file with this hash and number of bytes.

    `about` holds title, address, version and licence, as far as known; ParameterError if it holds anything else. For a
    file with the hash of an original file, `original_files.csv` fills the rest. Without either, the title is the file's
    name.
    """
    stated = check_about(about)
    for original in registry().values():
        if original.sha256 == sha256:
            stated = {name: getattr(original, name) for name in ABOUT} | stated
    return {"path": str(path), "title": Path(path).name, "sha256": sha256, "bytes": size} | stated


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


TIMEOUT_S = 10  # A page waits no longer than this for a server that does not answer.
MAX_DEPTH = 4  # Levels of folders searched below the shared folder.
MAX_FILES = 20_000  # The search stops here: a shared folder with more files would take longer than fetching.


class NotFetchedError(WanbenchError, OSError):
    """An original file is not on this machine, and could not be fetched."""


def available(name: str, folder=None) -> Path | None:
    """
    Find an original file on this machine, its hash checked; None if it is not here. Never fetches.

    Looks in `folder` (default: `folders.downloads_folder()`), then in `folders.shared_folder()` and up to four levels
    below it. ParameterError if no original file has that name; RawDataError, with both hashes, if the file in `folder`
    has another.
    """
    original = original_file(name)
    kept = _folder(folder) / original.file
    if kept.exists():
        sha256 = file_sha256(kept)
        if sha256 != original.sha256:
            raise _wrong_hash(kept, original, sha256)
        return kept
    alike = _same_name_and_length(shared_folder(), original)
    return next((path for path in alike if file_sha256(path) == original.sha256), None)


def fetch(name: str, folder=None) -> Path:
    """
    Return the path of an original file: where `available` finds it, else fetched into the folder with one request.

    `name` is one of `importers.original_files()`; `folder` is by default `data/external`, or what WANBENCH_DOWNLOADS
    names. Raises NotFetchedError if there is no network, or nothing at the address (it says what to fetch from where,
    and where to put it), and RawDataError if the file fetched, or the one in the folder, has another hash; the download
    is not kept.
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
            f"{original.name} was not fetched ({reason}). Fetch {original.address} by hand and put it into "
            f"{_from_checkout(folder)} as {original.file} ({original.bytes:,} bytes, SHA-256 {original.sha256})."
        ) from None
    except ValueError as error:  # pooch's: the hash does not match, and nothing was kept
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


def _same_name_and_length(folder: Path, original: OriginalFile) -> Iterator[Path]:
    """Files of that name and length in a folder and below, within the bounds of the search."""
    seen = 0
    for parent, folders, files in os.walk(folder):
        if len(Path(parent).relative_to(folder).parts) >= MAX_DEPTH:
            folders.clear()
        folders.sort()
        seen += len(files)
        if seen > MAX_FILES:
            return
        path = Path(parent) / original.file
        if original.file in files and path.is_file() and path.stat().st_size == original.bytes:
            yield path


@dataclass(frozen=True, repr=False)
class Citations:
    """One sentence per file: title, version, licence, address, size and SHA-256."""

    sentences: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(self.sentences) or "No file came from elsewhere."

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{escape(sentence)}</li>" for sentence in self.sentences)
        return f'<ul class="sources">{items}</ul>' if items else f"<p>{escape(str(self))}</p>"


def cite(tables: Mapping[str, pd.DataFrame]) -> Citations:
    """The files in table `sources`, without their paths on this machine; ParameterError without that table."""
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
