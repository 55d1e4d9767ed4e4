"""
What matters more: delay, jitter, loss and rate varied apart, and log(throughput) fitted on their logarithms.

A coefficient is an elasticity: the per cent that throughput changes by per per cent of the factor. A factor without a
logarithm (acks; jitter or loss with a level of 0) is a contrast: what its high level multiplies throughput by. With
interactions both differ from place to place in the space of the factors, so the thesis "latency matters more than
bandwidth" is a statement about a region of that space: where halving the delay gains more than doubling the rate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, isfinite, sqrt

import numpy as np
import pandas as pd
import statsmodels.api as sm
from scipy import stats

from ...checks import check_level
from ...errors import ParameterError
from ...formatting import count, number
from ..result import Estimate, Interval
from . import robust_variance
from .aliases import alias_table
from .gain_map import DOUBLING, Places
from .lack_of_fit import REPLICATES, lack_of_fit
from .result import Factorial
from .runs import per_run, usable_rows
from .terms import Factor, chosen_terms, coded, columns, estimable, factors_of, with_blocks

METHOD = (
    "least squares of log throughput on centred log factors and contrasts, one value per run; interval from the "
    f"{robust_variance.NAME}, here {{}}"
)
ASSUMPTION = (
    "Runs are independent and in random order, the link delivered what was asked for, and between the levels the "
    "logarithms run straight"
)
NAIVE = "all values taken as runs"
LACK = 0.01
ONCE = "each measured once, so it is hardly tested whether the model fits"


def fit_factorial(
    observations: pd.DataFrame,
    response: str,
    factors: Sequence[str],
    *,
    interactions: Sequence[tuple[str, ...]] | str | int = "all",
    contrasts: Sequence[str] | Mapping[str, tuple] = (),
    run: str | None = None,
    block: str | None = None,
    offsets: Mapping[str, float] | None = None,
    delay: str = "delay_ms",
    rate: str = "rate_bps",
    level: float = 0.95,
) -> Factorial:
    """
    Fit the experiment.

    Parameters
    ----------
    observations : DataFrame
        Rows with the response (such as throughput_bps or batches_per_s) and the factors. Rows without, or whose
        response is not positive, are left out and counted.
    factors : sequence of str
        Columns: positive numbers, because their logarithm is taken, or one of two levels (see `contrasts`).
    interactions : "all", "estimable", int, or sequence of tuples of str
        Which products of factors to fit: all pairs; those pairs that the runs of a fraction can tell apart (the first
        of each set that they cannot, and a caution says so); all up to an order; or those named.
    contrasts : sequence of str, or mapping
        Factors of which two levels are compared, high over low, instead of their logarithm taken: `["loss"]`, or with
        the levels, low first: `{"loss": (0.0, 0.001), "acks": ("1", "all")}`. Columns of text always are.
    run : str
        Column that says which run a row belongs to: a run's mean is one value. Without it each row is a run.
    block : str
        Column of blocks, such as the replicate: each has a level of its own.
    offsets : mapping
        Added to a factor before its logarithm is taken, for one with a level of 0: `{"loss": 1e-4}`. Its elasticity
        is then that of loss + 0.0001.
    delay, rate : str
        The factors that the thesis compares; without either in `factors` there is no thesis.

    Raises
    ------
    ParameterError
        For missing columns, a factor that does not vary or is not positive, fewer runs than coefficients + 2, and
        effects that the runs cannot tell apart.
    """
    level = check_level(level)
    names, offsets = list(factors), dict(offsets or {})
    terms = chosen_terms(names, interactions)
    rows, left_out, two = usable_rows(observations, response, names, contrasts, run, block, offsets)
    runs = per_run(rows, response, names, run, block)
    known = factors_of(runs, names, two, offsets)
    codes = coded(known, runs)
    blocks = runs["_block"] if block else None
    dropped = []
    if interactions == "estimable":
        terms, dropped = estimable(codes, terms, blocks)
    aliases = alias_table(runs, names)
    design = with_blocks(columns(codes, terms), blocks)
    _check_design(design, runs, terms, aliases)
    log_response = np.log(runs["_response"].to_numpy())
    fit = sm.OLS(log_response, design).fit()
    combination = runs.groupby(names).ngroup().to_numpy()
    robust = robust_variance.robust_variance(design, fit.resid, combination)
    freedom = int(fit.df_resid)
    cells = with_blocks(pd.get_dummies(combination, dtype=float).to_numpy(), blocks)
    p_value, against = lack_of_fit(design, log_response, cells, _squares(codes))
    single = _over_rows(rows, response, known, terms, block) if len(rows) > len(runs) else None
    make = _Maker(
        params=fit.params,
        robust=robust,
        level=level,
        basis=f"{count(len(runs), 'run')} at {count(len(set(combination)), 'combination')}"
        + ("" if against == REPLICATES else f", {ONCE}"),
        n=len(runs),
        notes=_notes(left_out, p_value, against, freedom, dropped, aliases),
        single=single,
    )
    elasticities, doublings, effects = _main_effects(make, known, response)
    crossed = {
        term: _interaction(make, 1 + len(known) + j, term, known, response) for j, term in enumerate(terms)
    }
    thesis, places, space = None, _no_places(names), _no_places(names)
    logs = [factor.name for factor in known if not factor.is_contrast]
    if delay in logs and rate in logs:
        combination = -make.unit(1 + names.index(delay)) - make.unit(1 + names.index(rate))
        claim = f"On average between the levels halving {delay} multiplies {response} by {{}} what doubling {rate} does"
        thesis = make(combination, "halved delay over doubled rate", claim, _doubled, "times")
        covers = (robust.cover, np.asarray(fit.cov_params()))
        where = Places(known, terms, delay, rate, fit.params, covers, freedom, level)
        measured = runs[names].drop_duplicates().sort_values(names)
        grid = where.grid(runs)
        where.settle(pd.concat([measured, grid], ignore_index=True))
        places, space = where.gains(measured), where.gains(grid)
    shown = runs.assign(fitted=np.exp(fit.fittedvalues), residual=fit.resid)
    return Factorial(
        elasticities,
        crossed,
        doublings,
        effects,
        thesis,
        places,
        space,
        aliases,
        response,
        delay,
        rate,
        lack_of_fit_p=p_value,
        r_squared=float(fit.rsquared),
        runs=shown.rename(columns={"_response": "response", "_block": "block"}),
        left_out=left_out,
    )


@dataclass(frozen=True)
class _Maker:
    """Makes a Estimate out of a linear combination of coefficients."""

    params: np.ndarray
    robust: robust_variance.RobustVariance
    level: float
    basis: str
    n: int
    notes: tuple[str, ...]
    single: tuple | None

    def unit(self, at: int) -> np.ndarray:
        return (np.arange(len(self.params)) == at).astype(float)

    def __call__(self, combination, quantity, claim, change=float, unit="") -> Estimate:
        freedom = self.robust.freedom(combination)
        value, half = self._half(self.params, self.robust.cover, freedom, combination)
        naive = Interval(NAIVE)
        if self.single is not None:
            there, wide = self._half(*self.single, combination)
            naive = Interval(NAIVE, change(there - wide), change(there + wide))
        return Estimate(
            quantity=quantity,
            claim=claim,
            estimate=change(value),
            low=change(value - half),
            high=change(value + half),
            unit=unit,
            n=self.n,
            basis=self.basis,
            method=METHOD.format(number(freedom, 1)),
            assumption=ASSUMPTION,
            level=self.level,
            naive=naive,
            warnings=self.notes,
        )

    def _half(self, params, cover, freedom, combination) -> tuple[float, float]:
        variance = float(combination @ cover @ combination)
        reach = stats.t.ppf((1 + self.level) / 2, freedom)
        return float(combination @ params), reach * sqrt(max(variance, 0.0))


def _doubled(value: float) -> float:
    return DOUBLING**value


def _main_effects(make: _Maker, factors: Sequence[Factor], response: str) -> tuple[dict, dict, dict]:
    elasticities, doublings, effects = {}, {}, {}
    for j, factor in enumerate(factors):
        name, unit = factor.name, make.unit(1 + j)
        if factor.is_contrast:
            low, high = factor.said
            claim = f"With {name} {high}, {response} is {{}} that with {name} {low}"
            effects[name] = make(unit, factor.step, claim, exp, "times")
            continue
        between = f"On average between its levels, {factor.span},"
        claim = f"{between} the elasticity of {response} to {name} is {{}}"
        elasticities[name] = make(unit, f"elasticity to {name}", claim)
        claim = f"{between} doubling {name} multiplies {response} by {{}}"
        doublings[name] = make(unit, f"doubling {name}", claim, _doubled)
    return elasticities, doublings, effects


def _interaction(make: _Maker, at: int, term, factors: Sequence[Factor], response: str) -> Estimate:
    own = {factor.name: factor for factor in factors}
    logs = [name for name in term if not own[name].is_contrast]
    steps = [own[name].step for name in term if own[name].is_contrast]
    names = f"interaction of {' and '.join(term)}"
    if len(term) == 2 and len(logs) == 2:
        claim = f"The elasticity of {response} to {term[0]} changes by {{}} per e-fold of {term[1]}"
    elif len(term) == 2 and len(logs) == 1:
        claim = f"The elasticity of {response} to {logs[0]} changes by {{}} from {_from_to(own, term)}"
    elif len(term) == 2:
        claim = f"The ratio of {response} at {steps[0]} is, at {steps[1]}, {{}} as great"
        return make(make.unit(at), names, claim, exp, "times")
    else:
        claim = f"The {names} (log {response} per e-fold or step of each) is {{}}"
    return make(make.unit(at), names, claim)


def _from_to(own: Mapping[str, Factor], term) -> str:
    factor = next(own[name] for name in term if own[name].is_contrast)
    return f"{factor.name} {' to '.join(factor.said)}"


def _check_design(design, runs, terms, aliases: pd.DataFrame) -> None:
    if len(runs) < design.shape[1] + 2:
        raise ParameterError(
            f"{count(len(runs), 'run')} for {design.shape[1]} coefficients; it takes 2 more than those"
        )
    if np.linalg.matrix_rank(design) == design.shape[1]:
        return
    fitted = {":".join(term) for term in terms}
    alike = aliases[aliases.aliased_with != ""]
    told = [f"{row.effect} = {row.aliased_with}" for row in alike.itertuples() if row.effect in fitted][:3]
    raise ParameterError(
        f"the runs cannot tell these effects apart{': ' if told else ''}{'; '.join(told)}; drop an interaction "
        '(interactions="estimable" does), or add combinations'
    )


def _over_rows(rows, response, factors, terms, block) -> tuple:
    """Coefficients, covariance and degrees of freedom if every row were a run."""
    design = with_blocks(columns(coded(factors, rows), terms), rows[block] if block else None)
    fit = sm.OLS(np.log(rows[response].to_numpy(dtype=float)), design).fit()
    return fit.params, np.asarray(fit.cov_params()), int(fit.df_resid)


def _squares(codes: Mapping[str, np.ndarray]) -> np.ndarray:
    """Squares of the codes of factors with three levels or more."""
    own = [code**2 for code in codes.values() if len(np.unique(code)) > 2]
    return np.column_stack(own) if own else np.empty((len(next(iter(codes.values()))), 0))


def _notes(
    left_out, p_value: float, against: str, freedom: int, dropped, aliases: pd.DataFrame
) -> tuple[str, ...]:
    notes = []
    if len(left_out):
        reasons = ", ".join(f"{n:,} {why}" for why, n in sorted(left_out.reason.value_counts().items()))
        notes.append(f"{count(len(left_out), 'row')} left out ({reasons})")
    if isfinite(p_value) and p_value < LACK:
        notes.append(
            f"the model does not fit: the logarithms do not run straight between the levels, or more factors act "
            f"together than it has terms for (lack of fit, tested against {against}, p = "
            f"{number(p_value) if p_value >= 0.001 else 'below 0.001'}), so an elasticity is an average over a bend"
        )
    elif against != REPLICATES:
        found = (
            f"none was (p = {number(p_value)})" if isfinite(p_value) else "there are too few runs for that"
        )
        notes.append(f"without replicates only a bend that factors make together can be found, and {found}")
    elif not isfinite(p_value):
        notes.append(
            "whether the model fits is not tested: it leaves nothing over, or has a term for everything"
        )
    mixed = aliases[(aliases.aliased_with != "") & ~aliases.effect.str.contains(":")]
    if len(mixed):
        said = "; ".join(f"{row.effect} with {row.aliased_with}" for row in mixed.head(3).itertuples())
        more = f" and {len(mixed) - 3} more" if len(mixed) > 3 else ""
        notes.append(f"in this fraction main effects stand for sums with interactions ({said}{more})")
    if dropped:
        listed = ", ".join(":".join(term) for term in dropped)
        notes.append(
            f"the fraction cannot tell {listed} apart from interactions that were fitted (see aliases)"
        )
    if freedom < 5:
        notes.append(f"{freedom} degrees of freedom only")
    return tuple(notes)


def _no_places(names) -> pd.DataFrame:
    return pd.DataFrame(columns=[*names, "gain", "low", "high", "verdict"])
