"""
Read the episodes of a run. An episode is one fault, with the records, receipts and samples before, during and after it.

Episodes are the units of replication, because the seconds, clients and records of one episode share its fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import nan

import pandas as pd

from wanbench.checks import check_choice, check_table
from wanbench.errors import MissingDataError
from wanbench.formatting import count
from wanbench.methods.lab.utilisation import KEY
from wanbench.methods.result import Result

TABLES = ("fault_clients", "fault_records", "fault_receipts", "fault_log", "fault_errors")
TABLES += ("cluster_samples", "group_samples")
OPTIONAL = ("controller_events",)
SURVIVING, AFFECTED = "surviving", "affected"
ON_TIME = 0.95
"""Producers were behind before the fault if less than this share of records was acknowledged in time."""
FAULTS = ("cut", "cut-out", "cut-in", "flap", "slow", "kill", "freeze", "none")
"""Kinds of faults, in the order in which tables and figures show them."""


@dataclass(frozen=True)
class Episode:
    """One episode: its row of table `faults` (`about`), and its rows of the other tables."""

    about: pd.Series
    tables: Mapping[str, pd.DataFrame]

    @property
    def key(self) -> dict[str, object]:
        """The values of the columns that identify the episode."""
        return {name: self.about[name] for name in KEY}

    @property
    def setting(self) -> str:
        """The name of the episode's setting."""
        return self.about.setting

    @property
    def affected(self) -> frozenset[str]:
        """The regions affected by the fault."""
        text = self.about.regions
        return frozenset(text.split(",")) if isinstance(text, str) and text else frozenset()

    @property
    def fault_at_s(self) -> float:
        """When the fault was ordered, in Unix seconds."""
        return float(self.about.fault_at_s)

    @property
    def heal_at_s(self) -> float:
        """When healing was ordered, in Unix seconds."""
        return float(self.about.heal_at_s)

    @property
    def has_fault(self) -> bool:
        """Whether a fault with known times affected any region."""
        return bool(self.affected) and pd.notna(self.about.fault_at_s) and pd.notna(self.about.heal_at_s)

    @cached_property
    def due(self) -> tuple[float, float]:
        """The times at which the first and the last record were due, in Unix seconds."""
        times = self.tables["fault_records"].intended_at_s
        return float(times.min()), float(times.max())

    @cached_property
    def on_time(self) -> float:
        """Share of the records due more than a second before the fault that were acknowledged before the fault."""
        rows = self.tables["fault_records"]
        due = rows[rows.intended_at_s < self.fault_at_s - 1.0]
        return float((due.acknowledged_at_s < self.fault_at_s).sum() / len(due)) if len(due) else nan

    @cached_property
    def regions(self) -> dict[tuple[str, int], str]:
        """Maps each client, as (role, number), to its region."""
        return {(row.role, int(row.client)): row.region for row in self.tables["fault_clients"].itertuples()}

    @cached_property
    def acknowledgements(self) -> pd.DataFrame:
        """
        One row per acknowledgement: at_s (Unix seconds), client, partition, region, and side of the client.

        The side is AFFECTED or SURVIVING.
        """
        rows = self.tables["fault_records"]
        return self._events(rows[rows.acknowledged_at_s.notna()], "producer", "acknowledged_at_s")

    @cached_property
    def receipts(self) -> pd.DataFrame:
        """One row per receipt, with the columns of `acknowledgements`."""
        return self._events(self.tables["fault_receipts"], "consumer", "received_at_s")

    @cached_property
    def samples(self) -> pd.DataFrame:
        """Samples of partitions, observed outside the affected regions before cleanup, in order of time."""
        rows = self.tables["cluster_samples"]
        rows = rows[rows.partition.notna() & ~rows.region.isin(self.affected) & (rows.at_s <= self.about.ended_at_s)]
        return rows.sort_values(["at_s", "region", "partition"], kind="stable")

    @cached_property
    def members(self) -> pd.DataFrame:
        """Samples of the consumer group by one observer: the one outside the affected regions with most samples."""
        rows = self.tables["group_samples"]
        rows = rows[rows.member.notna() & (rows.at_s <= self.about.ended_at_s)]
        outside = rows[~rows.region.isin(self.affected)]
        rows = outside if len(outside) else rows
        return rows[rows.region == rows.groupby("region").size().idxmax()] if len(rows) else rows

    @cached_property
    def leaders_before(self) -> pd.Series:
        """The leader of each partition in the last sample before the fault."""
        rows = self.samples[(self.samples.at_s <= self.fault_at_s) & self.samples.leader.notna()]
        return rows.groupby("partition").leader.last()

    @cached_property
    def dark(self) -> frozenset[int]:
        """
        Brokers in the in-sync set of some partition before the fault, and of none in the last samples before healing.
        """
        rows = self.samples[self.samples.isr.notna()]
        before = rows[rows.at_s <= self.fault_at_s]
        last = rows[(rows.at_s > self.fault_at_s) & (rows.at_s < self.heal_at_s)].groupby("partition").isr.last()
        return _brokers(before.isr) - _brokers(last) if len(last) else frozenset()

    @cached_property
    def events(self) -> pd.DataFrame:
        """
        Log entries of nodes between fault and healing; decisions of `dark` nodes may have no effect and are left out.
        """
        rows = self.tables.get("controller_events")
        if rows is None or rows.empty:
            return pd.DataFrame(columns=["at_s", "node_id", "kind", "broker", "partition"])
        return rows[rows.at_s.between(self.fault_at_s, self.heal_at_s) & ~rows.node_id.isin(self.dark)]

    def _events(self, rows: pd.DataFrame, role: str, time: str) -> pd.DataFrame:
        regions = rows[role].map(lambda client: self.regions.get((role, int(client)), "unknown"))
        side = regions.isin(self.affected).map({True: AFFECTED, False: SURVIVING})
        events = {"at_s": rows[time].astype(float), "client": rows[role], "partition": rows.partition}
        return pd.DataFrame(events | {"region": regions, "side": side})


@dataclass(frozen=True, repr=False)
class Episodes(Result):
    """The completed episodes of a run; `left_out` has the `setting` and `reason` of every attempt that is left out."""

    items: tuple[Episode, ...]
    left_out: pd.DataFrame

    TITLE = "Episodes per setting"

    def __iter__(self) -> Iterator[Episode]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    @cached_property
    def settings(self) -> tuple[str, ...]:
        """The names of the settings, plain faults first."""
        abouts = {each.setting: each.about for each in self.items}
        return tuple(sorted(abouts, key=lambda name: _setting_order(abouts[name])))

    def of(self, *settings: str) -> Episodes:
        """Return the episodes of these settings; raises ParameterError if one is unknown."""
        for name in settings:
            check_choice("setting", name, self.settings)
        return replace(self, items=tuple(each for each in self.items if each.setting in settings))

    def with_fault(self) -> Episodes:
        """Return the episodes that affected a region; MissingDataError if there are none."""
        items = tuple(each for own in self.by_setting().values() for each in own if each.has_fault)
        if not items:
            raise MissingDataError("no episode of this run has a fault.")
        return replace(self, items=items)

    def by_setting(self) -> dict[str, list[Episode]]:
        """Return the episodes of each setting, in the order of `settings`."""
        return {name: [each for each in self.items if each.setting == name] for name in self.settings}

    @property
    def sentence(self) -> str:
        missing = f"; {count(len(self.left_out), 'attempt')} left out" if len(self.left_out) else ""
        return f"{count(len(self), 'episode')} of {count(len(self.settings), 'setting')}{missing}."

    @property
    def cautions(self) -> tuple[str, ...]:
        late = [each.on_time for each in self.items if each.has_fault and each.on_time < ON_TIME]
        reasons = self.left_out.groupby("reason").size()
        notes = [f"{count(n, 'attempt')} left out: {reason}" for reason, n in reasons.items()]
        if late:
            acknowledged = (
                f"only {100 * min(late):.0f} % of the records due over a second before it had been acknowledged"
            )
            behind = f"producers were behind before the fault in {count(len(late), 'episode')}"
            notes.append(
                f"{behind}. In the worst episode {acknowledged}, so outages include the time to work off a queue"
            )
        return tuple(notes)

    def formatted_table(self) -> pd.DataFrame:
        rows = []
        for name, own in self.by_setting().items():
            first = own[0].about
            regions = dict.fromkeys(", ".join(sorted(each.affected)) for each in own)
            row = {"Setting": name, "Fault": first.fault, "Affected regions": "; ".join(regions)}
            on_time = f"{100 * min(each.on_time for each in own):.0f} %"
            row |= {"acks": first.acks, "Episodes": len(own), "Acknowledged in time before the fault": on_time}
            rows.append(row | {"Records due": sum(len(each.tables["fault_records"]) for each in own)})
        return pd.DataFrame(rows).astype(str)


def episodes(tables: Mapping[str, pd.DataFrame]) -> Episodes:
    """
    Read the completed episodes of a run from the tables `tests`, `faults` and those of TABLES and OPTIONAL.

    Raises ParameterError: a table is missing that is not in OPTIONAL.
    Raises MissingDataError: no episode was completed.
    """
    faults, tests = (check_table(name, tables) for name in ("faults", "tests"))
    parts = {name: dict(list(check_table(name, tables).groupby(KEY, sort=False))) for name in TABLES}
    parts |= {name: dict(list(tables[name].groupby(KEY, sort=False))) for name in OPTIONAL if name in tables}
    rows = faults.merge(tests[[*KEY, "outcome", "setting"]].rename(columns={"setting": "planned"}), on=KEY, how="left")
    rows["setting"] = rows.setting.where(rows.setting.notna(), rows.planned).fillna("unnamed")
    items, left_out = [], []
    for _, row in rows.iterrows():
        key = tuple(row[name] for name in KEY)
        reason = row.error if pd.notna(row.error) else "" if row.outcome == "done" else f"the test was {row.outcome}"
        if not reason and key not in parts["fault_records"]:
            reason = "no record was sent"
        if reason:
            left_out.append({"setting": row.setting, "reason": str(reason)})
        else:
            items.append(Episode(row, {name: part.get(key, tables[name].iloc[:0]) for name, part in parts.items()}))
    if not items:
        raise MissingDataError("this run has no completed episode.")
    return Episodes(tuple(items), pd.DataFrame(left_out, columns=["setting", "reason"]))


def _brokers(sets: pd.Series) -> frozenset[int]:
    """Return the numbers of all brokers in a column of texts such as "1,3"."""
    return frozenset(int(each) for text in sets.dropna().unique() for each in str(text).split(",") if each)


def _setting_order(about: pd.Series) -> tuple[object, ...]:
    """Return a sort key for settings: by fault in the order of FAULTS, acks=all first, planted damage last."""
    fault = FAULTS.index(about.fault) if about.fault in FAULTS else len(FAULTS)
    return (is_planted(about), fault, len(str(about.regions).split(",")), about.acks != "all", str(about.setting))


def is_planted(about: pd.Series) -> bool:
    """Return whether the recorded output of an episode was damaged on purpose; `about` is its row of table faults."""
    return isinstance(about.get("damage"), str) and about.damage != ""
