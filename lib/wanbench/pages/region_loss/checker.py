"""Test of the checker: damage planted in the consumers' output must be reported under its name."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from wanbench.errors import MissingDataError
from wanbench.formatting import count
from wanbench.methods.result import RowsResult

from .episodes import Episodes
from .records import NAMES, faulty

EXPECTED = {
    "drop": "undelivered",
    "duplicate": "duplicates_in_delivery",
    "reorder": "order_in_delivery",
    "alter": "damaged_in_delivery",
}
"""The fault that each damage must be reported as, once, with no other fault."""


@dataclass(frozen=True, repr=False)
class Checked(RowsResult):
    """
    One row per episode with planted damage: done, found, and `right`: reported once, only under its own name, and at
    the planted record if that is known.
    """

    TITLE = "Faults planted to test the checker"

    @property
    def sentence(self) -> str:
        """How many planted faults were named correctly."""
        right, known = int(self.rows.right.sum()), int(self.rows.known.sum())
        return (
            f"{right} of {count(len(self.rows), 'planted fault')} reported once, under their own name and no other"
            f"{f', {known} of them at the very record that the run names' if known else ''}."
        )

    def formatted_table(self) -> pd.DataFrame:
        """One row per episode: damage done, damage found, and the verdict."""
        verdict = self.rows.right.map({True: "yes", False: "no"})
        shown = self.rows[["done", "found"]].assign(verdict=verdict)
        return shown.set_axis(["Done to the notes", "Found", "Once, only under its own name"], axis=1)


def check_checker(found: Episodes) -> Checked:
    """
    Compare planted with detected damage; MissingDataError if none was planted.

    Damage is planted in episodes without a fault, in which nothing else may be found.
    """
    rows = []
    for each in found:
        damage = each.about.get("damage")
        if damage not in EXPECTED:
            continue
        rows_found = faulty(*(each.tables[f"fault_{name}"] for name in ("records", "receipts", "log")))
        named = {name: part for name, part in rows_found.items() if len(part)}
        text = ", ".join(f"{len(part)} {NAMES[name]}" for name, part in named.items()) or "nothing"
        right = {name: len(part) for name, part in named.items()} == {EXPECTED[damage]: 1}
        planted = [each.about.get(name) for name in ("damaged_producer", "damaged_sequence")]
        known = right and not pd.isna(planted).any()
        if known:
            right = named[EXPECTED[damage]][["producer", "sequence"]].iloc[0].tolist() == planted
        rows.append({"done": damage, "found": text, "right": right, "known": known and right})
    if not rows:
        raise MissingDataError("no episode of this run has planted damage.")
    return Checked(pd.DataFrame(rows))
