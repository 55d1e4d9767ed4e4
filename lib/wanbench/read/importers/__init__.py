"""
Read measurements that other people published into the declared tables, and record the source of each file.

Every importer returns tables by name, as `ingest.read_run` does: tests, pings, echoes, transfers, sources, unread,
flags, and regions if the source has coordinates. `ingest.summarise_pairs` computes table pairs from them.

A *published study* consists of the tables that an importer made from files as their authors published them. They are
committed in `data/published`, and `read_published` reads them.
"""

import pandas as pd

from wanbench.checks import check_choice
from wanbench.extensions import extensions

from .assemble import finished
from .circuit import read_circuit
from .intercloud import read_locations, read_survey
from .mapping import load_mapping, read_table
from .matrix import read_matrix
from .originals import cite
from .published import read_published
from .region_names import region_from
from .skyplane import read_skyplane
from .tool_output import read_folder

__all__ = [
    "IMPORTERS", "cite", "load_mapping", "read", "read_circuit", "read_folder", "read_locations", "read_matrix",
    "read_published", "read_skyplane", "read_survey", "read_table", "region_from",
]  # fmt: skip

# Importers by name, including those of other packages (entry points of this group).
IMPORTERS = extensions(
    "wanbench.importers",
    {
        "circuit": read_circuit, "folder": read_folder, "matrix": read_matrix,
        "skyplane": read_skyplane, "survey": read_survey, "table": read_table,
    },
)  # fmt: skip


def read(importer: str, *arguments: object, **options: object) -> dict[str, pd.DataFrame]:
    """
    Call the importer of this name, a key of `IMPORTERS`, with the arguments and options, and return its tables by name.

    If table flags is missing, as from importers of other packages, validate all tables and add table flags.

    >>> read("smoke signals", "a.txt")
    Traceback (most recent call last):
        ...
    wanbench.errors.ParameterError: importer is 'smoke signals'; allowed: 'circuit', 'folder', 'matrix',\
 'skyplane', 'survey', 'table'.
    """
    made = IMPORTERS[check_choice("importer", importer, IMPORTERS)](*arguments, **options)
    return made if "flags" in made else finished(made)
