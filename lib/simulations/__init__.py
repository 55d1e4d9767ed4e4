"""
Test statistical methods on simulated data with a known answer: how often do intervals contain it?

Every module with a function `trial` is a simulation. `simulation` runs one, `summaries` and `detection_summary`
summarise its table, and `effects` has the kinds of simulated surveys. `make validity` runs all simulations and writes
their tables to data/validity.
"""

from .detection_summary import delays, detector_finding, false_alarms
from .simulation import FIRST_DATASETS, run, simulations
from .summaries import agreement, by_setting, finding, harder, ordinary, outside_band, overview, read_all

__all__ = [
    "FIRST_DATASETS",
    "agreement",
    "by_setting",
    "delays",
    "detector_finding",
    "false_alarms",
    "finding",
    "harder",
    "ordinary",
    "outside_band",
    "overview",
    "read_all",
    "run",
    "simulations",
]
