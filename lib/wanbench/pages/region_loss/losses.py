"""
Count acknowledged records that were lost (RPO), and trace when they were acknowledged.

Records of one episode share a fault and are lost together. So upper bounds are for the share of episodes with a loss,
not for the share of records.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from wanbench.checks import check_kind
from wanbench.errors import MissingDataError
from wanbench.formatting import count, percent
from wanbench.methods.result import Estimate, Result, RowsResult
from wanbench.methods.result.means import share_of

from .episodes import AFFECTED, Episodes, is_planted
from .phases import first_changes
from .records import MORE, NAMES, account, lost_records

LEVEL = 0.95


@dataclass(frozen=True, repr=False)
class Losses(Result):
    """Counts of lost, damaged, duplicated and reordered records: one row per episode, as `records.account` counts."""

    rows: pd.DataFrame

    TITLE = "What became of acknowledged records"

    @property
    def settings(self) -> list[str]:
        """The names of the settings, in order."""
        return list(dict.fromkeys(self.rows.setting))

    def sums(self, setting: str) -> pd.Series:
        """Return the counts of a setting, summed over its episodes."""
        own = self.rows[self.rows.setting == setting]
        return own.drop(columns=["setting", "acks"]).sum(numeric_only=True)

    def episodes_with(self, setting: str, kind: str = "gone", what: str = "a loss") -> Estimate:
        """Estimate the share of a setting's episodes in which the count of column `kind` is above 0."""
        own = self.rows[(self.rows.setting == setting) & (self.rows.acknowledged > 0)]
        quantity, claim = f"episodes with {what}, {setting}", f"Under “{setting}”, {{}} of the episodes had {what}"
        return share_of(int((own[kind] > 0).sum()), len(own), level=LEVEL, quantity=quantity, claim=claim)

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return tuple(self.episodes_with(name) for name in self.settings)

    def counted(self, setting: str, noun: str = "") -> str:
        """
        Return as text how many records were lost or undelivered, and in how many episodes; if none, with an upper
        bound.
        """
        sums, share = self.sums(setting), self.episodes_with(setting)
        text = f"{int(sums.gone):,} of {int(sums.acknowledged):,}{noun}"
        if sums.gone:
            return f"{text} in {share.basis}"
        if not share.n:
            return f"{text} (nothing was acknowledged)"
        bound = f"with {percent(LEVEL)} confidence, fewer than {percent(round(share.high, 3))} of episodes lose records"
        return f"{text} in {count(share.n, 'episode')} ({bound})"

    @property
    def sentence(self) -> str:
        parts = ["Acknowledged records that were lost or undelivered, by setting."]
        for name, own in self.rows.groupby("setting", sort=False):
            parts.append(f"“{name}”: {self.counted(name)}.")
            if seen := int(own.lost_after_delivery.sum()):
                parts.append(f"Of these, {seen:,} had reached a consumer before they vanished from the log.")
        return " ".join(parts)

    def table(self) -> pd.DataFrame:
        return pd.DataFrame([{"setting": name, **self.sums(name)} for name in self.settings])

    def formatted_table(self) -> pd.DataFrame:
        total = self.rows[[*NAMES, *MORE]].sum()
        named = {key: title for key, title in (NAMES | MORE).items() if total[key]}
        columns = {"": ["lost or undelivered", "episodes with a loss", *named.values()]}
        for name in self.settings:
            sums, episodes = self.sums(name), self.episodes_with(name)
            columns[name] = [
                f"{int(sums.gone):,} of {int(sums.acknowledged):,}",
                f"{episodes.basis.rpartition(' ')[0]} ({episodes.formatted_interval} %)",
                *(f"{int(sums[key]):,}" for key in named),
            ]
        return pd.DataFrame(columns)


def losses(episodes: Episodes) -> Losses:
    """
    Account for every acknowledged record; column `gone` counts records lost from the log or undelivered.

    Episodes with planted damage are left out. A record that vanished from the log after its delivery counts as lost,
    because later readers will not find it.
    """
    check_kind("episodes", episodes, Episodes)
    rows = []
    for each in (each for own in episodes.by_setting().values() for each in own if not is_planted(each.about)):
        counts = account(*(each.tables[f"fault_{name}"] for name in ("records", "receipts", "log")))
        about = {"setting": each.setting, "acks": each.about.acks, "gone": counts["lost"] + counts["undelivered"]}
        rows.append(each.key | about | counts)
    return Losses(pd.DataFrame(rows))


@dataclass(frozen=True, repr=False)
class LostWhen(RowsResult):
    """
    When and where lost records had been acknowledged: one row per setting that lost records.

    Columns: lost (records), episodes (with a loss), first_s and last_s (times of the acknowledgements, since the
    fault), to_affected_region (acknowledged to producers there), of_replaced_leaders (in partitions whose leader was
    replaced afterwards).
    """

    TITLE = "The records that were lost"

    @property
    def sentence(self) -> str:
        lost, replaced, affected = self.rows[["lost", "of_replaced_leaders", "to_affected_region"]].sum()
        return (
            f"Of {count(int(lost), 'lost record')}, {replaced:,} were in partitions whose leader was replaced, and "
            f"{affected:,} had been sent from the affected region."
        )

    def formatted_table(self) -> pd.DataFrame:
        rows = self.rows
        times = [*map("{:.1f} to {:.1f} s".format, rows.first_s, rows.last_s)]
        cells = {"setting": rows.setting, "lost": rows.lost.map("{:,}".format), "in episodes": rows.episodes.map(str)}
        cells |= {"acknowledged after the fault": times}
        cells |= {"sent from the affected region": rows.to_affected_region.map("{:,}".format)}
        return pd.DataFrame(
            cells | {"in a partition whose leader was replaced later": rows.of_replaced_leaders.map("{:,}".format)}
        )


def lost_when(episodes: Episodes) -> LostWhen:
    """Trace every acknowledged record that is missing from the log; MissingDataError if there is none."""
    rows = []
    for setting, own in episodes.with_fault().by_setting().items():
        parts = []
        for number, each in enumerate(own):
            lost = lost_records(each.tables["fault_records"], each.tables["fault_log"])
            regions = (each.regions.get(("producer", int(producer)), "") for producer in lost.producer)
            affected = [each.side(region) == AFFECTED for region in regions]
            replaced = lost.partition.isin(first_changes(each, each.about.ended_at_s).index)
            about = {"episode": number, "after_s": lost.acknowledged_at_s - each.fault_at_s}
            parts.append(pd.DataFrame(about | {"from_affected": affected, "replaced": replaced}))
        lost = pd.concat(parts, ignore_index=True)
        row = {"setting": setting, "lost": len(lost), "episodes": lost.episode.nunique()}
        row |= {"first_s": lost.after_s.min(), "last_s": lost.after_s.max()}
        row |= {"to_affected_region": int(lost.from_affected.sum()), "of_replaced_leaders": int(lost.replaced.sum())}
        rows += [row] if len(lost) else []
    if not rows:
        raise MissingDataError("no acknowledged record was lost from the log.")
    return LostWhen(pd.DataFrame(rows))
