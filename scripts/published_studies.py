"""Make `data/published/<study>/` again from the original files: `.venv/bin/python scripts/published_studies.py`."""

from pathlib import Path

import pandas as pd

from wanbench import tables
from wanbench.checks import check_choice
from wanbench.folders import published_folder
from wanbench.read.importers import fetch
from wanbench.read.importers.published import STUDIES


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
