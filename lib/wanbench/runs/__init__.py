"""
The run folder, where measuring and analysing meet: data/raw/<campaign>/<run id>/ with journal, raw files and
manifest.
"""

from .attempts import Attempt
from .find import find, overlaps, tests_of
from .raw import RawFile, write_raw
from .read import SCHEMA_VERSION, Run
from .write import RunHeldError, RunWriter, claim

__all__ = [
    "SCHEMA_VERSION",
    "Attempt",
    "RawFile",
    "Run",
    "RunHeldError",
    "RunWriter",
    "claim",
    "find",
    "overlaps",
    "tests_of",
    "write_raw",
]
