"""
What others have published, read into the tables of `tables`; where it came from is recorded.

Every importer returns a mapping of tables as `ingest.read_run` does (tests, pings, echoes, transfers, sources,
unread, flags, and regions where the source has coordinates), so that `ingest.summarise_pairs` makes table pairs of
them. Imports `tables`, `regions`, `ingest`, `gate`, `places`, `errors`; analysing code may import it.
"""

from .assemble import join
from .citing import cite
from .committed import read_published
from .fetching import NotFetchedError, available, fetch
from .folders import read_folder
from .mapped import read_table
from .mapping import load_mapping
from .markdown import read_markdown
from .matrix import read_matrix
from .names import region_from
from .published import describe
from .skyplane import read_skyplane
from .survey import read_locations, read_survey

__all__ = [
    "NotFetchedError", "available", "cite", "describe", "fetch", "join", "load_mapping", "read_folder",
    "read_locations", "read_markdown", "read_matrix", "read_published", "read_skyplane", "read_survey", "read_table",
    "region_from",
]  # fmt: skip
