"""Simulation: whether the plausibility rules find planted faults and name their cause."""

from __future__ import annotations

from wanbench.read.plausibility import check

from .planted_faults import FAULTS, plant
from .simulation import Outcome

SETTINGS = [{"fault": fault} for fault in FAULTS]
DATASETS = 50
"""Data sets per fault, in tables of 8 to 46 regions."""


def trial(seed: int, *, fault: str) -> list[Outcome]:
    """
    Check one faulty table.

    The outcome is an interval that is 1 if a flag has the right cause and no other region is blamed, and 0 otherwise;
    the truth is 1. Coverage is therefore the share of faults that are found.
    """
    planted = plant(fault, seed)
    named = int(planted.named(check(planted.tables)))
    return [Outcome("fault named, with its cause", "plausibility.check", named, named, 1)]
