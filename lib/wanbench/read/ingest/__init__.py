"""
Read raw files into tables. Each tool has a module or package, named after the experiment that runs the tool.

`readers` chooses the reader of a file; `run` reads run folders, all runs of a campaign, and other files; `rows` joins
the rows of several files into tables.
`content` and `json_values` open and decode files; `other_tools` recognises output of tools that have no reader. `pairs`
summarises tables per pair of regions, and `account` counts attempts by outcome.

>>> import wanbench
>>> wanbench.read.ingest.read_run("no/such/folder")
Traceback (most recent call last):
    ...
wanbench.errors.ParameterError: no/such/folder is not a run folder: it has no journal.jsonl.
"""

from .account import account, failures
from .pairs import MixedSettings, of_setting, per_test, summarise_pairs
from .run import CampaignTables, read_files, read_run, tabulate, tabulate_campaign

__all__ = [
    "CampaignTables", "MixedSettings", "account", "failures", "of_setting", "per_test", "read_files", "read_run",
    "summarise_pairs", "tabulate", "tabulate_campaign",
]  # fmt: skip
