"""Whether a page is up to date, by a hash of its sources."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import cache
from importlib.metadata import distributions
from pathlib import Path

from wanbench.folders import data_folder, downloads_folder, published_folder, root, samples_folder
from wanbench.runs import origin

from .figure_files import browser
from .file_parameters import contents
from .notebooks import read_notebook
from .parameters import declared_parameters

PACKAGE = Path(__file__).parents[1]


def made_from(notebook: Path, given: dict, remarks: list, top: Path) -> str:
    """
    A hash of a page's sources: the notebook, its parameters and the files they name, the top of the page, the library,
    installed packages, and all data it may read, including runs of its campaigns; and its findings, so that lost ones
    are made again.

    Data count by path, size and modification time, as reading them would take as long as making the page.
    """
    content = [
        hashlib.sha256(notebook.read_bytes()).hexdigest(),
        json.dumps([given, remarks], sort_keys=True, default=repr),
        *contents(given, notebook),
        _library(),
        *_data(top, notebook.stem, _campaign(notebook, given)),
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


def _campaign(notebook: Path, given: dict) -> str | None:
    """Prefix of a notebook's campaign names; None if it measures nothing."""
    declared = declared_parameters(read_notebook(notebook), notebook.name).get("campaign")
    return given.get("campaign", declared.default) if declared else None


def _data(top: Path, page: str, campaign: str | None) -> Iterator[str]:
    runs = (data_folder(top) / "raw").glob(f"{campaign}*") if campaign else ()
    own = (*sorted(runs), data_folder(top) / "findings" / page)
    committed = (samples_folder(), published_folder(), root() / "data" / "validity")
    for folder in (*own, *committed, downloads_folder()):
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                found = path.stat()
                yield f"{path} {found.st_size} {found.st_mtime_ns}"
