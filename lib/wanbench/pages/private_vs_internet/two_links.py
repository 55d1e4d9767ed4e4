"""
Estimate the ratio of the rates of two links from interleaved trials (A B B A ...).

Trials are the units, because the seconds of a trial are autocorrelated. Each trial is compared with the adjacent trial
of the other link, so that slow changes affect both. Two other intervals are reported for comparison: Welch's (1947)
over trials, which ignores the pairs, and one that treats every second as independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log, nan, sqrt
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from wanbench.checks import check_kind
from wanbench.errors import ParameterError
from wanbench.figures import primitives, theme
from wanbench.formatting import count, number, percent, quantity
from wanbench.methods.result import LEVEL, Estimate, Fields, Interval, Result, reasons
from wanbench.methods.result.estimate import t_interval
from wanbench.methods.time.series import welch_freedom
from wanbench.methods.trials.rates import MEASURED, TrialRates, add_mean, points
from wanbench.methods.trials.steadiness import steadiness

SECONDS = "seconds"
LINKS = ("internet", "private")
VALUE = "batches_per_s"
OTHER_VALUES = (
    *("records_per_s", "throughput_bps", "mean_latency_ms"),
    *("rx_packets_per_s", "rx_own_packets_per_s", "tx_packets_per_s"),
)
# Column of `TrialRates.seconds` to which each value is proportional
PER_SECOND = {"batches_per_s": "batches", "records_per_s": "records", "throughput_bps": "records"}
FLAT_OUT = (
    "unthrottled producers fill their buffers, so the time to acknowledgement is mostly time that records wait there: "
    "it depends on how long the producers ran, not on the distance to the brokers"
)
OF_TRIALS = "Welch's interval over unpaired trials"
OF_SECONDS = "Welch's interval over single seconds"
BY_TRIAL = {
    "method": "t on the means of trials, with trials as independent units (Welch 1947)",
    "assumption": "All trials are independent, and the measured trials include every kind of trial: with one bad trial "
    "in ten, half of all sets of six trials have none",
}
IN_PAIRS = {
    "method": "paired: t on the differences between the arms within each pair",
    "assumption": "Differences between pairs affect both arms by the same factor; the pairs are independent, and "
    "include every kind of pair: with one bad pair in ten, half of all sets of six pairs have none",
}
SINGLE = "no interval: a link has a single trial, and trials may differ"


def times(ratio: float) -> str:
    """
    Format a ratio as text.

    >>> times(2.25), times(0.444)
    ('2.25 times', '0.444 times')
    """
    return quantity(ratio, "times")


def more_or_less(ratio: float) -> str:
    """
    Format a ratio as per cent more or less: 2.25 times as much is 125 % more, not "225 % more".

    >>> more_or_less(2.25), more_or_less(0.8), more_or_less(1.0)
    ('125 % more', '20 % less', 'the same')
    """
    change = round(100 * abs(ratio - 1), 1)
    if not change:
        return "the same"
    return f"{number(change, 0 if change >= 10 else 1)} % {'more' if ratio > 1 else 'less'}"


def welch(a: np.ndarray, b: np.ndarray, level: float) -> tuple[float, float, float]:
    """
    Return both ends of Welch's interval (1947) of log(mean of b / mean of a), and its standard error (delta method).

    All are NaN if either side has fewer than two values.
    """
    if min(len(a), len(b)) < 2:
        return nan, nan, nan
    parts = [float(np.var(x, ddof=1)) / len(x) / float(np.mean(x)) ** 2 for x in (a, b)]
    error = sqrt(sum(parts))
    return *t_interval(log(np.mean(b) / np.mean(a)), error, welch_freedom(parts, (len(a), len(b))), level), error


@dataclass(frozen=True, repr=False)
class TwoLinks(Result):
    """
    The private link (b) compared with the internet (a).

    ratio: Mean of b's trials over mean of a's, from pairs of trials; equal to `by_trial` with fewer than two pairs.
    by_trial: The ratio from all trials, without pairs; its naive interval treats every counted second as independent.
    means: The means of a's and of b's trials whose ratio is `ratio`.
    other_values: Ratios of other values, by column of `TrialRates.rates`.
    pairs: One row per pair: `block`, `pair` (its name), `a`, `b` (the values of both trials), `order_a`, `order_b`
        (their places in the plan), `ratio`.
    trials: The rows of `TrialRates.rates` of both links, with the name of the `link`.
    """

    ratio: Estimate
    by_trial: Estimate
    means: tuple[float, float]
    other_values: dict[str, Estimate]
    pairs: pd.DataFrame
    trials: pd.DataFrame

    TITLE = "Ratios"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return (self.ratio, *self.other_values.values())

    @property
    def sentence(self) -> str:
        """State the ratio of means as "times" and as "per cent more", which are easily confused."""
        ratio, (label, unit) = self.ratio, MEASURED[VALUE]
        ends = ratio.formatted_interval
        inside = f"{ratio.formatted_level} interval {ends}; {ratio.basis}" if ends else ratio.basis
        unsure = ", though they may be equal" if ratio.low <= 1 <= ratio.high else ""
        return (
            f"The mean {label} of “{LINKS[1]}” is {ratio.formatted} that of “{LINKS[0]}” ({inside}), which is "
            f"{more_or_less(ratio.estimate)}{unsure}: {quantity(self.means[1], unit)} against "
            f"{quantity(self.means[0], unit)}."
        )

    def figure(self) -> go.Figure:
        a, b = LINKS
        titles = ["what each trial reached", f"{b} over {a}"]
        columns = {"column_widths": [0.6, 0.4], "horizontal_spacing": 0.2}
        figure = make_subplots(rows=1, cols=2, subplot_titles=titles, **columns)
        left = {"row": 1, "col": 1}
        for pair in self.pairs.itertuples():
            line = {"mode": "lines", "line": {"color": theme.GRID, "width": 2}, "hoverinfo": "skip"}
            x, y = [pair.order_a, pair.order_b], [pair.a, pair.b]
            figure.add_scatter(x=x, y=y, showlegend=False, **line, **left)
        marks = theme.arm_marks(LINKS)
        for name in LINKS:
            shade, symbol = marks[name]
            part = self.trials[self.trials.link == name]
            figure.add_scatter(**points(part, VALUE, name, shade, symbol), **left)
            add_mean(figure, part[VALUE], self.trials.order, shade, **left)
        label, unit = MEASURED[VALUE]
        figure.update_xaxes(title="trial, in the order of measuring", **left)
        figure.update_yaxes(title=f"{label} ({unit})", rangemode="tozero", **left)
        rows = _methods(self)
        _draw_ratios(figure, rows)
        level = percent(self.ratio.level)
        trials = self.trials[["order", "block", "link", VALUE]]
        return theme.finish(
            figure,
            name="two-links",
            title=theme.headline(f"{b}: {self.ratio.formatted} the {label} of {a}", f"{b} against {a}"),
            subtitle=f"Left: one point per trial, lines join pairs, bands are {level} intervals of the mean. Right: "
            f"the ratio with its {level} interval by each method; hollow: seconds treated as independent. Dashed: no "
            "difference.",
            alt=f"Two links compared. {self}",
            caption=self.sentence,
            table=pd.concat([trials, pd.DataFrame(rows, columns=["method", "ratio", "low", "high"])]),
            headroom_px=theme.PANEL_TITLES_PX,
        )


def compare_links(rates: TrialRates) -> TwoLinks:
    """
    Estimate the ratio, private link over internet, of the rate of batches, and those of `OTHER_VALUES`.

    In each block the n-th trial of one link is paired with the n-th of the other: in A B B A the first two trials and
    the last two. If one trial of a pair was not measured, the other counts only in `by_trial`. With fewer than two
    pairs, `ratio` is `by_trial`. `make validity` measures the coverage of the paired interval
    (data/validity/trials.csv).

    rates: The result of `trial_rates`. A value of `OTHER_VALUES` that is missing or not positive in a trial gets no
        ratio.

    Raises ParameterError: a link has no measured trial.
    """
    trials = link_trials(rates, VALUE)
    partners = _partners(trials)
    pairs, paired, by_trial = _compare(partners, trials, rates, VALUE)
    ratio = _cautioned(paired or by_trial, _notes(trials, pairs, rates))
    means = (pairs.a.mean(), pairs.b.mean()) if paired else tuple(side.mean() for side in _sides(trials, VALUE))
    others = {}
    for name in OTHER_VALUES:
        if name in trials and trials[name].notna().all() and (trials[name] > 0).all():
            _, in_pairs, over_all = _compare(partners, trials, rates, name)
            flat_out = name == "mean_latency_ms" and trials.target_records_per_s.isna().any()
            others[name] = _cautioned(in_pairs or over_all, (FLAT_OUT,) if flat_out else ())
    return TwoLinks(ratio, by_trial, means, others, pairs, trials)


def link_trials(rates: TrialRates, value: str) -> pd.DataFrame:
    """
    Return the trials of both links that have a positive number in the column `value`.

    Adds the columns `link`, `trial` (its name) and `nth`, its position among the planned trials of its link in its
    block.

    Raises ParameterError: a link has no such trial.
    """
    check_kind("rates", rates, TrialRates)
    measured, missing = (frame[frame.setting.isin(LINKS)] for frame in (rates.rates, rates.left_out))
    measured, missing = (frame.assign(link=frame.setting) for frame in (measured, missing))
    rows = measured.assign(nth=_positions(measured, missing))
    rows = rows[rows[value] > 0].reset_index(drop=True)
    for name in LINKS:
        if not (rows.link == name).any():
            given = ", ".join(dict.fromkeys(map(str, rates.rates.setting))) or "none"
            raise ParameterError(f"no measured trial of setting {name} has a positive {value}; measured are {given}")
    return rows.assign(trial=rows.run_id + " " + rows.test_id)


def _positions(measured: pd.DataFrame, missing: pd.DataFrame) -> pd.Series:
    block = ["run_id", "block", "link"]
    columns = [*block, "test_id"]
    planned = pd.concat([frame[columns] for frame in (measured, missing) if len(frame)] or [measured[columns]])
    return planned.groupby(block, dropna=False).test_id.rank(method="dense").iloc[: len(measured)]


def _partners(trials: pd.DataFrame) -> pd.DataFrame:
    """Return a row per pair: run_id, block, pair, order_a, order_b, and row_a and row_b, its rows in `trials`."""
    places = trials[["run_id", "block", "nth", "order", "link"]].assign(row=np.arange(len(trials)))
    places = places[places.block.notna()].sort_values(["run_id", "block", "nth"])
    sides = [places[places.link == name].drop(columns="link") for name in LINKS]
    both = sides[0].merge(sides[1], on=["run_id", "block", "nth"], suffixes=("_a", "_b"))
    pair = both.run_id + " " + both.block.astype(str) + " " + both.nth.astype(int).astype(str)
    return both[["run_id", "block", "order_a", "order_b", "row_a", "row_b"]].assign(pair=pair)


def _values_of_pairs(partners: pd.DataFrame, trials: pd.DataFrame, value: str) -> pd.DataFrame:
    """Return the table `TwoLinks.pairs` for the column `value`: both values of each pair, and their ratio."""
    pairs = partners[["run_id", "block", "pair"]]
    a, b = (trials[value].iloc[partners[row]].reset_index(drop=True) for row in ("row_a", "row_b"))
    return pairs.assign(a=a, b=b, order_a=partners.order_a, order_b=partners.order_b, ratio=b / a)


def _notes(trials: pd.DataFrame, pairs: pd.DataFrame, rates: TrialRates) -> tuple[str, ...]:
    notes = []
    settings = set(trials.setting)
    out = rates.left_out[rates.left_out.setting.isin(settings)]
    if len(out):
        notes.append(f"{count(len(out), 'trial')} of these settings left out ({reasons(out)})")
    nothing = int((rates.rates.setting.isin(settings) & ~(rates.rates[VALUE] > 0)).sum())
    if nothing:
        notes.append(f"{count(nothing, 'trial')} without a positive {MEASURED[VALUE][0]} left out")
    alone = len(trials) - 2 * len(pairs)
    if alone and len(pairs) > 1:
        notes.append(f"{count(alone, 'trial')} without a partner left out of the pairs")
    for column in ("counted_by", "window_rule"):
        if trials[column].nunique() > 1:
            kinds = ", ".join(f"{n} by {kind}" for kind, n in trials[column].value_counts().items())
            notes.append(f"not all trials are counted in the same way ({kinds})")
    return (*notes, *steadiness(rates.seconds[rates.seconds.setting.isin(settings)]).cautions)


def _seconds(trials: pd.DataFrame, rates: TrialRates, value: str) -> pd.DataFrame:
    """Return a row per counted second, scaled to the mean `value` of its trial; a row per trial if a trial has none."""
    counted = PER_SECOND.get(value)
    key = ["run_id", "test_id"]
    own = rates.seconds.merge(trials[[*key, "link", "trial", value]], on=key) if counted else pd.DataFrame()
    if len(own) and own.trial.nunique() == len(trials):
        mean = own.groupby("trial")[counted].transform("mean")
        return own.assign(_value=own[counted] * own[value] / mean)
    return trials.assign(_value=trials[value], second=0)


def _sides(rows: pd.DataFrame, value: str) -> tuple[np.ndarray, np.ndarray]:
    first, second = (rows[value][rows.link == name].to_numpy(dtype=float) for name in LINKS)
    return first, second


def _compare(
    partners: pd.DataFrame, trials: pd.DataFrame, rates: TrialRates, value: str
) -> tuple[pd.DataFrame, Estimate | None, Estimate]:
    """Return the pairs, the ratio from pairs (None for fewer than two), and the ratio from all trials."""
    label = MEASURED[value][0]
    names: Fields = {"quantity": f"ratio of means, {label}", "unit": "times", "level": LEVEL}
    names["claim"] = f"The mean {label} over “{LINKS[1]}” is {{}} that over “{LINKS[0]}”"
    rows, sides = _seconds(trials, rates, value), _sides(trials, value)
    singles = OF_SECONDS if len(rows) > len(trials) else OF_TRIALS
    sizes, naive = [len(side) for side in sides], _interval(singles, *welch(*_sides(rows, "_value"), LEVEL))
    about: Fields = {"n": sum(sizes), "basis": f"{count(sizes[0], 'trial')} against {sizes[1]}", "naive": naive}
    about["warnings"] = (SINGLE,) if min(sizes) < 2 else ()
    unpaired = _ratio(sides, welch(*sides, LEVEL), **about, **BY_TRIAL, **names)
    pairs = _values_of_pairs(partners, trials, value)
    if len(pairs) < 2:
        return pairs, None, unpaired
    return pairs, paired_ratio(pairs.a, pairs.b, **names), unpaired


def paired_ratio(a: np.typing.ArrayLike, b: np.typing.ArrayLike, *, level: float = LEVEL, **about: Any) -> Estimate:
    """
    Estimate the mean of b over the mean of a from pairs of trials.

    a, b: The values of each pair, in the same order; two pairs or more.
    about: Further fields of the Estimate, such as quantity and claim.
    """
    a, b = sides = [np.asarray(side, dtype=float) for side in (a, b)]
    n = len(a)
    # the logarithm of the ratio varies between pairs as the relative deviations do, to first order
    error = float((b / b.mean() - a / a.mean()).std(ddof=1)) / sqrt(n)
    ends = t_interval(log(b.mean() / a.mean()), error, n - 1, level)
    about |= {"n": n, "basis": f"{count(n, 'pair')} of trials", "level": level}
    about["naive"] = _interval(OF_TRIALS, *welch(a, b, level))
    return _ratio(sides, (*ends, error), **about, **IN_PAIRS)


def _interval(method: str, low: float, high: float, _: float) -> Interval:
    """Convert the interval of a logarithm to that of the ratio; with few trials it may be infinite."""
    with np.errstate(over="ignore"):
        return Interval(method, float(np.exp(low)), float(np.exp(high)))


def _ratio(sides: Sequence[np.ndarray], log_ends: tuple[float, float, float], **about: Any) -> Estimate:
    """Return the Estimate of the ratio of the sides' means; `log_ends` has both ends and the error of its logarithm."""
    value, ends = float(sides[1].mean() / sides[0].mean()), _interval("", *log_ends)
    return Estimate(estimate=value, low=ends.low, high=ends.high, standard_error=log_ends[2] * value, **about)


def _cautioned(estimate: Estimate, notes: tuple[str, ...]) -> Estimate:
    return replace(estimate, warnings=(*notes, *estimate.warnings))


def _methods(result: TwoLinks) -> list[tuple[str, float, float, float]]:
    """Return (name, ratio, low, high) of each method by which the ratio was estimated."""
    single = result.by_trial
    paired = result.ratio if len(result.pairs) > 1 else None
    named = {"in pairs": paired, "trials, unpaired": single}
    rows = [(name, one.estimate, one.low, one.high) for name, one in named.items() if one is not None]
    if single.naive.method == OF_SECONDS:
        rows.append((SECONDS, single.estimate, single.naive.low, single.naive.high))
    return rows


def _draw_ratios(figure: go.Figure, rows: list[tuple[str, float, float, float]]) -> None:
    right: theme.Settings = {"row": 1, "col": 2}
    for k, (name, estimate, low, high) in enumerate(rows):
        shade, symbol = (theme.LIGHT, "circle-open") if name == SECONDS else (theme.FIT, "circle")
        style: theme.Settings = {"marker": {"size": 11, "color": shade, "symbol": symbol}, "showlegend": False} | right
        text = [quantity(estimate, "times", low, high)]
        primitives.interval_points(figure, [k], [estimate], [low], [high], text=text, **style)
    primitives.label_rows(figure, [row[0] for row in rows], **right)
    figure.update_xaxes(title="times", **right)
    primitives.reference_line(figure, x=1, **right)
