"""Simulation: false alarms of the plausibility rules on clean tables."""

from __future__ import annotations

from wanbench.read.plausibility import check

from .clean_tables import FORMS, clean
from .simulation import Outcome

SETTINGS = [{"form": form} for form in FORMS]
DATASETS = 250
"""Data sets per form: 1,000 clean tables in all, of 8 to 46 regions."""


def trial(seed: int, *, form: str) -> list[Outcome]:
    """
    Check one clean table; the interval is the number of flags, and the truth is 0.

    A data set whose interval does not contain the truth is a false alarm.
    """
    n = len(check(clean(seed, form=form)))
    return [Outcome("no flag on a clean table", "plausibility.check", n, n, 0)]
