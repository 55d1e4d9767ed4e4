"""
Measure how each restart in a roll (a restart of every broker in turn) raises latency, and the latency while one broker
leads all partitions, or while partitions move between brokers.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from wanbench.errors import MissingDataError
from wanbench.formatting import count, number, percent
from wanbench.methods.lab.utilisation import windows
from wanbench.methods.result import Estimate, Fields, RowsResult
from wanbench.methods.result.means import Median, median_of
from wanbench.methods.result.over_episodes import OverEpisodes, floats
from wanbench.methods.tails.distribution import Tail

from .trials import LEVEL, DisturbedTrial, DisturbedTrials, back_after_s

KINDS = ("restart", "kill")
COLUMNS = {
    "lasts_s": ("duration", "s"),
    "p99_ms": ("p99", "ms"),
    "leader_share": ("led by the busiest broker", "fraction"),
}
COLUMNS |= {"replica_share": ("replicas on the busiest broker", "fraction")}
COLUMNS |= {"sent_share": ("bytes sent by the busiest broker", "fraction")}
"""Maps each column of a phase to its title and unit."""
CALM_S = 3.0
"""
Seconds that clients have to reconnect once the cluster is complete: librdkafka waits at most 1 s between attempts.
"""


@dataclass(frozen=True, repr=False)
class Restarts(OverEpisodes):
    """
    Latency during every restart: one row per restart.

    `rows` has undisturbed_p99_ms of the trial, p99_ms and p999_ms of the records due from the start of the restart
    until `CALM_S` after all brokers were up and replicas in sync, and the columns of QUANTITIES. An excess is the
    difference from the undisturbed seconds of the same trial. `back_s_censored` means that the next restart came before
    p99 was within the undisturbed limit again. `limit_ms` and `limit_level` are `limit_ms` and `level` of
    `DisturbedTrials`.
    """

    limit_ms: float = nan
    limit_level: float = nan

    TITLE = "Restarts: medians over restarts, with intervals"
    QUANTITIES: ClassVar[dict[str, str]] = {
        "excess_p99_ms": "excess p99",
        "excess_p999_ms": "excess p99.9",
        "peak_ms": "p99 of the slowest second",
        "worst_ms": "slowest record",
        "back_s": "time until p99 is within the undisturbed limit again",
        "down_s": "time until the broker answered again",
        "leaders_moved": "leaders moved",
        "n_lost": "records never received",
    }
    UNITS: ClassVar[dict[str, str]] = dict.fromkeys(
        ("excess_p99_ms", "excess_p999_ms", "peak_ms", "worst_ms"), "ms"
    ) | {"n_lost": "records", "leaders_moved": "partitions"}

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        names = ("excess_p99_ms", "excess_p999_ms", "back_s")
        return tuple(self.of(setting, name) for setting in self.settings for name in names)

    @property
    def headline(self) -> str:
        added = [f"a “{name}” adds {self.of(name, 'excess_p99_ms').formatted}" for name in self.settings]
        return f"While a broker restarts, p99 of latency rises: {', '.join(added)} (medians)."

    @property
    def cautions(self) -> tuple[str, ...]:
        level = min(each.level for each in self.estimates)
        few = (
            "as restarts are few, intervals run from the smallest to the largest value; their level is "
            f"{percent(level)}"
        )
        shared = "intervals do not include the error of a trial's undisturbed p99, which its restarts share"
        notes = [few, shared] if level < self.level else []
        if gone := int(np.isinf(self.rows.worst_ms.astype(float)).sum()):
            late = f"in {count(gone, 'restart')} some records were never received"
            notes.append(f"{late}; they count as slower than all others")
        for name, title in self.QUANTITIES.items():
            if missing := int(np.isnan(floats(self.rows[name])).sum()):
                notes.append(f"“{title}” is not known for {count(missing, 'restart')}")
        return tuple(notes)

    @property
    def sentence(self) -> str:
        parts = []
        for name in self.settings:
            keys = ("excess_p99_ms", "peak_ms", "back_s")
            excess, peak, back = (self.of(name, key).formatted_with_interval for key in keys)
            own = self.rows.setting == name
            spikes = int((self.rows.back_s[own] > 0).sum())
            parts.append(
                f"A “{name}” adds {excess} to p99 (median over restarts). The p99 of its slowest second is {peak}. "
                f"In {spikes} of {count(int(own.sum()), 'restart')} some second had a p99 above the undisturbed limit. "
                f"p99 is within that limit again {back} after the restart's start (median; 0 s if it never leaves it). "
                f"In at most {number(100 * (1 - self.limit_level), 0)} % of undisturbed periods of the same length, "
                "p99 also exceeds the limit."
            )
        return "\n".join(parts)


def restarts(measured: DisturbedTrials) -> Restarts:
    """
    Measure every restart of the rolls that count.

    A restart lasts until `CALM_S` after all brokers were up and no partition was under-replicated, but not beyond the
    next restart or the end of the load. One that is over within the warm-up does not count. Raises MissingDataError: no
    roll counts.
    """
    rows = []
    for trial in measured.with_kind(*KINDS, rolling=True):
        begun_in_time = trial.actions[trial.actions.began_at_s < trial.end_s]
        done = begun_in_time[begun_in_time.kind.isin(KINDS) & begun_in_time.done_at_s.notna()]
        begun = np.append(trial.actions.began_at_s.dropna().astype(float), trial.end_s)
        for action in done.itertuples():
            next_s = float(begun[begun > action.began_at_s].min())
            over_s = next_s if pd.isna(action.healthy_at_s) else min(next_s, action.healthy_at_s + CALM_S)
            if tail := trial.tail(action.began_at_s, over_s):
                rows.append(_row(trial, tail, action, over_s, next_s, measured.limit_ms))
    return Restarts(pd.DataFrame(rows), LEVEL, measured.limit_ms, measured.level)


def _row(trial: DisturbedTrial, tail: Tail, action: Any, over_s: float, next_s: float, limit_ms: float) -> Fields:
    before_ms = trial.undisturbed_ms(0.99)
    seconds = trial.by_second(action.began_at_s - 1, next_s)
    seconds = seconds[seconds.start_s + 1 > action.began_at_s]
    back_s, censored = back_after_s(seconds, action.began_at_s, limit_ms)
    p99, p999 = tail.quantile(0.99), tail.quantile(0.999)
    row = {name: trial.about[name] for name in ("run_id", "test_id", "attempt", "setting", "block")}
    row |= {"kind": action.kind, "node_id": int(action.node_id), "at_s": action.began_at_s - trial.start_s}
    row |= {"undisturbed_p99_ms": before_ms, "p99_ms": p99, "p999_ms": p999, "excess_p99_ms": p99 - before_ms}
    row |= {"excess_p999_ms": p999 - trial.undisturbed_ms(0.999), "worst_ms": tail.quantile(1 - 1e-9)}
    row |= {"peak_ms": seconds.p99_ms[seconds.start_s < over_s].max(), "back_s": back_s, "back_s_censored": censored}
    row |= {"down_s": action.done_at_s - action.began_at_s, "leaders_moved": action.leaders_moved}
    return row | {"n_lost": tail.n_lost}


@dataclass(frozen=True, repr=False)
class LeaderSkew(RowsResult):
    """
    Latency before, while and after one broker leads all partitions: one row per trial and phase.

    leader_share is the largest share of the load's partitions that one broker leads at the end of the phase. sent_share
    is the busiest zone's share of the bytes that all brokers send. replica_share is the largest share of the in-sync
    replicas that one broker holds. p99_ms is NaN if the phase is shorter than a second.
    """

    level: float = 0.95

    TITLE = "Leaders on one broker: median over trials"
    KINDS: ClassVar[tuple[str, ...]] = ("skew", "rebalance")
    PHASES: ClassVar[tuple[str, ...]] = ("before", "moving to one broker", "on one broker", "spreading", "spread again")
    MIDDLE: ClassVar[str] = "With all leaders on one broker"

    def of(self, phase: str, name: str) -> Median:
        """Estimate the median over trials of the column `name` in one phase."""
        values, about = self.rows[self.rows.phase == phase][name].astype(float), f"{name}, {phase}"
        return median_of(values, level=self.level, unit=COLUMNS[name][1], quantity=about, claim=f"{phase}: {{}}")

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        medians = (self.of(phase, "p99_ms") for phase in self.PHASES)
        return tuple(each for each in medians if each.n)

    @property
    def sentence(self) -> str:
        before, piled, spread = map(self._phase, self.PHASES[::2])
        moves = [
            f"{name} took {self.of(name, 'lasts_s').formatted}, with a p99 of {self.of(name, 'p99_ms').formatted}"
            for name in self.PHASES[1::2]
        ]
        trials = count(self.rows.test_id.nunique(), "trial")
        phases = f"Before the move, {before}. {self.MIDDLE}, {piled}. After spreading, {spread}."
        return f"{phases} {', and '.join(moves).capitalize()} ({trials})."

    def _phase(self, name: str) -> str:
        shares = [self.of(name, column).estimate for column in ("leader_share", "sent_share")]
        sent = f" and sends {percent(round(shares[1], 2))} of the brokers' bytes" if shares[1] == shares[1] else ""
        p99 = self.of(name, "p99_ms").formatted
        return f"the busiest broker leads {percent(round(shares[0], 2))} of the partitions{sent}, and p99 is {p99}"

    def formatted_table(self) -> pd.DataFrame:
        rows = []
        for phase in self.PHASES:
            moved = float(np.median(floats(self.rows.moved[self.rows.phase == phase])))
            medians = {title: self.of(phase, name).formatted_with_interval for name, (title, _) in COLUMNS.items()}
            rows.append({"": phase} | medians | {"leaders moved": number(moved, 0)})
        return pd.DataFrame(rows)


class Reassignment(LeaderSkew):
    """Latency while a broker is emptied by Kafka's tool, is empty, and is filled again; rows as of `LeaderSkew`."""

    TITLE = "Partitions moved under load: median over trials"
    KINDS = ("reassign", "reassign")
    PHASES = ("before", "emptying a broker", "with an empty broker", "filling it again", "spread again")
    MIDDLE = "With an empty broker"


def leader_skew(measured: DisturbedTrials) -> LeaderSkew:
    """Measure each phase of the trials that move all leaders to one broker; MissingDataError if there is none."""
    return LeaderSkew(_phases(measured, LeaderSkew))


def reassignment(measured: DisturbedTrials) -> Reassignment:
    """Measure each phase of the trials that empty a broker and fill it again; MissingDataError if there is none."""
    return Reassignment(_phases(measured, Reassignment))


def _phases(measured: DisturbedTrials, made: type[LeaderSkew]) -> pd.DataFrame:
    rows = []
    for trial in measured.with_kind(made.KINDS[0]):
        done = trial.actions[trial.actions.done_at_s <= trial.end_s].sort_values("began_at_s")
        if tuple(done.kind) != made.KINDS:
            continue
        ends = [trial.start_s, *done[["began_at_s", "done_at_s"]].to_numpy(float).ravel(), trial.end_s]
        moved = (0, done.leaders_moved.iloc[0], 0, done.leaders_moved.iloc[1], 0)
        for phase, from_s, to_s, n in zip(made.PHASES, ends, ends[1:], moved, strict=False):
            rows.append(_row_of(trial, phase, from_s, to_s, moving=phase in made.PHASES[1::2]) | {"moved": n})
    if not rows:
        raise MissingDataError("no trial completed both of its moves before its load ended.")
    return pd.DataFrame(rows)


def _row_of(trial: DisturbedTrial, phase: str, from_s: float, to_s: float, *, moving: bool) -> Fields:
    # leaders move within less than a second: every second that overlaps with the move counts
    tail = trial.tail(from_s, to_s, whole=not moving)
    nodes = trial.samples.leader.dropna().unique()
    led = [trial.leads(int(node), to_s) for node in nodes]
    row = {"test_id": trial.about.test_id, "block": trial.about.block, "phase": phase, "lasts_s": to_s - from_s}
    row |= {"p99_ms": nan if tail is None else tail.quantile(0.99), "sent_share": _sent_share(trial, from_s, to_s)}
    row["replica_share"] = trial.busiest_holds(to_s)
    return row | {"leader_share": max((own / n for n, own in led if n), default=nan)}


def _sent_share(trial: DisturbedTrial, from_s: float, to_s: float) -> float:
    """Return the share of the bytes from brokers' zones in a period that leaves the busiest zone; NaN if unknown."""
    if trial.links.empty:
        return nan
    seen = windows(trial.links)
    seen = seen[(seen.start_s >= from_s) & (seen.end_s <= to_s) & (seen.link_from != trial.about.from_region)]
    sent = (seen.carried_bps * (seen.end_s - seen.start_s)).groupby(seen.link_from).sum()
    return float(sent.max() / sent.sum()) if sent.sum() > 0 else nan
