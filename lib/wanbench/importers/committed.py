"""
Published studies whose rows are committed, so that their pages stand on every machine without a network.

`data/published/<study>/` holds the tables that the importer makes of the original files, in Parquet; table sources
names each original with its address, version, SHA-256 and licence. `python -m wanbench.importers.committed` makes
them again from the originals.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from .. import tables
from ..errors import ParameterError
from ..folders import published_folder
from .assemble import finished
from .fetching import fetch
from .skyplane import read_skyplane
from .survey import at_their_word, read_survey

STUDIES = {
    "intercloud-2022-02": (read_survey, ("intercloud-2022-02", "intercloud-locations")),
    "skyplane-latency-2022-04": (read_skyplane, ("skyplane-latency-2022-04",)),
    "skyplane-throughput-2022-01": (read_skyplane, ("skyplane-throughput-2022-01",)),
}


def read_published(name: str) -> dict[str, pd.DataFrame]:
    """
    Tables of a committed study, as its importer would make them of the original files; flags are found anew.

    Parameters
    ----------
    name : str
        intercloud-2022-02, skyplane-latency-2022-04 or skyplane-throughput-2022-01.

    Raises
    ------
    ParameterError
        No study of that name is committed.
    RawDataError
        A committed table is missing or damaged.

    Examples
    --------
    >>> len(read_published("intercloud-2022-02")["tests"])
    2138
    """
    _check_name(name)
    folder = published_folder() / name
    found = {path.stem: tables.read(path.stem, folder) for path in sorted(folder.glob("*.parquet"))}
    return finished(found, at_their_word(found["regions"]) if "regions" in found else None)


def import_originals(name: str, folder=None) -> dict[str, pd.DataFrame]:
    """
    The same tables from the original files, which are fetched if they are not on this machine.

    Paths are the files' names alone, so that the tables are the same on every machine. `folder` is where originals
    are kept; its default, and the errors, are those of `fetch`.
    """
    _check_name(name)
    read, originals = STUDIES[name]
    made = read(*(fetch(original, folder) for original in originals))
    for table in made:
        for column in {"path", "source_file"} & set(made[table]):
            made[table][column] = made[table][column].map(lambda path: Path(path).name, na_action="ignore")
    return made


def write_tables(name: str) -> list[Path]:
    """Write the committed tables of a study anew from its originals; returns their paths. Empty tables are left out."""
    made = import_originals(name)
    kept = {table: rows for table, rows in made.items() if len(rows) and table != "flags"}
    return [tables.write(table, rows, published_folder() / name) for table, rows in kept.items()]


def _check_name(name: str) -> None:
    if name not in STUDIES:
        raise ParameterError(f"no committed study {name!r}; there are {', '.join(STUDIES)}")


if __name__ == "__main__":
    for study in STUDIES:
        print(*write_tables(study), sep="\n")
