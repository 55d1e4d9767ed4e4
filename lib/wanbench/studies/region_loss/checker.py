"""Is the checker itself right? What was done to the consumers' notes on purpose must be found under its own name."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from ...errors import MissingDataError
from ...formatting import count
from ...stats.outages.episodes import Episodes
from ...stats.outages.records import NAMES, account
from ...stats.result import RowsResult

EXPECTED = {
    "drop": "undelivered",
    "duplicate": "duplicates_in_delivery",
    "reorder": "order_in_delivery",
    "alter": "damaged_in_delivery",
}
"""What each damage must be found as, and nothing else."""


@dataclass(frozen=True, repr=False)
class Checked(RowsResult):
    """One row per episode with planted damage: what was done, what was found, whether under its own name only."""

    TITLE = "Faults planted to test the checker"

    @property
    def all_found(self) -> bool:
        """Whether every one was found under its own name and no other."""
        return bool(self.rows.right.all())

    @property
    def sentence(self) -> str:
        """How many planted faults were named rightly."""
        right = int(self.rows.right.sum())
        return f"{right} of {count(len(self.rows), 'planted fault')} found under their own name, and under no other."

    def shown(self) -> pd.DataFrame:
        """Done, found, and the verdict."""
        verdict = self.rows.right.map({True: "yes", False: "no"})
        shown = self.rows[["done", "found"]].assign(verdict=verdict)
        return shown.set_axis(["Done to the notes", "Found", "Its own name, and no other"], axis=1)


def check_checker(found: Episodes) -> Checked:
    """
    Compare what was planted with what is found. MissingDataError if nothing was planted.

    Damage is planted into episodes without a fault: there, everything else must be right.
    """
    rows = []
    for each in found:
        damage = each.about.get("damage")
        if damage not in EXPECTED:
            continue
        counts = account(*(each.tables[f"fault_{name}"] for name in ("records", "receipts", "log")))
        named = {name: counts[name] for name in NAMES if counts[name]}
        text = ", ".join(f"{n} {NAMES[name]}" for name, n in named.items()) or "nothing"
        rows.append({"done": damage, "found": text, "right": set(named) == {EXPECTED[damage]}})
    if not rows:
        raise MissingDataError("no episode of this run has planted damage.")
    return Checked(pd.DataFrame(rows))
