"""
Fit log throughput on the logarithms of delay, jitter, loss, rate and other factors.

A coefficient is an elasticity: if a factor changes by 1 %, throughput changes by that many per cent. For a factor
without a logarithm (acks; jitter or loss with a level of 0) it is a contrast: log throughput at the high level minus
that at the low level. With interactions, elasticities and contrasts depend on the levels of the other factors. The
thesis "latency matters more than bandwidth" holds where halving the delay gains more than doubling the rate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import exp, isfinite, sqrt

import numpy as np
import pandas as pd
from statsmodels.regression.linear_model import OLS

from wanbench.checks import check_columns, check_kind
from wanbench.errors import ParameterError
from wanbench.formatting import count, number
from wanbench.methods.factorial.inference import NAME, REPLICATES, RobustVariance, lack_of_fit, robust_variance
from wanbench.methods.factorial.terms import (
    Factor,
    chosen_terms,
    coded,
    columns,
    effect_words,
    factors_of,
    usable_runs,
    with_blocks,
    word,
)
from wanbench.methods.result import LEVEL, Estimate, reasons
from wanbench.methods.result.estimate import t_quantile
from wanbench.pages.private_vs_internet.result import Factorial

from .gain_map import DOUBLING, GainMap

Change = Callable[[float], float]
ALIASED = 1 - 1e-9  # Correlation from which two effects count as equal
LISTED_ORDER = 2  # Effects of up to this many factors have a row in the table of aliases
SEARCHED_ORDER = 3  # Effects of up to this many factors can be aliases; higher orders are assumed negligible


def alias_table(runs: pd.DataFrame, factors: Sequence[str]) -> pd.DataFrame:
    """
    List the effects with which each main effect and two-factor interaction is confounded, one row per effect.

    Column `aliased_with` lists the fully confounded effects, with a minus for opposite sign. It is computed from the
    runs that exist, not from the design.

    runs: One row per run.
    factors: Columns of `runs`. Levels are coded by rank, evenly from -1 to 1.

    >>> from wanbench.designs import factorial
    >>> half = factorial({name: [0, 1] for name in "abc"}, fraction={"c": "ab"}, replicates=1)
    >>> alias_table(half, "abc").set_index("effect").aliased_with.to_dict()
    {'a': 'b:c', 'b': 'a:c', 'c': 'a:b', 'a:b': 'c', 'a:c': 'b', 'b:c': 'a'}
    """
    factors = list(factors)
    check_columns("runs", runs, factors)
    codes = {name: _alias_code(runs[name]) for name in factors}
    terms = [term for order in range(1, SEARCHED_ORDER + 1) for term in combinations(factors, order)]
    names = [":".join(term) for term in terms]
    matrix = np.column_stack([np.prod([codes[name] for name in term], axis=0) for term in terms])
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = np.atleast_2d(np.nan_to_num(np.corrcoef(matrix, rowvar=False)))
    np.fill_diagonal(correlation, 0.0)
    rows = []
    for term, name, own in zip(terms, names, correlation, strict=True):
        if len(term) <= LISTED_ORDER:
            equal = [(other, r) for other, r in zip(names, own, strict=True) if abs(r) >= ALIASED]
            rows.append((name, ", ".join(f"{'-' if r < 0 else ''}{other}" for other, r in equal)))
    return pd.DataFrame(rows, columns=["effect", "aliased_with"])


def _alias_code(values: pd.Series) -> np.ndarray:
    ranks = pd.factorize(values.astype(str) if values.dtype == object else values, sort=True)[0].astype(float)
    return 2 * ranks / max(ranks.max(), 1.0) - 1


METHOD = (
    "least squares of log throughput on centred log factors and contrasts, one value per run; the wider of two "
    f"intervals, from pooled scatter and from the {NAME}, here {{}}"
)
ASSUMPTION = (
    "Runs are independent and in random order, the link had the requested settings, and the response is log-linear "
    "between the levels"
)
LACK_P = 0.01  # p-value below which the model does not fit; small, because every experiment is tested
FEW_DEGREES = 5  # With fewer degrees of freedom an interval is more than 30 % wider than with many


def fit_factorial(
    observations: pd.DataFrame,
    response: str,
    factors: Sequence[str],
    *,
    interactions: Sequence[tuple[str, ...]] | str = "all",
    contrasts: Sequence[str] = (),
    block: str | None = None,
    delay: str = "delay_ms",
    rate: str = "rate_bps",
) -> Factorial:
    """
    Fit a factorial experiment.

    observations: One row per run, with the response (such as batches_per_s) and the factors. Rows that lack a factor or
        a positive response are left out and counted.
    factors: Columns of positive numbers, whose logarithm is taken, or of two levels (see `contrasts`).
    interactions: Products of factors to fit, or "all" pairs.
    contrasts: Factors whose two levels are compared, high over low. Columns of text are always contrasts.
    block: Column of blocks, such as the replicate; differences between blocks are removed.
    delay, rate: The factors that the thesis compares; without both in `factors`, the thesis is not tested.

    Raises ParameterError: a column is missing, a factor does not vary or is not positive, there are fewer than two runs
        more than coefficients, or the runs cannot separate the effects.
    """
    names = list(check_kind("factors", factors, Iterable))
    terms = chosen_terms(names, interactions)
    runs, left_out, levels = usable_runs(observations, response, names, contrasts, block)
    used = factors_of(runs, names, levels)
    codes = coded(used, runs)
    blocks = runs["_block"] if block else None
    aliases = alias_table(runs, names)
    design = with_blocks(columns(codes, terms), blocks)
    _check_design(design, terms, aliases)
    log_response = np.log(runs["_response"].to_numpy())
    fit = OLS(log_response, design).fit()
    combination = runs.groupby(names).ngroup().to_numpy()
    robust = robust_variance(design, fit.resid, combination)
    freedom = int(fit.df_resid)
    cells = with_blocks(pd.get_dummies(combination, dtype=float).to_numpy(), blocks)
    lack_p, against = lack_of_fit(design, log_response, cells, _squares(codes))
    basis = f"{count(len(runs), 'run')} at {count(len(set(combination)), 'combination')}"
    if against != REPLICATES:
        basis += ", each measured once"
    cautions = _cautions(left_out, lack_p, against, freedom, aliases)
    pooled = np.asarray(fit.cov_params())
    sums = _Combinations(fit.params, robust, pooled, freedom, basis, len(runs), cautions)
    elasticities, doublings, effects = _main_effects(sums, used, response)
    thesis = None
    measured = grid = pd.DataFrame(columns=[*names, "gain", "low", "high", "verdict"])
    if {delay, rate} <= {*elasticities}:
        gain = -sums.unit(1 + names.index(delay)) - sums.unit(1 + names.index(rate))
        claim = f"halving the {word(delay)} gains {{}} as much in {word(response)} as doubling the {word(rate)}"
        claim = f"On average between the levels, {claim}"
        thesis = sums.estimate(gain, "halved delay over doubled rate", claim, _doubled, "times")
        covariances = (robust.covariance, pooled)
        gain_map = GainMap(used, terms, delay, rate, fit.params, covariances, freedom)
        measured, grid = runs[names].drop_duplicates().sort_values(names), gain_map.grid(runs)
        gain_map.make_simultaneous(pd.concat([measured, grid], ignore_index=True))
        measured, grid = gain_map.gains(measured), gain_map.gains(grid)
    crossed = _interactions(sums, terms, used, response)
    runs = runs.rename(columns={"_response": "response", "_block": "block"})
    estimates = (elasticities, crossed, doublings, effects, thesis)
    return Factorial(*estimates, measured, grid, response, delay, rate, lack_p, runs)


@dataclass(frozen=True)
class _Combinations:
    """
    Estimates linear combinations of the coefficients, with intervals.

    An interval is the wider of two: from the robust variance, which may be small by chance with few runs, and from the
    scatter pooled over all runs.
    """

    params: np.ndarray
    robust: RobustVariance
    pooled: np.ndarray
    pooled_freedom: int
    basis: str
    n: int
    cautions: tuple[str, ...]

    def unit(self, at: int) -> np.ndarray:
        """Return the weights that select coefficient number `at`."""
        return (np.arange(len(self.params)) == at).astype(float)

    def estimate(
        self, weights: np.ndarray, quantity: str, claim: str, change: Change = float, unit: str = ""
    ) -> Estimate:
        """Estimate the sum of coefficients weighted by `weights`; `change` transforms the value and both ends."""
        freedom = self.robust.freedom(weights)
        value = float(weights @ self.params)
        half = max(
            sqrt(max(float(weights @ cover @ weights), 0.0)) * t_quantile(LEVEL, degrees)
            for cover, degrees in ((self.robust.covariance, freedom), (self.pooled, self.pooled_freedom))
        )
        names = {"quantity": quantity, "claim": claim, "unit": unit, "method": METHOD.format(number(freedom, 1))}
        shared = {"n": self.n, "basis": self.basis, "warnings": self.cautions}
        estimate, low, high = (change(end) for end in (value, value - half, value + half))
        return Estimate(estimate=estimate, low=low, high=high, assumption=ASSUMPTION, **names, **shared)


def _doubled(value: float) -> float:
    return DOUBLING**value


def _main_effects(
    sums: _Combinations, factors: Sequence[Factor], response: str
) -> tuple[dict[str, Estimate], dict[str, Estimate], dict[str, Estimate]]:
    elasticities, doublings, effects = {}, {}, {}
    for j, factor in enumerate(factors):
        name, unit = factor.name, sums.unit(1 + j)
        factor_word, response_word = word(name), word(response)
        if factor.is_contrast:
            low, high = factor.labels
            claim = f"With {factor_word} {high}, {response_word} is {{}} the value with {factor_word} {low}"
            effects[name] = sums.estimate(unit, factor.step, claim, exp, "times")
            continue
        between = f"On average from {factor.span},"
        claim = f"{between} the elasticity of {response_word} to {factor_word} is {{}}"
        elasticities[name] = sums.estimate(unit, f"elasticity to {factor_word}", claim)
        claim = f"{between} each doubling of {factor_word} multiplies {response_word} by {{}}"
        doublings[name] = sums.estimate(unit, f"doubling {factor_word}", claim, _doubled)
    return elasticities, doublings, effects


def _interactions(
    sums: _Combinations, terms: Sequence[tuple[str, ...]], factors: Sequence[Factor], response: str
) -> dict[tuple[str, ...], Estimate]:
    by_name, response = {factor.name: factor for factor in factors}, word(response)
    estimates = {}
    for at, term in enumerate(terms, start=1 + len(factors)):
        logs = [by_name[name] for name in term if not by_name[name].is_contrast]
        steps = [by_name[name] for name in term if by_name[name].is_contrast]
        quantity, change, unit = f"interaction of {' and '.join(map(word, term))}", float, ""
        match len(logs), len(steps):
            case 2, 0:
                claim = f"The elasticity of {response} to {word(term[0])} changes by {{}} per e-fold of {word(term[1])}"
            case 1, 1:
                levels = f"{word(steps[0].name)} {' to '.join(steps[0].labels)}"
                claim = f"The elasticity of {response} to {word(logs[0].name)} changes by {{}} from {levels}"
            case 0, 2:
                low, high = (f"{word(steps[1].name)} {label}" for label in steps[1].labels)
                claim = f"The ratio of {response} for {steps[0].step} is {{}} as large with {high} as with {low}"
                change, unit = exp, "times"
            case _:
                claim = f"The {quantity} (log {response} per e-fold or step of each) is {{}}"
        estimates[term] = sums.estimate(sums.unit(at), quantity, claim, change, unit)
    return estimates


def _check_design(design: np.ndarray, terms: Sequence[tuple[str, ...]], aliases: pd.DataFrame) -> None:
    n_runs, n_coefficients = design.shape
    if n_runs < n_coefficients + 2:
        given = f"{count(n_runs, 'run')} for {n_coefficients} coefficients"
        raise ParameterError(f"{given}; allowed: at least 2 runs more than coefficients")
    if np.linalg.matrix_rank(design) == n_coefficients:
        return
    fitted = {":".join(term) for term in terms}
    equal = aliases[(aliases.aliased_with != "") & aliases.effect.isin(fitted)].head(3)
    listed = "; ".join(f"{row.effect} = {row.aliased_with}" for row in equal.itertuples())
    listed = f": {listed}" if listed else ""
    raise ParameterError(f"the runs cannot separate these effects{listed}; drop an interaction, or add combinations")


def _squares(codes: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the squares of the coded factors that have three levels or more, to test for curvature."""
    squares = [code**2 for code in codes.values() if len(np.unique(code)) > 2]
    return np.column_stack(squares) if squares else np.empty((len(next(iter(codes.values()))), 0))


def _cautions(
    left_out: pd.DataFrame, lack_p: float, against: str, freedom: int, aliases: pd.DataFrame
) -> tuple[str, ...]:
    cautions = []
    if len(left_out):
        cautions.append(f"{count(len(left_out), 'row')} left out ({reasons(left_out)})")
    if isfinite(lack_p) and lack_p < LACK_P:
        p = number(lack_p) if lack_p >= 0.001 else "below 0.001"
        cautions.append(
            f"the model does not fit (lack of fit, tested against {against}, p = {p}): the response is not log-linear "
            "between the levels, or interactions are missing, so an elasticity is an average over a curve"
        )
    elif against != REPLICATES:
        result = f"there is none (p = {number(lack_p)})" if isfinite(lack_p) else "there are too few runs to test it"
        cautions.append(f"without replicates only curvature of several factors together can be detected: {result}")
    elif not isfinite(lack_p):
        cautions.append("the fit of the model is not tested: the model is saturated, or leaves no residuals")
    mixed = aliases[(aliases.aliased_with != "") & ~aliases.effect.str.contains(":")]
    if len(mixed):
        pairs = [(effect_words(row.effect), effect_words(row.aliased_with)) for row in mixed.head(3).itertuples()]
        listed = "; ".join(f"{one} with {other}" for one, other in pairs)
        more = f" and {len(mixed) - 3} more" if len(mixed) > 3 else ""
        cautions.append(f"in this fraction main effects are confounded with interactions ({listed}{more})")
    if freedom < FEW_DEGREES:
        cautions.append(f"only {count(freedom, 'degree')} of freedom")
    return tuple(cautions)
