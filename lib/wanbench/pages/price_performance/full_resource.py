"""Which resource of each setting was saturated, from metrics sampled during the load."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import pandas as pd

from wanbench.formatting import quantity
from wanbench.methods.result import RowsResult

from .trials import SizeTrials

FULL = {
    # column of SizeTrials.trials: what it is, from where on it is full
    "fullest_link": ("network", 0.85),
    "waited": ("processor quota", 0.5),
    "machine_busy": ("processors of the machine", 0.95),
    "iowait": ("disk", 0.25),
}
"""
A link is full from 85 % of its rate on, averaged over seconds: senders without any other limit reach 90 %, because TCP
backs off when a queue overflows. A quota is full if it ran out in half of its periods: most requests then wait for the
next period. Processors are full if busy 95 % of the time, because no process finds an idle one; disks at 25 % IOWait,
because processors wait for them.
"""
UNSEEN = (
    "Not tested here, as invisible from inside: burst credits, and limits of attached volumes (EBS), which the "
    "provider enforces outside the machine."
)


@dataclass(frozen=True, repr=False)
class FullResource(RowsResult):
    """Per setting: mean shares of `FULL` over its trials, `full`, and the number of trials."""

    TITLE = "Which resource is full"

    @property
    def sentence(self) -> str:
        """The saturated resource of each setting."""
        groups = self.rows.groupby("full", sort=False).setting
        found = [f"{full} with {', '.join(names)}" for full, names in groups]
        return f"Full: {'; '.join(found)}. {UNSEEN}"

    def formatted_table(self) -> pd.DataFrame:
        """Shares in per cent."""
        rows = self.rows[["setting", "trials"]].astype(str)
        for column, (name, limit) in FULL.items():
            rows[f"{name} (full from {quantity(limit, 'fraction')})"] = [
                quantity(value, "fraction") if isfinite(value) else "unknown" for value in self.rows[column]
            ]
        return rows.assign(full=self.rows.full)


def full_resource(trials: SizeTrials) -> FullResource:
    """Which resources were saturated in the counted seconds of each setting's trials."""
    rows = []
    for name, part in trials.trials.groupby("setting", sort=False):
        means = {column: float(part[column].mean()) for column in FULL}
        full = [what for column, (what, limit) in FULL.items() if means[column] >= limit]
        known = [column for column in FULL if isfinite(means[column])]
        found = " and ".join(full) or ("nothing that was measured" if known else "nothing was measured")
        rows.append({"setting": name, "trials": len(part)} | means | {"full": found})
    return FullResource(pd.DataFrame(rows))
