"""
Measurements that other people published, read into the declared tables, with a record of where each file came from.

Every importer returns a mapping of tables as `ingest.read_run` does (tests, pings, echoes, transfers, sources,
unread, flags, and regions where the source has coordinates). `ingest.summarise_pairs` makes table pairs of them.

An *original file* is what its authors published: `original_files` lists those known here, `fetch` gets one. A
*published study* is what an importer made of original files, committed in `data/published`: `read_published` reads it.
"""

from wanbench.checks import check_choice
from wanbench.extensions import extensions

from .assemble import finished, join
from .circuit import read_circuit
from .intercloud import read_locations, read_survey
from .mapping import load_mapping, read_table
from .matrix import read_markdown, read_matrix
from .originals import NotFetchedError, available, cite, fetch, original_files
from .published import read_published
from .region_names import region_from
from .skyplane import read_skyplane
from .tool_output import read_folder

__all__ = [
    "IMPORTERS", "NotFetchedError", "available", "cite", "fetch", "join", "load_mapping", "original_files", "read",
    "read_circuit", "read_folder", "read_locations", "read_markdown", "read_matrix", "read_published", "read_skyplane",
    "read_survey", "read_table", "region_from",
]  # fmt: skip

# Every importer by name, also those of other packages (entry points of this group).
IMPORTERS = extensions(
    "wanbench.importers",
    {
        "circuit": read_circuit, "folder": read_folder, "markdown": read_markdown, "matrix": read_matrix,
        "skyplane": read_skyplane, "survey": read_survey, "table": read_table,
    },
)  # fmt: skip


def read(importer: str, *arguments, **options) -> dict:
    """
    Tables by the importer of this name, one of `IMPORTERS`; arguments and options are its own.

    What an importer of another package returns is validated and flagged, as far as it did not do so itself.

    >>> read("smoke signals", "a.txt")
    Traceback (most recent call last):
        ...
    wanbench.errors.ParameterError: importer is 'smoke signals'; allowed: 'circuit', 'folder', 'markdown', 'matrix',\
 'skyplane', 'survey', 'table'.
    """
    made = IMPORTERS[check_choice("importer", importer, IMPORTERS)](*arguments, **options)
    return made if "flags" in made else finished(made)
