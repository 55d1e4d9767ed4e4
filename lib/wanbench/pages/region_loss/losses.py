"""
Count acknowledged records that were lost (RPO).

Records of one episode share a fault and are lost together. So upper bounds are for the share of episodes with a loss,
not for the share of records.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from wanbench.checks import check_kind
from wanbench.formatting import count, percent
from wanbench.methods.result import Estimate, Result
from wanbench.methods.result.means import share_of

from .episodes import Episodes, is_planted
from .records import MORE, NAMES, account

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
        Return as text how many records were lost or undelivered, and in how many episodes; for none, add an upper
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
