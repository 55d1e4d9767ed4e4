"""
Read raw files into tables. Each tool has a module or package, named after the experiment that runs the tool.

`readers` maps files to readers, `run` reads run folders and other files, `campaign` reads all runs of a campaign, and
`rows` joins their results into tables.
`content` and `json_values` open and decode files; `other_tools` recognises output that has no reader. `pairs`
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
    "CampaignTables",
    "MixedSettings",
    "account",
    "failures",
    "of_setting",
    "per_test",
    "read_files",
    "read_run",
    "summarise_pairs",
    "tabulate",
    "tabulate_campaign",
]  # fmt: skip
