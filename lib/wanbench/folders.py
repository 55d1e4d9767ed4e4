"""Find the folders of a checkout from any working directory in it."""

import os
from pathlib import Path

from .errors import ParameterError, WanbenchError

DATA_VARIABLE = "WANBENCH_DATA"
FINDINGS_VARIABLE = "WANBENCH_FINDINGS"  # where the page that is being made saves its findings
KAFKA_VARIABLE = "WANBENCH_KAFKA"
ROOT_MARK = "papermill-params"  # only the root of a checkout has a folder of this name


def root(start: Path | str = ".") -> Path:
    """
    Return the root of the checkout: the nearest folder at or above `start` that holds `papermill-params`.

    A notebook therefore finds the same data under JupyterLab, papermill or a script. Outside any checkout, it is the
    root of the checkout from which this package was installed. Raise WanbenchError if there is none.
    """
    start = Path(start).resolve()
    for folder in (start, *start.parents, Path(__file__).resolve().parents[2]):
        if (folder / ROOT_MARK).is_dir():
            return folder
    raise WanbenchError(f"no folder at or above {start} holds {ROOT_MARK!r}; run this inside a checkout of wanbench.")


def data_folder(top: Path | None = None) -> Path:
    """
    Return the folder for measurements and results: `data/` in the checkout `top` (default: `root()`), or the folder
    that the environment variable WANBENCH_DATA names; a relative path starts at the root of the checkout.

    Raise ParameterError if the variable holds an address, such as s3://bucket.
    """
    given = os.environ.get(DATA_VARIABLE) or "data"
    if "://" in given:
        message = f"{DATA_VARIABLE} is {given}; allowed: a folder (`wanbench bucket` copies to and from S3)."
        raise ParameterError(message)
    return (top or root()) / given


def findings_folder() -> Path:
    """Return the folder with the findings of published pages, which has one folder per page."""
    return data_folder() / "findings"


def scratch_folder() -> Path:
    """
    Return the folder in which runs in JupyterLab, by papermill or by `wanbench run` write their results; no site shows
    them.
    """
    return data_folder() / "scratch"


def samples_folder() -> Path:
    """Return the folder of committed recordings, which are ordinary run folders."""
    return root() / "data" / "samples"


def published_folder() -> Path:
    """Return the folder of committed tables from published studies, which `importers.read_published` reads."""
    return root() / "data" / "published"


def kafka_jars(version: str | None = None) -> Path:
    """
    Return the folder of Kafka's jars: `.kafka/jars` in the checkout, which `make setup` fills, or the folder that the
    environment variable WANBENCH_KAFKA names; a relative path starts at the root of the checkout. If that folder has
    another version than `version`, return `.kafka/<version>/jars`, which `scripts/kafka-jars.sh <version>` fills.
    Neither folder need exist.
    """
    own = root() / (os.environ.get(KAFKA_VARIABLE) or Path(".kafka", "jars"))
    if version is None or (own / f"kafka_2.13-{version}.jar").is_file():
        return own
    return root() / ".kafka" / version / "jars"
