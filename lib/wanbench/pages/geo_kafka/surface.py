"""
Fit a quadratic response surface (Box & Wilson 1951) of logarithms, and find the best settings within the range of the
runs.

Factors are coded from -1 to 1 over their range, in logarithms unless stated otherwise. The best setting is the maximum
of the fitted surface, so it is partly selected by chance. Its interval is therefore simultaneous over all settings; an
individual interval is given too, which holds if variances are equal (data/validity/surface.csv). Instead of a single
best setting there is a set: all settings that are not significantly worse than any other (Peterson, Cahya & del
Castillo 2002).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from math import isfinite, isnan

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots
from scipy.stats import qmc

from wanbench.checks import check_choice, check_columns, check_kind, check_level
from wanbench.errors import MissingDataError, ParameterError
from wanbench.figures import primitives, theme
from wanbench.formatting import count, p_value, percent
from wanbench.methods.factorial.inference import NAME, REPLICATES, lack_of_fit
from wanbench.methods.factorial.terms import IN_OTHER_BLOCKS, ONE_BLOCK, UNITS, split_rows, with_blocks, word
from wanbench.methods.result import Estimate, Interval, Result, reasons, text_table
from wanbench.methods.result.means import ratio_estimate
from wanbench.methods.trials.rates import TrialRates
from wanbench.pages.geo_kafka import factor_columns
from wanbench.pages.geo_kafka.curves import VALUE
from wanbench.pages.geo_kafka.surface_fit import Axis, SurfaceFit, axes_of, surface_columns

STEPS = 41  # Points of a slice along a range.
AMONG = theme.WITHIN
COLUMNS = 3  # Panels in a row: few enough to leave space for tick labels.
ROW_PX = 240
# Number of settings that fill the range of the runs, in addition to the measured ones: a power of 2, as a Sobol
# sequence needs.
PLACES = 256
# Distances from the best setting (half a range is 1) and settings within each: they show how wide the best set is.
NEAR, NEAR_PLACES = (0.4, 0.1), 64
# Rounds of search around the best setting so far, each at half the distance of the previous one, down to a thousandth
# of the range.
NEARER = 12
UNFIT_BELOW = 0.05  # P-value of lack of fit that causes a caution: one false alarm in twenty.
SINGLE = "this setting alone"
ASSUMPTION = (
    "The logarithm of the response is a quadratic of the coded factors within the region; runs are independent, except "
    "for what those of a block have in common"
)
TOGETHER = (
    "least squares of the logarithm, quadratic in coded factors; the greater of robust (HC2) and pooled standard "
    "errors; largest |t| over the region, by draws (Hothorn, Bretz & Westfall 2008), no more than Scheffé's (1953)"
)


@dataclass(frozen=True, repr=False)
class Surface(Result):
    """
    A fitted response surface.

    best: The response at the best setting, for the average block; the interval is simultaneous over all settings.
    best_setting: Maps each factor to its value at the maximum of the fitted surface.
    effects: Maps each factor to its effect: the response at the upper end of its range over that at the lower end, with
        all other factors in the middle of theirs. For choices: the highest response over the lowest.
    places: Settings that fill the range of the runs: the factors, `fitted`, `low`, `high` (simultaneous) and
        `is_among_best` (not significantly worse than another place).
    among_best: One row per factor: its value at the best setting, and the range (or choices) of places among the best.
    lack_of_fit_p: P-value of the lack of fit of the surface, against replicates, or else against curvature.
    """

    best: Estimate
    best_setting: dict
    effects: dict[str, Estimate]
    places: pd.DataFrame
    among_best: pd.DataFrame
    lack_of_fit_p: float
    axes: tuple[Axis, ...]
    response: str
    unit: str
    level: float
    fit: SurfaceFit
    notes: tuple[str, ...] = ()

    TITLE = "Settings among the best"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return (self.best, *self.effects.values())

    @property
    def sentence(self) -> str:
        at = ", ".join(f"{word(axis.name)} {axis.label(self.best_setting[axis.name])}" for axis in self.axes)
        shown = [effect for effect in self.effects.values() if effect.low > 1 or effect.high < 1]
        effects = "; ".join(f"{one.quantity} {one.formatted} ({one.formatted_interval})" for one in shown)
        return (
            f"The fitted {word(self.response)} is highest at {at}, where it is {self.best.formatted} "
            f"({percent(self.level)} interval {self.best.formatted_interval or 'none'}, simultaneous over all "
            f"settings; {self.best.counted}). Not significantly worse: {self._good()}. "
            f"Effects over the whole range of a factor: {effects or 'none shown'}."
        )

    def _good(self) -> str:
        texts = []
        for axis, row in zip(self.axes, self.among_best.itertuples(index=False), strict=True):
            low, high = row[2:]
            ends = low if axis.levels else f"{axis.label(low)} to {axis.label(high)}"
            texts.append(f"{word(axis.name)} {ends}")
        return ", ".join(texts)

    @property
    def cautions(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.notes, *super().cautions]))

    def table(self) -> pd.DataFrame:
        return self.places

    def formatted_table(self) -> pd.DataFrame:
        return text_table(self.among_best)

    def at(self, settings: pd.DataFrame) -> pd.DataFrame:
        """
        Add the fitted response with its simultaneous interval (`fitted`, `low`, `high`) to settings within the range of
        the runs.
        """
        check_columns("settings", settings, [axis.name for axis in self.axes])
        columns = self.fit.columns(surface_columns(self.axes, settings)[0])
        value, half = columns @ self.fit.params, self.fit.half(columns)
        return settings.assign(fitted=np.exp(value), low=np.exp(value - half), high=np.exp(value + half))

    def figure(self) -> go.Figure:
        n_rows = -(-len(self.axes) // COLUMNS)
        n_columns = min(len(self.axes), COLUMNS)
        titles = [theme.plain(word(axis.name)) for axis in self.axes]
        layout = {"subplot_titles": titles, "shared_yaxes": True, "vertical_spacing": 0.35 / n_rows}
        figure = make_subplots(n_rows, n_columns, **layout)
        tables = []
        for k, axis in enumerate(self.axes):
            cell = {"row": k // COLUMNS + 1, "col": k % COLUMNS + 1}
            values = list(axis.levels) or axis.decode(np.linspace(-1, 1, STEPS))
            settings = pd.DataFrame({name: [value] * len(values) for name, value in self.best_setting.items()})
            settings[axis.name] = values
            slice_ = self.at(settings)
            tables.append(slice_.assign(along=axis.name))
            _add_slice(figure, axis, slice_, self, cell)
            primitives.reference_line(figure, y=self.best.low, **cell)
        unit = f" ({self.unit})" if self.unit else ""
        table = pd.concat(tables, ignore_index=True)
        axis = theme.log_axis([*table.low, *table.high], self.unit)
        figure.update_yaxes(**axis)
        figure.update_yaxes(title=theme.plain(f"{word(self.response)}{unit}, log axis"), col=1)
        figure = theme.finish(
            figure,
            name="response-surface",
            title=f"At best {word(self.response)} is {self.best.formatted}",
            subtitle="Each panel shows the fitted surface along one factor, with the others as in the best "
            "setting (diamond). "
            f"Bands: {percent(self.level)} simultaneous intervals. Dashed: the lower end at the best setting.",
            alt=f"Slices through a response surface. {self}",
            caption=str(self),
            table=table,
            headroom_px=theme.PANEL_TITLES_PX,
        )
        return figure.update_layout(height=theme.HEIGHT_PX + ROW_PX * (n_rows - 1), showlegend=False)


def fit_surface(
    frame: pd.DataFrame,
    response: str,
    factors: Sequence[str],
    *,
    linear: Sequence[str] = (),
    block: str | None = None,
    unit: str = "",
    level: float = 0.95,
) -> Surface:
    """
    Fit a quadratic surface of the logarithm of a response.

    frame: One row per run, such as those of `designs.space_filling`.
    response: The column of the response: positive numbers, where larger is better.
    factors: Columns of numbers (ranges) or of text (choices). A range with three different values or more gets a
        square.
    linear: Ranges that are not coded in logarithms, such as those that contain 0.
    block: The column of blocks; each block multiplies the response by its own factor. The interval of the response at
        the best setting then holds for other blocks, too.
    unit: Unit of the response, for texts.

    Raises ParameterError: there are no more runs than terms, or the runs cannot separate the terms.
    """
    level = check_level(level)
    factors = list(check_kind("factors", factors, Iterable))
    for name in linear:
        check_choice("linear", name, factors)
    if not factors:
        raise ParameterError("factors is empty; allowed: one column or more.")
    runs, left_out = split_rows(frame, response, [*factors, *([block] if block else [])])
    axes = axes_of(runs, factors, linear)
    own, names = surface_columns(axes, runs)
    blocks = runs[block] if block else None
    design = np.column_stack([own, with_blocks(np.ones((len(runs), 1)), blocks)[:, 1:]])
    if len(runs) <= design.shape[1] or np.linalg.matrix_rank(design) < design.shape[1]:
        raise ParameterError(
            f"{count(len(runs), 'run')} cannot separate {count(design.shape[1], 'term')} of a quadratic surface; "
            "allowed: more runs at different settings, or fewer factors."
        )
    log = np.log(runs[response].to_numpy(dtype=float))
    cells = runs.groupby(factors, sort=False).ngroup().to_numpy()
    fit = SurfaceFit(design, log, cells, level, own.shape[1], blocks)
    places = _places(axes, runs[factors])
    best = _best(axes, fit, places)
    around = [_around(axes, best, distance, NEAR_PLACES) for distance in NEAR]
    places = pd.concat([places, *around, best], ignore_index=True)
    columns = fit.columns(surface_columns(axes, places)[0])
    fit.hold_together_at(columns)
    value, half = columns @ fit.params, fit.half(columns)
    among = [statistic <= limit for statistic, limit in (fit.may_be_best(one, columns) for one in columns)]
    ends = {"fitted": np.exp(value), "low": np.exp(value - half), "high": np.exp(value + half)}
    places = places.assign(**ends, is_among_best=among)
    indicators = np.eye(cells.max() + 1)[cells]
    squares = own[:, [names.index(f"{axis.name}²") for axis in axes if axis.bends]]
    p, against = lack_of_fit(design, log, np.column_stack([indicators, design[:, own.shape[1] :]]), squares)
    about = {"n": len(runs), "basis": count(len(runs), "run"), "assumption": ASSUMPTION, "level": level}
    names = {"quantity": f"{word(response)} at the best setting", "claim": "The best setting reaches {}", "unit": unit}
    names["method"] = TOGETHER + ("" if block is None else IN_OTHER_BLOCKS)
    names["warnings"] = (ONE_BLOCK,) if isnan(fit.block_half) else ()
    single = (Interval(SINGLE, *fit.alone(columns[-1])),)
    reached = ratio_estimate(float(value[-1]), float(half[-1]), others=single, **names, **about)
    effects = {axis.name: _effect(axes, axis, fit, response, about) for axis in axes}
    notes = _notes(axes, best, fit, columns[-1], (p, against), left_out, len(frame))
    return Surface(
        reached, best.iloc[0].to_dict(), effects, places, _among(axes, places, best), p, tuple(axes), response, unit,
        level, fit, notes,
    )  # fmt: skip


def _places(axes: Sequence[Axis], measured: pd.DataFrame) -> pd.DataFrame:
    """Return settings that fill the range of the runs, boundary included, and the measured settings."""
    codes = 2 * qmc.Sobol(len(axes), rng=np.random.default_rng(0)).random(PLACES) - 1
    # Rounding to the sides puts a quarter of the places on the boundary along each factor, where the best often lie.
    codes = np.clip(codes * 4 / 3, -1, 1)
    filled = pd.DataFrame({axis.name: axis.decode(codes[:, k]) for k, axis in enumerate(axes)})
    return pd.concat([filled, measured], ignore_index=True).drop_duplicates(ignore_index=True)


def _best(axes: Sequence[Axis], fit: SurfaceFit, places: pd.DataFrame) -> pd.DataFrame:
    """Find the setting with the highest fitted response, by a search that narrows around the best one so far."""

    def highest(settings: pd.DataFrame) -> pd.DataFrame:
        value = surface_columns(axes, settings)[0] @ fit.params[: fit.n_own]
        return settings.iloc[[int(value.argmax())]].reset_index(drop=True)

    best = highest(places)
    for k in range(NEARER):
        best = highest(pd.concat([best, _around(axes, best, 0.5**k, PLACES)], ignore_index=True))
    return best


def _around(axes: Sequence[Axis], best: pd.DataFrame, distance: float, n: int) -> pd.DataFrame:
    """
    Return `n` settings near the best one: with the same choices, and with ranges at most `distance` away in coded
    units.
    """
    steps = distance * (2 * qmc.Sobol(len(axes), rng=np.random.default_rng(1)).random(n) - 1)
    near = {}
    for j, axis in enumerate(axes):
        if axis.levels:
            near[axis.name] = [best[axis.name][0]] * n
        else:
            near[axis.name] = axis.decode(np.clip(axis.code(best[axis.name])[0, 0] + steps[:, j], -1, 1))
    return pd.DataFrame(near)


def _middle(axes: Sequence[Axis], axis: Axis, values) -> np.ndarray:
    """
    Return the columns of the surface at values of one factor, with other ranges at mid-range and choices averaged.
    """
    settings = {a.name: list(values) if a is axis else [a.decode(0.0 * np.ones(1))[0]] * len(values) for a in axes}
    choices = [a for a in axes if a.levels and a is not axis]
    filled = [
        settings | {a.name: [level] * len(values) for a, level in zip(choices, levels, strict=True)}
        for levels in product(*(a.levels for a in choices))
    ]
    return sum(surface_columns(axes, pd.DataFrame(one))[0] for one in filled) / len(filled)


def _effect(axes, axis: Axis, fit: SurfaceFit, response: str, about: dict) -> Estimate:
    ends = list(axis.levels) or [axis.low, axis.high]
    columns = fit.columns(_middle(axes, axis, ends))
    value = columns @ fit.params
    low, high = (int(value.argmin()), int(value.argmax())) if axis.levels else (0, 1)
    log, half, _ = fit.single(columns[high] - columns[low])
    chosen = "the highest of three or more choices is compared with the lowest, so the ratio is partly due to chance"
    method = f"least squares of the logarithm, quadratic in coded factors; {NAME}"
    about = about | {"warnings": (chosen,) if len(ends) > 2 else (), "method": method}
    named = f"{axis.label(ends[high])} over {axis.label(ends[low])}"
    claim = f"{word(axis.name)} {named} multiplies {word(response)} by {{}}"
    return ratio_estimate(log, half, quantity=f"{word(axis.name)}, {named}", claim=claim, **about)


def _among(axes: Sequence[Axis], places: pd.DataFrame, best: pd.DataFrame) -> pd.DataFrame:
    good, rows = places[places.is_among_best], []
    for axis in axes:
        there = good[axis.name]
        ends = (", ".join(sorted(set(there))), "") if axis.levels else (there.min(), there.max())
        rows.append((axis.name, best[axis.name][0], *ends))
    return pd.DataFrame(rows, columns=["factor", "best", "from", "to"])


def _notes(axes, best, fit: SurfaceFit, at: np.ndarray, test: tuple[float, str], left_out, n_rows: int) -> tuple:
    notes, (p, against) = [], test
    if isfinite(p) and p < UNFIT_BELOW:
        what = "repeated runs do" if against == REPLICATES else "chance allows (tested for curvature)"
        notes.append(f"the surface does not fit, because runs deviate from it by more than {what} ({p_value(p)})")
    elif not isfinite(p) or against != REPLICATES:
        notes.append("no run was repeated, so the fit of the surface is hardly tested")
    edges = [
        f"{word(axis.name)} {axis.label(best[axis.name][0])}"
        for axis in axes
        if not axis.levels and abs(axis.code(best[axis.name])[0, 0]) > 1 - 1e-3
    ]
    if edges:
        notes.append(
            f"the best setting is at the edge of the region ({', '.join(edges)}): better settings may lie beyond"
        )
    if at @ fit.robust.inverse @ at > fit.robust.leverage.max():
        far = "the best setting is further from the middle than any run"
        notes.append(f"{far}, so the surface is extrapolated; measure there")
    if len(left_out):
        notes.append(f"{len(left_out)} of {count(n_rows, 'run')} not used: {reasons(left_out)}")
    return tuple(notes)


def _add_slice(figure: go.Figure, axis: Axis, slice_: pd.DataFrame, result: Surface, cell: dict) -> None:
    best = result.best_setting[axis.name]
    here = {"x": [best], "y": [result.best.estimate], "mode": "markers", "hoverinfo": "skip"}
    diamond = {"marker": {"size": 12, "symbol": "diamond", "color": theme.OUTSIDE}}
    if axis.levels:
        marker = {"size": 9, "color": AMONG}
        ends = (slice_.fitted, slice_.low, slice_.high)
        primitives.interval_points(figure, slice_[axis.name], *ends, marker=marker, vertical=True, **cell)
        figure.add_scatter(**here, **diamond, **cell)
        return
    primitives.band(figure, slice_[axis.name], slice_.low, slice_.high, **cell)
    line = {"color": theme.FIT, "width": 2}
    hover = "%{x:.4g}: %{y:.4g}<extra></extra>"
    figure.add_scatter(x=slice_[axis.name], y=slice_.fitted, mode="lines", line=line, hovertemplate=hover, **cell)
    figure.add_scatter(**here, **diamond, **cell)
    if axis.log:
        figure.update_xaxes(**theme.log_axis(slice_[axis.name], UNITS.get(axis.name, ""), max_ticks=5), **cell)


def together(rates: TrialRates, *, setting: str = "together", level: float = 0.95) -> Surface:
    """
    Fit a quadratic surface of throughput over all settings that vary among the trials planned as "together".

    setting: The name that all these trials share, although their levels differ.

    Raises MissingDataError: no trial has that name, or too few for a surface.
    """
    own = rates.rates[rates.rates.setting == setting]
    if own.empty:
        raise MissingDataError(
            f"not measured, because no trial has the setting {setting!r}, which varies several factors jointly."
        )
    frame, columns = factor_columns.with_settings(own)
    varied = [name for name in columns if frame[name].nunique(dropna=False) > 1]
    frame = frame.infer_objects()
    linear = [name for name in varied if (frame[name] == 0).any()]
    try:
        return fit_surface(frame, VALUE, varied, linear=linear, unit="bit/s", level=level)
    except ParameterError as error:
        raise MissingDataError(f"trials of {setting!r} do not determine a surface: {error}") from error
