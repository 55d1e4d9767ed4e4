"""
Write and read run folders, data/raw/<campaign>/<run id>/, with a journal, raw files and a manifest.
"""

from .attempts import Attempt
from .raw import RawFile, write_raw
from .read import SCHEMA_VERSION, Run, find, overlaps
from .write import RunHeldError, RunWriter, claim, origin

__all__ = [
    "SCHEMA_VERSION",
    "Attempt",
    "RawFile",
    "Run",
    "RunHeldError",
    "RunWriter",
    "claim",
    "find",
    "origin",
    "overlaps",
    "write_raw",
]
