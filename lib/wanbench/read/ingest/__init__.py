"""
From raw files to tables: a module (or folder) per tool, named like the experiment that runs it.

`readers` maps files to readers, `run` reads run folders and loose files, and `rows` joins the results into tables.
`content` and `json_values` open and decode files, and `other_tools` names those that are not read. `pairs` summarises
tables; `account` counts the outcome of every attempt.

>>> import wanbench
>>> wanbench.read.ingest.read_run("no/such/folder")
Traceback (most recent call last):
    ...
wanbench.errors.ParameterError: no/such/folder is not a run folder: it has no journal.jsonl.
"""

from .account import account, failures
from .pairs import MixedSettings, of_setting, per_test, summarise_pairs
from .run import read_files, read_run, tabulate

__all__ = [
    "MixedSettings",
    "account",
    "failures",
    "of_setting",
    "per_test",
    "read_files",
    "read_run",
    "summarise_pairs",
    "tabulate",
]  # fmt: skip
