"""
Compare settings with a baseline, from few trials each.

With two or three trials per setting, an interval from these trials alone (one or two degrees of freedom) is too wide to
be useful. So the scatter is pooled over all settings, which assumes that it is equal, relative to the mean. Intervals
are simultaneous over all settings (Dunnett 1955); each estimate also has its individual interval.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from math import isfinite, nan, sqrt

import numpy as np
import pandas as pd

from wanbench.checks import check_choice, check_columns
from wanbench.errors import ParameterError
from wanbench.formatting import count, number, p_value
from wanbench.methods.factorial.inference import critical
from wanbench.methods.factorial.terms import split_rows, with_blocks
from wanbench.methods.result import LEVEL, Estimate, Interval, reasons
from wanbench.methods.result.estimate import t_quantile
from wanbench.methods.result.means import half_width, ratio_estimate, welch_half_width

SINGLE = "this setting alone"
WELCH = "Welch's interval from the trials of the two settings"
PAIRS = "Student's t over the pairs of trials within blocks"
ASSUMPTION = (
    "All settings have the same relative, log-normal scatter; trials are independent, except for what those of a block "
    "have in common"
)
UNEQUAL_BELOW = 0.05  # There is a caution if the p-value of equal scatter is below this: one false alarm in twenty.
DRAWS = 2_000  # Number of draws of the test of equal scatter: a p-value of 0.05 is then accurate to 0.01.
RESTARTED = (
    "brokers were restarted between these settings, once per block. Differences between restarts affect the ratio, "
    "but hardly the pooled scatter, so the interval may be too narrow"
)
ROUNDING = 1e-12  # Sum of squared log residuals below which trials of a setting differ by rounding only.


@dataclass(frozen=True)
class AgainstBaseline:
    """
    The ratio of the response with each setting to that with the baseline.

    rows: One row per setting, the baseline included (ratio 1, no interval): `setting`, `n` (trials), `mean` (geometric
        mean of the response, at the average block), `ratio`, `low`, `high` (simultaneous over all settings) and
        `verdict` ("higher", "lower", "not shown" or "baseline").
    ratios: Maps each setting to the Estimate of its ratio, with a simultaneous interval. The Estimate's `others` are
        the individual interval, and an interval without pooling: Welch's or, with blocks, from pairs of trials.
    log_spread, freedom: Pooled standard deviation of the logarithm of the response within a setting (NaN without
        repeated trials), and its degrees of freedom.
    equal_spread_p: P-value of the test that all settings have equal scatter (Bartlett's statistic, its distribution
        simulated for this design); NaN if fewer than two settings were repeated.
    pooled: The method of pooling, as text.
    """

    rows: pd.DataFrame
    ratios: dict[Hashable, Estimate]
    log_spread: float
    freedom: int
    equal_spread_p: float
    pooled: str
    notes: tuple[str, ...]


def against_baseline(
    frame: pd.DataFrame,
    response: str,
    baseline: Hashable,
    by: str = "setting",
    block: str | None = None,
    *,
    restart: str | None = None,
) -> AgainstBaseline:
    """
    Estimate the ratio of each setting to the baseline, with intervals from the scatter pooled over all settings.

    frame: One row per trial. Rows without a positive `response` are left out, with a caution.
    baseline: The value of column `by` with which all others are compared.
    block: The column of blocks, such as replicates; effects that the trials of a block share are removed.
    restart: A column with the same value in settings that need no restart of the brokers between them. A ratio of
        settings with different values gets a caution, because the pooled scatter may lack the effect of restarts.
        If every setting has a different value, there is no caution.

    Raises ParameterError: the baseline or every other setting has no trial left, or some blocks share no setting with
        the others.

    >>> frame = pd.DataFrame({"setting": list("aaabbb"), "rate": [9.0, 10.0, 11.0, 19.0, 20.0, 21.0]})
    >>> result = against_baseline(frame, "rate", "a")
    >>> result.ratios["b"].formatted, result.freedom
    ('2.01 times', 4)
    """
    check_columns("frame", frame, [response, by, *(name for name in (block, restart) if name)])
    check_choice("baseline", baseline, frame[by].dropna().unique().tolist())
    trials, left_out = split_rows(frame, response, [by, *([block] if block else [])])
    settings = [baseline, *(name for name in _in_order(trials[by]) if name != baseline)]
    if baseline not in set(trials[by]) or len(settings) < 2:
        raise ParameterError(
            f"no trial with {by} {baseline!r}, or none with another one, is left of {count(len(frame), 'row')}: "
            f"{reasons(left_out) or 'nothing was left out'}."
        )
    log = np.log(trials[response].to_numpy(dtype=float))
    at = trials[by].map({name: k for k, name in enumerate(settings)}).to_numpy(dtype=int)
    indicators = np.eye(len(settings))[at]
    design = with_blocks(indicators, trials[block] if block else None)
    if np.linalg.matrix_rank(design) < design.shape[1]:
        raise ParameterError(
            f"blocks by {block} cannot be separated from settings by {by}: some share no setting; "
            "allowed: blocks that are linked by common settings, or block=None."
        )
    inverse = np.linalg.inv(design.T @ design)
    params = inverse @ design.T @ log
    maker = np.eye(len(log)) - design @ inverse @ design.T
    residual = maker @ log
    freedom = len(log) - design.shape[1]
    spread = sqrt(residual @ residual / freedom) if freedom > 0 else nan
    contrasts = np.eye(design.shape[1])[1 : len(settings)]
    contrasts[:, 0] = -1.0
    single = t_quantile(LEVEL, freedom) if freedom > 0 else nan
    # a single comparison needs no draws; for several, draws may give slightly less than its exact value
    together = max(critical(contrasts, inverse, freedom, LEVEL), single) if len(settings) > 2 else single
    equal_p, extremes = _equal_spread(residual, maker, indicators, settings)
    own = [log[at == k] for k in range(len(settings))]
    started = trials.groupby(by, sort=False)[restart].first() if restart else pd.Series(0, settings)
    apart = started.nunique() < len(settings)
    blocks = f" and {block}" if block else ""
    pooled = f"least squares of the logarithm on setting{blocks}, variance pooled within settings"
    pooled += f" ({freedom} degrees of freedom)"
    dunnett = f"largest |t| of {count(len(settings) - 1, 'comparison')} with one baseline (Dunnett 1955), by draws"
    estimates, units = {}, trials[list(dict.fromkeys([by, *([block] if block else [])]))]
    for name, contrast, logs in zip(settings[1:], contrasts, own[1:], strict=True):
        value, error = float(contrast @ params), spread * sqrt(contrast @ inverse @ contrast)
        others = ((SINGLE, single * error, value),) if freedom > 0 else ()
        others += _unpooled(units[units[by].isin([name, baseline])], log, name, by, block)
        warnings = () if freedom > 0 else ("no interval: no setting was measured twice",)
        warnings += (RESTARTED,) if apart and started[name] != started[baseline] else ()
        about = {"n": len(logs) + len(own[0]), "basis": f"{count(len(logs), 'trial')} against {len(own[0])}"}
        about |= {"method": f"{pooled}; {dunnett}", "assumption": ASSUMPTION, "warnings": warnings}
        estimates[name] = ratio_estimate(
            value,
            together * error if freedom > 0 else nan,
            quantity=f"{response}, {name} over {baseline}",
            claim=f"With {by} “{name}”, {response} is {{}} that with “{baseline}”",
            others=tuple(Interval(method, *np.exp([at - half, at + half])) for method, half, at in others),
            **about,
        )
    rows = _rows(settings, own, params, estimates)
    notes = _notes(rows, left_out, len(frame), equal_p, extremes)
    return AgainstBaseline(rows, estimates, spread, freedom, equal_p, pooled, notes)


def _in_order(values: pd.Series) -> list[Hashable]:
    """Sort numbers by size; keep all else in order of appearance."""
    result = values.unique().tolist()
    return sorted(result) if pd.api.types.is_numeric_dtype(values.dtype) else result


def _unpooled(
    pair: pd.DataFrame, log: np.ndarray, name: Hashable, by: str, block: str | None
) -> tuple[tuple[str, float, float], ...]:
    """Return the interval that only the trials of one setting and the baseline give, or () if they are too few."""
    logs, theirs = pd.Series(log[pair.index], index=pair.index), pair[by] == name
    if block is None:
        sides = [logs[~theirs].to_numpy(), logs[theirs].to_numpy()]
        method, half, middle = WELCH, welch_half_width(sides, LEVEL), sides[1].mean() - sides[0].mean()
    else:
        means = logs.groupby([pair[block], theirs]).mean().unstack()
        differences = (means[True] - means[False]).dropna()
        method, half, middle = PAIRS, half_width(differences, LEVEL), differences.mean()
    return ((method, float(half), float(middle)),) if isfinite(half) else ()


def _equal_spread(
    residual: np.ndarray, maker: np.ndarray, indicators: np.ndarray, settings: list[Hashable]
) -> tuple[float, tuple[tuple[Hashable, float], ...]]:
    """
    Test for equal scatter; return the p-value, the settings with most and least scatter, and both standard deviations.

    The statistic is Bartlett's (1937), as Levene's fails with two trials, which are equally far from their median. The
    p-value comes from simulation of the design: chi-square is crude at one degree of freedom and ignores blocks.
    """
    freedoms = np.diag(maker) @ indicators
    squares = residual**2 @ indicators
    # A setting with less than one degree of freedom was measured once; that fraction comes from its block.
    repeated = (indicators.sum(axis=0) > 1) & (freedoms > 0.5)
    if repeated.sum() < 2 or squares[repeated].sum() < ROUNDING:
        return nan, ()
    own = freedoms[repeated]

    def bartlett(sums: np.ndarray):
        variances = np.maximum(sums, ROUNDING) / own
        pooled = np.maximum(sums.sum(axis=-1), ROUNDING) / own.sum()
        return own.sum() * np.log(pooled) - (own * np.log(variances)).sum(axis=-1)

    noise = np.random.default_rng(0).normal(size=(DRAWS, len(residual))) @ maker
    scale = squares.sum() / freedoms.sum()
    drawn = bartlett((scale * noise**2) @ indicators[:, repeated])
    p = float((1 + (drawn >= bartlett(squares[repeated])).sum()) / (1 + DRAWS))
    names = [name for name, there in zip(settings, repeated, strict=True) if there]
    spreads = np.sqrt(squares[repeated] / own)
    return p, tuple((names[k], float(spreads[k])) for k in (spreads.argmax(), spreads.argmin()))


def _rows(
    settings: list[Hashable], own: list[np.ndarray], params: np.ndarray, estimates: dict[Hashable, Estimate]
) -> pd.DataFrame:
    rows = []
    for name, logs, level in zip(settings, own, params, strict=False):
        ends, verdict = (1.0, nan, nan), "baseline"
        if one := estimates.get(name):
            ends = (one.estimate, one.low, one.high)
            verdict = "higher" if one.low > 1 else "lower" if one.high < 1 else "not shown"
        rows.append((name, len(logs), float(np.exp(level)), *ends, verdict))
    return pd.DataFrame(rows, columns=["setting", "n", "mean", "ratio", "low", "high", "verdict"])


def _notes(
    rows: pd.DataFrame, left_out: pd.DataFrame, n: int, equal_p: float, extremes: tuple[tuple[Hashable, float], ...]
) -> tuple[str, ...]:
    notes = []
    if equal_p < UNEQUAL_BELOW:
        (most, widest), (least, narrowest) = extremes
        notes.append(
            f"settings have unequal scatter ({p_value(equal_p)}): trials of “{most}” scatter by "
            f"{number(100 * widest, 1)} %, those of “{least}” by {number(100 * narrowest, 1)} %. Intervals from "
            "the pooled scatter are too narrow for settings with more scatter"
        )
    once = rows.setting[rows.n == 1]
    if len(once) and (rows.n > 1).any():
        notes.append(
            f"measured only once: {', '.join(f'“{name}”' for name in once)}; the interval uses the scatter of the "
            "others"
        )
    if len(left_out):
        notes.append(f"{len(left_out)} of {count(n, 'trial')} not used: {reasons(left_out)}")
    return tuple(notes)
