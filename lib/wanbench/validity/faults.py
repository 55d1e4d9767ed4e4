"""The plausibility gate names planted faults."""

from __future__ import annotations

from ..plausibility import check
from ..plausibility.planted_faults import FAULTS, plant
from .study import Outcome

TITLE = "whether the plausibility gate names planted faults, with their cause"
SETTINGS = [{"fault": fault} for fault in FAULTS]
DATASETS = 50
"""Of each fault, in tables of 8 to 46 regions."""


def trial(seed: int, *, fault: str) -> list[Outcome]:
    """
    One faulty table through the gate, counted as an interval that holds its truth or does not.

    The interval is 1 if the fault is named, with the right cause and no other region blamed, else 0; the truth is 1.
    So the coverage is the share that is found.
    """
    planted = plant(fault, seed)
    named = int(planted.named(check(planted.tables)))
    return [Outcome("fault named, with its cause", "gate.check", named, named, 1)]
