"""Losses of acknowledged records (RPO) with bounds, and all other faults of records."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from ...checks import check_kind, check_level
from ..result import Estimate, Result
from .bounds import DEPENDENT, bounded, share_of
from .episodes import Episodes, is_planted
from .records import MORE, NAMES, account


@dataclass(frozen=True, repr=False)
class Losses(Result):
    """
    Faults of records per setting.

    Attributes
    ----------
    rows : DataFrame
        One row per episode: key, setting, and the counts of `stats.outages.records.account`.
    level : float
        Confidence level of bounds and intervals.
    """

    rows: pd.DataFrame
    level: float = 0.95

    TITLE = "What became of acknowledged records"

    @property
    def settings(self) -> list[str]:
        """The settings, in order."""
        return list(dict.fromkeys(self.rows.setting))

    def sums(self, setting: str) -> pd.Series:
        """Counts over all episodes of a setting."""
        own = self.rows[self.rows.setting == setting]
        return own.drop(columns=["setting", "acks"]).sum(numeric_only=True)

    def lost(self, setting: str) -> Estimate:
        """The share of acknowledged records that are missing from the log, or in the log but never delivered."""
        sums, about = self.sums(setting), f"acknowledged records lost, {setting}"
        claim = f"Of the records acknowledged under “{setting}”, {{}} were lost or undelivered"
        return share_of(int(sums.gone), int(sums.acknowledged), level=self.level, quantity=about, claim=claim)

    def episodes_with_loss(self, setting: str) -> Estimate:
        """The share of episodes that lost any acknowledged record; does not assume independent records."""
        own = self.rows[self.rows.setting == setting]
        about = {
            "quantity": f"episodes with a loss, {setting}",
            "claim": f"Under “{setting}”, {{}} of episodes lost records",
        }
        return share_of(int((own.gone > 0).sum()), len(own), level=self.level, unit_name="episode", **about)

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """Per setting: the share of records, the share of episodes."""
        return tuple(
            each for name in self.settings for each in (self.lost(name), self.episodes_with_loss(name))
        )

    @property
    def sentence(self) -> str:
        """Losses of each setting, with their bounds."""
        parts = []
        for name, own in self.rows.groupby("setting", sort=False):
            n, gone = int(own.acknowledged.sum()), int(own.gone.sum())
            losing = int((own.gone > 0).sum())
            parts.append(
                f"“{name}”: {bounded(gone, n, self.level)} acknowledged records were lost or undelivered, "
                f"in {losing} of {len(own)} episodes."
            )
            if seen := int(own.lost_after_delivery.sum()):
                parts.append(f"Of these, {seen:,} had reached a consumer before they vanished from the log.")
        return " ".join(parts)

    @property
    def cautions(self) -> tuple[str, ...]:
        """A caution that records of one episode are dependent."""
        return (DEPENDENT[0].upper() + DEPENDENT[1:] + "; the share of episodes does not assume it",)

    def table(self) -> pd.DataFrame:
        """One row per setting: counts over its episodes."""
        return pd.DataFrame([{"setting": name, **self.sums(name)} for name in self.settings])

    def shown(self) -> pd.DataFrame:
        """One row per fault of records, one column per setting; zero losses with their upper bound."""
        named = NAMES | MORE
        heads = ["lost or undelivered", "episodes with a loss", *named.values()]
        columns = {}
        for name in self.settings:
            sums, episodes = self.sums(name), self.episodes_with_loss(name)
            with_loss = f"{(self.rows.gone[self.rows.setting == name] > 0).sum()} of {episodes.n}"
            columns[name] = [
                bounded(int(sums.gone), int(sums.acknowledged), self.level),
                f"{with_loss} ({episodes.written_interval} %)",
                *(f"{int(sums[key]):,}" for key in named),
            ]
        return pd.DataFrame({"": heads} | columns)


def losses(found: Episodes, *, level: float = 0.95) -> Losses:
    """
    Account for every acknowledged record; `gone` are those lost from the log or undelivered.

    Episodes whose output was damaged on purpose are left out.

    A record that was delivered before it vanished from the log also counts as lost: later readers will not find it.
    """
    check_level(level)
    check_kind("found", found, Episodes)
    rows = []
    for each in (each for own in found.by_setting().values() for each in own if not is_planted(each.about)):
        counts = account(*(each.tables[f"fault_{name}"] for name in ("records", "receipts", "log")))
        about = {
            "setting": each.setting,
            "acks": each.about.acks,
            "gone": counts["lost"] + counts["undelivered"],
        }
        rows.append(each.key | about | counts)
    return Losses(pd.DataFrame(rows), level)
