"""Original files on this machine: found by name and hash, or fetched from their pinned address."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from wanbench.errors import RawDataError, WanbenchError
from wanbench.folders import downloads_folder, root, shared_folder

from .originals import OriginalFile, original_file
from .provenance import file_sha256

TIMEOUT_S = 10
"""A page waits no longer than this for a server that does not answer."""
MAX_DEPTH = 4
"""Levels of folders searched below the shared folder."""
MAX_FILES = 20_000
"""The search stops here: a shared folder with more files would take longer than fetching."""


class NotFetchedError(WanbenchError, OSError):
    """An original file is not on this machine, and could not be fetched."""


def available(name: str, folder=None) -> Path | None:
    """
    Where an original file lies on this machine, its hash checked; None if it is not here. Never fetches.

    Looks in `folder` (default: `folders.downloads_folder()`), then in `folders.shared_folder()` and up to four
    levels below it.

    Raises
    ------
    ParameterError
        If no original file has that name.
    RawDataError
        If the file in `folder` has another hash: the error names both hashes.
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
    The path of an original file: where `available` finds it, else fetched into the folder with one request.

    Parameters
    ----------
    name : str
        One of `importers.original_files()`.
    folder : path, optional
        Where to keep it. Default: `data/external`, or the folder that WANBENCH_DOWNLOADS names.

    Raises
    ------
    NotFetchedError
        If there is no network, or nothing at the address. It says what to fetch from where, and where to put it.
    RawDataError
        If the file fetched, or the one in the folder, has another hash. It names both; the download is not kept.
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
    """A folder as a page shows it: relative to the checkout if it lies in it."""
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
