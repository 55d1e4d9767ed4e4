"""
Count the records that were lost with a region, on a stretched cluster and on a mirrored pair.

A record is identified by its producer and sequence number. On a stretched cluster, a record is missing if it was
acknowledged and is not in the log that is read after healing. On a mirrored pair, a record is missing at the failover
if the first cluster has acknowledged it and the second does not have it. It is missing for good if the second does not
have it at the end either, after MirrorMaker has copied the last records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from wanbench.checks import check_table
from wanbench.errors import MissingDataError
from wanbench.figures import theme
from wanbench.formatting import count
from wanbench.methods.lab.utilisation import KEY
from wanbench.methods.result import Estimate, Fields
from wanbench.methods.result.means import share_of
from wanbench.methods.result.over_episodes import OverEpisodes

FIRST, AT_FAILOVER, SECOND = range(3)
"""Column `log` of table fault_log: the first cluster's log, and the second's at the failover and at the end."""
STANDBY, LAST = 100, 200  # numbers of the first client that starts at the failover, and of the last producer
RECORD = ["producer", "sequence"]
COUNTS = {
    "acknowledged": "acknowledged before the clients went to the second cluster, or before healing",
    "missing": "of these, missing for the surviving clients",
    "after_fault": "of the missing, acknowledged by the lost region after the fault",
    "gone": "missing for good, after the region came back",
    "only_second": "only in the second cluster, and so missing for clients that go back to the first",
    "behind": "copied after the region came back, behind newer records",
    "repeated": "further copies in the log that the clients use at the end",
    "disordered": "behind a later record of the same producer and partition in that log",
    "reread": "read again by the group's consumers after the loss",
    "skipped": "in the clients' log, and read by no consumer of the group",
    "back_reread": "read again by the group's consumers after the clients went back to the first cluster",
    "back_skipped": "in the first cluster's log, and read by no consumer of the group after all",
}


@dataclass(frozen=True, repr=False)
class RegionLosses(OverEpisodes):
    """
    Missing records and outages: one row per episode, with the counts of `COUNTS`.

    `writes_s` is the longest time in s, between fault and healing, without an acknowledgement to any producer outside
    the lost region. It is censored (a lower bound) if this time lasted until healing.
    """

    QUANTITIES: ClassVar[dict[str, str]] = {
        "missing": "acknowledged records missing at the failover",
        "writes_s": "outage of all writes",
    }
    UNITS: ClassVar[dict[str, str]] = {"missing": "records"}
    TITLE = "What the loss of a region cost"

    def losing(self, setting: str) -> Estimate:
        """Estimate the share of a setting's episodes in which acknowledged records were missing."""
        own = self.rows[self.rows.setting == setting]
        about: Fields = {"quantity": f"episodes with missing records, {setting}"}
        about["claim"] = f"With “{setting}”, acknowledged records were missing in {{}} of the episodes"
        return share_of(int((own.missing > 0).sum()), len(own), **about)

    @property
    def headline(self) -> str:
        parts, faults = [], []
        for design, own in self.rows.groupby(self.rows.setting.str.rpartition(", ")[0], sort=False):
            names = list(dict.fromkeys(own.setting))
            faults += [name.removeprefix(f"{design}, ") for name in names]
            lost = f"{int(own.missing.sum()):,} of {int(own.acknowledged.sum()):,}" if own.missing.any() else "no"
            outages = sorted((self.of(name, "writes_s") for name in names), key=lambda each: each.estimate)
            stopped = " to ".join(dict.fromkeys((outages[0].formatted, outages[-1].formatted)))
            stopped = f"{'medians' if len(names) > 1 else 'a median'} of {stopped}"
            parts.append(f"“{design}” missed {lost} acknowledged records and stopped for {stopped}")
        return f"After the loss of a region ({', '.join(dict.fromkeys(faults))}): {'; '.join(parts)}."

    @property
    def sentence(self) -> str:
        parts = []
        for name, own in self.rows.groupby("setting", sort=False):
            sums, share, outage = own[list(COUNTS)].sum(), self.losing(name), self.of(name, "writes_s")
            some = f"{int(sums.missing):,} of {int(sums.acknowledged):,} acknowledged records in {share.basis}"
            none = f"none of {int(sums.acknowledged):,} acknowledged records in {count(len(own), 'episode')}"
            none += f" (with 95 % confidence, fewer than {100 * share.high:.0f} % of episodes lose records)"
            late = f", {int(sums.after_fault):,} of them acknowledged after the fault" if sums.after_fault else ""
            missed = f"{some}{late}; {int(sums.missing - sums.gone):,} came back later" if sums.missing else none
            text = (
                f"“{name}”: the surviving clients missed {missed}. Writes of these clients stopped for a median of "
                f"{outage.formatted_with_interval}. Consumers of the group read {int(sums.reread):,} records again and "
                f"skipped {int(sums.skipped):,}."
            )
            back = (
                f" {int(sums.only_second):,} records were only in the second cluster; {int(sums.behind):,} others were "
                "copied to it behind newer records."
            )
            returned = (
                f" Clients that went back to the first cluster missed the {int(sums.only_second):,} records that only "
                f"the second has; consumers there read {int(sums.back_reread):,} records again and skipped "
                f"{int(sums.back_skipped):,}."
            )
            parts.append(text + (back if sums.only_second else "") + (returned if own.went_back.any() else ""))
        return "\n".join(parts)

    def formatted_table(self) -> pd.DataFrame:
        sums = self.rows.groupby("setting", sort=False)[list(COUNTS)].sum()
        counted = {name: [f"{int(value):,}" for value in sums.loc[name]] for name in self.settings}
        return pd.concat([pd.DataFrame({"": list(COUNTS.values())} | counted), super().formatted_table().iloc[1:]])

    def figure(self) -> go.Figure:
        """Draw the missing records of each episode against its outage."""
        figure = go.Figure()
        for k, (name, own) in enumerate(self.rows.groupby("setting", sort=False)):
            marker = {"size": 10, "color": theme.SERIES_COLOURS[k % len(theme.SERIES_COLOURS)]}
            figure.add_scatter(x=own.writes_s, y=own.missing, mode="markers", name=theme.plain(name), marker=marker)
        figure.update_xaxes(title="outage of all writes outside the lost region (s)", rangemode="tozero")
        figure.update_yaxes(title="acknowledged records missing", rangemode="tozero")
        return theme.finish(
            figure,
            name="missing-against-outage",
            title=theme.headline(self.headline, "What the loss of a region costs, by design"),
            subtitle="One point per episode; lower and further left is better.",
            alt=f"Missing acknowledged records against the outage of writes, by design. {self.sentence}",
            caption=str(self),
            table=self.rows,
        )


def losses(tables: Mapping[str, pd.DataFrame]) -> RegionLosses:
    """
    Count the missing records, and measure the outage, of every episode with a fault.

    Raises MissingDataError: the run has no completed episode with a fault.
    """
    rows = [_row(*each) for each in episodes(tables) if each[0].fault != "none"]
    if not rows:
        raise MissingDataError("this run has no completed episode with a fault.")
    return RegionLosses(pd.DataFrame(rows))


def account(about: pd.Series, records: pd.DataFrame, log: pd.DataFrame, receipts: pd.DataFrame) -> dict[str, float]:
    """
    Count an episode's records of each kind in `COUNTS`, and compute `reread_s`, in s.

    `about` is the episode's row of table faults; the other arguments are its rows of the tables with these names.
    `reread_s` is how old the group's offsets in the second cluster were: the time from the first receipt of a record
    that was read again to the fault (to the failover, if there was no fault).
    """
    went = pd.notna(about.failover_at_s)
    mirrored = went or (log["log"] == SECOND).any()
    until_s = about.failover_at_s if went else np.inf
    acknowledged = records[records.acknowledged_at_s < until_s]
    at_failover, last = AT_FAILOVER if went else SECOND if mirrored else FIRST, SECOND if mirrored else FIRST
    missing = acknowledged[~within(acknowledged, log, at_failover)]
    every = records[records.acknowledged_at_s.notna()]
    kept = log[(log["log"] == last) & log.producer.notna()].sort_values(["partition", "offset"])
    once = kept.drop_duplicates(RECORD)
    standby = once.producer.between(STANDBY, 2 * STANDBY - 1)
    newer = standby.groupby(once.partition).cummax()
    known_s = until_s if about.fault == "none" else about.fault_at_s
    known = receipts[receipts.producer.notna()]
    moved = known.consumer.between(STANDBY, 2 * STANDBY - 1)
    read = known[moved | (known.received_at_s < known_s)]
    again = read[read.duplicated(RECORD, keep=False)]
    there = log[(log["log"] == at_failover) & (log.producer < STANDBY)]
    first = log[(log["log"] == FIRST) & (log.producer != LAST)]
    later = ~moved & (known.received_at_s >= about.failback_at_s)
    return {
        "acknowledged": len(acknowledged),
        "missing": len(missing),
        "after_fault": int((missing.acknowledged_at_s > about.fault_at_s).sum()) if mirrored else 0,
        "gone": int((~within(every, log, last)).sum()),
        "only_second": len(kept) - int(within(kept, log, FIRST).sum()) if mirrored else 0,
        "behind": int((newer & (once.producer < STANDBY)).sum()),
        "repeated": len(kept) - len(once),
        "disordered": int((once.groupby(["partition", "producer"]).sequence.diff() < 0).sum()),
        "reread": int(again.duplicated(RECORD).sum()) if went else 0,
        "skipped": int((~_found(there, receipts)).sum()) if went else 0,
        "back_reread": int(_found(known[later], known[~later]).sum()),
        "back_skipped": int((~_found(first, receipts)).sum()) if later.any() else 0,
        "reread_s": float(known_s - again.received_at_s.min()) if went and len(again) else 0.0,
    }


def _row(
    about: pd.Series, records: pd.DataFrame, log: pd.DataFrame, receipts: pd.DataFrame, regions: dict[int, str]
) -> Fields:
    outside = records.producer.map(regions).ne(about.regions) & records.acknowledged_at_s.notna()
    times = np.sort(records.acknowledged_at_s[outside].to_numpy(dtype=float))
    times = np.append(times[times < about.heal_at_s], about.heal_at_s)
    ends = times[1:] > about.fault_at_s
    gaps = np.diff(times)[ends]
    row = {name: about[name] for name in KEY} | {"setting": about.setting} | account(about, records, log, receipts)
    row["went_back"] = bool(pd.notna(about.failback_at_s))
    return row | {"writes_s": float(gaps.max()), "writes_s_censored": bool(gaps.argmax() == len(gaps) - 1)}


def episodes(tables: Mapping[str, pd.DataFrame]) -> Any:
    """
    Yield each completed episode: its row of table faults, its records, log and receipts, and its producers' regions.
    """
    names = ("faults", "fault_records", "fault_log", "fault_receipts", "fault_clients")
    faults, *others = (check_table(name, tables) for name in names)
    faults = faults[faults.error.isna() & faults.incomplete.isna()]
    if faults.empty:
        raise MissingDataError("this run has no completed episode.")
    for _, about in faults.sort_values("setting", kind="stable").iterrows():
        *own, clients = [part[(part[KEY] == about[KEY].to_numpy()).all(axis=1)] for part in others]
        producers = clients[clients.role == "producer"]
        yield about, *own, dict(zip(producers.client, producers.region, strict=True))


def within(rows: pd.DataFrame, log: pd.DataFrame, number: int) -> np.ndarray:
    """Return for each row whether its record is in the log with this `number` (FIRST, AT_FAILOVER or SECOND)."""
    return _found(rows, log[log["log"] == number])


def _found(rows: pd.DataFrame, others: pd.DataFrame) -> np.ndarray:
    asked, there = (pd.MultiIndex.from_frame(frame[RECORD].dropna().astype(int)) for frame in (rows, others))
    return asked.isin(there)
