"""Which resource of each setting was saturated, and whether the machine had enough processors for it."""

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
        groups = self.rows.groupby("full", sort=False).setting
        found = [f"{full} with {', '.join(names)}" for full, names in groups]
        return f"Full: {'; '.join(found)}. {UNSEEN}"

    def formatted_table(self) -> pd.DataFrame:
        rows = self.rows[["setting", "trials"]].astype(str)
        for column, (name, limit) in FULL.items():
            rows[f"{name} (full from {quantity(limit, 'fraction')})"] = [
                quantity(value, "fraction") if isfinite(value) else "unknown" for value in self.rows[column]
            ]
        return rows.assign(full=self.rows.full)


def full_resource(trials: SizeTrials) -> FullResource:
    """Tell which resources were saturated in the counted seconds of each setting's trials."""
    rows = []
    for name, part in trials.trials.groupby("setting", sort=False):
        means = {column: float(part[column].mean()) for column in FULL}
        full = [what for column, (what, limit) in FULL.items() if means[column] >= limit]
        known = [column for column in FULL if isfinite(means[column])]
        found = " and ".join(full) or ("nothing that was measured" if known else "nothing was measured")
        rows.append({"setting": name, "trials": len(part)} | means | {"full": found})
    return FullResource(pd.DataFrame(rows))


@dataclass(frozen=True, repr=False)
class Machine(RowsResult):
    """
    The processors that settings need, compared with those of the machine.

    Per setting, in processors: `quotas` of its brokers together; `others`, kept busy by clients, the relay and other
    work (mean over trials); `used`, the used part of the quotas; `needed`, quotas and others; `enough`, None without
    samples.
    """

    processors: int

    TITLE = "Processors needed"

    @property
    def sentence(self) -> str:
        seen = self.rows[self.rows.enough.notna()]
        there = f"The machine has {self.processors} processors"
        if seen.empty:
            return f"{there}; no trial has samples of what was used, so whether they suffice is unknown."
        short = seen[~seen.enough.astype(bool)]
        most = seen.loc[seen.needed.idxmax()]
        if short.empty:
            return (
                f"{there}; {most.setting} needs the most, {number(most.needed, 1)} ({number(most.quotas, 1)} as quotas "
                f"of brokers, {number(most.others, 1)} for clients and all else). So where quotas are "
                "full, they limit the brokers, not the machine."
            )
        share, full = (short.used + short.others).max() / self.processors, FULL["machine_busy"][1]
        needs = ", ".join(f"{row.setting} {number(row.needed, 1)}" for row in short.itertuples())
        busy = f"at most {number(100 * share, 0)} % of the processors were busy"
        so = "Such a size may carry no more messages here than one with a smaller quota, and then tie with it or look"
        so = f"But brokers used less, and {busy}: they were not full." if share < full else f"{so} dearer than it is."
        return (
            f"{there}, too few for every size to use its whole quota beside clients and all else, with "
            f"{number(100 * full, 0)} % of them busy at most. Processors needed: {needs}. {so}"
        )

    def formatted_table(self) -> pd.DataFrame:
        return text_table(self.rows.assign(enough=self.rows.enough.map({True: "yes", False: "no"})))

    @property
    def cautions(self) -> tuple[str, ...]:
        names = ", ".join(self.rows.setting[self.rows.enough.isna()])
        text = f"no samples of processors for {names}: whether the machine suffices for them is unknown"
        return (text,) if names else ()


def enough_processors(trials: SizeTrials, tables: Mapping[str, pd.DataFrame], *, brokers: int) -> Machine:
    """
    Compare the brokers' quotas and all other use with the processors of the machine.

    If processors were short, `others` is an underestimate. MissingDataError without samples or quotas.
    """
    metrics = tables.get("metrics")
    subjects = [] if metrics is None else metrics.subject[metrics.subject.str.fullmatch(r"cpu \d+")].unique()
    if not len(subjects):
        raise MissingDataError("no samples of processors; measure with HostMetrics beside the load.")
    if not any(quota for text in trials.trials.broker_sizes for quota in quotas_of(text, brokers)):
        raise MissingDataError("no size has a processor quota: brokers on separate hosts have none.")
    n, rows = len(subjects), []
    for name, part in trials.trials.groupby("setting", sort=False):
        quotas = [quota for quota in quotas_of(part.broker_sizes.iloc[0], brokers) if quota]
        others = float((n * part.machine_busy - part.brokers_used).clip(lower=0).mean())
        row = {"setting": name, "quotas": float(sum(quotas)), "used": float(part.brokers_used.mean()), "others": others}
        needed = row["quotas"] + (others if isfinite(others) else 0.0)
        # Full to the last processor, nothing is left for a burst: the limit of `FULL` holds here too.
        enough = needed <= n * FULL["machine_busy"][1]
        # Quotas alone can be too much, but without samples of all else never known to be enough.
        rows.append(row | {"needed": needed, "enough": enough if isfinite(others) or not enough else None})
    return Machine(pd.DataFrame(rows), n)
