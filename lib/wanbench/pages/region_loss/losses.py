"""
Losses of acknowledged records (RPO), when they were acknowledged, and the errors that clients reported.

Records of one episode share its fault and are lost together, so a bound counts episodes: one from records covers a
quarter with three episodes, if losses come in bursts.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from wanbench.checks import check_kind
from wanbench.errors import MissingDataError
from wanbench.formatting import count, percent
from wanbench.methods.result import Estimate, Result, RowsResult, text_table
from wanbench.methods.result.means import share_of

from .episodes import HIT, SURVIVING, Episodes, is_planted
from .phases import first_changes
from .records import MORE, NAMES, account, lost_records

LEVEL = 0.95


@dataclass(frozen=True, repr=False)
class Losses(Result):
    """Faults of records: one row per episode, with the counts of `records.account`."""

    rows: pd.DataFrame

    TITLE = "What became of acknowledged records"

    @property
    def settings(self) -> list[str]:
        """The settings, in order."""
        return list(dict.fromkeys(self.rows.setting))

    def sums(self, setting: str) -> pd.Series:
        """Sum counts over all episodes of a setting."""
        own = self.rows[self.rows.setting == setting]
        return own.drop(columns=["setting", "acks"]).sum(numeric_only=True)

    def episodes_with(self, setting: str, kind: str = "gone", what: str = "a loss") -> Estimate:
        """Return the share of episodes with a count above 0, such as a loss of acknowledged records."""
        own = self.rows[(self.rows.setting == setting) & (self.rows.acknowledged > 0)]
        quantity, claim = f"episodes with {what}, {setting}", f"Under “{setting}”, {{}} of the episodes had {what}"
        return share_of(int((own[kind] > 0).sum()), len(own), level=LEVEL, quantity=quantity, claim=claim)

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return tuple(self.episodes_with(name) for name in self.settings)

    def counted(self, setting: str, noun: str = "") -> str:
        """Count records lost or undelivered, and in how many episodes; for none the bound of the share of episodes."""
        sums, share = self.sums(setting), self.episodes_with(setting)
        text = f"{int(sums.gone):,} of {int(sums.acknowledged):,}{noun}"
        if sums.gone:
            return f"{text} in {share.basis}"
        if not share.n:
            return f"{text}: nothing was acknowledged"
        bound = f"{percent(LEVEL)}: under {percent(round(share.high, 3))} of episodes lose any"
        return f"{text} in {count(share.n, 'episode')} ({bound})"

    @property
    def sentence(self) -> str:
        parts = ["Acknowledged records lost or undelivered:"]
        for name, own in self.rows.groupby("setting", sort=False):
            parts.append(f"“{name}” {self.counted(name)}.")
            if seen := int(own.lost_after_delivery.sum()):
                parts.append(f"Of these, {seen:,} had reached a consumer before they vanished from the log.")
            log, deliveries = (
                "{:,} and {:,}".format(*own[[f"duplicates_in_{place}", f"order_in_{place}"]].sum())
                for place in ("log", "delivery")
            )
            parts.append(f"Further copies and records out of order: {log} in the log, {deliveries} in deliveries.")
        return " ".join(parts)

    def table(self) -> pd.DataFrame:
        return pd.DataFrame([{"setting": name, **self.sums(name)} for name in self.settings])

    def formatted_table(self) -> pd.DataFrame:
        named = NAMES | MORE
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
    Account for every acknowledged record; `gone` are those lost from the log or undelivered.

    Episodes whose output was damaged on purpose are left out. A record that vanished from the log after delivery counts
    as lost: later readers will not find it.
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
    One row per setting that lost records: lost, in how many episodes, between which times after the fault they were
    acknowledged, how many to producers of the hit region, and how many in partitions whose leader was then replaced.
    """

    TITLE = "The records that were lost"

    @property
    def sentence(self) -> str:
        lost, replaced, hit = self.rows[["lost", "of_replaced_leaders", "to_hit_region"]].sum()
        return (
            f"Of {count(int(lost), 'lost record')}, {replaced:,} were in partitions whose leader was replaced, and "
            f"{hit:,} had been sent from the hit region."
        )

    def formatted_table(self) -> pd.DataFrame:
        rows = self.rows
        times = [*map("{:.1f} to {:.1f} s".format, rows.first_s, rows.last_s)]
        cells = {"setting": rows.setting, "lost": rows.lost.map("{:,}".format), "in episodes": rows.episodes.map(str)}
        cells |= {"acknowledged after the fault": times}
        cells |= {"sent from the hit region": rows.to_hit_region.map("{:,}".format)}
        return pd.DataFrame(cells | {"leader replaced later": rows.of_replaced_leaders.map("{:,}".format)})


def lost_when(episodes: Episodes) -> LostWhen:
    """Trace every acknowledged record that is missing from the log; MissingDataError if there is none."""
    rows = []
    for setting, own in episodes.with_fault().by_setting().items():
        parts = []
        for number, each in enumerate(own):
            lost = lost_records(each.tables["fault_records"], each.tables["fault_log"])
            hit = [each.side(each.regions.get(("producer", int(producer)), "")) == HIT for producer in lost.producer]
            replaced = lost.partition.isin(first_changes(each, each.about.ended_at_s).index)
            about = {"episode": number, "after_s": lost.acknowledged_at_s - each.fault_at_s}
            parts.append(pd.DataFrame(about | {"from_hit": hit, "replaced": replaced}))
        lost = pd.concat(parts, ignore_index=True)
        row = {"setting": setting, "lost": len(lost), "episodes": lost.episode.nunique()}
        row |= {"first_s": lost.after_s.min(), "last_s": lost.after_s.max()}
        row |= {"to_hit_region": int(lost.from_hit.sum()), "of_replaced_leaders": int(lost.replaced.sum())}
        rows += [row] if len(lost) else []
    if not rows:
        raise MissingDataError("no acknowledged record was lost from the log.")
    return LostWhen(pd.DataFrame(rows))


@dataclass(frozen=True, repr=False)
class ClientErrors(RowsResult):
    """One row per setting, role, side and kind: n, episodes with it, median time after the fault."""

    n_episodes: int

    TITLE = "Errors of clients"

    @property
    def sentence(self) -> str:
        if self.rows.empty:
            return f"No client reported an error in {count(self.n_episodes, 'episode')}."
        kinds = self.rows.groupby("kind").n.sum().sort_values(ascending=False)
        return (
            f"Clients reported {count(int(kinds.sum()), 'error')} of {count(len(kinds), 'kind')} in "
            f"{count(self.n_episodes, 'episode')}; the most frequent is {kinds.index[0]} ({kinds.iloc[0]:,})."
        )

    def formatted_table(self) -> pd.DataFrame:
        heads = ["setting", "clients", "where", "error", "errors", "episodes with it"]
        heads.append("median time after the fault (s)")
        where = self.rows.side.map({HIT: "hit region", SURVIVING: "other regions"})
        return text_table(self.rows.assign(side=where)).set_axis(heads, axis=1)


def client_errors(episodes: Episodes) -> ClientErrors:
    """Count errors by kind, separately for clients inside and outside the hit regions."""
    parts = []
    for each in episodes.with_fault():
        rows = each.tables["fault_errors"]
        side = [each.side(each.regions.get((row.role, int(row.client)), "")) for row in rows.itertuples()]
        about = {"setting": each.setting, "side": side, "episode": str(each.key)}
        parts.append(rows.assign(**about, after_s=rows.at_s - each.fault_at_s))
    together = pd.concat(parts, ignore_index=True)
    groups = together.groupby(["setting", "role", "side", "kind"], sort=False)
    rows = groups.agg(n=("kind", "size"), episodes=("episode", "nunique"), median_after_fault_s=("after_s", "median"))
    return ClientErrors(rows.reset_index(), n_episodes=len(parts))
