"""
Read published studies from committed tables, so that pages about them need no network.

`data/published/<study>/` has the tables that an importer made from the original files, in Parquet. Table sources names
each original file with its address, version, SHA-256 and licence. `scripts/published_studies.py` makes the tables from
the original files.
"""

import pandas as pd

from wanbench import tables
from wanbench.checks import check_choice
from wanbench.folders import published_folder

from .assemble import finished
from .intercloud import taken_as_exact

STUDIES = ("intercloud-2022-02", "skyplane-latency-2022-04", "skyplane-throughput-2022-01")


def read_published(name: str) -> dict[str, pd.DataFrame]:
    """
    Read the committed tables of a study (one of `STUDIES`), and compute table flags by today's plausibility rules.

    Raise ParameterError if there is no such study, and RawDataError if a committed table is damaged.

    >>> len(read_published("intercloud-2022-02")["tests"])
    2138
    """
    folder = published_folder() / check_choice("published study", name, STUDIES)
    study = {path.stem: tables.read(path.stem, folder) for path in sorted(folder.glob("*.parquet"))}
    return finished(study, taken_as_exact(study["regions"]) if "regions" in study else None)
