"""All leaders moved to one broker and spread again: load by broker, latency, and duration of the moves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from wanbench.formatting import count, number, percent
from wanbench.methods.lab.utilisation import windows
from wanbench.methods.result import Estimate, RowsResult
from wanbench.methods.result.means import Median, median_of

from .restarts import floats
from .trials import DisturbedTrial, DisturbedTrials

MOVES = {"skew": "moving to one", "rebalance": "spreading"}
PHASES = ("before", "moving to one", "on one broker", "spreading", "spread again")


@dataclass(frozen=True, repr=False)
class LeaderSkew(RowsResult):
    """
    Leaders on one broker.

    Attributes
    ----------
    rows : DataFrame
        One row per trial and phase: block, phase, lasts_s, p99_ms (NaN if the phase is shorter than a second of the
        schedule), leader_share (largest share of the load's partitions that one broker leads at the end of the phase),
        sent_share (largest share of one zone in the bytes that leave all zones; NaN without link samples), moved
        (number of leaders moved).
    """

    level: float = 0.95

    TITLE = "Leaders on one broker: median over trials"

    def of(self, phase: str, name: str, unit: str) -> Median:
        """The median of a column over the trials."""
        values = self.rows[self.rows.phase == phase][name].astype(float)
        about = {"quantity": f"{name}, {phase}", "claim": f"{phase}: {{}}", "unit": unit}
        return median_of(values, level=self.level, **about)

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """p99 of each phase."""
        found = (self.of(phase, "p99_ms", "ms") for phase in PHASES)
        return tuple(each for each in found if each.n)

    @property
    def sentence(self) -> str:
        """Load by broker in three phases, duration of the moves and their effect on latency."""
        before, piled, spread = (self._phase(name) for name in ("before", "on one broker", "spread again"))
        moves = [
            f"{name} took {self.of(name, 'lasts_s', 's').formatted}, with p99 at {self.of(name, 'p99_ms', 'ms').formatted}"
            for name in MOVES.values()
        ]
        trials = count(self.rows.test_id.nunique(), "trial")
        phases = f"Before: {before}. All leaders on one broker: {piled}. Spread again: {spread}."
        return f"{phases} {'; '.join(moves).replace('moving', 'Moving', 1)} ({trials})."

    def _phase(self, name: str) -> str:
        shares = [self.of(name, column, "fraction").estimate for column in ("leader_share", "sent_share")]
        sent = f" and sends {percent(round(shares[1], 2))} of the brokers' bytes" if shares[1] == shares[1] else ""
        p99 = self.of(name, "p99_ms", "ms").formatted
        return f"the busiest broker leads {percent(round(shares[0], 2))} of the partitions{sent}, p99 {p99}"

    def formatted_table(self) -> pd.DataFrame:
        """One row per phase."""
        columns = {
            "lasts_s": ("lasts", "s"),
            "p99_ms": ("p99", "ms"),
            "leader_share": ("led by the busiest", "fraction"),
        }
        columns |= {"sent_share": ("sent by the busiest", "fraction")}
        return pd.DataFrame(
            {"": phase}
            | {title: self.of(phase, name, unit).formatted_with_interval for name, (title, unit) in columns.items()}
            | {"leaders moved": number(float(np.median(floats(self.rows.moved[self.rows.phase == phase]))), 0)}
            for phase in PHASES
        )


def leader_skew(measured: DisturbedTrials, *, level: float = 0.95) -> LeaderSkew:
    """The phases of every trial that piled leaders on a broker and spread them again; MissingDataError if none."""
    rows = []
    for trial in measured.with_kind("skew"):
        done = trial.actions[trial.actions.done_at_s.notna()].set_index("kind")
        if not set(MOVES) <= set(done.index):
            continue
        skew, spread = done.loc["skew"], done.loc["rebalance"]
        ends = [trial.start_s, skew.began_at_s, skew.done_at_s, spread.began_at_s, spread.done_at_s, trial.end_s]
        moved = {"moving to one": skew.leaders_moved, "spreading": spread.leaders_moved}
        for phase, from_s, to_s in zip(PHASES, ends, ends[1:], strict=False):
            rows.append(_row(trial, phase, float(from_s), float(to_s)) | {"moved": moved.get(phase, 0)})
    return LeaderSkew(pd.DataFrame(rows), level)


def _row(trial: DisturbedTrial, phase: str, from_s: float, to_s: float) -> dict:
    # the records due while leaders move are few: every second that overlaps with it counts as it
    tail = trial.tail(from_s, to_s, whole=phase not in MOVES.values())
    nodes = trial.samples.leader.dropna().unique()
    led = [trial.leads(int(node), to_s) for node in nodes]
    return {
        "test_id": trial.about.test_id,
        "block": trial.about.block,
        "phase": phase,
        "lasts_s": to_s - from_s,
        "p99_ms": float("nan") if tail is None else tail.quantile(0.99),
        "leader_share": max((own / n for n, own in led if n), default=float("nan")),
        "sent_share": _sent_share(trial, from_s, to_s),
    }


def _sent_share(trial: DisturbedTrial, from_s: float, to_s: float) -> float:
    """The largest share of one zone in the bytes that leave all brokers' zones in a period."""
    if trial.links.empty:
        return float("nan")
    seen = windows(trial.links)
    seen = seen[(seen.start_s >= from_s) & (seen.end_s <= to_s) & (seen.link_from != trial.clients)]
    sent = (seen.carried_bps * (seen.end_s - seen.start_s)).groupby(seen.link_from).sum()
    return float(sent.max() / sent.sum()) if sent.sum() > 0 else float("nan")
