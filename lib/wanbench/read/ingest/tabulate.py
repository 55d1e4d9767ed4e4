"""All tables of a run, also stored as Parquet for other tools."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from wanbench import tables
from wanbench.folders import data_folder
from wanbench.read.plausibility import check
from wanbench.runs import Run

from .run import read_run


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
