"""
Whether intervals cover: every method applied to simulated data with a known answer.

`study` runs a study, `summaries` summarises its table, `effects` are the kinds of simulated surveys; every other module
is a study. `make validity` runs all and writes data/validity.
"""

from .study import FIRST_DATASETS, run, studies
from .summaries import agreement, by_setting, finding, harder, ordinary, outside_band, overview, read_all

__all__ = [
    "FIRST_DATASETS",
    "agreement",
    "by_setting",
    "finding",
    "harder",
    "ordinary",
    "outside_band",
    "overview",
    "read_all",
    "run",
    "studies",
]
