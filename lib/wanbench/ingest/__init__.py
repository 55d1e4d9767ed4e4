"""
From raw files to tables, one module per experiment, named like the one that left them. Analysing code may import
this; it imports `runs`, `regions`, `tables`, `places`, `errors`, and nothing that measures.

>>> import wanbench
>>> wanbench.ingest.read_run("no/such/folder")
Traceback (most recent call last):
    ...
wanbench.errors.ParameterError: no/such/folder is not a run folder: it has no journal.jsonl.
"""

from .account import account, shortfalls
from .pairs import summarise_pairs
from .per_test import per_test
from .run import read_files, read_run
from .setting import MixedSettings, of_setting, settings
from .tabulate import tabulate

__all__ = [
    "MixedSettings",
    "account",
    "of_setting",
    "per_test",
    "read_files",
    "read_run",
    "settings",
    "shortfalls",
    "summarise_pairs",
    "tabulate",
]  # fmt: skip
