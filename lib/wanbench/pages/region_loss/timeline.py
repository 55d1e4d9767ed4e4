"""One episode over time: leaders, replicas in sync, the group's partitions, acknowledgements and receipts."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from wanbench.checks import check_number
from wanbench.methods.result import Result

from .episodes import Episode, Episodes
from .gaps import WINDOW_S, rates


@dataclass(frozen=True, repr=False)
class Timeline(Result):
    """
    Observations around one fault; times in seconds since the fault was ordered.

    Attributes
    ----------
    episode : Episode
    leaders : DataFrame
        at_s, broker, number of partitions that it leads, as seen by one watcher outside the hit regions.
    partitions : DataFrame
        at_s, partition, leader and isr, as seen by the same watcher.
    replicas : DataFrame
        at_s, in_sync (minimum and mean number of in-sync replicas of a partition), full (number of partitions with all
        in sync).
    group : DataFrame
        at_s, region, number of partitions assigned to its consumers.
    rates : DataFrame
        at_s (end of a window of a second), kind (writes, reads), region, per_s.
    """

    episode: Episode
    leaders: pd.DataFrame
    partitions: pd.DataFrame
    replicas: pd.DataFrame
    group: pd.DataFrame
    rates: pd.DataFrame

    TITLE = "Before, during and after the fault"
    DRAWN_BY = "timeline_figure.timeline"

    @property
    def heal_s(self) -> float:
        """When healing was ordered."""
        return self.episode.heal_at_s - self.episode.fault_at_s

    @property
    def sentence(self) -> str:
        """Which episode it is, and its state at three times."""
        about = self.episode.about
        before, during, after = self.led()
        return (
            f"“{about.setting}”, block {about.get('block')}: {about.fault} of {' and '.join(sorted(self.episode.hit))} "
            f"for {self.heal_s:.0f} s. Partitions led per broker before, at the end of the fault, at the end: "
            f"{before}; {during}; {after}."
        )

    def moments_figure(self, *, note: str = ""):
        """An animation of leaders, replicas in sync and assignment, with a frame for each change."""
        return self.drawn_by("moments_figure.moments_figure", note=note)

    def led(self) -> tuple[str, str, str]:
        """Partitions led per broker in the last sample before the fault, before healing, and overall."""
        texts = []
        for end in (0.0, self.heal_s, float("inf")):
            rows = last_until(self.leaders, end).itertuples()
            texts.append(", ".join(f"broker {r.broker:.0f}: {r.partitions:.0f}" for r in rows if r.partitions))
        return tuple(texts)

    def formatted_table(self) -> pd.DataFrame:
        """The article's three tables in one: leaders, replicas and assignment at three times."""
        rows = []
        for name, end in (("before the fault", 0.0), ("before healing", self.heal_s), ("at the end", float("inf"))):
            row = {"": name}
            for title, frame, what in (("leader of", self.leaders, "broker"), ("reads", self.group, "region")):
                own = last_until(frame, end)
                for key, n in zip(own[what], own.partitions, strict=True):
                    label = f"broker {key:.0f}" if what == "broker" else key
                    row[f"{label} {title}"] = f"{n:.0f}"
            own = self.replicas[self.replicas.at_s <= end]
            row["partitions with all replicas in sync"] = f"{own.full.iloc[-1]:.0f}" if len(own) else ""
            rows.append(row)
        return pd.DataFrame(rows).fillna("0")

    def table(self) -> pd.DataFrame:
        """All series in long form: panel, at_s, of, value."""
        parts = [
            self.leaders.assign(panel="leaders", of=self.leaders.broker.astype(str), value=self.leaders.partitions),
            self.replicas.assign(panel="in sync", of="all", value=self.replicas.full),
            self.group.assign(panel="assigned", of=self.group.region, value=self.group.partitions),
            self.rates.assign(panel=self.rates.kind, of=self.rates.region, value=self.rates.per_s),
        ]
        return pd.concat([part[["panel", "at_s", "of", "value"]] for part in parts], ignore_index=True)


def timeline(found: Episodes, setting: str, number: int = 0) -> Timeline:
    """
    One episode of a setting over time.

    Parameters
    ----------
    number : int
        Index of the episode among the setting's episodes with a fault, from 0.
    """
    own = found.of(setting).with_fault().items
    episode = own[check_number("number", number, 0, len(own) - 1, whole=True)]
    zero = episode.fault_at_s
    samples = episode.samples
    # one watcher's view: two would interleave, and one that lags would make leaders flicker
    watcher = samples.groupby("region").size().idxmax()
    seen = samples[samples.region == watcher]
    leaders = seen[seen.leader >= 0].groupby(["at_s", "leader"]).size().unstack(fill_value=0)
    leaders = leaders.stack().rename("partitions").reset_index().rename(columns={"leader": "broker"})
    n_isr = seen.assign(n_isr=seen.n_isr.astype(float), full=seen.n_isr >= int(episode.about.replication))
    replicas = (
        n_isr.groupby("at_s").agg(least=("n_isr", "min"), mean=("n_isr", "mean"), full=("full", "sum")).reset_index()
    )
    members = episode.members
    group = members.groupby(["at_s", "client_region"]).n_partitions.sum().unstack(fill_value=0)
    group = group.stack().rename("partitions").reset_index().rename(columns={"client_region": "region"})
    parts = []
    for kind, events in (("writes", episode.acknowledgements), ("reads", episode.receipts)):
        for region, of_region in events.groupby("region"):
            starts, per_s = rates(of_region.at_s, episode.due[0], episode.due[1])
            parts.append(
                pd.DataFrame({"at_s": starts + WINDOW_S - zero, "kind": kind, "region": region, "per_s": per_s})
            )
    partitions = seen[["at_s", "partition", "leader", "isr"]]
    shifted = [frame.assign(at_s=frame.at_s - zero) for frame in (leaders, partitions, replicas, group)]
    return Timeline(episode, *shifted, pd.concat(parts, ignore_index=True))


def last_until(rows: pd.DataFrame, at_s: float) -> pd.DataFrame:
    """The rows of the last sample up to a time."""
    own = rows[rows.at_s <= at_s]
    return own[own.at_s == own.at_s.max()]
