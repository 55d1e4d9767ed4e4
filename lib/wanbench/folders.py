"""Where things lie in a checkout, from wherever in it Python runs. Imports `errors` only."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import WanbenchError

CHOSEN = "WANBENCH_DATA"
CHOSEN_DOWNLOADS = "WANBENCH_DOWNLOADS"
CHOSEN_KAFKA = "WANBENCH_KAFKA"
MARK = "papermill-params"  # the folder by which the root of a checkout is known


def root(start: Path | str = ".") -> Path:
    """
    The root of the checkout: the nearest folder at or above `start` that holds `papermill-params`.

    So a notebook finds the same data whether JupyterLab, papermill or a script runs it. Outside any
    checkout, it is the one this package was installed from.

    Raises
    ------
    WanbenchError
        There is no checkout at or above `start`, and the package was not installed in place.
    """
    start = Path(start).resolve()
    for folder in (start, *start.parents, Path(__file__).resolve().parents[2]):
        if (folder / MARK).is_dir():
            return folder
    raise WanbenchError(
        f"no folder at or above {start} holds {MARK!r}; run this inside a checkout of wanbench."
    )


def data_folder(top: Path | None = None) -> Path:
    """
    Where measuring and analysing write: `data/` of the checkout (`top`, by default `root()`), or the folder that
    the environment variable WANBENCH_DATA names (a relative one from the root of the checkout).
    """
    return (top or root()) / (os.environ.get(CHOSEN) or "data")


def samples_folder() -> Path:
    """The recordings that are committed with the code, run folders like any other."""
    return root() / "data" / "samples"


def published_folder() -> Path:
    """What others have published, in our own columns, committed with the code."""
    return root() / "data" / "published"


def downloads_folder() -> Path:
    """
    Where fetched files of others are kept: `data/external` of the checkout, or the folder that the environment
    variable WANBENCH_DOWNLOADS names (a relative one from the root of the checkout).
    """
    chosen = os.environ.get(CHOSEN_DOWNLOADS)
    return root() / chosen if chosen else data_folder() / "external"


def kafka_jars() -> Path:
    """
    Where Kafka's jars are: `.kafka/jars` of the checkout, where `make setup` puts them, or the folder that the
    environment variable WANBENCH_KAFKA names (a relative one from the root of the checkout). It need not exist.
    """
    return root() / (os.environ.get(CHOSEN_KAFKA) or Path(".kafka", "jars"))


def shared_folder() -> Path:
    """
    `shared/data` beside the checkout: where several checkouts on one machine may find files of others without
    fetching each its own. It need not exist, and nothing is written there.
    """
    return root().parent / "shared" / "data"
