"""Find the saturated resource of each setting."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import pandas as pd

from wanbench.formatting import quantity
from wanbench.methods.result import RowsResult

from .trials import SizeTrials

FULL = {
    # column of SizeTrials.trials: (resource, share from which it counts as full)
    "fullest_link": ("network", 0.85),
    "waited": ("processor quota", 0.5),
    "machine_busy": ("processors of the machine", 0.95),
    "iowait": ("disk", 0.25),
}
"""
A link counts as full at 85 % of its rate, averaged over seconds: senders that nothing else limits reach 90 %, because
TCP backs off when a queue overflows. A processor quota counts as full if brokers used it up in half of its periods,
because most requests then wait for the next period. Processors count as full if they are busy 95 % of the time, and
disks if IOWait is 25 %.
"""
UNSEEN = (
    "Not in this table: burst credits, and limits of volumes (EBS), which the provider enforces outside the machine."
)


@dataclass(frozen=True, repr=False)
class FullResource(RowsResult):
    """
    Which resources each setting saturates.

    `rows` has one row per setting: the number of `trials`; the mean utilisation over them in each column of `FULL` (0
    to 1, NaN if not measured); and `full`, a text that names the resources at or above their limit in `FULL`.
    """

    TITLE = "Which resource is full"

    @property
    def sentence(self) -> str:
        groups = self.rows.groupby("full", sort=False).setting
        listed = [f"{full} with {', '.join(f'“{name}”' for name in names)}" for full, names in groups]
        return f"Full: {'; '.join(listed)}. {UNSEEN}"

    def formatted_table(self) -> pd.DataFrame:
        rows = self.rows[["setting", "trials"]].astype(str)
        for column, (name, limit) in FULL.items():
            rows[f"{name} (full from {quantity(limit, 'fraction')})"] = [
                quantity(value, "fraction") if isfinite(value) else "unknown" for value in self.rows[column]
            ]
        return rows.assign(full=self.rows.full)


def full_resource(trials: SizeTrials) -> FullResource:
    """Find the resources that each setting's trials saturated, while all producers ran."""
    rows = []
    for name, part in trials.trials.groupby("setting", sort=False):
        means = {column: float(part[column].mean()) for column in FULL}
        full = [what for column, (what, limit) in FULL.items() if means[column] >= limit]
        known = [column for column in FULL if isfinite(means[column])]
        names = " and ".join(full) or ("no measured resource" if known else "unknown")
        rows.append({"setting": name, "trials": len(part)} | means | {"full": names})
    return FullResource(pd.DataFrame(rows))
