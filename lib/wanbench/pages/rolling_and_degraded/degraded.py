"""Episodes of a slow broker, with and without demotion: p99 before, early, late and after."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import isfinite, nan

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from wanbench.errors import MissingDataError
from wanbench.figures import primitives, theme
from wanbench.formatting import count, number, quantity
from wanbench.methods.result import Estimate, RowsResult
from wanbench.methods.result.means import Median, half_width, median_of, ratio_estimate

from .trials import LEVEL, DisturbedTrial, DisturbedTrials, back_after_s, rows_of

KINDS = ("slow", "link")
PHASES = {"early": "first half of it", "late": "second half of it", "return": "just after it", "after": "after that"}
PRICE = ("early", "return")
"""The phases in which demotion moves leaders, which costs latency."""
SETTLE_S = 1.0
"""Time after a broker has recovered, and leads again if demoted, until latency counts as "after"."""
LEAST_DEMOTED = 0.5
"""A comparison tests demotion if it was in force for at least this share of the time that is compared: most of it."""
METHOD = "t on the logarithm of the ratio, episode by episode"


STEPS = {"before_ms": "undisturbed"} | {f"{name}_ms": title for name, title in PHASES.items()}


@dataclass(frozen=True, repr=False)
class Degraded(RowsResult):
    """
    Slow brokers with and without demotion.

    `demotions` has, by kind of slowness, p99 with demotion over p99 without, in the second half of the slowness, by
    pairs of episodes: the same broker in the same block. It lacks kinds under which demotion was in force for less than
    `LEAST_DEMOTED` of that half.

    `rows` has one per episode: detected_s and demoted_s (since begin_s; NaN if it was not), late_demoted (share of the
    second half), misnamed (another broker was named); p99 undisturbed (`before_ms`), of both halves (`early_ms`,
    `late_ms`), from its end until `SETTLE_S` after the broker leads again (`return_ms`), and after that (`after_ms`);
    whether these lie in the earlier interval, up to `limit_ms`; back_s (from begin_s until p99 is back, during the
    slowness); led_before, led_late, led_after (partitions of the load).
    """

    demotions: dict[str, Estimate]
    limit_ms: float

    TITLE = "Slow brokers: median p99, and in how many episodes it was within its earlier interval"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return tuple(self.demotions.values())

    def arm(self, system: str, demotes: bool) -> pd.DataFrame:
        """Return the episodes of one kind of slowness, with or without demotion."""
        return self.rows[(self.rows.system == system) & (self.rows.demotes == demotes)]

    @property
    def arms(self) -> list[tuple[str, bool]]:
        """The arms of every kind of slowness: without demotion and with it."""
        present = set(zip(self.rows.system, self.rows.demotes, strict=True))
        return [(name, on) for name in dict.fromkeys(self.rows.system) for on in (False, True) if (name, on) in present]

    def of(self, system: str, demotes: bool, phase: str) -> Median:
        """Return the median p99 of a phase over the episodes of an arm; `phase` is "before" or one of PHASES."""
        about = f"{label(system, demotes)}, {PHASES.get(phase, phase)}"
        values = self.arm(system, demotes)[f"{phase}_ms"].astype(float)
        return median_of(values, level=LEVEL, unit="ms", quantity=f"p99, {about}", claim=f"p99 of “{about}”: {{}}")

    @property
    def sentence(self) -> str:
        """
        By kind: p99 undisturbed and in the second half without demotion, and the effect of demotion then and before and
        after, or that it was not tested. In how many episodes a healthy broker was named.
        """
        effects = [self._effect(name, demotes) for name, demotes in self.arms]
        if wrong := int(self.rows.misnamed.sum()):
            named = f"In {wrong} of {count(len(self.rows), 'episode')}"
            effects.append(f"{named} the detector named a broker that was not slow.")
        return " ".join(effects)

    def _effect(self, name: str, demotes: bool) -> str:
        own, not_tested = self.arm(name, demotes), f"Demotion was not tested under “{name}”"
        if not demotes:
            before, late = (self.of(name, demotes, phase).formatted for phase in ("before", "late"))
            return f"Without demotion, p99 goes from {before}, undisturbed, to {late} in the second half of “{name}”."
        if name in self.demotions:
            on, off = ([self.of(name, arm, each).formatted for each in PRICE] for arm in (True, False))
            first = f"{self.demotions[name].sentence} In the first half it is {on[0]} against {off[0]}"
            return f"{first}, just after the slowness {on[1]} against {off[1]}."
        if (name, False) not in self.arms:
            return f"{not_tested}: every episode was with it."
        share = f"{number(100 * own.late_demoted.mean(), 0)} % of the second half of the slowness"
        demoted = f"brokers were demoted in {int(own.demoted_s.notna().sum())} of {count(len(own), 'episode')}"
        return f"{not_tested}: it was in force for {share} ({demoted})."

    def formatted_table(self) -> pd.DataFrame:
        columns = {}
        for name, demotes in self.arms:
            own = self.arm(name, demotes)
            row = {"episodes": str(len(own))}
            for what in ("detected", "demoted"):
                after = own[f"{what}_s"].dropna()
                row[what] = f"{len(after)}" + (f", after {quantity(after.median(), 's')}" if len(after) else "")
            row["demoted in the second half"] = f"{number(100 * own.late_demoted.mean(), 0)} %"
            row["undisturbed"] = self.of(name, demotes, "before").formatted
            row |= {PHASES[phase]: self.of(name, demotes, phase).formatted_with_interval for phase in PHASES}
            for phase in ("late", "after"):
                row[f"back, {PHASES[phase]}"] = f"{int(own[f'{phase}_back'].sum())} of {len(own)}"
            columns[label(name, demotes)] = row
        return pd.DataFrame(columns).rename_axis("").reset_index()

    def figure(self, *, note: str = "") -> go.Figure:
        """Draw a thin line per episode and a thick one for the median of each arm, on a logarithmic axis."""
        figure, places = go.Figure(), np.arange(len(STEPS))
        for k, (system, demotes) in enumerate(self.arms):
            own, name = self.arm(system, demotes), theme.plain(label(system, demotes))
            colour = theme.SERIES_COLOURS[k % len(theme.SERIES_COLOURS)]
            at, p99 = places + 0.06 * (k - (len(self.arms) - 1) / 2), own[list(STEPS)].astype(float)
            both, hover = {"x": at, "mode": "lines+markers", "legendgroup": name}, f"%{{y:.4g}} ms<extra>{name}</extra>"
            thin = {"line": {"color": colour, "width": 1}, "marker": {"size": 5}, "opacity": 0.45, "showlegend": False}
            thick = {"line": {"color": colour, "width": 4}, "marker": {"size": 10}, "name": name}
            for values in p99.where(np.isfinite(p99)).to_numpy():
                figure.add_scatter(y=values, hovertemplate=hover, **thin, **both)
            figure.add_scatter(y=p99.median().to_numpy(), hovertemplate=f"median {hover}", **thick, **both)
        primitives.reference_line(figure, y=self.limit_ms)
        values = np.append(self.rows[list(STEPS)].to_numpy(dtype=float).ravel(), self.limit_ms)
        figure.update_yaxes(title="p99, due to received", **theme.log_axis(values, "ms"))
        figure.update_xaxes(tickvals=list(places), ticktext=list(STEPS.values()))
        figure.update_layout(legend=theme.LEGEND_ON_TOP)
        return theme.finish(
            figure,
            name="slow-brokers",
            title="p99 while a broker is slow",
            subtitle="Thin: one episode each. Thick: their median. Dashed: the upper end of the earlier interval of "
            "p99.",
            alt=f"p99 by phase of a slowness, with and without demotion. {self.sentence}",
            caption=self.sentence,
            table=self.rows[["setting", "block", "node_id", *STEPS]],
            note=note,
        )


def label(system: str, demotes: bool) -> str:
    return f"{system}, demoted" if demotes else system


def degraded(measured: DisturbedTrials, tables) -> Degraded:
    """
    Measure every episode of a slow broker or far links in the trials that count; MissingDataError if there is none.

    The halves of an episode cover the same times in every arm, detected or not: the effect of demotion includes late
    and missed detections.
    """
    rows = [row for trial in measured.with_kind(*KINDS) for row in _episodes(trial, measured, tables.get("detections"))]
    if not rows:
        raise MissingDataError("no slowness of a broker ended before the end of its load.")
    frame = pd.DataFrame(rows)
    demotions = {
        name: _paired(name, part)
        for name, part in frame.groupby("system", sort=False)
        if part.late_demoted[part.demotes].mean() >= LEAST_DEMOTED and not part.demotes.all()
    }
    return Degraded(frame, demotions, measured.limit_ms)


def _episodes(trial: DisturbedTrial, measured: DisturbedTrials, detections) -> list[dict]:
    actions, rows = trial.actions, []
    slow = actions[actions.kind.isin(KINDS) & actions.in_force_at_s.notna() & actions.done_at_s.notna()]
    slow = slow[slow.in_force_at_s < trial.end_s]
    starts = np.append(slow.began_at_s.astype(float), trial.end_s)
    restored = actions[(actions.kind == "restore") & actions.done_at_s.notna()]
    alarms = pd.DataFrame(columns=["node_id", "at_s", "demoted_at_s"], dtype=float)
    if detections is not None and len(detections):
        alarms = rows_of(detections, trial.about)
    for action in slow.itertuples():
        begin_s, end_s = float(action.in_force_at_s), float(action.done_at_s)
        middle_s, next_s = (begin_s + end_s) / 2, float(starts[starts > begin_s].min())
        again = restored[(restored.began_at_s >= end_s) & (restored.began_at_s < next_s)].done_at_s
        well_s = float(max([end_s, *again.astype(float)])) + SETTLE_S
        ends = {"early": (begin_s, middle_s), "late": (middle_s, end_s), "return": (end_s, well_s)}
        ends["after"] = (well_s, next_s)
        tails = {name: trial.tail(*both, whole=name != "return") for name, both in ends.items()}
        p99 = {f"{name}_ms": nan if tail is None else tail.quantile(0.99) for name, tail in tails.items()}
        p99 = {"before_ms": trial.undisturbed_ms(0.99)} | p99
        back_s, censored = back_after_s(trial.by_second(begin_s, end_s), begin_s, measured.limit_ms)
        own, named = alarms[alarms.node_id == action.node_id], alarms[alarms.at_s.between(begin_s, end_s)]
        alarm, demoted = named[named.node_id == action.node_id], own[own.demoted_at_s.between(begin_s, end_s)]
        late_demoted = end_s - demoted.demoted_at_s.clip(lower=middle_s).min() if len(demoted) else 0.0
        row = {name: trial.about[name] for name in ("run_id", "test_id", "attempt", "setting", "block", "system")}
        row |= {"demotes": trial.demotes, "node_id": int(action.node_id), "how": _how(action)}
        row |= {"begin_s": begin_s - trial.start_s, "end_s": end_s - trial.start_s}
        row["detected_s"] = float(alarm.at_s.min()) - begin_s if len(alarm) else nan
        row["demoted_s"] = float(demoted.demoted_at_s.min()) - begin_s if len(demoted) else nan
        row |= {"late_demoted": late_demoted / (end_s - middle_s), "misnamed": len(named) > len(alarm)} | p99
        row |= {f"{phase}_back": p99[f"{phase}_ms"] <= measured.limit_ms for phase in ("late", "after")}
        row |= {"back_s": back_s, "back_censored": censored}
        at_s = {"before": begin_s, "late": end_s, "after": next_s - 1}
        rows.append(row | {f"led_{when}": trial.leads(action.node_id, at)[1] for when, at in at_s.items()})
    return rows


def _how(action) -> str:
    how = json.loads(action.detail) if isinstance(action.detail, str) else {}
    return ", ".join(f"{name} {how[name]}" for name in ("by", "share", "delay_ms", "loss", "rate_bps") if name in how)


def _paired(system: str, rows: pd.DataFrame) -> Estimate:
    """Late p99 with demotion over that without, over pairs of episodes."""
    sides = rows.astype({"late_ms": float}).groupby(["block", "node_id", "demotes"]).late_ms.first()
    both = sides.unstack().reindex(columns=[False, True])
    both = both[np.isfinite(both).all(axis=1) & (both > 0).all(axis=1)]
    logs = np.log(both[True] / both[False]).to_numpy(dtype=float)
    half = float(half_width(logs, LEVEL))
    late = f"p99 in the second half of “{system}”"
    about = {"quantity": f"{late}, with demotion over without", "claim": f"With demotion, {late} is {{}} that without"}
    about |= {"basis": count(len(logs), "pair of episodes", "pairs of episodes"), "method": METHOD, "level": LEVEL}
    about["assumption"] = "Pairs of episodes are independent and alike; log ratios scatter about symmetrically"
    about["warnings"] = () if isfinite(half) else ("no interval: fewer than two pairs of episodes",)
    return ratio_estimate(float(logs.mean()) if len(logs) else nan, half, n=len(logs), **about)
