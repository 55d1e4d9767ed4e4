"""Whether a page would come out as it is: a hash of everything that it is made from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import cache
from importlib.metadata import distributions
from pathlib import Path

from ..places import data_folder, downloads_folder, published_folder, root, samples_folder
from ..runs.origin import origin
from .static import browser

PACKAGE = Path(__file__).parents[1]


def made_from(notebook: Path, given: dict, said: list, top: Path) -> str:
    """
    A hash of what a page is made from: the notebook, its parameters, what stands at the page's top, the library,
    the installed packages, and all data that a notebook may read; and its findings, so that lost ones are made again.

    Data are taken by path, size and time of change; reading them all again would take as long as making the page.
    """
    content = [
        hashlib.sha256(notebook.read_bytes()).hexdigest(),
        json.dumps([given, said], sort_keys=True, default=repr),
        _library(),
        *_data(top, notebook.stem),
    ]
    return hashlib.sha256("\n".join(content).encode()).hexdigest()


@cache
def _library() -> str:
    hashed = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            hashed.update(f"{path.relative_to(PACKAGE)} {path.stat().st_size}\n".encode())
            hashed.update(path.read_bytes())
    installed = sorted(f"{one.name} {one.version}" for one in distributions())
    hashed.update(json.dumps([installed, origin(), browser()]).encode())
    return hashed.hexdigest()


def _data(top: Path, page: str) -> Iterator[str]:
    own = (data_folder(top) / "raw", data_folder(top) / "findings" / page)
    committed = (samples_folder(), published_folder(), root() / "data" / "validity")
    for folder in (*own, *committed, downloads_folder()):
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                found = path.stat()
                yield f"{path} {found.st_size} {found.st_mtime_ns}"
