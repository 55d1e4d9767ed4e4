"""
Count acknowledged records that were lost (RPO).

Records of one episode share a fault and are lost together. So intervals are for the share of episodes with a loss, not
for the share of lost records.
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
    """Numbers of lost, damaged, duplicated and reordered records (from `records.account`): one row per episode."""

    rows: pd.DataFrame

    TITLE = "What became of acknowledged records"

    @property
    def settings(self) -> list[str]:
        """The names of the settings, in order."""
        return list(dict.fromkeys(self.rows.setting))

    def sums(self, setting: str) -> pd.Series:
        """Return the counts of a setting, summed over its episodes."""
        return self.rows[self.rows.setting == setting].drop(columns=["setting", "acks"]).sum(numeric_only=True)

    def episodes_with(self, setting: str, kind: str = "gone", what: str = "a loss") -> Estimate:
        """
        Estimate the share of a setting's episodes in which the count in the column `kind` is above 0.

        what: The words for such a count in the estimate's sentence.
        """
        own = self.rows[(self.rows.setting == setting) & (self.rows.acknowledged > 0)]
        quantity, claim = f"episodes with {what}, {setting}", f"Under “{setting}”, {{}} of the episodes had {what}"
        return share_of(int((own[kind] > 0).sum()), len(own), level=LEVEL, quantity=quantity, claim=claim)

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return tuple(self.episodes_with(name) for name in self.settings)

    def counted(self, setting: str, noun: str = "") -> str:
        """
        Say how many acknowledged records were lost or undelivered, and in how many episodes.

        If none was, add an upper bound of the share of episodes with a loss. `noun` follows the number of records.
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
    Count what became of acknowledged records, in every episode whose output was not damaged on purpose.

    Column `gone` counts the records that are not in the log or were delivered to no consumer. A record that vanished
    from the log after its delivery counts too, because later readers will not find it.
    """
    check_kind("episodes", episodes, Episodes)
    rows = []
    for each in (each for own in episodes.by_setting().values() for each in own if not is_planted(each.about)):
        counts = account(*(each.tables[f"fault_{name}"] for name in ("records", "receipts", "log")))
        about = {"setting": each.setting, "acks": each.about.acks, "gone": counts["lost"] + counts["undelivered"]}
        rows.append(each.key | about | counts)
    return Losses(pd.DataFrame(rows))
