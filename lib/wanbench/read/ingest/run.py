"""Reads the raw files of a run folder, or any files, into tables."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from wanbench import tables
from wanbench.checks import refusal
from wanbench.errors import ParameterError, RawDataError
from wanbench.folders import data_folder
from wanbench.read.plausibility import check
from wanbench.runs import Run

from .lab import of_all_sessions
from .other_tools import recognised_file
from .readers import ALWAYS, Reader, reader_in_run, reader_of
from .rows import Rows, joined
from .trials import of_plan, trials


def read_run(folder) -> dict[str, pd.DataFrame]:
    """
    All tables of a run, finished or not: tests, links, echoes, transfers, intervals, cuts, link_counters, unread; plus
    those of Kafka and of metrics, if any.

    Every file is checked against its SHA-256. A file that is damaged or cannot be read is a row of unread, and
    the others are still read. Files of interrupted attempts are not read, because they may be incomplete; the attempt
    is a row of tests.

    Raises
    ------
    ParameterError
        If the folder is not a run folder.
    RawDataError
        If its journal or manifest is damaged.
    """
    run = Run.open(folder)
    files = _Files(run.run_id)
    for file in run.raw_files():
        path = run.folder / file["path"]
        context = {name: file.get(name) for name in ("test_id", "attempt", "from_region", "to_region")}
        context |= {"run_id": run.run_id, "source_file": file["path"]}
        if reader := reader_in_run(file["experiment"], path.name):
            files.read(reader, path, context, file["sha256"])
    try:
        tests = tables.validate("tests", run.tests())
        links = [
            {name: link.get(name) for name in tables.table("links").names} | {"run_id": run.run_id}
            for link in run.links()
        ]
        links = tables.from_rows("links", links)
    except (ParameterError, AttributeError) as error:
        raise RawDataError(run.folder / "journal.jsonl", None, error, "tests and links of a run") from error
    found = files.tables(ALWAYS)
    found["link_counters"] = of_all_sessions(found["link_counters"], run.run_id)
    if "faults" in found:
        found["faults"] = of_plan(run, "faults", found["faults"])
    return {"tests": tests, "links": links, **trials(run), **found}


def read_files(paths: Iterable, experiment: str) -> dict[str, pd.DataFrame]:
    """
    Tables of files from other scripts, without run and regions.

    Parameters
    ----------
    paths : iterable of path-like
    experiment : str
        What printed them: "ping", "iperf3", "kafka_load", or another `loose` one of `ingest.readers.READERS`.

    Returns
    -------
    dict
        The tables of its reader, such as echoes; and unread, with the files that could not be read.
    """
    reader = reader_of(experiment)
    if isinstance(paths, str | Path):
        raise refusal("paths", str(paths), "a list of files")
    files = _Files(None)
    for path in paths:
        context = {column.name: None for column in tables.CONTEXT} | {"source_file": str(path)}
        files.read(reader, Path(path), context)
    return files.tables(reader.tables)


class _Files:
    """Collects the content of files, then makes tables of it."""

    def __init__(self, run_id: str | None):
        self._run_id = run_id
        self._rows: dict[str, list[tuple[Rows, dict]]] = {}
        self._unread: list[dict] = []

    def read(self, reader: Reader, path: Path, context: dict, sha256: str | None = None) -> None:
        """Read one file; one that cannot be read becomes a row of unread."""
        try:
            if _plain(path) != str(path) or "\0" in str(path):
                raise RawDataError(path, None, path.name, "a name in UTF-8 without NUL")
            if sha256 is not None:
                _check(path, sha256)
            for name, rows in reader.read(path).items():
                self._rows.setdefault(name, []).append((rows, context))
        except RawDataError as error:
            foreign = sha256 is None and _plain(path) == str(path)
            other = recognised_file(path, reader.experiment) if foreign else ""
            self._unread.append(
                {
                    "run_id": self._run_id,
                    "path": _plain(context["source_file"]),
                    "line_number": error.line_number,
                    "found": _plain(error.found),
                    "expected": _plain(error.expected) + other,
                }
            )

    def tables(self, always: tuple[str, ...]) -> dict[str, pd.DataFrame]:
        """The validated tables: the standard ones, unread, and others."""
        parts = [
            {"run_id": self._run_id, "path": _plain(context["source_file"])} | row
            for rows, context in self._rows.pop("unread", [])
            for row in rows
        ]
        unread = tables.from_rows("unread", self._unread + parts)
        found = {name: joined(name, self._rows.get(name, [])) for name in always} | {"unread": unread}
        return found | {name: joined(name, rows) for name, rows in self._rows.items() if name not in found}


def _check(path, sha256):
    try:
        with open(path, "rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError) as error:
        found = getattr(error, "strerror", None) or error
        raise RawDataError(path, None, found, "a file that can be read") from error
    if found != sha256:
        raise RawDataError(path, None, f"SHA-256 {found}", f"SHA-256 {sha256}, as the journal says")


def _plain(text) -> str:
    """Text that a table can store: bytes of a file's name that are not UTF-8 are escaped."""
    return str(text).encode("utf-8", "backslashreplace").decode()


def tabulate(folder, target=None) -> dict[str, pd.DataFrame]:
    """
    All tables of a run, as `read_run` gives them, and the flags that the plausibility rules raise. Each is also
    written to `<target>/<name>.parquet`.

    The raw files are read every time, so that tables always match the readers.

    Parameters
    ----------
    folder : path
        The run folder.
    target : path, optional
        Default: `data/tables/<campaign>/<run id>` of the checkout.
    """
    run = Run.open(folder)
    found = read_run(folder)
    found["flags"] = check(found)
    target = data_folder() / "tables" / run.campaign / run.run_id if target is None else Path(target)
    for name, frame in found.items():
        tables.write(name, frame, target)
    return found
