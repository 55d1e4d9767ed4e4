"""The plausibility gate: silent on clean tables, and each planted fault named with its cause."""

from __future__ import annotations

from ..gate import check
from ..gate.faults import FAULTS, plant
from ..gate.simulate import FORMS, clean
from .study import Outcome

TITLE = "whether the plausibility gate is silent on clean tables, and names planted faults"
SETTINGS = [{"table": "clean", "form": form} for form in FORMS] + [
    {"table": "planted", "fault": fault} for fault in FAULTS
]
DATASETS = 250
"""Of each setting: 1,000 clean tables in all, of 8 to 46 regions."""


def trial(seed: int, *, table: str, form: str = "", fault: str = "") -> list[Outcome]:
    """
    One table through the gate, counted as an interval that holds its truth or does not.

    On a clean table the interval is the number of flags, and the truth is none: what is not covered is a false
    alarm. On a planted one it is 1 if the fault is named, with the right cause and no other region blamed, else 0,
    and the truth is 1: the coverage is the share that is found.
    """
    if table == "clean":
        n = len(check(clean(seed, form=form)))
        return [Outcome("no flag on a clean table", "gate.check", n, n, 0)]
    planted = plant(fault, seed)
    named = int(planted.named(check(planted.tables)))
    return [Outcome("fault named, with its cause", "gate.check", named, named, 1)]
