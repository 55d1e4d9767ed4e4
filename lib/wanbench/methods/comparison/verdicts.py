"""
Decide what changed between two sides, beyond noise and beyond a margin, and the exit code that says so.

Each key (an ordered pair of regions, or a setting of Kafka trials) has one log ratio of B over A. Each quantity has one
summary over its keys. Values of one series, pair or block are not independent, so intervals come from the scatter of

- runs, if both sides have two or more (Welch 1947);
- blocks of trials otherwise: the n-th block of B is compared with the n-th of A, as both were measured equally long
  after the start. The scatter of each setting is moderated by the scatter of all (Smyth 2004), because two or three
  blocks alone are too few for intervals that are corrected for many comparisons;
- log ratios over pairs if each pair was measured once: a median absolute deviation, which pairs that did change hardly
  affect, and the scatter of each pair's pings. The summary allows for shared regions (`dyadic`).

All intervals of a comparison hold at once (Bonferroni): equal sides give a wrong verdict, and a wrong exit code, in at
most 5 of 100 cases, whatever the dependence between pairs. Holm's method (1979) has the same first step, and so the
same exit codes; Benjamini & Hochberg's method limits only the share of wrong verdicts. Summaries share one half of
`ALPHA`, and all keys the other half, so that hundreds of pairs do not hide what the summary shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, nan, sqrt
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from scipy import optimize, special, stats

from wanbench.checks import check_number
from wanbench.errors import ParameterError
from wanbench.figures import primitives, theme
from wanbench.formatting import count, interval, percent, quantity
from wanbench.methods.regions import dyadic
from wanbench.methods.result import RowsResult
from wanbench.methods.result.estimate import t_quantile

from .sides import OfFaults, Side, differences, measured, of_findings

ALPHA = 0.05
MARGIN = 0.05  # Runs of one set-up on a shared machine differ by a few per cent.
CHANGED, UNDECIDED, EQUIVALENT = VERDICTS = ("changed", "undecided", "equivalent")
SUMMARY = "all"
SMALLEST_VARIANCE = 1e-6  # Scatter of 0.1 %: tools print three or four digits.
SMALLEST_ERROR = 1e-4  # Standard error of a summary over equal values, for the same reason.
MAD = 0.6745  # Median absolute deviation of a standard normal distribution.
# With two blocks, what a block did to all settings is known with one degree of freedom: in simulation, exit codes of
# equal runs were then wrong in 10 of 100 cases.
MIN_BLOCKS = 3
MIN_KEYS = 3  # With fewer settings, or regions, their spread says nothing.
# Degrees of freedom that all settings together add to one: as if variances of settings differed by a factor of 2 to 3.
# In the committed recordings they do; so few settings cannot show that they differ less.
MOST_PRIOR = 4.0
MIN_SCATTERS = 3  # Settings with repeated trials whose scatter can be compared.
SHOWN_ROWS = 40  # Rows of the figure: more are too close to read.
ONE_RUN = (
    "one side is a single run, so the intervals leave out effects that a whole run shares, such as a busy machine. "
    "Only several runs on both sides show such effects"
)
COLUMNS = ["quantity", "key", "unit", "a", "b", "ratio", "low", "high", "level", "p", "basis", "verdict", "reason"]


@dataclass(frozen=True, repr=False)
class Changes(RowsResult):
    """
    What changed from side `a` to side `b`.

    rows: A row per comparison, changed ones first: `quantity`, `key` ("all" for a summary), `a` and `b` (geometric
        means in `unit`), `ratio` (b over a) with its interval at `level`, `p` (corrected), `basis` (what the interval
        was computed from, such as "9 pairs"), `verdict` and, if undecided, the `reason`.
    margin: Ratios from 1 / (1 + margin) to 1 + margin do not matter.
    differs: How the set-ups differ: `what`, `a`, `b`.
    left_out: Keys that only one side has: `quantity`, `key`, `side`.
    """

    a: str
    b: str
    margin: float
    differs: pd.DataFrame
    left_out: pd.DataFrame
    notes: tuple[str, ...] = ()

    TITLE = "Comparisons"

    def exit_code(self, strict: bool = False) -> int:
        """Return 1 if something changed; else 3 if `strict` and something is undecided or on one side only; else 0."""
        if (self.rows.verdict == CHANGED).any():
            return 1
        return 3 if strict and ((self.rows.verdict == UNDECIDED).any() or len(self.left_out)) else 0

    @property
    def sentence(self) -> str:
        n = self.rows.verdict.value_counts()
        largest = self.rows[self.rows.verdict == CHANGED].head(3)
        found = [f"{row.quantity}, {row.key}: {text(row)}" for row in largest.itertuples()]
        first = f". {'; '.join(found)}{'; …' if n.get(CHANGED, 0) > 3 else ''}" if found else ""
        margin, every = percent(self.margin), count(len(self.rows), "comparison")
        rest = f"{n.get(EQUIVALENT, 0)} equivalent within {margin}, {n.get(UNDECIDED, 0)} undecided"
        return f"{n.get(CHANGED, 0)} of {every} changed beyond noise and {margin}; {rest}{first}."

    @property
    def cautions(self) -> tuple[str, ...]:
        alone = f"{count(len(self.left_out), 'value')} measured on one side only, and not compared"
        return (*self.notes, *((alone,) if len(self.left_out) else ()))

    def formatted_table(self) -> pd.DataFrame:
        heads = {"Verdict": self.rows.verdict, "Quantity": self.rows.quantity, "Of": self.rows.key}
        heads["B over A"] = [text(row) for row in self.rows.itertuples()]
        heads |= {name: self._values(name.lower()) for name in ("A", "B")}
        return pd.DataFrame(heads | {"From": self.rows.basis, "Why undecided": self.rows.reason.replace("", "–")})

    def _values(self, name: str) -> list[str]:
        return [quantity(value, unit) for value, unit in zip(self.rows[name], self.rows.unit, strict=True)]

    def figure(self) -> go.Figure:
        rows = self.rows.iloc[:SHOWN_ROWS]
        figure = go.Figure()
        grey: theme.Settings = {"fillcolor": theme.GRID, "line_width": 0, "layer": "below"}
        figure.add_vrect(x0=1 / (1 + self.margin), x1=1 + self.margin, **grey)
        for verdict, shade in zip(VERDICTS, (theme.OUTSIDE, theme.UNKNOWN, theme.WITHIN), strict=True):
            at = np.flatnonzero(rows.verdict == verdict)
            part, style = rows.iloc[at], {"size": 8, "color": shade}
            names = [theme.plain(f"{row.quantity}, {row.key}: {text(row)}") for row in part.itertuples()]
            ends = (part.ratio, part.low, part.high)
            primitives.interval_points(figure, at.tolist(), *ends, marker=style, text=names, name=verdict)
        primitives.label_rows(figure, [theme.plain(f"{row.quantity}, {row.key}") for row in rows.itertuples()])
        primitives.reference_line(figure, x=1)
        ends = rows[["ratio", "low", "high"]].clip(0.1, 10)  # intervals may be far wider
        ends = np.log10([0.99 * ends.min().min(), 1.01 * ends.max().max()]).tolist()
        figure.update_xaxes(title="B over A (logarithmic scale)", type="log", range=ends)
        figure.update_layout(height=160 + 22 * len(rows))
        more = f" The first {SHOWN_ROWS} of {len(self.rows)} comparisons." if len(self.rows) > len(rows) else ""
        return theme.finish(
            figure,
            name="changes",
            title="What changed, largest first",
            subtitle=f"B over A, with simultaneous intervals. Grey: the margin of {percent(self.margin)}.{more}",
            alt=f"Ratios of B to A. {self.sentence}",
            caption=self.sentence,
            table=self.rows,
        )


def text(row: Any) -> str:
    """Return the ratio of a row with its interval, as text."""
    value, ends = interval(row.ratio, row.low, row.high, "times")
    return f"{value} ({percent(round(row.level, 5))} interval {ends})" if ends else value


def compare(a: Side, b: Side, margin: float = MARGIN, of_faults: OfFaults | None = None) -> Changes:
    """
    Compare two sides, both of runs or both of findings; `of_faults` as in `sides.measured`.

    Raises ParameterError: the sides are of different kinds or are the same run, or have nothing in common.
    """
    check_number("margin", margin, 0, 1, above=True)
    if (a.findings is None) != (b.findings is None):
        raise ParameterError(f"{a.name} and {b.name}: one has runs and the other findings; allowed: two of a kind.")
    if a.findings is not None:
        return _judged(_findings(a, b), [], margin, a, b, (*a.notes, *b.notes))
    if same := {run.folder.resolve() for run in a.runs} & {run.folder.resolve() for run in b.runs}:
        raise ParameterError(f"{a.name} and {b.name} have the same run, {same.pop().name}; allowed: different runs.")
    values, notes = measured(a, b, of_faults)
    notes += (ONE_RUN,) if min(len(a.runs), len(b.runs)) < 2 else ()
    notes += tuple(f"run {run.run_id} is not finished" for run in (*a.runs, *b.runs) if not run.finished)
    return changes(values, margin, a, b, notes)


def changes(values: pd.DataFrame, margin: float, a: Side, b: Side, notes: tuple[str, ...] = ()) -> Changes:
    """Compare `values`, as `sides.measured` returns them; sides `a` and `b` are used for names and set-ups only."""
    values = values[values.value > 0].assign(log=lambda rows: np.log(rows.value))
    own = [set(map(tuple, values.loc[values.side == k, ["quantity", "key"]].to_numpy())) for k in (0, 1)]
    if not own[0] & own[1]:
        raise ParameterError(f"{a.name} and {b.name} have no pair, or no setting, in common.")
    alone = [(*what, a.name if what in own[0] else b.name) for what in sorted(own[0] ^ own[1])]
    both = values[[what in own[0] & own[1] for what in zip(values.quantity, values.key, strict=True)]]
    rows = pd.concat([_of_quantity(part) for _, part in both.groupby("quantity", sort=False)], ignore_index=True)
    return _judged(rows, alone, margin, a, b, notes)


def _findings(a: Side, b: Side) -> pd.DataFrame:
    rows = of_findings((a, b))
    if rows.empty:
        raise ParameterError(f"{a.name} and {b.name} share no finding with a positive number and interval.")
    error, freedom = combined(*((rows[f"error_{k}"] ** 2, rows[f"freedom_{k}"]) for k in (0, 1)))
    about = {"quantity": "finding", "unit": rows.unit_0, "log_a": rows.log_0, "log_b": rows.log_1}
    return rows[["key"]].assign(**about, error=error, freedom=freedom, basis="two intervals")


def combined(*parts: tuple[np.typing.ArrayLike, np.typing.ArrayLike]) -> tuple[Any, Any]:
    """
    Return the standard error of a sum of independent parts, and its degrees of freedom (Satterthwaite 1946).

    Each part is a variance and its degrees of freedom: numbers or arrays. If all variances are 0, return the sum of the
    degrees of freedom.

    >>> [float(number) for number in combined((1.0, 4.0), (1.0, 4.0))]
    [1.4142135623730951, 8.0]
    """
    arrays = [(np.asarray(variance, dtype=float), np.asarray(freedom, dtype=float)) for variance, freedom in parts]
    total = sum(variance for variance, _ in arrays)
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = total**2 / sum(np.where(variance > 0, variance**2 / own, 0.0) for variance, own in arrays)
    return np.sqrt(total), np.where(total > 0, freedom, sum(own for _, own in arrays))


def _of_quantity(part: pd.DataFrame) -> pd.DataFrame:
    """Return the comparisons of one quantity: the summary, if there are two keys or more, and each key."""
    keys = part.groupby("key")[["first", "second"]].first()
    means = part.groupby(["key", "side", "run_id"]).log.mean().groupby(["key", "side"]).mean().unstack()
    if part.groupby("side").run_id.nunique().min() > 1:
        cells = part.groupby(["key", "side", "run_id"], as_index=False).log.mean()
        summary, error, freedom, basis = _replicated(cells.set_axis(["key", "side", "unit", "log"], axis=1), "run")
    else:
        cells = part.groupby(["key", "block", "side"]).log.mean().unstack().dropna()
        sizes, enough = cells.groupby("key").size(), len(cells.index.unique("block")) >= MIN_BLOCKS
        if len(sizes) == len(keys) and sizes.max() > 1:
            means = cells.groupby("key").mean()
            ratios = (cells[1] - cells[0]).rename("log").reset_index().rename(columns={"block": "unit"}).assign(side=0)
            summary, error, freedom, basis = _replicated(ratios, "block")
            error = error if enough else nan
            spread = _over_keys(keys, (means[1] - means[0]).to_numpy())
            both = combined((summary[0] ** 2, summary[1]), (spread[0] ** 2, spread[1]))
            summary = (*map(float, both), f"{summary[2]}, {spread[2]}") if spread[0] >= 0 else summary
            summary = summary if enough else (nan, *summary[1:])
        else:
            summary, error, freedom, basis = _once(part, keys, (means[1] - means[0]).to_numpy())
    about = {"quantity": part.quantity.iloc[0], "unit": part.unit.iloc[0]}
    rows = pd.DataFrame({"key": keys.index, "log_a": means[0].to_numpy(), "log_b": means[1].to_numpy()})
    rows = rows.assign(**about, error=error, freedom=freedom, basis=basis)
    total = {"key": SUMMARY, "log_a": means[0].mean(), "log_b": means[1].mean(), **about}
    total |= dict(zip(("error", "freedom", "basis"), summary, strict=True))
    return pd.concat([pd.DataFrame([total]), rows], ignore_index=True) if len(keys) > 1 else rows


def _replicated(cells: pd.DataFrame, name: str) -> tuple[tuple[float, float, str], np.ndarray, np.ndarray, list[str]]:
    """
    Return (standard error, degrees of freedom, basis) from the logs of runs or blocks: of the summary, and of each key.

    All keys share the effect of a run, or of a block: its variance is in the interval of every key. `cells` has the
    columns `key`, `side`, `unit` (a run or block) and `log`.
    """
    rest = cells.log - cells.groupby(["key", "side"]).log.transform("mean")
    n_keys = cells.key.nunique()
    shared = rest.groupby([cells.side, cells.unit]).mean().groupby("side").agg(["var", "size"])
    error, freedom = combined(*zip(shared["var"] / shared["size"], shared["size"] - 1, strict=True))
    if n_keys > 1:
        rest = (rest - rest.groupby([cells.side, cells.unit]).transform("mean")) * sqrt(n_keys / (n_keys - 1))
    sizes = cells.groupby(["key", "side"]).size().unstack()
    degrees = (sizes - 1).sum(axis=1)
    scatter, own = moderated(((rest**2).groupby(cells.key).sum() / degrees).to_numpy(), degrees.to_numpy(dtype=float))
    parts = [(scatter * (1 / sizes).sum(axis=1).to_numpy(), own), *([(error**2, freedom)] if n_keys > 1 else [])]
    told = [shared["size"].tolist(), *sizes.astype(int).to_numpy().tolist()]
    summary, *basis = [" against ".join([count(row[0], name), *map(str, row[1:])]) for row in told]
    return (float(error), float(freedom), summary), *combined(*parts), basis


def _over_keys(keys: pd.DataFrame, shift: np.ndarray) -> tuple[float, float, str]:
    """Return the standard error of the mean log ratio from its spread over keys, which may share regions."""
    names = {name: k for k, name in enumerate(sorted({*keys["first"], *keys.second}))}
    if len(names) < MIN_KEYS:
        return nan, nan, f"fewer than {MIN_KEYS} regions or settings"
    first, second = (keys[end].map(names).to_numpy() for end in ("first", "second"))
    half = dyadic.ratio(shift, np.ones(len(shift)), first, second, len(names), 0.95)[1]
    pairs = f"{count(len(shift), 'pair')} of {count(len(names), 'region')}"
    basis = count(len(names), "setting") if (first == second).all() else pairs
    return half / t_quantile(0.95, len(names) - 1), len(names) - 1, basis


def _once(
    part: pd.DataFrame, keys: pd.DataFrame, shift: np.ndarray
) -> tuple[tuple[float, float, str], float | np.ndarray, float | np.ndarray, str]:
    """
    Return what `_replicated` does, for keys measured once per side: scatter over pairs replaces scatter over runs.
    """
    summary = _over_keys(keys, shift)
    if np.isnan(summary[0]):
        return summary, nan, nan, "once on each side"
    sides = part.groupby(["side", "key"])[["variance", "freedom"]].mean().reindex(keys.index, level="key").fillna(0.0)
    own = [(side.variance.to_numpy(), np.maximum(side.freedom.to_numpy(), 1)) for _, side in sides.groupby("side")]
    n = len({frozenset(pair) for pair in keys.to_numpy()})
    # the scatter of pings is in the spread too; it is added for pairs whose pings scatter more than those of others
    runs = max((np.median(np.abs(shift - np.median(shift))) / MAD) ** 2, SMALLEST_VARIANCE)
    basis = f"once on each side, spread of {count(n, 'pair')}"
    return summary, *combined(*own, (np.full(len(shift), runs), n - 1)), basis


def moderated(squares: np.ndarray, freedom: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """
    Shrink the sample variances (`squares`) of several settings towards their usual value (Smyth 2004, section 6.2).

    It counts for at most `MOST_PRIOR` degrees of freedom; fewer than `MIN_SCATTERS` variances are returned unchanged.
    Returns the variances and their degrees of freedom; NaN and 0 for settings without a variance of their own.

    >>> variances, freedoms = moderated(np.array([1.0, 1.2, 0.8, 1.0]), np.full(4, 2.0))
    >>> bool((abs(variances - 1) < 0.9).all()), freedoms.round(3).tolist()
    (True, [6.0, 6.0, 6.0, 6.0])
    """
    known = freedom > 0
    squares = np.where(known, np.maximum(squares, SMALLEST_VARIANCE), nan)
    if known.sum() < MIN_SCATTERS:
        return squares, freedom
    half = freedom[known] / 2
    logs = np.log(squares[known]) - special.digamma(half) + np.log(half)
    excess = max(logs.var(ddof=1) - special.polygamma(1, half).mean(), special.polygamma(1, MOST_PRIOR / 2))
    prior = 2 * optimize.brentq(lambda x: special.polygamma(1, x) - excess, 1e-6, MOST_PRIOR)
    usual = float(np.exp(logs.mean() + special.digamma(prior / 2) - np.log(prior / 2)))
    pooled = (prior * usual + freedom * squares) / (prior + freedom)
    return pooled, np.where(known, np.minimum(prior + freedom, freedom.sum()), 0.0)


def _judged(
    rows: pd.DataFrame, alone: list[tuple[str, str, str]], margin: float, a: Side, b: Side, notes: tuple[str, ...]
) -> Changes:
    """Give verdicts by simultaneous intervals: half of `ALPHA` for all summaries, half for all keys."""
    shift = (rows.log_b - rows.log_a).to_numpy()
    error = np.maximum(rows.error.to_numpy(dtype=float), SMALLEST_ERROR)
    freedom = rows.freedom.to_numpy(dtype=float)
    single = 2 * stats.t.sf(np.abs(shift) / error, freedom)
    summary = (rows.key == SUMMARY).to_numpy()
    tests = np.where(summary, (summary & np.isfinite(single)).sum(), (~summary & np.isfinite(single)).sum())
    tests = np.maximum(tests, 1) * (2 if summary.any() else 1)
    level, p = 1 - ALPHA / tests, np.minimum(tests * single, 1.0)
    half = t_quantile(level, freedom) * error
    edge = log(1 + margin)
    changed = (np.abs(shift) - half > 0) & (np.abs(shift) > edge)
    verdict = np.where(changed, CHANGED, np.where(np.abs(shift) + half <= edge, EQUIVALENT, UNDECIDED))
    wide = "the interval contains 1 and also ratios beyond the margin"
    small = "it changed, but perhaps by less than the margin"
    why = np.where(np.isnan(half), "too little shows how much runs differ", np.where(np.abs(shift) > half, small, wide))
    table = rows.assign(a=np.exp(rows.log_a), b=np.exp(rows.log_b), ratio=np.exp(shift), verdict=verdict, p=p)
    with np.errstate(over="ignore"):  # two blocks may leave an end beyond the largest float
        table = table.assign(level=level, low=np.exp(shift - half), high=np.exp(shift + half))
    table["reason"] = np.where(verdict == UNDECIDED, why, "")
    table["rank"] = [VERDICTS.index(name) for name in verdict]
    order = table.assign(detail=~summary, size=-np.abs(shift)).sort_values(
        ["rank", "detail", "size"] if changed.any() else ["detail", "rank", "size"]
    )
    left_out = pd.DataFrame(alone, columns=["quantity", "key", "side"])
    return Changes(order[COLUMNS].reset_index(drop=True), a.name, b.name, margin, differences(a, b), left_out, notes)
