"""
Write and read run folders, data/raw/<campaign>/<run id>/, with a journal, raw files and a manifest.
"""

from .raw import RawFile, write_raw
from .read import Run, find, overlaps
from .write import RunHeldError, RunWriter, claim, origin

__all__ = ["RawFile", "Run", "RunHeldError", "RunWriter", "claim", "find", "origin", "overlaps", "write_raw"]
