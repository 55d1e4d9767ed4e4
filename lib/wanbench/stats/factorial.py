"""
What matters more: delay, jitter, loss and rate varied apart, and log(throughput) fitted on their logarithms.

A coefficient is an elasticity: the per cent that throughput changes by per per cent of the factor. With interactions
it differs from place to place in the space of the factors, so the thesis "latency matters more than bandwidth" is a
statement about a region of that space: where halving the delay gains more than doubling the rate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import inf, isfinite, nan, sqrt

import numpy as np
import pandas as pd
import statsmodels.api as sm
from scipy import stats

from ..errors import ParameterError
from ..wording import count, number, percent
from .contrast import Contrast, html, table
from .estimate import Interval, check_level
from .factorial_runs import chosen_pairs, per_run, usable_rows

DOUBLING = 2.0
METHOD = (
    "least squares of log throughput on centred log factors, one value per run; interval from the "
    "heteroscedasticity-consistent variance HC3 (MacKinnon & White 1985), t with {} degrees of freedom"
)
SIMULTANEOUS = "HC3 variance, simultaneous over the whole space of the factors (Scheffé 1953)"
ASSUMPTION = (
    "Runs are independent and in random order, the link delivered what was asked for, and between the levels the "
    "logarithms run straight"
)
NAIVE = "all values taken as runs"
LACK = 0.01


@dataclass(frozen=True)
class Factorial:
    """
    The fitted experiment.

    Attributes
    ----------
    elasticities : dict
        Factor to Contrast: the elasticity of throughput at the middle of the design.
    interactions : dict
        (factor, factor) to Contrast: what the elasticity of one changes by per e-fold of the other.
    doublings : dict
        Factor to Contrast: what doubling it multiplies throughput by, at the middle.
    thesis : Contrast
        At the middle: what halving `delay` multiplies the response by over what doubling `rate` does (above 1: delay
        matters more).
    places : DataFrame
        Per combination of levels: the factors, elasticity of delay and of rate, `gain` (what halving the delay
        multiplies throughput by, over what doubling the rate does) with `low`, `high`, and `verdict`: "holds", "fails"
        or "undecided".
    lack_of_fit_p : float
        p-value of the test that the model fits but for pure error (F, replicates); NaN without replicates.
    runs : DataFrame
        One row per run: the factors, `response` (mean of the run), `fitted`, `residual` (of the natural logarithm).
    """

    elasticities: dict[str, Contrast]
    interactions: dict[tuple[str, str], Contrast]
    doublings: dict[str, Contrast]
    thesis: Contrast | None
    places: pd.DataFrame
    response: str
    delay: str
    rate: str
    lack_of_fit_p: float
    r_squared: float
    runs: pd.DataFrame
    left_out: pd.DataFrame

    @property
    def contrasts(self) -> tuple[Contrast, ...]:
        whole = (*self.doublings.values(), *self.elasticities.values(), *self.interactions.values())
        return whole if self.thesis is None else (self.thesis, *whole)

    def table(self) -> pd.DataFrame:
        """One row per number."""
        return table(self.contrasts)

    def where_it_fails(self) -> pd.DataFrame:
        """The places where doubling the rate gains more than halving the delay, interval and all."""
        return self.places[self.places.verdict == "fails"].reset_index(drop=True)

    def figure(self, *, note: str = ""):
        """Elasticities with their intervals, and where the thesis holds."""
        from ..figures.factorial import elasticities

        return elasticities(self, note=note)

    def verdict(self) -> str:
        """Where the thesis holds and where not, in a sentence."""
        if self.thesis is None:
            return ""
        counts = self.places.verdict.value_counts()
        parts = [
            f"{word} in {int(counts[word])}" for word in ("holds", "fails", "undecided") if word in counts
        ]
        said = ", ".join(parts).replace("undecided in", "is undecided in")
        total = count(len(self.places), "combination")
        return (
            f"That {self.delay} matters more than {self.rate} (halving one against doubling the other) {said} of "
            f"{total} of levels ({percent(self.thesis.level)} for all together)."
        )

    def __str__(self) -> str:
        said = [each.sentence for each in self.doublings.values()]
        notes = [f"Caution: {each}." for each in self.contrasts[0].warnings]
        return " ".join([*said, self.verdict(), *notes]).strip()

    def _repr_html_(self) -> str:
        return (
            html(self.contrasts, f"log {self.response} on log factors") + f"<p>{escape(self.verdict())}</p>"
        )


def fit_factorial(
    observations: pd.DataFrame,
    response: str,
    factors: Sequence[str],
    *,
    interactions: Sequence[tuple[str, str]] | str = "all",
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
        Rows with the response (such as throughput_bps) and the factors. Rows without, or whose response is not
        positive, are left out and counted.
    factors : sequence of str
        Columns; positive, because their logarithm is taken.
    interactions : sequence of pairs of str, or "all"
        Which products of two log factors to fit.
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
        For missing columns, a factor that does not vary or is not positive, and fewer runs than coefficients + 2.
    """
    level = check_level(level)
    factors, offsets = list(factors), dict(offsets or {})
    pairs = chosen_pairs(factors, interactions)
    rows, left_out = usable_rows(observations, response, factors, run, block, offsets)
    runs = per_run(rows, response, factors, run, block)
    logs = np.log(runs[factors] + pd.Series({name: offsets.get(name, 0.0) for name in factors}))
    middle = (logs.min() + logs.max()) / 2
    centred = (logs - middle).to_numpy()
    design = _design(centred, factors, pairs, runs["_block"] if block else None)
    if len(runs) < design.shape[1] + 2:
        raise ParameterError(
            f"{count(len(runs), 'run')} for {design.shape[1]} coefficients; it takes 2 more than those"
        )
    if np.linalg.matrix_rank(design) < design.shape[1]:
        raise ParameterError(
            "the runs cannot tell these effects apart; drop an interaction or add combinations"
        )
    log_response = np.log(runs["_response"].to_numpy())
    fit = sm.OLS(log_response, design).fit()
    robust = fit.get_robustcov_results("HC3", use_t=True)
    cover, freedom = np.asarray(robust.cov_params()), int(fit.df_resid)
    p_value = _lack_of_fit(runs, factors, log_response, fit, block)
    basis = f"{count(len(runs), 'run')} at {count(runs.groupby(factors).ngroups, 'combination')}"
    notes = _notes(left_out, p_value, freedom)
    single = (
        _over_rows(rows, response, factors, pairs, middle, offsets, block) if len(rows) > len(runs) else None
    )
    make = _Maker(fit.params, cover, freedom, level, basis, len(runs), notes, single)
    k = len(factors)
    elasticities, doublings = {}, {}
    for j, name in enumerate(factors):
        claim = f"At the middle of the design the elasticity of {response} to {name} is {{}}"
        elasticities[name] = make(_unit(design.shape[1], 1 + j), f"elasticity to {name}", claim)
        claim = f"Doubling {name} multiplies {response} by {{}}"
        doublings[name] = make(
            _unit(design.shape[1], 1 + j), f"doubling {name}", claim, lambda x: DOUBLING**x
        )
    crossed = {}
    for j, (one, other) in enumerate(pairs):
        claim = f"The elasticity of {response} to {one} changes by {{}} per e-fold of {other}"
        crossed[one, other] = make(
            _unit(design.shape[1], 1 + k + j), f"interaction of {one} and {other}", claim
        )
    thesis, places = None, pd.DataFrame(columns=[*factors, "gain", "low", "high", "verdict"])
    if delay in factors and rate in factors:
        contrast = -_unit(design.shape[1], 1 + factors.index(delay)) - _unit(
            design.shape[1], 1 + factors.index(rate)
        )
        claim = f"Halving {delay} multiplies {response} by {{}} what doubling {rate} does"
        thesis = make(contrast, "halved delay over doubled rate", claim, lambda x: DOUBLING**x, "times")
        places = _places(runs, logs - middle, factors, pairs, delay, rate, fit.params, cover, freedom, level)
    shown = runs.assign(fitted=np.exp(fit.fittedvalues), residual=fit.resid)
    shown = shown.rename(columns={"_response": "response", "_block": "block"})
    return Factorial(
        elasticities,
        crossed,
        doublings,
        thesis,
        places,
        response,
        delay,
        rate,
        lack_of_fit_p=p_value,
        r_squared=float(fit.rsquared),
        runs=shown,
        left_out=left_out,
    )


class _Maker:
    """Makes a Contrast out of a linear combination of coefficients."""

    def __init__(self, params, cover, freedom, level, basis, n, notes, single):
        self.params, self.cover, self.freedom, self.level = params, cover, freedom, level
        self.basis, self.n, self.notes, self.single = basis, n, notes, single

    def __call__(self, combination, quantity, claim, change=float, unit="") -> Contrast:
        value, half = self._half(self.params, self.cover, self.freedom, combination)
        naive = Interval(NAIVE)
        if self.single is not None:
            there, wide = self._half(*self.single, combination)
            naive = Interval(NAIVE, change(there - wide), change(there + wide))
        return Contrast(
            quantity=quantity,
            claim=claim,
            estimate=change(value),
            low=change(value - half),
            high=change(value + half),
            unit=unit,
            n=self.n,
            basis=self.basis,
            method=METHOD.format(self.freedom),
            assumption=ASSUMPTION,
            level=self.level,
            naive=naive,
            warnings=self.notes,
        )

    def _half(self, params, cover, freedom, combination) -> tuple[float, float]:
        variance = float(combination @ cover @ combination)
        return float(combination @ params), stats.t.ppf((1 + self.level) / 2, freedom) * sqrt(
            max(variance, 0.0)
        )


def _design(centred: np.ndarray, factors, pairs, blocks) -> np.ndarray:
    index = {name: k for k, name in enumerate(factors)}
    products = [centred[:, index[one]] * centred[:, index[other]] for one, other in pairs]
    columns = [np.ones(len(centred)), *centred.T, *products]
    if blocks is not None:
        levels = pd.get_dummies(blocks, dtype=float).to_numpy()
        columns += list((levels - levels.mean(axis=0))[:, 1:].T)
    return np.column_stack(columns)


def _unit(n: int, at: int) -> np.ndarray:
    return (np.arange(n) == at).astype(float)


def _over_rows(rows, response, factors, pairs, middle, offsets, block) -> tuple:
    """Coefficients, covariance and degrees of freedom if every row were a run."""
    logs = np.log(
        rows[factors].astype("float64") + pd.Series({name: offsets.get(name, 0.0) for name in factors})
    )
    design = _design((logs - middle).to_numpy(), factors, pairs, rows[block] if block else None)
    fit = sm.OLS(np.log(rows[response].to_numpy(dtype=float)), design).fit()
    return fit.params, np.asarray(fit.cov_params()), int(fit.df_resid)


def _lack_of_fit(runs, factors, log_response, fit, block) -> float:
    """p-value of the F test against the model with a mean of its own per combination; blocks kept."""
    cells = pd.get_dummies(runs.groupby(factors).ngroup(), dtype=float).to_numpy()
    if block:
        levels = pd.get_dummies(runs["_block"], dtype=float).to_numpy()
        cells = np.column_stack([cells, (levels - levels.mean(axis=0))[:, 1:]])
    full = sm.OLS(log_response, cells).fit()
    more = fit.df_resid - full.df_resid
    if full.df_resid < 1 or more < 1:
        return nan
    lack, pure = max(fit.ssr - full.ssr, 0.0), full.ssr
    if pure <= 1e-12 * max(float(log_response @ log_response), 1e-300):
        return nan
    return float(stats.f.sf(lack / more / (pure / full.df_resid), more, full.df_resid))


def _notes(left_out, p_value: float, freedom: int) -> tuple[str, ...]:
    notes = []
    if len(left_out):
        reasons = ", ".join(f"{n:,} {why}" for why, n in sorted(left_out.reason.value_counts().items()))
        notes.append(f"{count(len(left_out), 'row')} left out ({reasons})")
    if isfinite(p_value) and p_value < LACK:
        notes.append(
            f"the model does not fit: between the levels the logarithms do not run straight (lack of fit, p = "
            f"{number(p_value) if p_value >= 0.001 else 'below 0.001'}), so an elasticity is an average over a bend"
        )
    elif not isfinite(p_value):
        notes.append("no replicates, so whether the model fits is not tested")
    if freedom < 5:
        notes.append(f"{freedom} degrees of freedom only")
    return tuple(notes)


def _places(runs, centred, factors, pairs, delay, rate, params, cover, freedom, level) -> pd.DataFrame:
    """The thesis at each combination of levels, with intervals that hold for all places together."""
    at = runs[factors].assign(_row=np.arange(len(runs))).drop_duplicates(factors).sort_values(factors)
    spots = centred.iloc[at._row.to_numpy()].to_numpy()
    index, k = {name: j for j, name in enumerate(factors)}, len(factors)
    slopes = {}
    for name in (delay, rate):
        combination = np.tile(_unit(len(params), 1 + index[name]), (len(spots), 1))
        for j, pair in enumerate(pairs):
            if name in pair:
                other = pair[1] if pair[0] == name else pair[0]
                combination[:, 1 + k + j] = spots[:, index[other]]
        slopes[name] = combination
    both = -slopes[delay] - slopes[rate]
    value = both @ params
    rank = np.linalg.matrix_rank(both)
    reach = sqrt(rank * stats.f.ppf(level, rank, freedom)) if freedom >= 1 else inf
    half = reach * np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", both, cover, both), 0.0))
    low, high = value - half, value + half
    return (
        at[factors]
        .reset_index(drop=True)
        .assign(
            elasticity_delay=slopes[delay] @ params,
            elasticity_rate=slopes[rate] @ params,
            gain=DOUBLING**value,
            low=DOUBLING**low,
            high=DOUBLING**high,
            verdict=np.select([low > 0, high < 0], ["holds", "fails"], "undecided"),
        )
    )
