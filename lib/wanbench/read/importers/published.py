"""
Read published studies from committed tables, so that pages about them need no network.

`data/published/<study>/` has the tables that an importer made from the original files, in Parquet. Table sources names
each original file with its address, version, SHA-256 and licence. `python -m wanbench.read.importers.published` makes
the tables again from the original files.
"""

from pathlib import Path

import pandas as pd

from wanbench import tables
from wanbench.checks import check_choice
from wanbench.folders import published_folder

from .assemble import finished
from .intercloud import read_survey, taken_as_exact
from .originals import fetch
from .skyplane import read_skyplane

# The importer of each study, and the names of its original files.
STUDIES = {
    "intercloud-2022-02": (read_survey, ("intercloud-2022-02", "intercloud-locations")),
    "skyplane-latency-2022-04": (read_skyplane, ("skyplane-latency-2022-04",)),
    "skyplane-throughput-2022-01": (read_skyplane, ("skyplane-throughput-2022-01",)),
}


def read_published(name: str) -> dict[str, pd.DataFrame]:
    """
    Read the committed tables of a study (a key of `STUDIES`), and raise flags again.

    Raise ParameterError if there is no such study, and RawDataError if a committed table is damaged.

    >>> len(read_published("intercloud-2022-02")["tests"])
    2138
    """
    folder = published_folder() / check_choice("published study", name, STUDIES)
    study = {path.stem: tables.read(path.stem, folder) for path in sorted(folder.glob("*.parquet"))}
    return finished(study, taken_as_exact(study["regions"]) if "regions" in study else None)


def import_originals(name: str, folder=None) -> dict[str, pd.DataFrame]:
    """
    Read the tables of a study from its original files, which are fetched if they are not on this machine.

    Paths are reduced to file names, so that the tables are the same on every machine. `folder` and errors are as for
    `fetch`.
    """
    read, originals = STUDIES[check_choice("published study", name, STUDIES)]
    made = read(*(fetch(original, folder) for original in originals))
    for table in made:
        for column in {"path", "source_file"} & set(made[table]):
            made[table][column] = made[table][column].map(lambda path: Path(path).name, na_action="ignore")
    return made


def write_tables(name: str) -> list[Path]:
    """Make the tables of a study from its original files, write those that are not empty, and return their paths."""
    made = import_originals(name)
    kept = {table: rows for table, rows in made.items() if len(rows) and table != "flags"}
    return [tables.write(table, rows, published_folder() / name) for table, rows in kept.items()]


if __name__ == "__main__":
    for study in STUDIES:
        print(*write_tables(study), sep="\n")
