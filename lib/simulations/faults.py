"""Simulation: do the plausibility rules name planted faults, with their cause?"""

from __future__ import annotations

from wanbench.read.plausibility import check

from .planted_faults import FAULTS, plant
from .simulation import Outcome

SETTINGS = [{"fault": fault} for fault in FAULTS]
DATASETS = 50
"""Data sets per fault, in tables of 8 to 46 regions."""


def trial(seed: int, *, fault: str) -> list[Outcome]:
    """
    One faulty table, checked; the outcome is written as an interval.

    The interval is 1 if the fault is named, with the right cause and no other region blamed, otherwise 0; the truth is
    1. Coverage is then the share of faults named.
    """
    planted = plant(fault, seed)
    named = int(planted.named(check(planted.tables)))
    return [Outcome("fault named, with its cause", "plausibility.check", named, named, 1)]
