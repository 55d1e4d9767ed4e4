"""
Estimate the ratio of the throughputs of two links from interleaved trials (A B B A ...).

Trials are the unit. Each trial is compared with the adjacent trial of the other link, so that slow changes affect both.
A second estimate removes a steady drift. For comparison there are Welch's interval over trials, which ignores pairs,
and an interval that treats every second as independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from wanbench.checks import check_choice, check_kind, check_level, refusal
from wanbench.errors import ParameterError
from wanbench.figures import primitives, theme
from wanbench.formatting import count, number, percent, quantity
from wanbench.methods.result import Estimate, Interval, Result, reasons
from wanbench.methods.result.estimate import t_quantile
from wanbench.methods.result.means import ratio_estimate
from wanbench.methods.trials.rates import MEASURED, TrialRates, add_mean, points
from wanbench.methods.trials.steadiness import steadiness

from .arms import ASSUMPTIONS, METHODS, Comparison, compare_arms

SECONDS = "seconds"
SETTINGS = ("internet", "private")
OTHER_VALUES = (
    *("records_per_s", "throughput_bps", "mean_latency_ms"),
    *("rx_packets_per_s", "rx_own_packets_per_s", "tx_packets_per_s"),
)
# Column of `TrialRates.seconds` to which each value is proportional
PER_SECOND = {"batches_per_s": "batches", "records_per_s": "records", "throughput_bps": "records"}
DRIFT = (
    "least squares of the log ratio of each pair on the trials between its two measurements; t with {} degrees of "
    "freedom over pairs"
)
DRIFT_ASSUMPTION = "The drift is steady, in per cent per trial; pairs are independent of each other"
RESAMPLES = 1_000  # Number of resamples of the seconds of a link with a single trial
FLAT_OUT = (
    "unthrottled producers fill their buffers, so the time to acknowledgement is mostly time that records wait there: "
    "it depends on how long the producers ran, not on the distance to the brokers"
)
OF_TRIALS = "Welch's interval over unpaired trials"
OF_SECONDS = "Welch's interval over single seconds"


@dataclass(frozen=True, repr=False)
class TwoLinks(Result):
    """
    Link b compared with link a.

    ratio: Ratio of the mean of b's trials to that of a's: `paired` if there are two pairs or more, else `by_trial`.
    paired: Trials compared within pairs.
    by_trial: Trials compared without pairs; its naive interval treats every counted second as independent.
    drift_free: Ratio of geometric means with a steady drift removed; None if the order of trials cannot separate ratio
        and drift.
    drift: Factor by which the value changes from one trial to the next.
    other_values: Ratios of other values, by column of `TrialRates.rates`.
    pairs: One row per pair: `block`, `pair`, `a`, `b` (the values of both trials), `order_a`, `order_b`, `ratio`.
    trials: The rows of `TrialRates.rates` of both links, with the name of the `link`.
    """

    ratio: Estimate
    paired: Comparison | None
    by_trial: Comparison
    drift_free: Estimate | None
    drift: Estimate | None
    other_values: dict[str, Estimate]
    pairs: pd.DataFrame
    trials: pd.DataFrame
    seconds: pd.DataFrame
    names: tuple[str, str]
    value: str

    TITLE = "Ratios"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        known = (self.ratio, self.drift_free, self.drift, *self.other_values.values())
        return tuple(estimate for estimate in known if estimate is not None)

    @property
    def sentence(self) -> str:
        drift_free = [self.drift_free.sentence] if self.drift_free is not None else []
        return " ".join([(self.paired or self.by_trial).sentence, *drift_free])

    def figure(self) -> go.Figure:
        a, b = map(theme.plain, self.names)
        titles = ["what each trial reached", f"{b} over {a}"]
        columns = {"column_widths": [0.6, 0.4], "horizontal_spacing": 0.2}
        figure = make_subplots(rows=1, cols=2, subplot_titles=titles, **columns)
        left = {"row": 1, "col": 1}
        for pair in self.pairs.itertuples():
            line = {"mode": "lines", "line": {"color": theme.GRID, "width": 2}, "hoverinfo": "skip"}
            x, y = [pair.order_a, pair.order_b], [pair.a, pair.b]
            figure.add_scatter(x=x, y=y, showlegend=False, **line, **left)
        marks = theme.arm_marks(self.names)
        for name in self.names:
            shade, symbol = marks[name]
            part = self.trials[self.trials.link == name]
            figure.add_scatter(**points(part, self.value, name, shade, symbol), **left)
            add_mean(figure, part[self.value], self.trials.order, shade, **left)
        label, unit = MEASURED[self.value]
        figure.update_xaxes(title="trial, in the order of measuring", **left)
        figure.update_yaxes(title=f"{label} ({unit})", rangemode="tozero", **left)
        rows = _methods(self)
        _draw_ratios(figure, rows)
        level = percent(self.ratio.level)
        trials = self.trials[["order", "block", "link", self.value]]
        return theme.finish(
            figure,
            name="two-links",
            title=theme.headline(
                f"{self.names[1]}: {self.ratio.formatted} the {label} of {self.names[0]}",
                f"{self.names[1]} against {self.names[0]}",
            ),
            subtitle=f"Left: one point per trial, lines join pairs, bands are {level} intervals of the mean. Right: "
            f"the ratio with its {level} interval by each method; hollow: seconds treated as independent. Dashed: no "
            "difference.",
            alt=f"Two links compared. {self}",
            caption=self.sentence,
            table=pd.concat([trials, pd.DataFrame(rows, columns=["method", "ratio", "low", "high"])]),
            headroom_px=theme.PANEL_TITLES_PX,
        )


def compare_links(
    rates: TrialRates,
    settings: Sequence[str] = SETTINGS,
    *,
    value: str = "batches_per_s",
    other_values: Sequence[str] = OTHER_VALUES,
    level: float = 0.95,
    seed: int = 0,
) -> TwoLinks:
    """
    Estimate the ratio of link b's values to link a's.

    A pair is the n-th trial of a with the n-th trial of b in a block of the plan: in A B B A the first two and the last
    two. If one of them was not measured, the other is only in `by_trial`. `make validity` counts the coverage of the
    paired interval (data/validity/trials.csv).

    rates: The result of `trial_rates`.
    settings: The settings of links a and b, or patterns such as "internet*". Without asterisks they name the links.
    value: Column to compare, one of `rates.MEASURED`.
    other_values: Further columns of `rates.MEASURED` to compare; columns that a trial lacks are left out.
    seed: Seed of the bootstrap, which is used if a link has a single trial.

    Raises ParameterError: no measured trial has one of the settings, or a trial matches both patterns.
    """
    level = check_level(level)
    trials, names = link_trials(rates, settings, check_choice("value", value, MEASURED))
    partners = _partners(trials, names)
    settings = {"level": level, "seed": seed, "resamples": RESAMPLES}
    pairs, paired, by_trial = _compare(partners, trials, rates, value, names, **settings)
    ratio = _cautioned((paired or by_trial).ratio, _notes(trials, pairs, rates, value))
    drift_free, drift = _drift(pairs, value, names, level)
    others = {}
    for name in other_values:
        check_choice("other_values", name, MEASURED)
        if name in trials and name != value and trials[name].notna().all() and (trials[name] > 0).all():
            _, in_pairs, over_all = _compare(partners, trials, rates, name, names, **settings)
            flat_out = name == "mean_latency_ms" and trials.target_records_per_s.isna().any()
            others[name] = _cautioned((in_pairs or over_all).ratio, (FLAT_OUT,) if flat_out else ())
    columns = ["run_id", "test_id", "at_s", "second", "link", "trial", "_value"]
    seconds = _seconds(trials, rates, value)
    seconds = seconds[[name for name in columns if name in seconds]]
    return TwoLinks(ratio, paired, by_trial, drift_free, drift, others, pairs, trials, seconds, names, value)


def link_trials(rates: TrialRates, settings: Sequence[str], value: str) -> tuple[pd.DataFrame, tuple[str, str]]:
    """
    Return the trials of two settings that have a positive value, with columns `link`, `trial` and `nth`, and the links'
    names.

    `nth` is the position of a trial among all planned trials of its link in its block.
    """
    if len(settings) != 2 or settings[0] == settings[1]:
        raise refusal("settings", settings, "two links")
    names = tuple(setting.strip("*").strip() or setting for setting in settings)
    check_kind("rates", rates, TrialRates)
    measured, missing = (_linked(frame, settings, names) for frame in (rates.rates, rates.left_out))
    rows = measured.assign(nth=_positions(measured, missing))
    rows = rows[rows[value] > 0].reset_index(drop=True)
    for name, setting in zip(names, settings, strict=True):
        if not (rows.link == name).any():
            given = ", ".join(dict.fromkeys(map(str, rates.rates.setting))) or "none"
            raise ParameterError(f"no measured trial of setting {setting} has a positive {value}; measured are {given}")
    return rows.assign(trial=rows.run_id + " " + rows.test_id), names


def _linked(rows: pd.DataFrame, settings, names) -> pd.DataFrame:
    """Return the rows of both links, with the name of the `link`."""
    if rows.empty:
        return rows.assign(link=None)
    fits = [np.array([fnmatchcase(str(setting), pattern) for setting in rows.setting]) for pattern in settings]
    both = rows[fits[0] & fits[1]]
    if len(both):
        raise ParameterError(f"setting {both.setting.iloc[0]!r} matches both {' and '.join(settings)}")
    return rows.assign(link=np.where(fits[0], *names))[fits[0] | fits[1]]


def _positions(measured: pd.DataFrame, missing: pd.DataFrame) -> pd.Series:
    block = ["run_id", "block", "link"]
    columns = [*block, "test_id"]
    planned = pd.concat([frame[columns] for frame in (measured, missing) if len(frame)] or [measured[columns]])
    return planned.groupby(block, dropna=False).test_id.rank(method="dense").iloc[: len(measured)]


def paired_trials(trials: pd.DataFrame, value: str, names) -> pd.DataFrame:
    """Pair the n-th trial of link a with the n-th trial of link b in each block, in the order of the plan."""
    return _values_of_pairs(_partners(trials, names), trials, value)


def _partners(trials: pd.DataFrame, names) -> pd.DataFrame:
    """Return one row per pair: run_id, block, pair, order_a, order_b, and both trials' row numbers row_a and row_b."""
    places = trials[["run_id", "block", "nth", "order", "link"]].assign(row=np.arange(len(trials)))
    places = places[places.block.notna()].sort_values(["run_id", "block", "nth"])
    sides = [places[places.link == name].drop(columns="link") for name in names]
    both = sides[0].merge(sides[1], on=["run_id", "block", "nth"], suffixes=("_a", "_b"))
    pair = both.run_id + " " + both.block.astype(str) + " " + both.nth.astype(int).astype(str)
    return both[["run_id", "block", "order_a", "order_b", "row_a", "row_b"]].assign(pair=pair)


def _values_of_pairs(partners: pd.DataFrame, trials: pd.DataFrame, value: str) -> pd.DataFrame:
    """Return the values and the ratio of each pair, as `paired_trials` does."""
    pairs = partners[["run_id", "block", "pair"]]
    a, b = (trials[value].iloc[partners[row]].reset_index(drop=True) for row in ("row_a", "row_b"))
    return pairs.assign(a=a, b=b, order_a=partners.order_a, order_b=partners.order_b, ratio=b / a)


def _notes(trials: pd.DataFrame, pairs: pd.DataFrame, rates: TrialRates, value: str) -> tuple[str, ...]:
    notes = []
    settings = set(trials.setting)
    out = rates.left_out[rates.left_out.setting.isin(settings)]
    if len(out):
        notes.append(f"{count(len(out), 'trial')} of these settings left out ({reasons(out)})")
    nothing = int((rates.rates.setting.isin(settings) & ~(rates.rates[value] > 0)).sum())
    if nothing:
        notes.append(f"{count(nothing, 'trial')} without a positive {MEASURED[value][0]} left out")
    alone = len(trials) - 2 * len(pairs)
    if alone and len(pairs) > 1:
        notes.append(f"{count(alone, 'trial')} without a partner left out of the pairs")
    for column in ("counted_by", "window_rule"):
        if trials[column].nunique() > 1:
            kinds = ", ".join(f"{n} by {kind}" for kind, n in trials[column].value_counts().items())
            notes.append(f"not all trials are counted in the same way ({kinds})")
    own = rates.seconds[rates.seconds.setting.isin(settings)]
    return (*notes, *steadiness(own).cautions)


def _seconds(trials: pd.DataFrame, rates: TrialRates, value: str) -> pd.DataFrame:
    """Return a row per counted second, scaled to the value of its trial; a row per trial if there are no seconds."""
    counted = PER_SECOND.get(value)
    key = ["run_id", "test_id"]
    own = rates.seconds.merge(trials[[*key, "link", "trial", value]], on=key) if counted else pd.DataFrame()
    if len(own) and own.trial.nunique() == len(trials):
        mean = own.groupby("trial")[counted].transform("mean")
        return own.assign(_value=own[counted] * own[value] / mean)
    return trials.assign(_value=trials[value], second=0)


def _compare(
    partners: pd.DataFrame, trials: pd.DataFrame, rates: TrialRates, value: str, names, **settings
) -> tuple[pd.DataFrame, Comparison | None, Comparison]:
    """Return the pairs, the comparison within pairs (None for fewer than two), and the comparison of all trials."""
    label, settings["unit"] = MEASURED[value]
    settings |= {"arm": "link", "arms": names}
    claim = f"The mean {label} over “{names[1]}” is {{}} that over “{names[0]}”"
    rows = _seconds(trials, rates, value).rename(columns={"_value": label})
    by_trial = compare_arms(rows, label, run="trial", time="second", **settings)
    naive = replace(by_trial.ratio.naive, method=OF_SECONDS if len(rows) > len(trials) else OF_TRIALS)
    unpaired = replace(by_trial.ratio, claim=claim, naive=naive)
    if by_trial.unit_of_replication == "runs":
        sizes = trials.link.value_counts()
        unpaired = replace(unpaired, basis=f"{count(int(sizes[names[0]]), 'trial')} against {sizes[names[1]]}")
    by_trial = replace(by_trial, ratio=unpaired)
    pairs = _values_of_pairs(partners, trials, value)
    if len(pairs) < 2:
        return pairs, None, by_trial
    sides = [pairs[["pair"]].assign(link=name, **{label: pairs[k]}) for name, k in zip(names, "ab", strict=True)]
    paired = compare_arms(pd.concat(sides), label, block="pair", **settings)
    how = {"method": METHODS["blocks"].format(unit="pair"), "assumption": ASSUMPTIONS["blocks"].format(unit="pair")}
    others = (Interval(unpaired.method, unpaired.low, unpaired.high), unpaired.naive)
    naive, basis = replace(paired.ratio.naive, method=OF_TRIALS), f"{count(len(pairs), 'pair')} of trials"
    ratio = replace(paired.ratio, naive=naive, claim=claim, basis=basis, others=others, **how)
    return pairs, replace(paired, ratio=ratio), by_trial


def _cautioned(estimate: Estimate, notes: tuple[str, ...]) -> Estimate:
    return replace(estimate, warnings=(*notes, *estimate.warnings))


def _drift(pairs, value, names, level) -> tuple[Estimate | None, Estimate | None]:
    """Estimate the ratio without a steady drift, and the drift, by least squares over pairs."""
    apart = (pairs.order_b - pairs.order_a).to_numpy(dtype=float)
    # In A B A B the distance from a to b is the same in every pair, so drift and ratio cannot be separated.
    if len(pairs) < 3 or np.ptp(apart) == 0:
        return None, None
    design = np.column_stack([np.ones(len(pairs)), apart])
    logs = np.log(pairs.ratio.to_numpy(dtype=float))
    inverse = np.linalg.inv(design.T @ design)
    params = inverse @ design.T @ logs
    freedom = len(pairs) - 2
    variance = float(((logs - design @ params) ** 2).sum()) / freedom
    halves = t_quantile(level, freedom) * np.sqrt(np.maximum(variance * np.diag(inverse), 0.0))
    label, _ = MEASURED[value]
    about = {"n": len(pairs), "basis": f"{count(len(pairs), 'pair')} of trials", "level": level}
    about |= {"method": DRIFT.format(number(freedom)), "assumption": DRIFT_ASSUMPTION}
    claim = f"With a steady drift removed, the {label} over “{names[1]}” is {{}} that over “{names[0]}”"
    free = ratio_estimate(params[0], halves[0], quantity=f"ratio without drift, {label}", claim=claim, **about)
    drifts = {"quantity": f"drift per trial, {label}", "claim": f"The {label} drifts by a factor of {{}} per trial"}
    return free, ratio_estimate(params[1], halves[1], unit="", **drifts, **about)


def _methods(result: TwoLinks) -> list[tuple]:
    """Return the name, ratio, low and high of each method."""
    single = result.by_trial.ratio
    paired = None if result.paired is None else result.ratio
    named = {"in pairs": paired, "without drift": result.drift_free, "trials, unpaired": single}
    rows = [(name, one.estimate, one.low, one.high) for name, one in named.items() if one is not None]
    if len(result.seconds) > len(result.trials):
        rows.append((SECONDS, single.estimate, single.naive.low, single.naive.high))
    return rows


def _draw_ratios(figure: go.Figure, rows: list[tuple]) -> None:
    right = {"row": 1, "col": 2}
    for k, (name, estimate, low, high) in enumerate(rows):
        shade, symbol = (theme.LIGHT, "circle-open") if name == SECONDS else (theme.FIT, "circle")
        style = {"marker": {"size": 11, "color": shade, "symbol": symbol}, "showlegend": False} | right
        text = [quantity(estimate, "times", low, high)]
        primitives.interval_points(figure, [k], [estimate], [low], [high], text=text, **style)
    primitives.label_rows(figure, [row[0] for row in rows], **right)
    figure.update_xaxes(title="times", **right)
    primitives.reference_line(figure, x=1, **right)
