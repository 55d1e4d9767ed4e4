"""Restarts of a roll, one by one, and leaders piled on one broker: what they add to latency."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np
import pandas as pd

from wanbench.formatting import count, number, percent
from wanbench.methods.lab.utilisation import windows
from wanbench.methods.result import Estimate, RowsResult
from wanbench.methods.result.means import Median, median_of

from .trials import DisturbedTrial, DisturbedTrials, back_after_s

KINDS = ("restart", "kill")
CALM_S = 3.0
"""Time after the cluster is complete until clients have reconnected: librdkafka waits at most 1 s."""
QUANTITIES = {
    "excess_p99_ms": ("excess p99", "ms"),
    "excess_p999_ms": ("excess p99.9", "ms"),
    "peak_ms": ("p99 of its slowest second", "ms"),
    "worst_ms": ("slowest record", "ms"),
    "back_s": ("p99 beyond its earlier interval for", "s"),
    "down_s": ("until it answered again", "s"),
    "under_replicated_s": ("under-replicated for", "s"),
    "leaders_moved": ("leaders moved, of all topics", "partitions"),
    "n_resent": ("records sent again", "records"),
    "n_lost": ("records never received", "records"),
}
"""Title and unit of each column."""


@dataclass(frozen=True, repr=False)
class Restarts(RowsResult):
    """
    Restarts one by one, and their medians by setting.

    Attributes
    ----------
    rows : DataFrame
        One row per restart: setting, block, kind, node_id, at_s (since the end of the warm-up), undisturbed_p99_ms (of
        its trial), p99_ms and p999_ms of the records due from the start of the restart until `CALM_S` after the cluster
        was complete, and the columns of QUANTITIES; `back_censored`: the next restart came before p99 was back. An
        excess is the difference from the undisturbed seconds of the same trial.
    limit_ms, limit_level : float
        Upper end of the earlier interval of p99, and its probability, as in `DisturbedTrials`.
    """

    limit_ms: float
    limit_level: float
    level: float = 0.95

    TITLE = "Restarts: median, and interval"

    @property
    def settings(self) -> list[str]:
        """The settings, in the order in which they were measured."""
        return list(dict.fromkeys(self.rows.setting))

    def of(self, setting: str, name: str) -> Median:
        """The median of a quantity over the restarts of a setting."""
        own, (title, unit) = self.rows[self.rows.setting == setting], QUANTITIES[name]
        return median_of(
            floats(own[name]), own.back_censored if name == "back_s" else (), level=self.level, unit=unit,
            quantity=f"{title}, {setting}", claim=f"Under “{setting}”, {title} per restart: {{}}",
        )  # fmt: skip

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """Excess p99 and p99.9 of every setting, and the time for which p99 was beyond its earlier interval."""
        names = ("excess_p99_ms", "excess_p999_ms", "back_s")
        return tuple(self.of(setting, name) for setting in self.settings for name in names)

    @property
    def cautions(self) -> tuple[str, ...]:
        """Few restarts, and intervals that are wider or open."""
        level = min(each.level for each in self.estimates)
        few = (
            f"few restarts: intervals from the smallest to the largest hold {percent(level)}; restarts of a trial "
            "share its undisturbed p99, whose error is not included"
        )
        gone = self.rows[np.isinf(self.rows.worst_ms.astype(float))]
        lost = f"records were never received in {count(len(gone), 'restart')}: they count as slower than all others"
        unknown = {
            title: count(missing, "restart")
            for name, (title, _) in QUANTITIES.items()
            if (missing := int(np.isnan(floats(self.rows[name])).sum()))
        }
        return (
            *((few,) if level < self.level else ()),
            *((lost,) if len(gone) else ()),
            *(f"{title}: without {text} in which it was not seen" for title, text in unknown.items()),
        )

    @property
    def sentence(self) -> str:
        """Per setting: how a restart changes p99, its slowest second, and how long that lasts."""
        parts = []
        for name in self.settings:
            excess, peak, back = (
                self.of(name, key).formatted_with_interval for key in ("excess_p99_ms", "peak_ms", "back_s")
            )
            own = self.rows.setting == name
            spikes = int((self.rows.back_s[own] > 0).sum())
            parts.append(
                f"“{name}” changes p99 by {excess} per restart; that of its slowest second is {peak}. In {spikes} of "
                f"{count(int(own.sum()), 'restart')} p99 of a second left its earlier interval (undisturbed, in "
                f"{number(100 * (1 - self.limit_level), 0)} % of stretches or less), for {back}."
            )
        return " ".join(parts)

    def formatted_table(self) -> pd.DataFrame:
        """One row per quantity, one column per setting."""
        columns = {
            name: [
                str((self.rows.setting == name).sum()),
                *(self.of(name, key).formatted_with_interval for key in QUANTITIES),
            ]
            for name in self.settings
        }
        return pd.DataFrame({"": ["restarts", *(title for title, _ in QUANTITIES.values())]} | columns)


def floats(values: pd.Series) -> np.ndarray:
    """The values as floats, NaN for missing ones."""
    return pd.to_numeric(values, errors="coerce").astype("Float64").to_numpy(dtype=float, na_value=nan)


def restarts(measured: DisturbedTrials, *, level: float = 0.95) -> Restarts:
    """
    Every restart of the rolls that count; MissingDataError if there is none.

    A restart lasts until `CALM_S` after all brokers were up and no partition was under-replicated, or until the next
    one or the end of the load.
    """
    found = []
    for trial in measured.with_kind(*KINDS, rolling=True):
        begun_in_time = trial.actions[trial.actions.began_at_s < trial.end_s]
        done = begun_in_time[begun_in_time.kind.isin(KINDS) & begun_in_time.done_at_s.notna()]
        begun = np.append(trial.actions.began_at_s.dropna().astype(float), trial.end_s)
        for action in done.itertuples():
            next_s = float(begun[begun > action.began_at_s].min())
            over_s = next_s if pd.isna(action.healthy_at_s) else min(next_s, action.healthy_at_s + CALM_S)
            found.append(_row(trial, action, over_s, next_s, measured.limit_ms))
    return Restarts(pd.DataFrame(found), measured.limit_ms, measured.level, level)


def _row(trial: DisturbedTrial, action, over_s, next_s, limit_ms: float) -> dict:
    tail, before_ms = trial.tail(action.began_at_s, over_s), trial.undisturbed_ms(0.99)
    seconds = trial.by_second(action.began_at_s - 1, next_s)
    seconds = seconds[seconds.start_s + 1 > action.began_at_s]
    back_s, censored = back_after_s(seconds, action.began_at_s, limit_ms)
    p99, p999 = tail.quantile(0.99), tail.quantile(0.999)
    return {
        **{name: trial.about[name] for name in ("run_id", "test_id", "attempt", "setting", "block")},
        "kind": action.kind,
        "node_id": int(action.node_id),
        "at_s": action.began_at_s - trial.start_s,
        "over_s": over_s - trial.start_s,
        "undisturbed_p99_ms": before_ms,
        "p99_ms": p99,
        "p999_ms": p999,
        "excess_p99_ms": p99 - before_ms,
        "excess_p999_ms": p999 - trial.undisturbed_ms(0.999),
        "peak_ms": seconds.p99_ms[seconds.start_s < over_s].max(),
        "worst_ms": tail.quantile(1 - 1e-9),
        "back_s": back_s,
        "back_censored": censored,
        "down_s": action.done_at_s - action.began_at_s,
        "under_replicated_s": trial.under_replicated_s(action.began_at_s, next_s),
        "leaders_moved": action.leaders_moved,
        "n_resent": trial.resent(action.began_at_s, over_s),
        "n_lost": tail.n_lost,
    }


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
            rows.append(_skew_row(trial, phase, float(from_s), float(to_s)) | {"moved": moved.get(phase, 0)})
    return LeaderSkew(pd.DataFrame(rows), level)


def _skew_row(trial: DisturbedTrial, phase: str, from_s: float, to_s: float) -> dict:
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
