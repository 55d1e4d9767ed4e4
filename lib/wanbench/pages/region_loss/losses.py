"""
Losses of acknowledged records (RPO), and all other faults of records.

Records of one episode share its fault and are lost together, so a bound counts episodes. One from records would treat
them as independent: of losses that come in bursts it covers a quarter with three episodes.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from wanbench.checks import check_kind, check_level
from wanbench.formatting import count, percent
from wanbench.methods.result import Estimate, Result
from wanbench.methods.result.means import share_of

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

    def episodes_with(self, setting: str, kind: str = "gone", what: str = "a loss") -> Estimate:
        """The share of episodes with a count above 0, such as a loss of acknowledged records."""
        own = self.rows[(self.rows.setting == setting) & (self.rows.acknowledged > 0)]
        about = {
            "quantity": f"episodes with {what}, {setting}",
            "claim": f"Under “{setting}”, {{}} of the episodes had {what}",
        }
        return share_of(int((own[kind] > 0).sum()), len(own), level=self.level, **about)

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """The share of episodes with a loss, per setting."""
        return tuple(self.episodes_with(name) for name in self.settings)

    def counted(self, setting: str, noun: str = "") -> str:
        """Records lost or undelivered, and in how many episodes; for none the bound of the share of episodes."""
        sums, share = self.sums(setting), self.episodes_with(setting)
        text = f"{int(sums.gone):,} of {int(sums.acknowledged):,}{noun}"
        if sums.gone:
            return f"{text} in {share.basis}"
        if not share.n:
            return f"{text}: nothing was acknowledged"
        bound = f"{percent(self.level)}: under {percent(round(share.high, 3))} of episodes lose any"
        return f"{text} in {count(share.n, 'episode')} ({bound})"

    @property
    def sentence(self) -> str:
        """Losses of each setting, with their bounds."""
        parts = ["Acknowledged records lost or undelivered:"]
        for name, own in self.rows.groupby("setting", sort=False):
            parts.append(f"“{name}” {self.counted(name)}.")
            if seen := int(own.lost_after_delivery.sum()):
                parts.append(f"Of these, {seen:,} had reached a consumer before they vanished from the log.")
            log, deliveries = (
                f"{own[f'duplicates_in_{place}'].sum():,} and {own[f'order_in_{place}'].sum():,} in"
                for place in ("log", "delivery")
            )
            parts.append(f"Further copies and records out of order: {log} the log, {deliveries} deliveries.")
        return " ".join(parts)

    def table(self) -> pd.DataFrame:
        """One row per setting: counts over its episodes."""
        return pd.DataFrame([{"setting": name, **self.sums(name)} for name in self.settings])

    def formatted_table(self) -> pd.DataFrame:
        """One row per fault of records, one column per setting; zero losses with their upper bound."""
        named = NAMES | MORE
        heads = ["lost or undelivered", "episodes with a loss", *named.values()]
        columns = {}
        for name in self.settings:
            sums, episodes = self.sums(name), self.episodes_with(name)
            columns[name] = [
                f"{int(sums.gone):,} of {int(sums.acknowledged):,}",
                f"{episodes.basis.rpartition(' ')[0]} ({episodes.formatted_interval} %)",
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
        about = {"setting": each.setting, "acks": each.about.acks, "gone": counts["lost"] + counts["undelivered"]}
        rows.append(each.key | about | counts)
    return Losses(pd.DataFrame(rows), level)
