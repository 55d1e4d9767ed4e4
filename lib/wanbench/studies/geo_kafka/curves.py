"""
A curve per factor: what each of its levels reaches over the baseline, all else equal.

The trial is the unit of replication. Trials of a factor are those that equal the baseline in every other setting; no
name of a setting is parsed. Settings are few and repeated rarely, so one residual variance of the log of throughput is
pooled over all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, inf, nan, sqrt

import numpy as np
import pandas as pd
from scipy import stats

from ...checks import check_choice, check_level, refusal
from ...errors import MissingDataError, ParameterError
from ...formatting import count, number, percent, quantity
from ...stats.result import Estimate, Result
from ...stats.trials.means import ratio_estimate
from ...stats.trials.rates import TrialRates
from . import settings

VALUE = "throughput_bps"
METHOD = (
    "least squares of the log of throughput on settings{}; t with {} degrees of freedom; the trial is the unit, and one "
    "residual variance (pure error of repeated trials) is pooled over {}"
)
ASSUMPTION = (
    "Trials are independent, and the log of throughput scatters alike at every setting{}; each interval holds by itself, so "
    "of twenty about one misses"
)
ALIKE_P = 0.01
"""Of Bartlett's test below which a caution says that settings do not scatter alike; low, as it is also sensitive to tails."""
CHOSEN = "the best level was chosen from the same trials, which makes it look better than it is"


@dataclass(frozen=True)
class Fit:
    """
    Means of the log of throughput per cell (a combination of levels), with their common residual variance.

    Attributes
    ----------
    means : ndarray
        Of each cell, at the mean of the blocks.
    covariance : ndarray
        Of the means, for a residual variance of 1.
    variance, freedom : float, int
        Of the residuals; NaN and 0 where nothing is repeated.
    blocks : bool
        Whether blocks have their own means.
    alike : float
        p-value of Bartlett's test that cells scatter alike; NaN if fewer than two cells are repeated.
    """

    means: np.ndarray
    covariance: np.ndarray
    variance: float
    freedom: int
    blocks: bool
    alike: float

    def contrast(self, a: int, b: int, level: float) -> tuple[float, float]:
        """The mean of cell a less that of b, and half the width of its interval (NaN where nothing is repeated)."""
        wanted = np.zeros(len(self.means))
        wanted[a] += 1
        wanted[b] -= 1
        log = float(wanted @ self.means)
        if not self.freedom:
            return log, nan
        spread = sqrt(max(float(wanted @ self.covariance @ wanted), 0.0) * self.variance)
        return log, float(stats.t.ppf((1 + level) / 2, self.freedom)) * spread


def fit_cells(logs: np.ndarray, cells: np.ndarray, blocks: np.ndarray | None) -> Fit:
    """Least squares on cells, and on blocks where each of them shares a cell with the first, directly or by others."""
    dummies = (cells[:, None] == np.arange(cells.max() + 1)).astype(float)
    own = np.zeros((len(logs), 0))
    if blocks is not None:
        names = np.unique(blocks)
        # Columns that add up to zero over blocks: the means of cells are then those of an average block.
        own = (blocks[:, None] == names[1:]).astype(float) - (blocks[:, None] == names[:1])
    design = np.hstack([dummies, own])
    if np.linalg.matrix_rank(design) < design.shape[1]:
        design, own = dummies, own[:, :0]
    inverse = np.linalg.inv(design.T @ design)
    coefficients = inverse @ design.T @ logs
    residuals = logs - design @ coefficients
    freedom, n = len(logs) - design.shape[1], dummies.shape[1]
    groups = [residuals[cells == cell] for cell in range(n)]
    groups = [group for group in groups if len(group) > 1 and np.ptp(group) > 0]
    return Fit(
        coefficients[:n],
        inverse[:n, :n],
        float(residuals @ residuals) / freedom if freedom > 0 else nan,
        freedom,
        bool(own.shape[1]),
        float(stats.bartlett(*groups).pvalue) if len(groups) > 1 else nan,
    )


@dataclass(frozen=True, repr=False)
class Curve(Result):
    """
    The levels of one factor.

    Attributes
    ----------
    levels : DataFrame
        Per level, in order: `label`, `baseline` (whether it is the baseline's), n_trials, mean_bps (geometric mean of
        payload), ratio, low, high (over the baseline), compression (payload bytes per byte in the log), `numeric` (the
        level, where the factor is a number).
    trials : DataFrame
        Per trial: label, block, throughput_bps, ratio (to the baseline's mean).
    range : Estimate
        The best level over the worst.
    last : Estimate or None
        The highest level of a factor that is a number over the best; None if the highest is the best.
    """

    factor: str
    levels: pd.DataFrame
    trials: pd.DataFrame
    ratios: tuple[Estimate, ...]
    range: Estimate
    last: Estimate | None
    level: float

    DRAWN_BY = "curves_figure.curve"

    @property
    def TITLE(self) -> str:
        """Caption of the table."""
        return f"Throughput by {self.label}"

    @property
    def label(self) -> str:
        """What the factor is called."""
        return settings.LABELS.get(self.factor, self.factor.replace("_", " "))

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """Best over worst, the highest over the best, and each level over the baseline."""
        return (self.range, *([self.last] if self.last else []), *self.ratios)

    @property
    def sentence(self) -> str:
        """The range of the factor, and where it turns down."""
        return f"{self.range.sentence} {self.turn}".strip()

    @property
    def turn(self) -> str:
        """Whether more of a factor that is a number gives less from some level on."""
        if self.levels.numeric.isna().any() or len(self.levels) < 3:
            return ""
        best, top = self.levels.loc[self.levels.ratio.idxmax(), "label"], self.levels.label.iloc[-1]
        if self.last is None:
            return f"It rises up to the highest level tried, {top}."
        if self.last.high < 1:
            return f"It turns down: {self.last.sentence[0].lower()}{self.last.sentence[1:]}"
        return f"Beyond {best} no further gain is shown, and no loss either: {self.last.sentence[0].lower()}{self.last.sentence[1:]}"

    def table(self) -> pd.DataFrame:
        """`levels`."""
        return self.levels

    def shown(self) -> pd.DataFrame:
        """The levels as text."""
        rows = []
        by_label = {one.quantity: one for one in self.ratios}
        for row in self.levels.itertuples():
            one = by_label.get(row.label)
            rows.append(
                {
                    "level": row.label + (" (baseline)" if row.baseline else ""),
                    "trials": number(row.n_trials),
                    "payload": quantity(row.mean_bps, "bit/s"),
                    "over the baseline": one.written if one else "1",
                    f"{percent(self.level)} interval": (one.written_interval or "none") if one else "",
                    "payload over log": number(row.compression, 2),
                }
            )
        return pd.DataFrame(rows)


@dataclass(frozen=True, repr=False)
class Curves(Result):
    """
    All curves that were measured.

    Attributes
    ----------
    curves : dict of str to Curve
        By factor, in the order of `settings.FACTORS`.
    frame : DataFrame
        All trials in use with their settings, and `cell`, the number of their combination.
    fit : Fit
    n_out : int
        Trials without a throughput, or outside the blocks, which are not in use.
    """

    curves: dict[str, Curve]
    frame: pd.DataFrame
    columns: list[str]
    fit: Fit
    base: int
    n_out: int
    level: float

    TITLE = "Ratio of throughput to the baseline"
    DRAWN_BY = "curves_figure.overview"

    def of(self, factor: str) -> Curve:
        """The curve of a factor; MissingDataError if no trial changes it alone."""
        if factor not in self.curves:
            known = ", ".join(self.curves) or "none"
            raise MissingDataError(f"no trial changes only {factor}; measured: {known}.")
        return self.curves[factor]

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """The range of each curve, the widest first."""
        return tuple(sorted((one.range for one in self.curves.values()), key=lambda one: -one.estimate))

    @property
    def cautions(self) -> tuple[str, ...]:
        """Those of the estimates; trials not in use; unequal scatter."""
        notes = (
            [f"{count(self.n_out, 'trial')} not in use: no throughput, or outside the blocks"]
            if self.n_out
            else []
        )
        if self.fit.alike < ALIKE_P:
            notes.append(
                "settings do not scatter alike (Bartlett's test), so the pooled interval is too narrow for some and too wide "
                "for others"
            )
        return (*notes, *super().cautions)

    @property
    def sentence(self) -> str:
        """Which factor matters most, and which least."""
        most, least = self.estimates[0], self.estimates[-1]
        text = f"Of {count(len(self.curves), 'factor')} varied alone, the widest range: {most.sentence}"
        if len(self.curves) > 1:
            text += f" The narrowest: {least.sentence}"
        return text

    def ratio(self, of: str | Mapping, over: str | Mapping, *, quantity: str, claim: str) -> Estimate:
        """
        Throughput of one setting over that of another.

        Parameters
        ----------
        of, over : str or mapping
            The name of a setting, or how it differs from the baseline: {"consumer_groups": 0}.

        Raises
        ------
        MissingDataError
            If such a setting was not measured.
        """
        a, b = self._cell(of), self._cell(over)
        return self._estimate(a, b, quantity, claim)

    def _cell(self, wanted: str | Mapping) -> int:
        if isinstance(wanted, str):
            cells = self.frame.cell[self.frame.setting == wanted].unique()
        else:
            unknown = set(wanted) - set(self.columns)
            if unknown:
                raise refusal("setting", ", ".join(sorted(unknown)), ", ".join(self.columns))
            base = self.frame[self.frame.cell == self.base].iloc[0]
            goal = {name: base[name] for name in self.columns} | {
                name: settings.plain(value) for name, value in wanted.items()
            }
            fits = [row[self.columns].to_dict() == goal for _, row in self.frame.iterrows()]
            cells = self.frame.cell[fits].unique()
        if len(cells) != 1:
            raise MissingDataError(
                f"{wanted} names {count(len(cells), 'setting')} that were measured, not one."
            )
        return int(cells[0])

    def _estimate(self, a: int, b: int, quantity: str, claim: str, notes: tuple[str, ...] = ()) -> Estimate:
        log, half = self.fit.contrast(a, b, self.level)
        sizes = [int((self.frame.cell == cell).sum()) for cell in (a, b)]
        pooled = f"{count(len(self.frame), 'trial')} of {count(len(self.fit.means), 'setting')}"
        if not self.fit.freedom:
            notes += ("no interval: no setting was measured twice",)
        return ratio_estimate(
            log,
            half,
            quantity=quantity,
            claim=claim,
            n=sum(sizes),
            basis=f"{count(sizes[0], 'trial')} against {sizes[1]}",
            method=METHOD.format(" and blocks" if self.fit.blocks else "", self.fit.freedom, pooled),
            assumption=ASSUMPTION.format(", blocks shift all settings alike" if self.fit.blocks else ""),
            level=self.level,
            warnings=notes,
        )


def curves(
    rates: TrialRates, *, baseline: str = "baseline", value: str = VALUE, level: float = 0.95
) -> Curves:
    """
    The curve of every factor of which some trial changes nothing else.

    Trials without a block are left out if others have one: the first after a start, which finds brokers cold.

    Parameters
    ----------
    baseline : str
        The name of the setting that curves start from.
    value : str
        The column of `TrialRates.rates` to compare.

    Raises
    ------
    ParameterError
        If no trial has that setting, or trials of it differ in theirs.
    """
    level = check_level(level)
    check_choice("value", value, (VALUE, "records_per_s", "batches_per_s"))
    rows = rates.rates
    kept = rows[value].astype("float64") > 0
    if rows.block.notna().any():
        kept &= rows.block.notna()
    frame, columns = settings.with_settings(rows[kept])
    frame["value"] = frame[value].astype("float64")
    keys = list(frame[columns].itertuples(index=False, name=None))
    numbers = {key: n for n, key in enumerate(dict.fromkeys(keys))}
    frame["cell"] = [numbers[key] for key in keys]
    named = frame.cell[frame.setting == baseline].unique()
    if len(named) != 1:
        known = ", ".join(map(str, frame.setting.unique())) or "none"
        raise ParameterError(
            f"baseline is {baseline!r}, of which {count(len(named), 'combination')} of levels were measured; allowed: the "
            f"name of one measured setting ({known})."
        )
    base = int(named[0])
    blocks = frame.block.to_numpy(dtype=float) if frame.block.nunique() > 1 else None
    fit = fit_cells(np.log(frame.value.to_numpy()), frame.cell.to_numpy(), blocks)
    found = Curves({}, frame, columns, fit, base, int((~kept).sum()), level)
    cells = frame.drop_duplicates("cell").set_index("cell")
    start = cells.loc[base]
    of_factor: dict[str, list[int]] = {}
    for cell, row in cells.iterrows():
        factor = settings.factor_of({name for name in columns if row[name] != start[name]})
        if factor is not None:
            of_factor.setdefault(factor, []).append(int(cell))
    order = [name for name in settings.FACTORS if name in of_factor]
    for factor in [*order, *(name for name in of_factor if name not in order)]:
        found.curves[factor] = _curve(found, factor, cells, [base, *of_factor[factor]])
    return found


def _curve(found: Curves, factor: str, cells: pd.DataFrame, own: list[int]) -> Curve:
    names = [name for name in settings.FACTORS.get(factor, (factor,)) if name in found.columns]
    rows = settings.in_order([(*(cells.loc[cell, name] for name in names), cell) for cell in own])
    own = [row[-1] for row in rows]
    levels = pd.DataFrame([row[:-1] for row in rows], columns=names, dtype=object)
    labels = settings.level_labels(levels)
    by_cell = dict(zip(own, labels, strict=True))
    trials = found.frame[found.frame.cell.isin(own)]
    means = found.fit.means
    logs = {cell: found.fit.contrast(cell, found.base, found.level) for cell in own}
    packed = trials.record_bytes.astype(float) * trials.records_per_s / trials.log_bytes_per_s.astype(float)
    several = [name for name in names if len(set(levels[name])) > 1]
    table = pd.DataFrame(
        {
            "label": labels,
            "baseline": [cell == found.base for cell in own],
            "n_trials": [int((trials.cell == cell).sum()) for cell in own],
            "mean_bps": [exp(means[cell]) for cell in own],
            "ratio": [exp(logs[cell][0]) for cell in own],
            "low": [_exp(logs[cell][0] - logs[cell][1]) for cell in own],
            "high": [_exp(logs[cell][0] + logs[cell][1]) for cell in own],
            "compression": [packed[trials.cell == cell].mean() for cell in own],
            "numeric": [
                row[0] if len(several) == 1 and isinstance(row[0], float) else nan
                for row in levels[several].itertuples(index=False, name=None)
            ],
        }
    )
    label = settings.LABELS.get(factor, factor.replace("_", " "))
    start = f"the baseline ({by_cell[found.base]})"
    ratios = tuple(
        found._estimate(
            cell,
            found.base,
            by_cell[cell],
            f"{label}: {by_cell[cell]} reaches {{}} the throughput of {start}",
        )
        for cell in own
        if cell != found.base
    )
    best, worst = max(own, key=lambda cell: means[cell]), min(own, key=lambda cell: means[cell])
    span = found._estimate(
        best,
        worst,
        f"{label}: best over worst",
        f"{label}: {by_cell[best]} reaches {{}} the throughput of {by_cell[worst]}",
        (CHOSEN,) if len(own) > 2 else (),
    )
    last = None
    if best != own[-1] and table.numeric.notna().all():
        claim = f"{by_cell[own[-1]]} reaches {{}} the throughput of {by_cell[best]}"
        last = found._estimate(own[-1], best, f"{label}: highest over best", claim, (CHOSEN,))
    own_trials = pd.DataFrame(
        {
            "label": trials.cell.map(by_cell),
            "block": trials.block,
            "throughput": trials.value,
            "ratio": trials.value / exp(means[found.base]),
        }
    )
    return Curve(factor, table, own_trials.reset_index(drop=True), ratios, span, last, found.level)


def _exp(log: float) -> float:
    return exp(log) if log < 700 else inf
