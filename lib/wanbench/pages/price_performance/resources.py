"""Find the saturated resource of each setting, and compare the needed processors with those of the machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

import pandas as pd

from wanbench.errors import MissingDataError
from wanbench.formatting import number, quantity
from wanbench.methods.result import RowsResult, text_table

from .trials import SizeTrials, quotas_of

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
    "Not tested: burst credits, and limits of attached volumes (EBS), which the provider enforces outside the machine."
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


@dataclass(frozen=True, repr=False)
class Machine(RowsResult):
    """
    The processors that each setting needs, compared with those of the machine.

    rows: One row per setting, in processors: `quotas` (sum over its brokers), `used` (by brokers, mean over trials),
        `others` (used by clients, the relay and other work, mean over trials), `needed` (quotas plus others), and
        `enough` (whether `needed` is within the limit for busy processors in `FULL`; None if unknown).
    """

    processors: int

    TITLE = "Processors needed"

    @property
    def sentence(self) -> str:
        sampled = self.rows[self.rows.enough.notna()]
        there = f"The machine has {self.processors} processors"
        if sampled.empty:
            return f"{there}; no trial sampled the use of processors, so it is unknown whether they suffice."
        short = sampled[~sampled.enough.astype(bool)]
        most = sampled.loc[sampled.needed.idxmax()]
        if short.empty:
            return (
                f"{there}; “{most.setting}” needs the most, {number(most.needed, 1)} ({number(most.quotas, 1)} for the "
                f"quotas of brokers, {number(most.others, 1)} for clients and other work). So a full quota limits the "
                "brokers; the machine does not."
            )
        share, full = (short.used + short.others).max() / self.processors, FULL["machine_busy"][1]
        needs = ", ".join(f"“{row.setting}” {number(row.needed, 1)}" for row in short.itertuples())
        busy = f"at most {number(100 * share, 0)} % of the processors were busy"
        so = "Such a size may carry no more messages here than a size with a smaller quota, and so look too expensive."
        if share < full:
            so = f"But brokers used less than their quotas, and {busy}: the machine was not full."
        return (
            f"{there}. If at most {number(100 * full, 0)} % of them may be busy, these are too few for the quotas of "
            f"every size, clients and other work. Processors needed: {needs}. {so}"
        )

    def formatted_table(self) -> pd.DataFrame:
        return text_table(self.rows.assign(enough=self.rows.enough.map({True: "yes", False: "no"})))

    @property
    def cautions(self) -> tuple[str, ...]:
        names = ", ".join(self.rows.setting[self.rows.enough.isna()])
        text = f"it is unknown whether the machine suffices for {names}: no samples of processors"
        return (text,) if names else ()


def enough_processors(trials: SizeTrials, tables: Mapping[str, pd.DataFrame], *, brokers: int) -> Machine:
    """
    Compare the quotas of the brokers plus all other use of processors with the processors of the machine.

    If all processors were busy, the other use is underestimated. Raises MissingDataError: there are no samples of
    processors, or no broker has a quota.
    """
    metrics = tables.get("metrics")
    subjects = [] if metrics is None else metrics.subject[metrics.subject.str.fullmatch(r"cpu \d+")].unique()
    if not len(subjects):
        raise MissingDataError("no samples of processors; measure with HostMetrics alongside the load.")
    if not any(quota for text in trials.trials.broker_sizes for quota in quotas_of(text, brokers)):
        raise MissingDataError("no size has a processor quota: brokers on separate hosts have none.")
    n, rows = len(subjects), []
    for name, part in trials.trials.groupby("setting", sort=False):
        quotas = [quota for quota in quotas_of(part.broker_sizes.iloc[0], brokers) if quota]
        others = float((n * part.machine_busy - part.brokers_used).clip(lower=0).mean())
        row = {"setting": name, "quotas": float(sum(quotas)), "used": float(part.brokers_used.mean()), "others": others}
        needed = row["quotas"] + (others if isfinite(others) else 0.0)
        # As in `FULL`, processors that are all busy leave none for a burst.
        enough = needed <= n * FULL["machine_busy"][1]
        # Without samples, quotas can be known to be too large, but never to fit.
        rows.append(row | {"needed": needed, "enough": enough if isfinite(others) or not enough else None})
    return Machine(pd.DataFrame(rows), n)
