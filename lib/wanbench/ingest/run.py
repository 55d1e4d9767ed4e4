"""Reads the raw files of a run folder, or any files, into tables. Imports `runs` and the readers beside it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from .. import tables
from ..errors import ParameterError, RawDataError
from . import cut, iperf3, ping, readers
from .trials import trials

EXPERIMENTS = ("ping", "iperf3", *readers.LOOSE)
CONTEXT = tuple(column.name for column in tables.CONTEXT)
NO_DATA = (".stderr.txt", ".server.txt")


def read_run(folder) -> dict[str, pd.DataFrame]:
    """
    All tables of a run, finished or not: tests, links, echoes, transfers, intervals, cuts, link_counters, unread; and
    of Kafka's experiments, and what was measured beside them, those that the run has.

    Every file is checked against its SHA-256. Files that are damaged or cannot be read are rows of unread, and
    the others are still read. Files of attempts that were interrupted are not read: nobody knows whether they
    are whole; the attempt is a row of tests.

    Raises
    ------
    ParameterError
        If the folder is no run folder.
    RawDataError
        If its journal or manifest is damaged.
    """
    from ..runs import Run

    run = Run.open(folder)
    files = _Files(run.run_id)
    for file in run.raw_files():
        about = {name: file.get(name) for name in ("test_id", "attempt", "from_region", "to_region")}
        about |= {"run_id": run.run_id, "source_file": file["path"]}
        files.read(file["experiment"], run.folder / file["path"], about, file["sha256"])
    try:
        tests = tables.validate("tests", run.tests())
        links = [
            {name: link.get(name) for name in tables.table("links").names} | {"run_id": run.run_id}
            for link in run.links()
        ]
        links = tables.from_rows("links", links)
    except (ParameterError, AttributeError) as error:
        raise RawDataError(run.folder / "journal.jsonl", None, error, "tests and links of a run") from error
    return {"tests": tests, "links": links, **trials(run), **files.tables()}


def read_files(paths: Iterable, experiment: str) -> dict[str, pd.DataFrame]:
    """
    Tables of files that some other script left, without run and regions.

    Parameters
    ----------
    paths : iterable of path-like
    experiment : str
        What printed them: "ping", "iperf3", or one of `ingest.readers.LOOSE`, such as "kafka_load".

    Returns
    -------
    dict
        echoes, or transfers and intervals, or what its reader gives; and unread, with the files that could not be
        read.
    """
    if experiment not in EXPERIMENTS:
        raise ParameterError(f"experiment is {experiment!r}; allowed: {', '.join(EXPERIMENTS)}")
    if isinstance(paths, str | Path):
        raise ParameterError(f"paths is {str(paths)!r}; allowed is a list of files")
    files = _Files(None)
    for path in paths:
        files.read(experiment, Path(path), dict.fromkeys(CONTEXT) | {"source_file": str(path)})
    wanted = {"ping": ("echoes",), "iperf3": ("transfers", "intervals")}.get(experiment, files.others)
    return {name: frame for name, frame in files.tables().items() if name in (*wanted, "unread")}


class _Files:
    """Collects what files say, and at the end makes tables of it."""

    def __init__(self, run_id: str | None):
        self.run_id = run_id
        self.echoes: list[tuple[pa.Table, dict]] = []
        self.transfers: list[dict] = []
        self.intervals: list[dict] = []
        self.cuts: list[dict] = []
        self.counters: list[list[dict]] = []
        self.unread: list[dict] = []
        self.others: dict[str, list[tuple[pd.DataFrame, dict]]] = {}

    def read(self, experiment: str, path: Path, about: dict, sha256: str | None = None) -> None:
        """Read one file; one that nobody here can read (stderr, another experiment's) is passed over."""
        reader = self._reader(experiment, path.name, loose=sha256 is None)
        if reader is None:
            return
        try:
            if _plain(path) != str(path) or "\0" in str(path):
                raise RawDataError(path, None, path.name, "a name in UTF-8 without NUL")
            if sha256 is not None:
                _check(path, sha256)
            reader(path, about)
        except RawDataError as error:
            where = {
                "run_id": about["run_id"],
                "path": _plain(about["source_file"]),
                "line_number": error.line_number,
            }
            self.unread.append(where | {"found": _plain(error.found), "expected": _plain(error.expected)})

    def _reader(self, experiment, name, *, loose):
        if loose and experiment in ("ping", "iperf3"):
            return {"ping": self._ping, "iperf3": self._iperf3}[experiment]
        if not loose and name.endswith(NO_DATA):
            return None
        own = {
            ("ping", ".txt"): self._ping,
            ("iperf3", ".json"): self._iperf3,
            ("cut", ".txt"): self._ping,
            ("cut", ".json"): self._cut,
            ("links", ".json"): self._counters,
        }
        if not loose and (found := own.get((experiment, Path(name).suffix))):
            return found
        found = readers.loose(experiment) if loose else readers.reader(experiment, name)
        return found and partial(self._other, found)

    def _other(self, read, path, about):
        for name, frame in read(path).items():
            self.others.setdefault(name, []).append((frame, about))

    def _ping(self, path, about):
        self.echoes.append((ping.read_arrow(path), about))

    def _iperf3(self, path, about):
        transfers, intervals = iperf3.read_rows(path)
        self.transfers += [about | row for row in transfers]
        self.intervals += [about | row for row in intervals]

    def _cut(self, path, about):
        self.cuts += [about | row for row in cut.read(path).to_dict("records")]

    def _counters(self, path, about):
        self.counters.append(read_counters(path, self.run_id))

    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables, valid."""
        return {
            "echoes": _echoes(self.echoes),
            "transfers": tables.from_rows("transfers", self.transfers),
            "intervals": tables.from_rows("intervals", self.intervals),
            "cuts": tables.from_rows("cuts", self.cuts),
            "link_counters": _summed(self.counters),
            "unread": tables.from_rows("unread", self.unread),
            **{name: _together(name, frames) for name, frames in self.others.items()},
        }


def _together(name, frames):
    """One table of what several files gave, each with its context."""
    whole = [frame.assign(**{column: about[column] for column in CONTEXT}) for frame, about in frames]
    return tables.validate(name, pd.concat(whole, ignore_index=True))


def _check(path, sha256):
    try:
        with open(path, "rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError) as error:
        found = getattr(error, "strerror", None) or error
        raise RawDataError(path, None, found, "a file that can be read") from error
    if found != sha256:
        raise RawDataError(path, None, f"SHA-256 {found}", f"SHA-256 {sha256}, as the journal says")


def _plain(text):
    """Text that a table can hold: what is not UTF-8 in a file's name is escaped."""
    return str(text).encode("utf-8", "backslashreplace").decode()


def _echoes(files):
    """One table of many small ones, each with its context."""
    if not files:
        return tables.from_rows("echoes", [])
    core = pa.concat_tables(table.replace_schema_metadata() for table, _ in files)
    file = pa.array(np.repeat(np.arange(len(files)), [table.num_rows for table, _ in files]))
    types = {column.name: column.arrow_field().type for column in tables.CONTEXT}
    frame = core.to_pandas()
    for name, kind in types.items():
        values = pa.array([about[name] for _, about in files], kind)
        frame[name] = values.take(file).to_pandas()
    return tables.validate("echoes", frame)


def read_counters(path, run_id: str | None) -> list[dict]:
    """
    Rows of table link_counters out of what a lab left at its end, a JSON list of objects.

    RawDataError if the file is anything else.
    """
    names = [name for name in tables.table("link_counters").names if name != "run_id"]
    try:
        content = json.loads(Path(path).read_bytes())
        if not isinstance(content, list) or not all(isinstance(row, dict) for row in content):
            raise RawDataError(path, None, str(content)[:200], "a JSON list of objects, one per link")
        rows = [{name: row.get(name) for name in names} | {"run_id": run_id} for row in content]
        tables.from_rows("link_counters", rows)
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, RawDataError):
            raise
        raise RawDataError(path, None, error, "counters of links in JSON") from error
    return rows


def _sum(values):
    """The sum; null if one of the values is."""
    return values.sum(skipna=False)


def _summed(sessions):
    """The counters of a run that was resumed are those of all its sessions; the mean lateness is then unknown."""
    frame = tables.from_rows("link_counters", [row for rows in sessions for row in rows])
    if len(sessions) < 2:
        return frame
    late = {
        "mean_late_ms": lambda values: values.iloc[0] if len(values) == 1 else None,
        "worst_late_ms": "max",
    }
    keys = ["run_id", "from_region", "to_region"]
    how = {name: late.get(name, _sum) for name in frame.columns if name not in keys}
    return tables.validate(
        "link_counters", frame.groupby(keys, sort=False, dropna=False).agg(how).reset_index()
    )
