"""Split a write outage into phases: detection, election, and clients finding the new leaders."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import ClassVar

import pandas as pd

from wanbench.errors import MissingDataError
from wanbench.formatting import count
from wanbench.methods.result import Fields
from wanbench.methods.result.over_episodes import OverEpisodes

from .episodes import Episode, Episodes
from .recovery import Recovery


@dataclass(frozen=True, repr=False)
class Phases(OverEpisodes):
    """
    Durations of the phases of each outage: one row per episode.

    `rows` has the durations of QUANTITIES in s, and resolution_s (largest possible error of a time that was sampled).
    """

    TITLE = "What the outage consists of"
    QUANTITIES: ClassVar[dict[str, str]] = {
        "detection_s": "detection: until a broker is fenced or out of sync",
        "election_s": "election: until the last new leader is elected",
        "refresh_s": "clients: until the last partition is written again",
    }

    @property
    def sentence(self) -> str:
        text = "“{}”: detection took {}, election took {}, and clients took {} to find the new leaders."
        three = self.formatted_medians()
        return " ".join(text.format(name, *three[name]) for name in self.settings)

    @property
    def cautions(self) -> tuple[str, ...]:
        worst = self.rows.resolution_s.max()
        coarse = f"changes of leaders were sampled, so they are seen up to {worst:.2f} s after they happened"
        return (*super().cautions, coarse) if worst > 0 else super().cautions


def phases(episodes: Episodes, recovered: Recovery) -> Phases:
    """
    Split the outage of the partition blocked longest into phases, for every episode in which a leader changed.

    Detection ends when a node outside the affected regions first logs that a broker is fenced or out of sync; without
    such a log entry, at the first sample with a different leader. Raises MissingDataError: no leader changed.
    """
    every = episodes.with_fault()
    split = [(each, _split(each, recovered)) for each in every]
    rows = [each.key | {"setting": each.setting} | parts for each, parts in split if parts is not None]
    if not rows:
        raise MissingDataError(f"no leader change was seen in {count(len(every), 'episode')}.")
    return Phases(pd.DataFrame(rows))


def first_changes(episode: Episode) -> pd.Series:
    """Return, by partition, when a sample between fault and healing first had another leader than before the fault."""
    rows = episode.samples
    rows = rows[(rows.at_s > episode.fault_at_s) & (rows.at_s < episode.heal_at_s) & (rows.leader >= 0)]
    before = rows.partition.map(episode.leaders_before)
    return rows[before.notna() & (rows.leader != before)].groupby("partition").at_s.min()


def _split(episode: Episode, recovered: Recovery) -> Fields | None:
    changes, begin = first_changes(episode), episode.fault_at_s
    if changes.empty:
        return None
    noticed, moved = float(changes.min()), float(changes.max())
    resolution = max(_before(episode, noticed), _before(episode, moved))
    events = episode.events
    seen = events.at_s[events.kind.isin(["fenced", "isr-shrunk"])]
    # Events without a partition are elections of a controller.
    elected = events.at_s[(events.kind == "elected") & events.partition.notna()]
    if len(seen):
        noticed, resolution = float(seen.min()), _before(episode, moved)
    if len(seen) and len(elected):
        moved, resolution = float(elected.max()), 0.0
    streams = recovered.streams
    own = streams[(streams[list(episode.key)] == list(episode.key.values())).all(axis=1)]
    own = own[own.quantity == "writes_partition"]
    worst = own.loc[(own.end_s - own.start_s).idxmax()] if len(own) else None
    censored = worst is not None and bool(worst.censored)
    answered = nan if worst is None else episode.heal_at_s - begin if censored else float(worst.end_s)
    refresh_s = nan if worst is None else max(answered - (moved - begin), 0.0)
    row = {"detection_s": noticed - begin, "election_s": max(moved - noticed, 0.0), "refresh_s": refresh_s}
    return row | {"refresh_s_censored": censored, "resolution_s": resolution}


def _before(episode: Episode, at_s: float) -> float:
    """Return the time in s from the previous sample to `at_s`: by so much a sampled change may be late."""
    times = episode.samples.at_s
    return float(at_s - times[times < at_s].max())
