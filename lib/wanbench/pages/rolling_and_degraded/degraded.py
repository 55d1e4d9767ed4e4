"""Measure p99 before, during and after episodes of a slow broker, with demotion and without."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan

import numpy as np
import pandas as pd

from wanbench.errors import MissingDataError
from wanbench.formatting import count, number, quantity
from wanbench.methods.result import Estimate, Fields, RowsResult
from wanbench.methods.result.means import Median, geometric_mean, median_of

from .trials import LEVEL, DisturbedTrial, DisturbedTrials, back_after_s, rows_of

KINDS = ("slow", "disk", "link")
PHASES = {"early": "first half", "late": "second half", "return": "just after the slowness", "after": "later"}
PRICE = ("early", "return")
"""The phases in which demotion may increase latency, because it moves leaders."""
SETTLE_S = 1.0
"""Seconds that the phase "return" lasts after a broker has recovered and, if it was demoted, leads again."""
MIN_DEMOTED = 0.5
"""A comparison tests demotion only if brokers were demoted for at least this share of the time compared."""


@dataclass(frozen=True, repr=False)
class Degraded(RowsResult):
    """
    Latency in episodes with a slow broker, with and without demotion (its partitions get other leaders).

    `demotions` maps each kind of slowness to the ratio of p99 with demotion to p99 without it. Both p99 are from the
    second half of the slowness, in pairs of episodes (the same broker in the same block). A kind is missing if brokers
    were demoted for less than `MIN_DEMOTED` of that half. `limit_ms` is the undisturbed limit of `DisturbedTrials`.

    `rows` has one row per episode. Its columns:

    - detected_s, demoted_s: time since begin_s; NaN if the broker was not detected or not demoted.
    - late_demoted: share of the second half in which the broker was demoted.
    - before_ms, early_ms, late_ms, return_ms, after_ms: p99 of the undisturbed seconds; of both halves of the slowness;
        while the broker recovers; and later.
    - late_back, after_back: whether late_ms, after_ms are within the undisturbed limit.
    - back_s: time from begin_s until p99 is within the limit again during the slowness; a lower bound if back_censored.
    - led_before, led_late, led_after: number of partitions that the broker leads.
    """

    demotions: dict[str, Estimate]
    limit_ms: float

    TITLE = "Slow brokers: median p99, and in how many episodes it was within the undisturbed limit"

    def arm(self, system: str, demotes: bool) -> pd.DataFrame:
        """Return the episodes of one kind of slowness (`system`), with or without demotion."""
        return self.rows[(self.rows.system == system) & (self.rows.demotes == demotes)]

    @property
    def arms(self) -> list[tuple[str, bool]]:
        """The arguments of `arm` for which there are episodes: (kind of slowness, whether with demotion)."""
        present = set(zip(self.rows.system, self.rows.demotes, strict=True))
        return [(name, on) for name in dict.fromkeys(self.rows.system) for on in (False, True) if (name, on) in present]

    def of(self, system: str, demotes: bool, phase: str) -> Median:
        """Estimate the median p99 in ms over the episodes of `arm`, in a phase: "before" or one of PHASES."""
        about = f"{label(system, demotes)}, {PHASES.get(phase, phase)}"
        values = self.arm(system, demotes)[f"{phase}_ms"].astype(float)
        return median_of(values, level=LEVEL, unit="ms", quantity=f"p99, {about}", claim=f"p99 of “{about}” is {{}}")

    @property
    def headline(self) -> str:
        if not self.demotions:
            return "Demotion of a slow broker was not tested."
        name, ratio = next(iter(self.demotions.items()))
        does = "lowers" if ratio.high < 1 else "raises" if ratio.low > 1 else "is not shown to change"
        return (
            f"Demoting a slow broker {does} p99 while it is slow: in the second half of “{name}” p99 is "
            f"{ratio.formatted} p99 without demotion."
        )

    @property
    def sentence(self) -> str:
        return "\n".join(self._effect(name, demotes) for name, demotes in self.arms)

    def _effect(self, name: str, demotes: bool) -> str:
        own, not_tested = self.arm(name, demotes), f"Demotion was not tested under “{name}”"
        if not demotes:
            before, late = (self.of(name, demotes, phase).formatted for phase in ("before", "late"))
            return f"Without demotion, p99 rises from {before} (undisturbed) to {late} in the second half of “{name}”."
        if name in self.demotions:
            on, off = ([self.of(name, arm, each).formatted for each in PRICE] for arm in (True, False))
            first = (
                f"{self.demotions[name].sentence} In the first half p99 is {on[0]} with demotion and {off[0]} "
                "without it."
            )
            return f"{first} Just after the slowness it is {on[1]} with demotion and {off[1]} without it."
        if (name, False) not in self.arms:
            return f"{not_tested}, because there is no episode without demotion."
        share = f"{number(100 * own.late_demoted.mean(), 0)} % of the second half of the slowness"
        demoted = f"demotion acted in {int(own.demoted_s.notna().sum())} of {count(len(own), 'episode')}"
        return f"{not_tested}, because brokers were demoted for only {share} ({demoted})."

    def formatted_table(self) -> pd.DataFrame:
        columns = {}
        for name, demotes in self.arms:
            own = self.arm(name, demotes)
            row = {"episodes": str(len(own))}
            for what in ("detected", "demoted"):
                after = own[f"{what}_s"].dropna()
                row[what] = f"{len(after)}" + (f", after {quantity(after.median(), 's')}" if len(after) else "")
            row["demoted, share of the second half"] = f"{number(100 * own.late_demoted.mean(), 0)} %"
            row["undisturbed"] = self.of(name, demotes, "before").formatted
            row |= {PHASES[phase]: self.of(name, demotes, phase).formatted_with_interval for phase in PHASES}
            for phase in ("late", "after"):
                row[f"within the limit, {PHASES[phase]}"] = f"{int(own[f'{phase}_back'].sum())} of {len(own)}"
            columns[label(name, demotes)] = row
        return pd.DataFrame(columns).rename_axis("").reset_index()


def label(system: str, demotes: bool) -> str:
    return f"{system}, demoted" if demotes else system


def degraded(measured: DisturbedTrials, tables: Mapping[str, pd.DataFrame]) -> Degraded:
    """
    Measure every episode with a slow broker or slow links, in the trials that count.

    Episodes are halved by time, whether or not the broker was detected. So the effect of demotion includes late and
    missed detections. Raises MissingDataError: there is no episode.
    """
    rows = [row for trial in measured.with_kind(*KINDS) for row in _episodes(trial, measured, tables.get("detections"))]
    if not rows:
        raise MissingDataError("no slowness of a broker ended before the end of its load.")
    frame = pd.DataFrame(rows)
    demotions = {
        name: _paired(name, part)
        for name, part in frame.groupby("system", sort=False)
        if part.late_demoted[part.demotes].mean() >= MIN_DEMOTED and not part.demotes.all()
    }
    return Degraded(frame, demotions, measured.limit_ms)


def _episodes(trial: DisturbedTrial, measured: DisturbedTrials, detections: pd.DataFrame | None) -> list[Fields]:
    actions, rows = trial.actions, []
    slow = actions[actions.kind.isin(KINDS) & actions.in_force_at_s.notna() & actions.done_at_s.notna()]
    slow = slow[slow.in_force_at_s < trial.end_s]
    starts = np.append(slow.began_at_s.astype(float), trial.end_s)
    restored = actions[(actions.kind == "restore") & actions.done_at_s.notna()]
    alarms = pd.DataFrame(columns=["node_id", "at_s", "demoted_at_s"], dtype=float)
    if detections is not None and len(detections):
        alarms = rows_of(detections, trial.about)
    for action in slow.itertuples():
        node, begin_s, end_s = int(action.node_id), float(action.in_force_at_s), float(action.done_at_s)
        middle_s, next_s = (begin_s + end_s) / 2, float(starts[starts > begin_s].min())
        again = restored[(restored.began_at_s >= end_s) & (restored.began_at_s < next_s)].done_at_s
        well_s = float(max([end_s, *again.astype(float)])) + SETTLE_S
        ends = {"early": (begin_s, middle_s), "late": (middle_s, end_s), "return": (end_s, well_s)}
        ends["after"] = (well_s, next_s)
        tails = {name: trial.tail(*both, whole=name != "return") for name, both in ends.items()}
        p99 = {f"{name}_ms": nan if tail is None else tail.quantile(0.99) for name, tail in tails.items()}
        p99 = {"before_ms": trial.undisturbed_ms(0.99)} | p99
        back_s, censored = back_after_s(trial.by_second(begin_s, end_s), begin_s, measured.limit_ms)
        own = alarms[alarms.node_id == node]
        alarm, demoted = own[own.at_s.between(begin_s, end_s)], own[own.demoted_at_s.between(begin_s, end_s)]
        late_demoted = end_s - demoted.demoted_at_s.clip(lower=middle_s).min() if len(demoted) else 0.0
        row = {name: trial.about[name] for name in ("run_id", "test_id", "attempt", "setting", "block", "system")}
        row |= {"demotes": trial.demotes, "node_id": node, "kind": action.kind}
        row |= {"begin_s": begin_s - trial.start_s, "end_s": end_s - trial.start_s}
        row["detected_s"] = float(alarm.at_s.min()) - begin_s if len(alarm) else nan
        row["demoted_s"] = float(demoted.demoted_at_s.min()) - begin_s if len(demoted) else nan
        row |= {"late_demoted": late_demoted / (end_s - middle_s)} | p99
        row |= {f"{phase}_back": p99[f"{phase}_ms"] <= measured.limit_ms for phase in ("late", "after")}
        row |= {"back_s": back_s, "back_censored": censored}
        at_s = {"before": begin_s, "late": end_s, "after": next_s - 1}
        rows.append(row | {f"led_{when}": trial.leads(node, at)[1] for when, at in at_s.items()})
    return rows


def _paired(system: str, rows: pd.DataFrame) -> Estimate:
    """Estimate the ratio of p99 with demotion to p99 without it, in the second half of paired episodes."""
    sides = rows.astype({"late_ms": float}).groupby(["block", "node_id", "demotes"]).late_ms.first()
    both = sides.unstack().reindex(columns=[False, True])
    both = both[np.isfinite(both).all(axis=1) & (both > 0).all(axis=1)]
    late = f"p99 in the second half of “{system}”"
    about: Fields = {
        "quantity": f"{late}, with demotion over without",
        "claim": f"With demotion, {late} is {{}} the p99 without it",
        "method": "Student's t on the logarithms of the ratios of paired episodes",
        "assumption": "Pairs of episodes are independent; the logarithms of their ratios scatter symmetrically",
    }
    return geometric_mean(both[True] / both[False], LEVEL, unit_name="pair", **about)
