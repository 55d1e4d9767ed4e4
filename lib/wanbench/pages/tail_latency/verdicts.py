"""
Decide for each row of a table whether one system's latency tail is better, worse or tied, from repeated trials of both.

The ratio of both systems' quantiles is taken within each block, and averaged geometrically over blocks, with Student's
t on the logarithm. The verdict is "tied" if the interval of the mean ratio lies within a margin around 1, which amounts
to two one-sided tests (Schuirmann 1987) at (1 - level) / 2 each. Otherwise it is "better" or "worse" if the ratio
differs significantly from 1, and "not enough data" if not. The p-values of both kinds of test are adjusted over the
rows (Holm 1979), so that a table of equal systems has any false verdict in 5 of 100 cases.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, log, nan

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.multitest import multipletests

from wanbench.checks import check_kind
from wanbench.errors import ParameterError
from wanbench.formatting import count, number
from wanbench.methods.result import Estimate, Fields, RowsResult
from wanbench.methods.result.means import half_width, ratio_estimate
from wanbench.methods.tails import quantile_intervals as order
from wanbench.methods.tails.distribution import Tail

from .quantiles import QUANTILES
from .trials import TailTrials

VERDICTS = ("better", "worse", "tied", "not enough data")
ALPHA, MARGIN = 0.05, 0.10
"""
Ratios within 10 % on either side count as tied: two runs of one system hours apart differ by about as much, so a
smaller ratio is no reason to choose a system.
"""
MIN_BLOCKS = 3
"""
With two blocks t has one degree of freedom: a ratio of 2 would differ significantly from 1 only if both blocks agreed
to within 6 %.
"""
MIN_BEYOND = 5
"""
Minimum number of records above the quantile in each trial. With fewer records, the quantile is near the slowest record,
and depends on the number of records of the trial.
"""
COARSE = 0.01
"""
The resolution of latencies is ignored below this share of the quantile, because the resolution is then small compared
with the margin.
"""
METHOD = "Student's t on the logarithm of the ratio within a block (paired); geometric mean over blocks"
ASSUMPTION = "Blocks are independent and represent further blocks; logarithms of ratios scatter symmetrically"


@dataclass(frozen=True, repr=False)
class Verdicts(RowsResult):
    """
    Verdicts on two systems a and b, with the ratios of their quantiles (`ratios`), row by row.

    `rows` has the columns `row` (label), `quantile`, `ratio` (b over a, of typical trials), `p_differs` and `p_tied`
    (adjusted), `verdict` (on b, for all rows together), `verdict_alone` (as if the row were the only one) and `reason`
    (of "not enough data").
    """

    ratios: tuple[Estimate, ...]


def verdict(a: TailTrials, b: TailTrials, at: float | Sequence[float] = QUANTILES) -> Verdicts:
    """Decide whether b's latency is better than, worse than or tied with a's at one load, at each quantile in `at`."""
    return verdicts({"": (a, b)}, at)


def verdicts(
    rows: Mapping[Hashable, tuple[TailTrials, TailTrials]], at: float | Sequence[float] = QUANTILES
) -> Verdicts:
    """
    Decide for each row of a table, and each quantile in `at`, whether b's latency is better, worse or tied with a's.

    `rows` maps the label of each row, such as a step, to the trials of a and of b, which are compared within blocks.
    The p-values are adjusted for all rows and quantiles together.
    """
    quantiles = order.check_quantiles(at)
    if not check_kind("rows", rows, Mapping):
        raise ParameterError("rows is empty; allowed: at least one row.")
    judged = [_row(label, a, b, q) for label, (a, b) in rows.items() for q in quantiles]
    table = pd.DataFrame([row for row, _ in judged])
    alone = {name: table[name].copy() for name in ("p_differs", "p_tied")}
    for name, p in alone.items():
        if p.notna().any():
            table.loc[p.notna(), name] = multipletests(p.dropna(), method="holm")[1]
    table["verdict"] = list(map(_verdict, table.ratio, table.p_differs, table.p_tied))
    table["verdict_alone"] = list(map(_verdict, table.ratio, alone["p_differs"], alone["p_tied"]))
    undecided = (table.verdict == VERDICTS[-1]) & (table.reason == "")
    table.loc[undecided, "reason"] = "the interval contains 1 and also ratios outside the margin of a tie"
    single = undecided & (table.verdict_alone != VERDICTS[-1])
    table.loc[single, "reason"] = table.verdict_alone + " if this were the only row, but not for all rows at once"
    return Verdicts(table, tuple(estimate for _, estimate in judged))


def _verdict(ratio: float, p_differs: float, p_tied: float) -> str:
    if p_tied <= ALPHA:
        return "tied"
    if p_differs <= ALPHA:
        return "better" if ratio < 1 else "worse"
    return VERDICTS[-1]


def _row(label: Hashable, a: TailTrials, b: TailTrials, q: float) -> tuple[Fields, Estimate]:
    check_kind("a", a, TailTrials)
    check_kind("b", b, TailTrials)
    logs, notes = _log_ratios(a, b, q)
    reason = _too_few(a, b, q, len(logs))
    coarse = 0.0 if reason else _coarseness(a, b, q)
    half = nan if reason else float(half_width(logs, 1 - ALPHA)) + coarse
    if coarse:
        resolution = f"the values have a resolution of {number(100 * coarse, 0)} % of the ratio"
        notes += (f"{resolution}, so the interval is wider by that amount",)
    # If the quantile of one system falls on a lost record, the ratio is only a limit; if both do in a block, there is
    # no ratio.
    lost_a, lost_b = (bool(np.isinf(each.by_trial(q)).any()) for each in (a, b))
    mean = float(logs.mean()) if len(logs) and not _both_lost(a, b, q) else nan
    if (lost_a or lost_b) and np.isfinite(mean):
        notes += ("the ratio is only a limit, because one system lost records",)
    name = order.name(q)
    at = f"{name}, {label}" if label != "" else name
    about = {"quantity": f"{at}, {b.name} over {a.name}", "n": len(logs), "basis": count(len(logs), "block")}
    about |= {"claim": f"{name} of a trial of {b.name} is {{}} that of {a.name}", "level": 1 - ALPHA}
    about |= {"warnings": (*notes, f"not enough data: {reason}") if reason else notes}
    estimate = ratio_estimate(mean, half, method=METHOD, assumption=ASSUMPTION, **about)
    if not reason:
        estimate = replace(estimate, low=0.0 if lost_a else estimate.low, high=inf if lost_b else estimate.high)
    differs, tied = (nan, nan) if reason else _p_values(logs, log(1 + MARGIN), coarse)
    if lost_a or lost_b:  # a limit can only show a difference on its own side, and no tie
        differs, tied = nan if (lost_a and mean > 0) or (lost_b and mean < 0) else differs, nan
    row = {"row": label, "quantile": q, "ratio": estimate.estimate, "p_differs": differs, "p_tied": tied}
    return row | {"reason": reason}, estimate


def _coarseness(a: TailTrials, b: TailTrials, q: float) -> float:
    """
    Return the largest error of a log ratio that the resolution of latencies can cause; 0 if it is below `COARSE`.

    The error is the resolution over the quantile, summed over both systems. The resolution is the stated value or, if
    larger, the smallest difference between two values of a trial.
    """

    def relative(tail: Tail) -> float:
        nearest = np.diff(tail.values_ms).min() if len(tail.values_ms) > 1 else 0.0
        return max(tail.resolution_ms, nearest) / tail.quantile(q)

    error = sum(float(np.mean([relative(tail) for tail in each.tails])) for each in (a, b))
    return error if error >= COARSE else 0.0


def _p_values(logs: np.ndarray, margin: float, coarse: float = 0.0) -> tuple[float, float]:
    """
    Return two p-values: of the hypothesis that the ratio is 1, and of the hypothesis that it lies outside the margin.

    The second one is doubled, so that it is at most alpha if the interval at level 1 - alpha lies within the margin.
    `margin` is that of the log ratio; `coarse` is how far the mean of `logs` may be wrong in either direction.

    >>> [round(p, 4) for p in _p_values(np.log([1.01, 0.99, 1.02, 0.98]), np.log(1.1))]
    [0.9899, 0.0019]
    """
    n, mean = len(logs), logs.mean()
    error = max(logs.std(ddof=1) / n**0.5, 1e-12)  # equal to the last digit: histograms have few values
    differs = 2 * stats.t.sf(max(abs(mean) - coarse, 0.0) / error, n - 1)
    return float(differs), float(min(2 * stats.t.sf((margin - abs(mean) - coarse) / error, n - 1), 1.0))


def _log_ratios(a: TailTrials, b: TailTrials, q: float) -> tuple[np.ndarray, tuple[str, ...]]:
    """
    Return the log ratio, b over a, in each block with trials of both systems, and notes on what is left out.

    Several trials of one system in a block count as their geometric mean.
    """
    sides = {name: pd.Series(each.by_trial(q), index=list(each.blocks)) for name, each in (("a", a), ("b", b))}
    values = pd.concat(sides)
    if (values <= 0).any():
        return np.empty(0), ()
    notes = ()
    if np.isinf(values).any():
        arrived = [tail.values_ms[-1] for each in (a, b) for tail in each.tails if len(tail.values_ms)]
        if not arrived:
            return np.empty(0), ("no record arrived",)
        values = values.replace(np.inf, max(arrived))
        notes = (
            f"{order.name(q)} of some trials falls on a lost record, which counts as the slowest record that arrived",
        )
    means = np.log(values).groupby(level=[0, 1], sort=False).mean().unstack(0)
    apart = int(means.isna().any(axis=1).sum())
    if apart:
        notes += (f"{count(apart, 'block')} left out, because one of the systems has no trial there that counts",)
    means = means.dropna()
    return (means["b"] - means["a"]).to_numpy(), notes


def _too_few(a: TailTrials, b: TailTrials, q: float, blocks: int) -> str:
    if any((each.by_trial(q) <= 0).any() for each in (a, b)):
        return f"{order.name(q)} of a trial is not above 0 ms, so it has no ratio; the clocks may differ"
    if blocks < MIN_BLOCKS:
        return f"{count(blocks, 'block')} with trials of both; {MIN_BLOCKS} are needed"
    least = min(tail.n for each in (a, b) for tail in each.tails)
    if least * (1 - q) < MIN_BEYOND - 1e-9:
        return f"a trial has {number(least, 0)} records; {order.name(q)} needs {number(MIN_BEYOND / (1 - q), 0)}"
    if both := _both_lost(a, b, q):
        return f"{order.name(q)} of both systems falls on a lost record in {count(both, 'block')}"
    return ""


def _both_lost(a: TailTrials, b: TailTrials, q: float) -> int:
    """Count the blocks in which the quantiles of both systems fall on lost records."""
    return len(set.intersection(*(set(np.array(each.blocks)[np.isinf(each.by_trial(q))]) for each in (a, b))))
