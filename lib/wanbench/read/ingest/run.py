"""Read the raw files of a run folder, of all runs of a campaign, or other files, into tables."""

import gc
import hashlib
import json
import tempfile
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from wanbench import tables
from wanbench.checks import check_choice, refusal
from wanbench.errors import ParameterError, RawDataError
from wanbench.files import replace_file
from wanbench.folders import data_folder
from wanbench.read.plausibility import check
from wanbench.runs import Run
from wanbench.runs.raw import sha256
from wanbench.runs.read import THINNED

from .content import file_sha256
from .lab import of_all_sessions
from .other_tools import recognised_file
from .readers import ALWAYS, Reader, reader_in_run, reader_of
from .rows import Row, Rows, joined
from .trials import of_plan, trials

RECORD = "ingested.json"
"""Name of the file next to the tables that says from what they were made."""


@contextmanager
def _uncollected() -> Generator[None]:
    """Pause the garbage collector: rows have no cycles, and to search them for cycles takes a sixth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def tabulate(folder: str | Path | Run, target: str | Path | None = None) -> dict[str, pd.DataFrame]:
    """
    Read all tables of a run as `read_run` does, add the flags of the plausibility rules, and write each table to
    `<target>/<name>.parquet`.

    The default `target` is the run's `tables_folder`. The raw files are read every time, so that the tables always
    match the readers; `tabulate_campaign` reads only what changed. `ingested.json` next to the tables records the size,
    time and hash of the run's journal and manifest.
    """
    run = Run.open(folder)
    made_from = _made_from(run.folder, {})  # before reading, so that what is measured meanwhile counts as new
    by_name = read_run(run)
    by_name["flags"] = check(by_name)
    target = tables_folder(run.campaign, run.run_id) if target is None else Path(target)
    for name, frame in by_name.items():
        tables.write(name, frame, target)
    replace_file(target / RECORD, json.dumps(made_from, indent=1).encode())
    return by_name


def tables_folder(campaign: str, run_id: str) -> Path:
    """
    Return the folder of a run's tables in the data folder, `tables/campaign=<campaign>/date=<day>/run=<run id>`, which
    DuckDB and other readers of partitioned Parquet understand.
    """
    stamp = run_id[:8]
    day = f"{stamp[:4]}-{stamp[4:6]}-{stamp[6:]}" if stamp.isdigit() else "unknown"
    return data_folder() / "tables" / f"campaign={campaign}" / f"date={day}" / f"run={run_id}"


def is_current(target: Path, run_folder: Path) -> bool:
    """Return whether neither the run nor the code of the readers changed since the tables in `target` were made."""
    try:
        recorded = json.loads((target / RECORD).read_bytes())
    except (OSError, ValueError):
        return False
    return _hashes(recorded) == _hashes(_made_from(run_folder, recorded))


def _hashes(made_from: dict[str, Any]) -> dict[str, str]:
    return {name: about["sha256"] for name, about in made_from.items()}


def _made_from(run_folder: Path, recorded: dict[str, Any]) -> dict[str, Any]:
    """
    Return the hash of the readers, and the size, time and hash of the run's journal and manifest. A file with the
    recorded size and time is taken to have the recorded hash.
    """
    found: dict[str, Any] = {"readers": {"sha256": _readers()}}
    for path in (run_folder / name for name in ("journal.jsonl", "manifest.json", THINNED)):
        if path.is_file():
            status, known = path.stat(), recorded.get(path.name, {})
            about = {"bytes": status.st_size, "modified_ns": status.st_mtime_ns}
            found[path.name] = known if about.items() <= known.items() else about | {"sha256": sha256(path)}
    return found


@cache
def _readers() -> str:
    """Return a hash of the code that makes tables from raw files."""
    rooms = [Path(__file__).parents[1], Path(tables.__file__).parent]
    paths = sorted(path for room in rooms for path in room.rglob("*") if path.suffix in (".py", ".csv", ".tsv"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


class CampaignTables(Mapping[str, pd.DataFrame]):
    """
    The tables of several runs, in Parquet, by name. A table is read into memory when it is first used; `query` reads
    only the columns and rows that a query needs.

    `folders` has the folder of each run's tables, oldest run first.
    """

    def __init__(self, folders: list[Path]):
        self.folders = folders
        self._paths: dict[str, list[Path]] = {}
        for path in (path for folder in folders for path in sorted(folder.glob("*.parquet"))):
            self._paths.setdefault(path.stem, []).append(path)
        self._read: dict[str, pd.DataFrame] = {}

    def __getitem__(self, name: str) -> pd.DataFrame:
        if name not in self._read:
            self._read[name] = tables.read(name, *(path.parent for path in self._paths[name]))
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    def query(self, sql: str) -> pd.DataFrame:
        """
        Return the result of a query in DuckDB's SQL; the tables need not fit into memory.

        Each table is a view with the table's name and the further columns campaign, date and run. Raise ParameterError
        if the query fails.
        """
        import duckdb

        with duckdb.connect(config={"temp_directory": tempfile.gettempdir()}) as connection:
            for name, paths in self._paths.items():
                connection.read_parquet([str(path) for path in paths], hive_partitioning=True).create_view(name)
            try:
                return connection.sql(sql).to_arrow_table().to_pandas()
            except (duckdb.Error, AttributeError) as error:  # AttributeError: a statement without a result
                raise ParameterError(f"sql: {error}") from error


def tabulate_campaign(campaign: str, folder: str | Path | None = None, *, again: bool = False) -> CampaignTables:
    """
    Write the tables of each new or changed run of a campaign as `tabulate` does, and return the tables of all its runs.

    Runs are those in `<folder>/raw/<campaign>`; the default `folder` is the data folder. A run is read again if its
    journal or manifest, or wanbench's readers, differ from what is recorded next to its tables. So the time depends on
    the number of new runs, not on the length of the campaign. With `again`, all runs are read, which checks the SHA-256
    of every raw file. Raise ParameterError if there is no such campaign, and RawDataError if the journal or manifest of
    a run is damaged.
    """
    raw = (data_folder() if folder is None else Path(folder)) / "raw"
    check_choice("campaign", campaign, sorted({path.parent.parent.name for path in raw.glob("*/*/journal.jsonl")}))
    folders = []
    for run in sorted(path.parent for path in raw.glob(f"{campaign}/*/journal.jsonl")):
        target = tables_folder(campaign, run.name)
        if again or not is_current(target, run):
            tabulate(run, target)
        folders.append(target)
    return CampaignTables(folders)


@_uncollected()
def read_run(folder: str | Path | Run) -> dict[str, pd.DataFrame]:
    """
    Read all tables of a run, finished or not: tests, links, echoes, transfers, intervals, cuts, link_counters and
    unread, and tables of Kafka and of metrics, if there are any.

    Each file is checked against its SHA-256. A file that is damaged or cannot be read is a row of table unread, and the
    other files are still read. Files of interrupted attempts are not read, because they may be incomplete; such an
    attempt is a row of table tests. Raise ParameterError if the folder is not a run folder, and RawDataError if its
    journal or manifest is damaged.
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
        tests, names = tables.validate("tests", run.tests()), tables.table("links").names
        links = [{name: link.get(name) for name in names} | {"run_id": run.run_id} for link in run.links()]
        links = tables.from_rows("links", links)
    except (ParameterError, AttributeError) as error:
        raise RawDataError(run.folder / "journal.jsonl", None, error, "tests and links of a run") from error
    by_name = files.tables(ALWAYS)
    by_name["link_counters"] = of_all_sessions(by_name["link_counters"], run.run_id)
    if "faults" in by_name:
        by_name["faults"] = of_plan(run, "faults", by_name["faults"])
    return {"tests": tests, "links": links, **trials(run), **by_name}


@_uncollected()
def read_files(paths: Iterable[str | Path], experiment: str) -> dict[str, pd.DataFrame]:
    """
    Read files that other scripts wrote into tables without run and regions.

    `experiment` is the tool that printed the files: "ping", "iperf3", "kafka_load", or another key of
    `ingest.readers.loose_readers()`. Return the tables of the tool's reader, such as echoes, and table unread with the
    files that could not be read.
    """
    reader = reader_of(experiment)
    if isinstance(paths, str | Path):
        raise refusal("paths", str(paths), "a list of files")
    files = _Files(None)
    for path in paths:
        context = {column.name: None for column in tables.CONTEXT} | {"source_file": str(path)}
        files.read(reader, path if isinstance(path, Path) else Path(path), context, tool=experiment)
    return files.tables(reader.tables)


class _Files:
    def __init__(self, run_id: str | None):
        self._run_id = run_id
        self._rows: dict[str, list[tuple[Rows, Row]]] = {}
        self._unread: list[Row] = []

    def read(self, reader: Reader, path: Path, context: Row, expected: str | None = None, tool: str = "") -> None:
        """Read a file, or add a row of table unread. `tool` is the `experiment` of `read_files`, "" in a run folder."""
        try:
            if _plain(path) != str(path) or "\0" in str(path):
                raise RawDataError(path, None, path.name, "a name in UTF-8 without NUL")
            if expected is not None and (found := file_sha256(path)) != expected:
                raise RawDataError(path, None, f"SHA-256 {found}", f"SHA-256 {expected}, as the journal says")
            for name, rows in reader.read(path).items():
                self._rows.setdefault(name, []).append((rows, context))
        except RawDataError as error:
            other = recognised_file(path, tool) if tool and _plain(path) == str(path) else ""
            about = {"run_id": self._run_id, "path": _plain(context["source_file"]), "line_number": error.line_number}
            about |= {"found": _plain(error.found), "expected": _plain(error.expected) + other}
            self._unread.append(about)

    def tables(self, always: tuple[str, ...]) -> dict[str, pd.DataFrame]:
        about = {"run_id": self._run_id}
        unread = self._rows.pop("unread", [])
        parts = [about | {"path": _plain(file["source_file"])} | row for rows, file in unread for row in rows]
        by_name = {name: joined(name, self._rows.get(name, [])) for name in always}
        by_name["unread"] = tables.from_rows("unread", self._unread + parts)
        return by_name | {name: joined(name, rows) for name, rows in self._rows.items() if name not in by_name}


def _plain(text: object) -> str:
    """Return text that a table can store: bytes in a file name that are not UTF-8 are escaped."""
    return str(text).encode("utf-8", "backslashreplace").decode()
