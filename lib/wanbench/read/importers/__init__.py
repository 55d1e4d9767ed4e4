"""
Measurements that other people published, read into the declared tables, with a record of where each file came from.

Every importer returns a mapping of tables as `ingest.read_run` does (tests, pings, echoes, transfers, sources,
unread, flags, and regions where the source has coordinates). `ingest.summarise_pairs` makes table pairs of them.

An *original file* is what its authors published: `original_files` lists those known here, `fetch` gets one. A
*published study* is what an importer made of original files, committed in `data/published`: `read_published` reads it.
"""

from .assemble import join
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
    "NotFetchedError", "available", "cite", "fetch", "join", "load_mapping", "original_files", "read_circuit",
    "read_folder", "read_locations", "read_markdown", "read_matrix", "read_published", "read_skyplane", "read_survey",
    "read_table", "region_from",
]  # fmt: skip
