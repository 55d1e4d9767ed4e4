"""
Compare the throughput at each level of a factor with the baseline, all else equal: one curve per factor.

A cell is one combination of the levels of all factors. A cell belongs to the curve of a factor if it differs from the
baseline in this factor only, whatever the name of its setting. The trial is the unit of replication, and the scatter
is pooled over all cells (`against_baseline`).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf, nan

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from wanbench.checks import refusal
from wanbench.errors import MissingDataError, ParameterError
from wanbench.figures import primitives, theme
from wanbench.formatting import count, number, percent, quantity
from wanbench.methods.result import LEVEL, Estimate, Interval, Result
from wanbench.methods.trials.rates import TrialRates
from wanbench.pages.geo_kafka import factor_columns
from wanbench.pages.geo_kafka.scalability import Scalability, fit_scalability

from .against_baseline import PAIRS, RESTARTED, SINGLE, UNEQUAL_BELOW, WELCH, AgainstBaseline, against_baseline

Setting = str | Mapping[str, object]  # The name of a setting, or its differences from the baseline.
ROW_PX = 24
AROUND_PX = 170
# Ratio of the largest to the smallest value from which the axis is logarithmic, so that small values stay visible.
WIDE = 5.0
VALUE = "throughput_bps"
UNEQUAL = "settings have unequal scatter, but the interval assumes that it is equal, so it may be too narrow"
CHOSEN = "the best level was chosen from the same trials, so its advantage is overestimated"


@dataclass(frozen=True, repr=False)
class Curve(Result):
    """
    Throughput at the levels of one factor.

    levels: One row per level, in order: `label`, `cell`, `baseline` (whether it is the baseline's level), `numeric`
        (the level as a number, else NaN), `compression` (payload bytes per byte in the log), and the columns n, mean,
        ratio, low, high (simultaneous over all settings of all curves) and verdict of `AgainstBaseline.rows`.
    range: Ratio of the throughput at the best level to that at the worst.
    last: For a numeric factor with three levels or more: throughput at the highest level over throughput at the best
        one or, if the highest level is the best, at the next lower one. The interval is simultaneous over all settings,
        so it holds although the data select the best level. None for other factors.
    """

    factor: str
    levels: pd.DataFrame
    ratios: tuple[Estimate, ...]
    range: Estimate
    last: Estimate | None

    TITLE = "Throughput by level"

    @property
    def label(self) -> str:
        """The readable name of the factor."""
        return factor_columns.factor_label(self.factor)

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return (self.range, *([self.last] if self.last else []), *self.ratios)

    @property
    def sentence(self) -> str:
        return f"{self.range.sentence} {self.turn}".strip()

    @property
    def turn(self) -> str:
        """Say whether throughput rises up to the highest level of a numeric factor; "" for other factors."""
        if self.last is None:
            return ""
        if self.last.low > 1:
            return f"Throughput rises up to the highest level tried. {self.last.sentence}"
        if self.last.high < 1:
            return f"Throughput falls beyond its best level. {self.last.sentence}"
        labels, best = self.levels.label, self.levels.ratio.idxmax()
        start = labels.iloc[-2] if best == labels.index[-1] else labels[best]
        return f"Beyond “{start}” neither a gain nor a loss is shown. {self.last.sentence}"

    def formatted_table(self) -> pd.DataFrame:
        by_level = {one.quantity: one for one in self.ratios}
        rows = []
        for row in self.levels.itertuples():
            one = by_level.get(row.label)
            level = row.label + (" (baseline)" if row.baseline else "")
            ratio = (one.formatted, one.formatted_interval) if one else ("1", "1")
            rows.append((level, number(row.n), quantity(row.mean, "bit/s"), *ratio, number(row.compression, 2)))
        interval = f"{percent(self.range.level)} interval"
        heads = ["level", "trials", "payload", "relative to the baseline", interval, "payload bytes per log byte"]
        return pd.DataFrame(rows, columns=heads)


@dataclass(frozen=True, repr=False)
class Curves(Result):
    """
    The curves of all factors that were varied one at a time.

    curves: Maps each factor to its curve, in the order of `factor_columns.FACTORS`.
    frame: One row per trial in use: its settings; `cell`, the name of the first setting with the same combination of
        levels; and `restart`, the levels of the settings whose change needs a restart of the brokers.
    columns: The columns of `frame` that are settings.
    base: The cell of the baseline.
    compared: The comparison of every cell with the baseline.
    n_out: Number of trials left out because they have no throughput or no block.
    """

    frame: pd.DataFrame
    columns: list[str]
    base: str
    compared: AgainstBaseline
    n_out: int
    curves: dict[str, Curve] = field(default_factory=dict)

    TITLE = "Best over worst level of each factor"

    def against(self, cell: str) -> AgainstBaseline:
        """Return the comparison of every cell with the given cell."""
        if cell not in self._against:
            self._against[cell] = _compare(self.frame, cell)
        return self._against[cell]

    @cached_property
    def _against(self) -> dict[str, AgainstBaseline]:
        return {self.base: self.compared}

    def of(self, factor: str) -> Curve:
        """Return the curve of a factor; MissingDataError if no trial changes it alone."""
        if factor not in self.curves:
            known = ", ".join(self.curves) or "none"
            message = f"not measured, because no trial changes {factor} alone. The settings changed alone: {known}."
            raise MissingDataError(message)
        return self.curves[factor]

    def trials(self, factor: str) -> pd.DataFrame:
        """Return the rows of `frame` that are on the curve of a factor."""
        return self.frame[self.frame.cell.isin(self.of(factor).levels.cell)]

    @property
    def is_unequal(self) -> bool:
        """Whether the settings differ significantly in scatter (`AgainstBaseline.equal_spread_p`)."""
        return self.compared.equal_spread_p < UNEQUAL_BELOW

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return tuple(sorted((one.range for one in self.curves.values()), key=lambda one: -one.estimate))

    @property
    def cautions(self) -> tuple[str, ...]:
        restarted = [one.label for one in self.curves.values() if RESTARTED in one.range.warnings]
        others = [text for text in super().cautions if text not in (RESTARTED, UNEQUAL)]
        others += [f"{', '.join(restarted)}: {RESTARTED}"] if restarted else []
        out = f"{count(self.n_out, 'trial')} left out, for lack of a throughput or a block"
        return tuple(dict.fromkeys([*([out] if self.n_out else []), *self.compared.notes, *others]))

    @property
    def sentence(self) -> str:
        if not self.curves:
            return "No factor was varied alone."
        most, least = self.estimates[0], self.estimates[-1]
        each = "was" if len(self.curves) == 1 else "were each"
        text = f"{count(len(self.curves), 'factor')} {each} varied alone. The largest effect: {most.sentence}"
        if len(self.curves) > 1:
            text += f" The smallest effect: {least.sentence}"
        spread = f"{number(100 * self.compared.log_spread, 1)} %"
        freedom = f"pooled over settings, {self.compared.freedom} degrees of freedom"
        return f"{text} The standard deviation between trials of the same setting is {spread} ({freedom})."

    def ratio(self, of: Setting, over: Setting, *, quantity: str, claim: str, pooled: bool = True) -> Estimate:
        """
        Estimate the ratio of one setting's throughput to another's, with an individual interval.

        of, over: Each the name of a setting, or how it differs from the baseline, such as {"consumer_groups": 0}.
        pooled: Whether the interval uses the scatter pooled over all settings, or only the scatter of these two.

        Raises MissingDataError: one of the settings was not measured.
        """
        a, b = self._cell(of), self._cell(over)
        if a == b:
            raise MissingDataError(f"{of} and {over} are the same setting.")
        return self.between(a, b, quantity, claim, pooled=pooled)

    def scalability(self) -> Scalability:
        """
        Fit the Universal Scalability Law to the trials of the curve of producers.

        Raises MissingDataError: the trials have fewer than three numbers of producers.
        """
        own = self.trials("producers").astype({"producers": "float64"})
        if own.producers.nunique() < 3 or len(own) < 4:
            raise MissingDataError("the law of scalability needs trials with three numbers of producers.")
        own = own.assign(throughput=own[VALUE] / 1e6)
        block = "block" if own.block.nunique() > 1 else None
        return fit_scalability(own, "throughput", block=block, unit="Mbit/s")

    def _cell(self, wanted: Setting) -> str:
        if isinstance(wanted, str):
            cells = self.frame.cell[self.frame.setting == wanted].unique()
        else:
            if unknown := set(wanted) - set(self.columns):
                raise refusal("setting", ", ".join(sorted(unknown)), ", ".join(self.columns))
            base = self.frame[self.frame.cell == self.base].iloc[0][self.columns].to_dict()
            goal = base | {name: factor_columns.plain(value) for name, value in wanted.items()}
            same = [row == goal for row in self.frame[self.columns].to_dict("records")]
            cells = self.frame.cell[same].unique()
        if len(cells) != 1:
            named = f"setting “{wanted}”"
            if not isinstance(wanted, str):
                named = " ".join(["the baseline with", " and ".join(f"{name} {wanted[name]}" for name in wanted)])
            found = f"is {count(len(cells), 'setting')}" if len(cells) else "was not measured"
            raise MissingDataError(f"{named} {found}; allowed: one that was measured.")
        return str(cells[0])

    def between(self, a: str, b: str, quantity: str, claim: str, *notes: str, pooled: bool = True) -> Estimate:
        """Estimate the ratio of the throughput of cell `a` to that of cell `b`, with an individual interval."""
        one = self.against(b).ratios[a]
        about = {"quantity": quantity, "claim": claim, "others": ()}
        methods = (SINGLE,) if pooled else (PAIRS, WELCH)
        alone = next((other for other in one.others if other.method in methods), Interval(""))
        if pooled:
            notes += (UNEQUAL,) if self.is_unequal else ()
            method = f"{self.against(b).pooled}; Student's t, for this comparison alone"
        else:
            method = f"least squares of the logarithm; {alone.method or 'no interval'}"
            about["assumption"] = "Trials are independent, except for what the trials of a block have in common"
            notes += () if alone.method else ("no interval, because a setting has fewer than two trials",)
        ends = {"low": alone.low, "high": alone.high}
        kept = [text for text in one.warnings if pooled or text != RESTARTED]
        return replace(one, **about, **ends, method=method, warnings=(*kept, *notes))

    def figure(self) -> go.Figure:
        if not self.curves:
            raise MissingDataError("no factor was varied alone.")
        figure, labels, rows = go.Figure(), [], []
        shades = theme.SERIES_COLOURS
        for k, one in enumerate(self.curves.values()):
            part = one.levels[~one.levels.baseline]
            at = range(len(labels), len(labels) + len(part))
            labels += [f"{one.label}: {label}" for label in part.label]
            rows.append(part.assign(factor=one.label))
            style = {"marker": {"size": 10, "color": shades[k % len(shades)]}, "name": one.label, "showlegend": False}
            text = [f"{theme.plain(row.label)}: {number(row.ratio, 2)} times" for row in part.itertuples()]
            primitives.interval_points(figure, at, part.ratio, part.low, part.high, text=text, **style)
        table = pd.concat(rows, ignore_index=True)
        primitives.label_rows(figure, [theme.plain(label) for label in labels])
        primitives.reference_line(figure, x=1)
        axis = _axis(table.ratio, [*table.low, *table.high])
        figure.update_xaxes(title="times the baseline" + (" (log axis)" if axis.get("type") == "log" else ""), **axis)
        figure.update_layout(height=AROUND_PX + ROW_PX * len(labels))
        return theme.finish(
            figure,
            name="curves",
            title=theme.headline(self.estimates[0].sentence, "What each change to the baseline does to throughput"),
            subtitle=f"One factor is changed at a time. Bars: {percent(LEVEL)} intervals, simultaneous over "
            "all rows. "
            "Dashed: the baseline.",
            alt=f"Ratio of throughput to the baseline, {count(len(labels), 'level')}. {self}",
            caption=str(self),
            table=table[["factor", "label", "n", "ratio", "low", "high"]],
        )


def curves(rates: TrialRates, *, baseline: str = "baseline") -> Curves:
    """
    Compute the curve of every factor that was varied one at a time.

    If some trials have a block, trials without a block are left out, such as the first trial on cold brokers. If the
    baseline's producers are unthrottled, trials with a requested rate are left out, and vice versa, because their
    scatter differs.

    baseline: The name of the setting with which all others are compared.

    Raises MissingDataError: no trial of the baseline was measured.
    Raises ParameterError: trials of the baseline differ in their levels.
    """
    rows = rates.rates
    kept = rows[VALUE].astype("float64") > 0
    if rows.block.notna().any():
        kept &= rows.block.notna()
    n_out = int((~kept).sum())
    flat_out = rows.target_records_per_s.isna()
    kept &= flat_out == flat_out[rows.setting == baseline].any()
    frame, columns = factor_columns.with_settings(rows[kept])
    keys = list(frame[columns].itertuples(index=False, name=None))
    names: dict[tuple[object, ...], str] = {}
    for key, name in zip(keys, frame.setting.astype(str), strict=True):
        names.setdefault(key, name if name not in names.values() else f"{name} ({len(names)})")
    frame["cell"] = [names[key] for key in keys]
    named = frame.cell[frame.setting == baseline].unique()
    if not len(named):
        known = ", ".join(map(str, rows.setting.unique())) or "none"
        raise MissingDataError(f"no trial of the baseline {baseline!r} was measured; there are {known}.")
    if len(named) > 1:
        raise ParameterError(
            f"baseline is {baseline!r}, the name of {count(len(named), 'combination')} of levels; allowed: that of one."
        )
    base = str(named[0])
    needed = [name for name in columns if name == "security" or name.startswith(factor_columns.BROKER)]
    frame["restart"] = [str(row) for row in frame[needed].to_dict("records")]
    result = Curves(frame, columns, base, _compare(frame, base), n_out)
    cells = frame.drop_duplicates("cell").set_index("cell")
    of_factor: dict[str, list[str]] = {}
    for cell, row in cells.iterrows():
        factor = factor_columns.factor_of({name for name in columns if row[name] != cells.loc[base, name]})
        if factor is not None:
            of_factor.setdefault(factor, []).append(cell)
    for factor in sorted(of_factor, key=factor_columns.position):
        result.curves[factor] = _curve(result, factor, cells, [base, *of_factor[factor]])
    return result


def _compare(frame: pd.DataFrame, cell: str) -> AgainstBaseline:
    """Compare every cell with the given one, within blocks unless blocks cannot be separated from cells."""
    about = {"by": "cell", "restart": "restart"}
    if frame.block.nunique() > 1:
        with suppress(ParameterError):
            return against_baseline(frame, VALUE, cell, block="block", **about)
    return against_baseline(frame, VALUE, cell, **about)


def _curve(result: Curves, factor: str, cells: pd.DataFrame, own: list[str]) -> Curve:
    names = [name for name in factor_columns.FACTORS.get(factor, (factor,)) if name in result.columns]
    rows = factor_columns.in_order([(*(cells.loc[cell, name] for name in names), cell) for cell in own])
    own = [row[-1] for row in rows]
    levels = pd.DataFrame([row[:-1] for row in rows], columns=names, dtype=object)
    labels = dict(zip(own, factor_columns.level_labels(levels), strict=True))
    varied = [name for name in names if len(set(levels[name])) > 1]
    numeric = levels[varied[0]] if len(varied) == 1 else [None] * len(own)
    trials = result.frame[result.frame.cell.isin(own)]
    packed = trials.record_bytes.astype(float) * trials.records_per_s / trials.log_bytes_per_s.astype(float)
    measured = result.compared.rows.set_index("setting").loc[own, ["n", "mean", "ratio", "low", "high", "verdict"]]
    about = {
        "label": list(labels.values()),
        "cell": own,
        "baseline": [cell == result.base for cell in own],
        "numeric": [value if isinstance(value, float) else nan for value in numeric],
        "compression": [packed[trials.cell == cell].mean() for cell in own],
    }
    table = pd.concat([pd.DataFrame(about), measured.reset_index(drop=True)], axis=1)
    label = factor_columns.factor_label(factor)
    start = f"{labels[result.base]}” (the baseline)"

    def claim(level: str, other: str) -> str:
        return f"With {label} “{level}”, throughput is {{}} that with “{other}"

    ratios = tuple(
        replace(result.compared.ratios[cell], quantity=labels[cell], claim=claim(labels[cell], start))
        for cell in own
        if cell != result.base
    )
    by_mean = table.sort_values("mean", kind="stable").cell
    best, worst = by_mean.iloc[-1], by_mean.iloc[0]
    chosen = (CHOSEN,) if len(own) > 2 else ()
    span = result.between(best, worst, f"{label}: best over worst", claim(labels[best], f"{labels[worst]}”"), *chosen)
    last = None
    if len(own) > 2 and table.numeric.notna().all():
        other, name = (own[-2], "the level before it") if best == own[-1] else (best, "best")
        about = {"quantity": f"{label}: highest over {name}", "claim": claim(labels[own[-1]], f"{labels[other]}”")}
        inverse = result.against(own[-1]).ratios[other]
        last = inverse.transformed(lambda ratio: 1 / ratio if ratio else inf, unit="times", **about)
    return Curve(factor, table, ratios, span, last)


def _axis(values: pd.Series, ends: list[float]) -> theme.Settings:
    """
    Return a logarithmic axis if `values` differ widely, else an axis from zero; ignore interval `ends` far outside.
    """
    known = np.asarray([value for value in values if np.isfinite(value) and value > 0])
    far = np.asarray([end for end in ends if np.isfinite(end)])
    if len(known) and known.max() / known.min() > WIDE:
        return theme.log_axis([*known, *far[(far > known.min() / WIDE) & (far < known.max() * WIDE)]], "")
    return {"rangemode": "tozero"}
