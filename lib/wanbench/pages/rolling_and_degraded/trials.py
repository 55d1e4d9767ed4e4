"""Read trials with actions on brokers: latency per second, actions and leaders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, isfinite, nan
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from wanbench.checks import check_columns, check_table
from wanbench.errors import MissingDataError
from wanbench.figures import theme
from wanbench.formatting import count, number, percent, quantity
from wanbench.methods.lab.utilisation import KEY
from wanbench.methods.result import RowsResult
from wanbench.methods.tails import distribution
from wanbench.methods.tails.distribution import Tail
from wanbench.methods.trials.counted_seconds import attempts_with_loads
from wanbench.open_loop import LATE_MS, LATE_PART

LEVEL = 0.95
BACK_S = 3
"""Latency has recovered after this number of consecutive whole seconds within the limit."""
OVERLOADED_MS = 1_000.0
"""Brokers count as overloaded if p99 of undisturbed seconds reaches this: more than a second's records then wait."""
BEHIND = "the generator itself was late: p99 of its delay is {}"
"""
Why a trial does not count. The allowed delay is a fraction of the trial's own p99 (see `wanbench.open_loop`): a few ms,
as during the start of a broker, matter only if latency is low.
"""
NEEDED = {
    "tests": (*KEY, "outcome"),
    "trials": ("run_id", "test_id", "setting", "system", "block"),
    "open_loop_loads": (*KEY, "start_s", "warmup_s", "duration_s", "late_p99_ms", "error"),
    "open_loop_histograms": (*KEY, "what", "window", "start_s", "warm_up", "n_lost", "histogram"),
}
ACTIONS = [*KEY, "node_id", "kind", "rolling", "began_at_s", "in_force_at_s", "done_at_s", "healthy_at_s"]
ACTIONS += ["detail", "leaders_moved"]
SAMPLES = [*KEY, "at_s", "topic", "partition", "leader", "isr"]
"""Columns of the tables of actions and samples; in a run without actions these tables are missing or empty."""
Second = tuple[np.ndarray, np.ndarray, int]
"""Histogram of a second: latencies in us, their counts, and the number of lost records."""
LINES = {"p50_ms": (0.5, "median", "solid"), "p99_ms": (0.99, "p99", "solid"), "worst_ms": (1 - 1e-9, "slowest", "dot")}
PANEL_PX, ABOVE_PX = 210, 150


@dataclass(frozen=True, eq=False)
class DisturbedTrial:
    """
    One trial in which actions disturb brokers.

    about: Its attempt and its load.
    demotes: Whether named brokers were demoted.
    histograms: The end-to-end latencies after the warm-up.
    actions, samples, links: Its rows of tables broker_actions, cluster_samples and link_samples.
    """

    about: pd.Series
    demotes: bool
    histograms: pd.DataFrame
    actions: pd.DataFrame
    samples: pd.DataFrame
    links: pd.DataFrame

    @property
    def start_s(self) -> float:
        """When the warm-up of the load ended, in Unix seconds."""
        return float(self.about.start_s + self.about.warmup_s)

    @property
    def end_s(self) -> float:
        """When the last record was due, in Unix seconds."""
        return float(self.start_s + self.about.duration_s)

    @property
    def quiet_s(self) -> float:
        """When the first action began, or the load ended if there was none, in Unix seconds."""
        return float(np.nanmin([self.end_s, *self.actions.began_at_s.astype(float)]))

    @cached_property
    def seconds(self) -> dict[float, list[Second]]:
        """Maps the start of each second to the histograms of the records due in it, one per consumer group."""
        seconds: dict[float, list[Second]] = {}
        for row in self.histograms.sort_values("start_s").itertuples():
            seconds.setdefault(float(row.start_s), []).append((*distribution.decoded(row.histogram), int(row.n_lost)))
        return seconds

    def between(self, from_s: float, to_s: float, *, whole: bool = False) -> list[float]:
        """Return the starts of the seconds of the load that overlap a period or, with `whole`, lie entirely in it."""
        if whole:
            return [start for start in self.seconds if start >= from_s and start + 1 <= to_s]
        return [start for start in self.seconds if start + 1 > from_s and start < to_s]

    def tail(self, from_s: float, to_s: float, *, whole: bool = False) -> Any:
        """Return the latency distribution of the records due in the seconds of `between`; None if there is none."""
        return merged(part for start in self.between(from_s, to_s, whole=whole) for part in self.seconds[start])

    def by_second(self, from_s: float, to_s: float) -> pd.DataFrame:
        """Return start_s, median, p99 and maximum in ms of whole seconds of a period; lost records are the slowest."""
        tails = {start: merged(self.seconds[start]) for start in self.between(from_s, to_s, whole=True)}
        rows = [(start, *(tail.quantile(q) for q, *_ in LINES.values())) for start, tail in tails.items() if tail.n]
        return pd.DataFrame(rows, columns=["start_s", *LINES], dtype=float)

    def undisturbed_ms(self, q: float) -> float:
        """Return the quantile `q` of latency in the seconds before the first action, in ms; NaN if there are none."""
        tail = self.tail(self.start_s, self.quiet_s, whole=True)
        return nan if tail is None else tail.quantile(q)

    @property
    def longest_s(self) -> int:
        """The longest time from an action to the next one, or to the end, in whole seconds; 1 without actions."""
        starts = np.sort(np.append(self.actions.began_at_s.dropna().astype(float), self.end_s))
        return max(ceil(np.diff(starts).max()), 1) if len(starts) > 1 else 1

    def leads(self, node_id: int, at_s: float) -> tuple[int, int]:
        """
        Return how many partitions the load has, and how many a broker leads, in the last sample at or before `at_s`.
        """
        seen = self.samples[(self.samples.at_s <= at_s) & self.samples.leader.notna()]
        if seen.empty:
            return 0, 0
        seen = seen[seen.at_s == seen.at_s.max()]
        return len(seen), int((seen.leader == node_id).sum())

    def busiest_holds(self, at_s: float) -> float:
        """Return the largest share of the in-sync replicas that one broker holds, in the last sample before `at_s`."""
        seen = self.samples[(self.samples.at_s <= at_s) & self.samples.leader.notna()]
        return float(seen[seen.at_s == seen.at_s.max()].isr.str.split(",").explode().value_counts(normalize=True).max())


@dataclass(frozen=True, repr=False)
class DisturbedTrials(RowsResult):
    """
    The trials that count, because the load generator was not late (`items`), and the latency of undisturbed brokers.

    `rows` has one row per trial: setting, block, `counts`, `why` (why it does not count), undisturbed_s (time before
    its first action), p99_ms of that time, n (records), n_lost, client_errors. `limit_ms` is the undisturbed limit:
    with probability `level`, p99 of every one of `span_s` further undisturbed seconds is at most this. `span_s` is the
    longest time from an action to the next one; `n_seconds` is the number of undisturbed seconds observed.
    """

    items: tuple[DisturbedTrial, ...]
    limit_ms: float
    level: float
    span_s: int
    n_seconds: int

    TITLE = "Trials"

    @property
    def sentence(self) -> str:
        out = self.rows[~self.rows.counts]
        named = ", ".join(f"“{row.setting}” ({row.why})" for row in out.itertuples())
        lost = f" Not counted: {named}." if len(out) else ""
        stretches = count(self.n_seconds, "undisturbed second")
        text = f"{int(self.rows.counts.sum())} of {count(len(self.rows), 'trial')} count.{lost}"
        if not isfinite(self.limit_ms):
            return (
                f"{text} There is no undisturbed limit of p99, because too many records were never received in "
                f"{stretches}."
            )
        return (
            f"{text} Predicted from {stretches}: with probability {percent(round(self.level, 3))}, p99 exceeds "
            f"{quantity(self.limit_ms, 'ms')} (the undisturbed limit) in none of "
            f"{count(self.span_s, 'further undisturbed second')}."
        )

    @property
    def cautions(self) -> tuple[str, ...]:
        over = self.rows.p99_ms[self.rows.p99_ms >= OVERLOADED_MS]
        counted, worst = count(int(self.rows.counts.sum()), "trial"), over.max()
        most = f"up to {quantity(worst, 'ms')}" if isfinite(worst) else "or records were never received"
        text = (
            f"overloaded: in {len(over)} of {counted} p99 of undisturbed seconds is {OVERLOADED_MS / 1_000:g} s or "
            f"more, {most}, so the rate is too high for this machine or its links, and the effect of an action cannot "
            "be measured"
        )
        return (text,) if len(over) else ()

    def formatted_table(self) -> pd.DataFrame:
        rows = self.rows
        cells = {"trial": rows.setting, "block": rows.block.map(number)}
        cells |= {"records": [number(n, 0) for n in rows.n], "never received": [number(n, 0) for n in rows.n_lost]}
        cells["undisturbed"] = [f"{number(s, 0)} s" for s in rows.undisturbed_s]
        cells["undisturbed p99"] = [quantity(ms, "ms") if isfinite(ms) else "" for ms in rows.p99_ms]
        return pd.DataFrame(cells | {"clients' errors": rows.client_errors.fillna(""), "left out because": rows.why})

    def with_kind(self, *kinds: str, rolling: bool = False) -> list[DisturbedTrial]:
        """
        Return the trials with an action of these kinds, in a roll or (if not `rolling`) outside one.

        Raises MissingDataError: there is none.
        """
        trials = [
            each for each in self.items if (each.actions.kind.isin(kinds) & (each.actions["rolling"] == rolling)).any()
        ]
        if not trials:
            raise MissingDataError(f"no trial with {' or '.join(kinds)} counts.")
        return trials

    def figure(self, *, settings: Sequence[str]) -> go.Figure:
        """Draw latency over time in the first trial of each setting that counts; MissingDataError if there is none."""
        firsts = {each.about.setting: each for each in reversed(self.items)}
        shown = [firsts[name] for name in dict.fromkeys(settings) if name in firsts]
        if not shown:
            raise MissingDataError(f"no trial of {', '.join(settings) or 'this kind'} counts.")
        titles = [theme.plain(each.about.setting) for each in shown]
        figure = make_subplots(len(shown), 1, vertical_spacing=0.3 / len(shown))
        tables = []
        for row, trial in enumerate(shown, start=1):
            seconds = trial.by_second(-np.inf, np.inf)
            seconds.insert(0, "second", seconds.pop("start_s") - trial.start_s)
            finite, place = seconds.where(np.isfinite(seconds)), {"row": row, "col": 1}
            for (name, (_, title, dash)), colour in zip(LINES.items(), theme.SERIES_COLOURS, strict=False):
                style = {"name": title, "legendgroup": title, "line": {"color": colour, "dash": dash, "width": 2}}
                style |= {"mode": "lines", "showlegend": row == 1} | place
                figure.add_scatter(x=seconds.second + 0.5, y=finite[name], **style)
            figure.add_hline(y=self.limit_ms, line={"color": theme.LIGHT, "dash": "dash", "width": 1}, row=row, col=1)
            tables += [seconds.assign(trial=trial.about.setting), _shade(figure, trial, row)]
            values = np.concatenate([seconds[name] for name in LINES])
            figure.update_yaxes(title=titles[row - 1], **place, **theme.log_axis(values, "ms", 6))
        figure.update_xaxes(title="seconds since the warm-up at which records were due", row=len(shown), col=1)
        figure.update_annotations(font_size=13)
        figure.update_layout(height=ABOVE_PX + PANEL_PX * len(shown), legend=theme.LEGEND_ON_TOP)
        lost = sum(merged(part for parts in each.seconds.values() for part in parts).n_lost for each in shown)
        caption = f"{count(len(shown), 'trial')}, with {count(lost, 'record')} that were never received."
        return theme.finish(
            figure,
            name="latency-and-actions",
            title="Latency while brokers are disturbed",
            subtitle="Time from when a record was due until it was received: median, p99 and slowest record of each "
            "second. Shaded: each action. Lighter: the time after the action until no partition was "
            f"under-replicated. Dashed: the undisturbed limit of p99, {quantity(self.limit_ms, 'ms')}.",
            alt=f"Latency over time of {', '.join(titles)}. {caption}",
            caption=caption,
            table=pd.concat(tables, ignore_index=True),
            headroom_px=theme.PANEL_TITLES_PX,
        )


def trials(tables: Mapping[str, pd.DataFrame]) -> DisturbedTrials:
    """
    Read the trials of a run that was planned with `design`, from its tables.

    The tables of NEEDED are required; tables of actions, samples and detection are used if they exist. Raises
    MissingDataError: no trial that counts was undisturbed for a second.
    """
    for name, columns in NEEDED.items():
        check_columns(name, check_table(name, tables), columns)
    attempts = attempts_with_loads(tables, ("setting", "system", "block"), tables["open_loop_loads"])
    items, rows = [], []
    for _, about in attempts[attempts.block.notna()].iterrows():  # the warm-up of the brokers is in no block
        trial = _trial(tables, about)
        why = about.why or _unusable(trial)
        row = {"setting": about.setting, "block": about.block, "counts": not why, "why": why}
        row |= {"client_errors": about.get("client_errors"), "n": about.get("n_intended", nan)}
        row |= dict.fromkeys(("undisturbed_s", "n_lost", "p99_ms"), nan)
        if not why:
            row |= {"undisturbed_s": trial.quiet_s - trial.start_s, "p99_ms": trial.undisturbed_ms(0.99)}
            row["n_lost"] = int(trial.histograms.n_lost.sum())
            items.append(trial)
        rows.append(row)
    p99 = np.concatenate([np.zeros(0), *(each.by_second(each.start_s, each.quiet_s).p99_ms for each in items)])
    if not len(p99):
        raise MissingDataError("no trial was undisturbed for a second.")
    span_s = max(each.longest_s for each in items)
    return DisturbedTrials(pd.DataFrame(rows), tuple(items), *upper_end(p99, span_s), span_s, len(p99))


def upper_end(values: np.ndarray, m: int = 1) -> tuple[float, float]:
    """
    Return an upper limit for all of m further values, as predicted from `values`, and the probability that it holds.

    The limit is an order statistic (Hahn & Meeker 1991, section 5.4). The probability is at least `LEVEL`, unless there
    are too few values.

    >>> upper_end(np.arange(1.0, 40.0)), upper_end(np.array([1.0, 5.0, 2.0])), upper_end(np.arange(1.0, 40.0), 2)[0]
    ((38.0, 0.95), (5.0, 0.75), 39.0)
    """
    ranks, n = np.arange(1, len(values) + 1), len(values)
    levels = np.prod([(ranks + k) / (n + 1 + k) for k in range(m)], axis=0)
    rank = min(int((levels < LEVEL - 1e-9).sum()), n - 1)
    return float(np.sort(values)[rank]), float(levels[rank])


def _trial(tables: Mapping[str, pd.DataFrame], about: pd.Series) -> DisturbedTrial:
    def own(name: str) -> pd.DataFrame:
        return rows_of(tables[name], about) if len(tables.get(name, ())) else pd.DataFrame(columns=KEY)

    latencies, samples, runs = own("open_loop_histograms"), own("cluster_samples"), own("detection_runs")
    if len(samples):
        prefix = f"open-loop-{about.test_id}.{int(about.attempt)}-"  # of the names of the load's topics
        samples = samples[samples.topic.astype(str).str.startswith(prefix)]
    if len(latencies):
        latencies = latencies[(latencies.what == "end to end") & ~latencies.warm_up.astype(bool)]
    actions = own("broker_actions").reindex(columns=ACTIONS)
    demotes = bool(len(runs) and runs.demote_on_alarm.any())
    samples = samples.reindex(columns=SAMPLES)
    return DisturbedTrial(about, demotes, latencies, actions, samples, own("link_samples"))


def rows_of(frame: pd.DataFrame, run: Mapping[str, object] | pd.Series) -> pd.DataFrame:
    """Return the rows of a table with the key (columns KEY) of `run`; null in the key matches null."""
    same = np.ones(len(frame), bool)
    for name in KEY:
        column = frame[name]
        same &= (column.isna() if pd.isna(run[name]) else column.eq(run[name]).fillna(False)).to_numpy(bool)
    return frame[same]


def _unusable(trial: DisturbedTrial) -> str:
    """Return why a trial does not count; "" if it counts."""
    late_ms = trial.about.late_p99_ms
    if pd.isna(late_ms) or trial.histograms.empty:
        return "it left no load"
    allowed_ms = max(LATE_MS, LATE_PART * trial.tail(trial.start_s, trial.end_s).quantile(0.99))
    return BEHIND.format(quantity(late_ms, "ms")) if late_ms > allowed_ms else ""


def merged(parts: Iterable[Second]) -> Any:
    """Merge the latency histograms of several seconds to one distribution; None without a second."""
    parts = list(parts)
    if not parts:
        return None
    values_us, counts = distribution.summed((values, counts) for values, counts, _ in parts)
    return Tail("", values_us / 1_000, counts, sum(lost for *_, lost in parts))


def back_after_s(seconds: pd.DataFrame, from_s: float, limit_ms: float) -> tuple[float, bool]:
    """
    Return how many s after `from_s` p99 was within `limit_ms` again, and whether this is a lower bound.

    p99 is within the limit again at the first of `BACK_S` consecutive seconds within it that do not precede the slowest
    second. The time is 0 if no second exceeds the limit, NaN without seconds, and a lower bound if there are no such
    seconds.

    >>> seconds = pd.DataFrame({"start_s": [10.0, 11.0, 12.0, 13.0, 14.0, 15.0]})
    >>> back_after_s(seconds.assign(p99_ms=[20.0, 300.0, 90.0, 18.0, 19.0, 20.0]), 9.5, 25.0)
    (3.5, False)
    """
    later = seconds[seconds.start_s + 1 > from_s]
    if later.empty:
        return nan, False
    if (later.p99_ms <= limit_ms).all():
        return 0.0, False
    after = later[later.start_s >= later.start_s[later.p99_ms.idxmax()]]
    back = after[(after.p99_ms <= limit_ms)[::-1].rolling(BACK_S).sum()[::-1] == BACK_S]
    if back.empty:
        return float(later.start_s.max() + 1 - from_s), True
    return float(back.start_s.iloc[0] - from_s), False


def _shade(figure: go.Figure, trial: DisturbedTrial, row: int) -> pd.DataFrame:
    """Shade the actions of a trial in its panel, and return them as rows of a table."""
    rows, begun = [], trial.actions[trial.actions.began_at_s.notna()]
    times = begun[["began_at_s", "done_at_s", "healthy_at_s"]].astype(float).fillna(trial.end_s) - trial.start_s
    for action, (begin, done, healthy) in zip(begun.itertuples(), times.to_numpy().tolist(), strict=True):
        whom = "" if pd.isna(action.node_id) else f" {int(action.node_id)}"
        style = {"fillcolor": theme.OUTSIDE, "line_width": 0, "row": row, "col": 1}
        if action.kind != "restore":
            text = {"text": f"{action.kind}{whom}", "font": {"size": 11}, "yanchor": "bottom"}
            figure.add_vrect(x0=begin, x1=done, opacity=0.18, annotation=text, annotation_position="top left", **style)
            figure.add_vrect(x0=done, x1=max(done, healthy), opacity=0.07, **style)
        rows.append({"trial": trial.about.setting, "action": f"{action.kind}{whom}", "second": begin, "done_s": done})
    return pd.DataFrame(rows)
