"""Read all runs of a campaign into tables; runs that have not changed since are not read again."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pandas as pd

from wanbench import tables
from wanbench.checks import check_choice
from wanbench.errors import ParameterError
from wanbench.folders import data_folder

from .run import is_current, tables_folder, tabulate


def tabulate_campaign(campaign: str, folder=None, *, again: bool = False) -> CampaignTables:
    """
    Write the tables of each new or changed run of a campaign as `tabulate` does, and return the tables of all its runs.

    Runs are those in `<folder>/raw/<campaign>`; the default `folder` is the data folder. A run is read again if its
    journal or manifest, or wanbench's readers, differ from those recorded beside its tables. So the time depends on the
    runs that are new, not on the length of the campaign. With `again`, all are read, which checks the SHA-256 of every
    raw file. Raise ParameterError if there is no such campaign, and RawDataError if the journal or manifest of a run is
    damaged.
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


class CampaignTables(Mapping):
    """
    The tables of several runs, in Parquet. A table is read into memory when it is first used; `query` reads less.

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
        Return the result of a query in DuckDB's SQL, which need not fit the tables into memory.

        Each table is a view of its name, with the further columns campaign, date and run. Raise ParameterError if the
        query fails.
        """
        import duckdb

        with duckdb.connect(config={"temp_directory": tempfile.gettempdir()}) as connection:
            for name, paths in self._paths.items():
                connection.read_parquet([str(path) for path in paths], hive_partitioning=True).create_view(name)
            try:
                return connection.sql(sql).to_arrow_table().to_pandas()
            except (duckdb.Error, AttributeError) as error:  # AttributeError: a statement without a result
                raise ParameterError(f"sql: {error}") from error
