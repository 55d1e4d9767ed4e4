"""Published files on this machine: found where they lie, or fetched by pinned address and hash. Imports `places`."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ..errors import RawDataError, WanbenchError
from ..folders import downloads_folder, root, shared_folder
from .provenance import file_sha256
from .published import Published, entry

TIMEOUT_S = 10
DEEPEST = 4
MOST_FILES = 20_000


class NotFetchedError(WanbenchError, OSError):
    """A published file is not on this machine, and could not be fetched."""


def available(name: str, folder=None) -> Path | None:
    """
    Where a published file lies on this machine, hash checked; None if it does not. Nothing is fetched.

    Looked for are its name in `folder` (default: `places.downloads_folder()`), and in `places.shared_folder()`
    and the folders in it, four deep at most.

    Raises
    ------
    ParameterError
        If no published file has that name.
    RawDataError
        If the file in `folder` is not that which was published: it names both hashes.
    """
    wanted = entry(name)
    kept = _folder(folder) / wanted.file
    if kept.exists():
        _check(kept, wanted)
        return kept
    return next(
        (path for path in _alike(shared_folder(), wanted) if file_sha256(path) == wanted.sha256), None
    )


def fetch(name: str, folder=None) -> Path:
    """
    A published file of `importers.describe()`: as `available`, else fetched into the folder, by one request.

    Parameters
    ----------
    name : str
    folder : path, optional
        Where to keep it. Default: `data/external`, or what WANBENCH_DOWNLOADS names.

    Raises
    ------
    NotFetchedError
        If there is no network, or nothing at the address: it says what to fetch from where, and where to put it.
    RawDataError
        If what was fetched, or lies in the folder, has another hash; it names both. It is not kept.
    """
    found = available(name, folder)
    return _retrieve(entry(name), _folder(folder)) if found is None else found


def _retrieve(wanted: Published, folder: Path) -> Path:
    import pooch
    import requests

    pooch.get_logger().setLevel("ERROR")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = pooch.retrieve(
            wanted.address,
            known_hash=f"sha256:{wanted.sha256}",
            fname=wanted.file,
            path=folder,
            downloader=pooch.HTTPDownloader(timeout=TIMEOUT_S),
        )
    except (requests.RequestException, OSError) as error:
        reason = type(error).__name__ if isinstance(error, requests.ConnectionError) else error
        raise NotFetchedError(
            f"{wanted.name} was not fetched ({reason}). Fetch {wanted.address} by hand and put it into {_told(folder)} "
            f"as {wanted.file} ({wanted.bytes:,} bytes, SHA-256 {wanted.sha256})."
        ) from None
    except ValueError as error:  # pooch's: the hash does not match, and nothing was kept
        hashes = [word for word in re.findall(r"[0-9a-f]{64}", str(error)) if word != wanted.sha256]
        raise _other(wanted.address, wanted, hashes[-1] if hashes else str(error)) from error
    return Path(path)


def _told(folder: Path) -> str:
    """A folder for a reader of a page: from the checkout on, if it lies in it."""
    top = root()
    place = folder.resolve()
    return place.relative_to(top).as_posix() if place.is_relative_to(top) else str(folder)


def _folder(folder) -> Path:
    return downloads_folder() if folder is None else Path(folder)


def _check(path, wanted):
    found = file_sha256(path)
    if found != wanted.sha256:
        raise _other(path, wanted, found)


def _other(where, wanted, found):
    return RawDataError(where, None, f"SHA-256 {found}", f"{wanted.title}, SHA-256 {wanted.sha256}")


def _alike(folder: Path, wanted: Published):
    """Files of that name and length in a folder and below, no deeper and no more than the bounds."""
    seen = 0
    for place, folders, files in os.walk(folder):
        if len(Path(place).relative_to(folder).parts) >= DEEPEST:
            folders.clear()
        folders.sort()
        seen += len(files)
        if seen > MOST_FILES:
            return
        path = Path(place) / wanted.file
        if wanted.file in files and path.is_file() and path.stat().st_size == wanted.bytes:
            yield path
