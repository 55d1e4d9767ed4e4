"""Measure how a cluster recovers by itself after a fault: its replicas, its leaders and its consumer group."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import ClassVar

import pandas as pd

from wanbench.checks import check_number
from wanbench.methods.result import Fields
from wanbench.methods.result.over_episodes import OverEpisodes

from .episodes import Episode, Episodes
from .phases import first_changes

CHECK_S = 300.0
"""Kafka's default of leader.imbalance.check.interval.seconds."""


@dataclass(frozen=True, repr=False)
class Healing(OverEpisodes):
    """
    How long the cluster took after each fault to return to its earlier state, without intervention.

    `rows` has one row per episode: the columns of QUANTITIES in s, moved (number of partitions whose leader changed),
    back (how many of these had their earlier leader again at the end) and watched_s (time observed after healing). The
    controller moves leaders back every `check_s`.
    """

    check_s: float = CHECK_S

    TITLE = "Healing by itself"
    QUANTITIES: ClassVar[dict[str, str]] = {
        "in_sync_s": "from healing until every replica is in sync",
        "reassigned_s": "from the fault until the group has removed the affected region's members",
        "rejoined_s": "from healing until the group has its members back",
    }

    @property
    def sentence(self) -> str:
        rows = self.rows
        healed = rows.in_sync_s.notna()
        latest = f", at the latest {rows.in_sync_s.max():.1f} s after healing" if healed.any() else ""
        short = int(self.undecided().sum())
        why = (
            f" The controller moves leaders back every {self.check_s:.0f} s, and {short} of {len(rows)} episodes ended "
        )
        why += "before it had done so."
        return (
            f"In {int(healed.sum())} of {len(rows)} episodes all replicas were in sync again{latest}. "
            f"Of {int(rows.moved.sum()):,} leaders that had moved, {int(rows.back.sum()):,} were back by themselves "
            f"when their episode ended, a median of {rows.watched_s.median():.0f} s after "
            f"healing.{why if short else ''}"
        )

    def undecided(self) -> pd.Series:
        """Return which episodes ended before the controller would have moved leaders back."""
        return (self.rows.back < self.rows.moved) & ~(self.rows.watched_s >= self.check_s)

    def formatted_table(self) -> pd.DataFrame:
        shown, groups = super().formatted_table(), self.rows.groupby("setting")
        leaders = {name: f"{own.back.sum():.0f} of {own.moved.sum():.0f}" for name, own in groups}
        watched = {name: f"{own.watched_s.median():.0f} s" for name, own in groups}
        more = [{"": "leaders back by themselves"} | leaders, {"": "watched after healing (median)"} | watched]
        return pd.concat([shown, pd.DataFrame(more)], ignore_index=True)


def healing(episodes: Episodes, *, check_s: float = CHECK_S) -> Healing:
    """
    Find in the samples of each episode when the cluster returned to its earlier state.

    check_s: The brokers' leader.imbalance.check.interval.seconds.
    """
    rows = [each.key | {"setting": each.setting} | _healed(each) for each in episodes.with_fault()]
    return Healing(pd.DataFrame(rows), check_s=check_number("check_s", check_s, 0))


def _healed(episode: Episode) -> Fields:
    begin, heal, samples = episode.fault_at_s, episode.heal_at_s, episode.samples
    after = samples[(samples.at_s >= heal) & (samples.at_s <= episode.about.ended_at_s)]
    moved = first_changes(episode).index
    last = after[after.leader >= 0].groupby("partition").leader.last()
    members = episode.members
    of_affected = members.client_region.isin(episode.affected).groupby(members.at_s).sum()
    usual = of_affected[of_affected.index <= begin].max()
    gone = of_affected.index[
        (of_affected.index > begin) & (of_affected.index < heal) & (of_affected == 0) & (usual > 0)
    ]
    rejoined = of_affected.index[(of_affected.index >= heal) & (of_affected >= usual) & bool(len(gone))]
    row = {"in_sync_s": _since(after.at_s, after.n_isr >= int(episode.about.replication)) - heal}
    row |= {"reassigned_s": float(gone.min() - begin), "rejoined_s": float(rejoined.min() - heal)}
    back = int((last.reindex(moved) == episode.leaders_before.reindex(moved)).sum())
    return row | {"moved": len(moved), "back": back, "watched_s": float(after.at_s.max() - heal)}


def _since(times: pd.Series, good: pd.Series) -> float:
    """
    Return the time from which on all rows are good; NaN if the last row is not good.

    A single good row is not enough, because an observer may lag.
    """
    if good.empty or not good.iloc[-1]:
        return nan
    bad = times[~good]
    return float(times[times > bad.max()].min()) if len(bad) else float(times.min())
