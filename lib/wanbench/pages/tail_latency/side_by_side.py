"""Compare a percentile of two systems at each step of rate or partitions (tests 1 and 2 of the source)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, isfinite

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from wanbench.checks import refusal
from wanbench.errors import MissingDataError
from wanbench.figures import primitives, theme
from wanbench.formatting import count, number, percent
from wanbench.methods.result import Estimate, Result
from wanbench.methods.tails import quantile_intervals as order

from .trials import PARTITIONS, RATE, STEPS, SystemTrials, TailTrials
from .verdicts import VERDICTS, verdicts

SYMBOLS, DASHES = ("circle", "square"), ("solid", "dash")
BEYOND = "not received in time"
"""Shown instead of a latency if the percentile is that of a lost record."""


@dataclass(frozen=True, repr=False)
class Step:
    """
    The comparison of two systems at one step.

    `step` is a rate in records/s, or a number of partitions. `a` and `b` are the percentile in ms of each system, from
    the records of all its trials. `ratio` is the first system's percentile over the second's, in typical trials.
    `verdict` says whether the second system is better or worse than the first, as tested for all steps together (see
    `verdicts`); `reason` explains the verdict "not enough data". `tails` are the trials that count.
    """

    step: float
    a: Estimate
    b: Estimate
    ratio: Estimate
    verdict: str
    reason: str
    tails: tuple[TailTrials, TailTrials]
    kept_up: tuple[bool, bool]
    payload_bps: float


@dataclass(frozen=True, repr=False)
class SideBySide(Result):
    """
    A percentile of two systems at each step of rate or partitions at which both have trials that count.

    `missing` has the other steps. `points` has one row per trial that counts: system, step, latency_ms (the
    percentile), kept_up.
    """

    along: str
    q: float
    names: tuple[str, str]
    steps: list[Step]
    points: pd.DataFrame
    missing: list[float]

    @property
    def TITLE(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]  # it has the level
        """The title: the percentile, what the steps are, and the level of the intervals."""
        return f"{self.name}, with {self.steps[0].a.formatted_level} intervals"

    @property
    def name(self) -> str:
        """The percentile, and what the steps are."""
        return f"{order.name(self.q)} end to end by {STEPS[self.along]}"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return tuple(step.ratio for step in reversed(self.steps))

    @property
    def headline(self) -> str:
        if self.along == PARTITIONS:
            return self.growth
        at = {word: [number(one.step) for one in self.steps if one.verdict == word] for word in ("better", "worse")}
        listed = {word: " and ".join(filter(None, (", ".join(of[:-1]), of[-1]))) for word, of in at.items() if of}
        parts = [f"{word} at {steps} {self.unit}" for word, steps in listed.items()]
        compared = "{} of the latency of “{}”, against that of “{}”,".format(order.name(self.q), *self.names[::-1])
        return f"{compared} is {', and '.join(parts)}." if parts else ""

    @property
    def sentence(self) -> str:
        p, (a, b), of_word = order.name(self.q), self.names, {}
        for step in self.steps:
            above_1 = {"better": step.ratio, "worse": _inverse(step.ratio)}.get(step.verdict)
            bracket = f" ({_bound(above_1)}{above_1.formatted})" if above_1 else ""
            of_word.setdefault(step.verdict, []).append(f"{number(step.step)}{bracket}")
        known = ", and ".join(f"{word} at {', '.join(at)}" for word, at in of_word.items() if word != VERDICTS[-1])
        text = f"Compared with “{a}”, {p} of “{b}” is {known} {self.unit}."
        if {"better", "worse"} & set(of_word):
            text += f" The number in brackets is the higher {p} divided by the lower."
        if VERDICTS[-1] in of_word:
            text += f" There is not enough data at {', '.join(of_word[VERDICTS[-1]])} {self.unit}."
        if set(of_word) == {VERDICTS[-1]}:
            most = max(len(each.tails) for step in self.steps for each in step.tails)
            few = f"trials are too few or too short (at most {most} of each)"
            text = f"{p} of “{b}” and of “{a}” cannot be compared at any number of {self.unit}, because {few}."
        return f"{text} {self.growth}".rstrip()

    @property
    def growth(self) -> str:
        """How the percentile of each system changes from the first step to the last; "" if there is only one."""
        if len(self.steps) == 1:
            return ""
        grown = []
        for k, name in enumerate(self.names):
            ones = [(step.a, step.b)[k] for step in self.steps]
            first, last = (_with_interval(one, f"“{BEYOND}”") for one in (ones[0], ones[-1]))
            grown.append(f"“{name}” goes from {first} to {last}{self._lowest(ones)}")
        span = f"{number(self.steps[0].step)} to {number(self.steps[-1].step)} {self.unit}"
        level = self.steps[0].a.formatted_level
        return f"From {span}, {order.name(self.q)} of {', and that of '.join(grown)}, with {level} intervals."

    def _lowest(self, ones: list[Estimate]) -> str:
        """Say at which step a system's percentile is lowest, or "" if that is the first or the last step."""
        low = int(np.argmin([one.estimate if isfinite(one.estimate) else inf for one in ones]))
        inside = 0 < low < len(ones) - 1
        return f" with the lowest value, {ones[low].formatted}, at {number(self.steps[low].step)}" if inside else ""

    @property
    def unit(self) -> str:
        """What a step counts: "records/s" if the steps are rates, "partitions" if they are numbers of partitions."""
        return "records/s" if self.along == RATE else "partitions"

    @property
    def cautions(self) -> tuple[str, ...]:
        gone = f"one of the systems has no trial that counts at {', '.join(map(number, self.missing))} {self.unit}"
        cautions = [gone] if self.missing else []
        for k, name in enumerate(self.names):
            if behind := [number(step.step) for step in self.steps if not step.kept_up[k]]:
                at = f"“{name}” fell behind in at least one trial at {', '.join(behind)} {self.unit}"
                cautions.append(f"{at}, so its latency there depends on the length of the trial")
        notes: dict[str, list[str]] = {}
        for step in self.steps:
            for note in step.ratio.warnings:
                if not (step.reason and step.reason in note):  # the table shows the reason
                    notes.setdefault(note, []).append(number(step.step))
        return (*cautions, *(f"{note} (at {', '.join(at)} {self.unit})" for note, at in notes.items()))

    def table(self) -> pd.DataFrame:
        rows = []
        for step in self.steps:
            row = {"step": step.step, "payload_bps": step.payload_bps}
            for prefix, one in (("a", step.a), ("b", step.b), ("ratio", step.ratio)):
                row |= {prefix: one.estimate, f"{prefix}_low": one.low, f"{prefix}_high": one.high}
            row |= {"a_kept_up": step.kept_up[0], "b_kept_up": step.kept_up[1]}
            rows.append(row | {"verdict": step.verdict})
        return pd.DataFrame(rows)

    def formatted_table(self) -> pd.DataFrame:
        p, (a, b) = order.name(self.q), self.names
        rows = []
        for step in self.steps:
            row = {"ingress": f"{number(step.payload_bps / 8e6, 2)} MB/s"} if self.along == RATE else {}
            row[self.unit] = number(step.step)
            for name, one, kept in zip(self.names, (step.a, step.b), step.kept_up, strict=True):
                row[f"{p} of {name}"] = _with_interval(one) + ("" if kept else " *")
            row[f"{a} over {b}"] = _bound(step.ratio) + _with_interval(step.ratio, "unknown")
            row[f"{b} is"] = step.verdict + (f" ({step.reason})" if step.reason else "")
            rows.append(row)
        return pd.DataFrame(rows)

    def figure(self) -> go.Figure:
        """Draw the percentile of each system and of its single trials against the step."""
        figure, ends, along_rate = go.Figure(), [], self.along == RATE
        for k, name in enumerate(self.names):
            shade, symbol = theme.SERIES_COLOURS[k], SYMBOLS[k]
            own = self.points[self.points.system == name]
            # to the right of the step for the first system, to the left for the second
            aside = 0.02 * (own.groupby("step").cumcount() + 1) * (-1) ** k
            x = own.step + aside * max(self.points.step) / 2 if along_rate else own.step * (1 + aside)
            group, label = {"legendgroup": name}, theme.plain(name)
            small = {"mode": "markers", "marker": {"size": 6, "color": shade, "opacity": 0.4, "symbol": symbol}}
            hover = f"one trial of {label}: %{{y:.3g}} ms<extra></extra>"
            figure.add_scatter(x=x, y=own.latency_ms, showlegend=False, hovertemplate=hover, **small, **group)
            estimates, at = [(step.a, step.b)[k] for step in self.steps], [step.step for step in self.steps]
            joined = {"mode": "lines", "line": {"color": shade, "width": 1.5, "dash": DASHES[k]}, "hoverinfo": "skip"}
            figure.add_scatter(x=at, y=[one.estimate for one in estimates], showlegend=False, **joined, **group)
            symbols = [symbol if step.kept_up[k] else f"{symbol}-open" for step in self.steps]
            marker = {"size": 11, "color": shade, "symbol": symbols, "line": {"width": 2, "color": shade}}
            more: theme.Settings = {"marker": marker, "vertical": True, "name": label} | group
            primitives.estimate_points(figure, at, estimates, **more)
            ends += [*own.latency_ms, *(end for one in estimates for end in (one.estimate, one.low, one.high))]
        known = np.asarray(ends, dtype=float)
        figure.update_yaxes(**theme.log_axis(known[np.isfinite(known) & (known > 0)], "ms"))
        p = order.name(self.q)
        figure.update_yaxes(title=f"{p} end to end (ms, log axis)")
        title = "requested records/s, all producers together" if along_rate else "partitions of all topics"
        log_axis = {} if along_rate else {"type": "log", "ticktext": [number(step.step) for step in self.steps]}
        figure.update_xaxes(title=title, tickvals=[step.step for step in self.steps], **log_axis)
        figure.update_layout(legend=theme.LEGEND_ON_TOP)
        level = percent(self.steps[0].a.level)
        n = [sum(step.verdict == word for step in self.steps) for word in ("better", "worse")]
        a, b = self.names
        found = f"{p}, {b} against {a}: better at {n[0]}, worse at {n[1]} of {len(self.steps)}"
        found = found if any(n) else f"{p} of {b} and {a}: no difference is shown"
        return theme.finish(
            figure,
            name=f"{p.replace('.', '-')}-by-{'rate' if along_rate else 'partitions'}",
            title=theme.headline(found, f"{self.name}, two systems"),
            subtitle=f"Small marker: one trial. Large marker: all records of a step, with {level} interval. "
            "Hollow: the system fell behind. Not drawn: percentiles of a record that was not received in time.",
            alt=f"{self.name}, {count(len(self.steps), 'step')}. {self.sentence}",
            caption=str(self),
            table=self.table(),
        )


def _bound(ratio: Estimate) -> str:
    """Return "at least " or "at most " if the ratio is only a bound, because one system lost records."""
    return "at least " if ratio.high == inf else "at most " if ratio.low == 0 else ""


def _inverse(ratio: Estimate, quantity: str = "") -> Estimate:
    return ratio.transformed(lambda x: 1 / x if x else inf, quantity=quantity, claim="", unit="times")


def _with_interval(one: Estimate, unknown: str = BEYOND) -> str:
    if not isfinite(one.estimate):
        return unknown
    return f"{one.formatted} ({one.formatted_interval})" if one.formatted_interval else one.formatted


def side_by_side(trials: SystemTrials, along: str = RATE, *, q: float = 0.99, **at: float) -> SideBySide:
    """
    Compare the quantile `q` of two systems at each step of the rate or of the number of partitions.

    `along` is "rate_records_per_s" or "partitions"; `at` fixes the other one. Raises MissingDataError: both systems
    have trials that count at no step, or with only one number of partitions. Raises ParameterError: there are not two
    systems.
    """
    if len(trials.systems) != 2:
        raise refusal("systems", ", ".join(trials.systems), "two of them")
    (a, b), pairs, missing, points = trials.systems, {}, [], []
    for value in trials.steps(along, **at):
        where = {**at, along: value}
        try:
            pairs[value] = trials.at(a, **where), trials.at(b, **where)
        except MissingDataError:
            missing.append(value)
            continue
        points += [trials.stepped(name, **where) for name in trials.systems]
    if not pairs:
        raise MissingDataError(f"no step of {STEPS[along]} has trials of both systems that count.")
    if along == PARTITIONS and len(pairs) == 1:
        raise MissingDataError("the trials that count have only one number of partitions.")
    points = pd.concat(points, ignore_index=True)
    points = points.assign(step=points[along], latency_ms=[tail.quantile(q) for tail in points["tail"]])
    judged = verdicts(pairs, q)
    steps = [
        _step(value, pair, points[points.step == value], q, row, ratio)
        for (value, pair), (_, row), ratio in zip(pairs.items(), judged.rows.iterrows(), judged.ratios, strict=True)
    ]
    columns = ["system", "step", "latency_ms", "kept_up"]
    return SideBySide(along, q, trials.systems, steps, points[columns], missing)


def _step(
    value: float, pair: tuple[TailTrials, TailTrials], own: pd.DataFrame, q: float, row: pd.Series, ratio: Estimate
) -> Step:
    a, b = (each.name for each in pair)
    ratio = _inverse(ratio, quantity=f"{order.name(q)} at {number(value)}, {a} over {b}")
    claim = f"At {number(value)}, {order.name(q)} of a trial of {a} is {_bound(ratio)}{{}} that of {b}"
    both = [each.pooled.estimate(q, level=ratio.level) for each in pair]
    kept_up = bool(own.kept_up[own.system == a].all()), bool(own.kept_up[own.system == b].all())
    ratio, payload_bps = replace(ratio, claim=claim), float(own.payload_bps.iloc[0])
    return Step(value, both[0], both[1], ratio, row.verdict, row.reason, pair, kept_up, payload_bps)
