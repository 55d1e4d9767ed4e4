"""Is a column of pairs associated with distance? Correlations with a p-value from permuted regions."""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial

import numpy as np
import pandas as pd
from scipy import stats

from ...checks import check_level
from ...errors import ParameterError
from ...formatting import count, number, percent
from ..result import PAIRS_INDEPENDENT, Estimate, Interval, Result, html
from . import matrices, qap
from .line import ASSUMPTION, Line, straight_line
from .unordered_pairs import Sample, require_regions, unordered

FEWEST = 4
METHOD = (
    "(k + 1) / (B + 1) over B random relabellings of the regions of one matrix (Mantel 1967; Krackhardt 1988); "
    "the interval is that of the Monte Carlo error alone (Clopper & Pearson 1934)"
)
NULL = (
    "Under the hypothesis of no association any region could stand in the place of any other. It speaks of the "
    "association in these regions; how far it may be off in others, the correlation's interval says"
)
BOOTSTRAP_BESIDE = 1_000


@dataclass(frozen=True, repr=False)
class Mantel(Result):
    """
    Correlations of a column with distance, and the p-value of each.

    Attributes
    ----------
    pearson, spearman : Estimate
        The correlations, with intervals by place.
    pearson_p, spearman_p : Estimate
        Permutation p-values; the interval is their Monte Carlo error.
    pearson_naive_p, spearman_naive_p : float
        The p-values that take pairs as independent.
    drawn : DataFrame
        `pearson` and `spearman` of each relabelling.
    sample : Sample
        The pairs in use, and the rows left out.
    """

    pearson: Estimate
    spearman: Estimate
    pearson_p: Estimate
    spearman_p: Estimate
    pearson_naive_p: float
    spearman_naive_p: float
    drawn: pd.DataFrame
    alternative: str
    sample: Sample

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return (self.pearson, self.pearson_p, self.spearman, self.spearman_p)

    DRAWN_BY = "permutation_figure.relabelled_correlations"

    def __str__(self) -> str:
        r, p = self.pearson, self.pearson_p
        ends = f", {percent(r.level)} interval {r.written_interval}" if r.written_interval else ""
        cautions = (f"Caution: {warning}." for warning in p.warnings)
        basis = f"{count(r.n, 'pair')} of {count(r.n_regions, 'region')}{ends}"
        said = f"{r.claim.replace('{}', r.written)} ({basis}); {_said(self.drawn.pearson, r, p, self.alternative)}."
        return " ".join([said, *cautions])

    def _repr_html_(self) -> str:
        return html(self.estimates, "Permuting regions: is there an association with distance?")


def mantel(
    pairs: pd.DataFrame,
    *,
    column: str = "rtt_ms",
    logarithm: bool | None = None,
    regions: pd.DataFrame | None = None,
    alternative: str = "two-sided",
    permutations: int = 10_000,
    level: float = 0.95,
    seed: int = 0,
) -> Mantel:
    """
    The Mantel test of a column on distance, one value per unordered pair.

    Missing pairs: a relabelling moves the distances, and is compared over the pairs whose value was measured. That
    takes the distance of every pair of regions, also of those not measured; it is taken from rows without the
    value, or from `regions`. Where it stays unknown, the pair is left out of that relabelling, and a warning
    says so; p is then rather too large than too small.

    Parameters
    ----------
    pairs : DataFrame
        Table `pairs`.
    column : str
        What to correlate with `distance_km`; positive.
    logarithm : bool, optional
        Correlate its log10; default for `throughput_bps`. Spearman's rho is the same.
    regions : DataFrame, optional
        Table `regions`: coordinates for the distances that no row has.
    alternative : str
        "two-sided", "greater" or "less".
    permutations, seed : int
        Number of relabellings and the seed that draws them.

    Raises
    ------
    ParameterError
        With fewer than 4 regions or an unknown alternative.
    """
    level = check_level(level)
    logarithm = column == "throughput_bps" if logarithm is None else logarithm
    if alternative not in qap.ALTERNATIVES:
        raise ParameterError(f"alternative={alternative!r}: allowed are {', '.join(qap.ALTERNATIVES)}")
    sample = unordered(pairs, column, combine="geometric mean" if logarithm else "median")
    require_regions(sample, FEWEST, "a permutation of regions")
    value = sample.frame.value.to_numpy()
    value = np.log10(value) if logarithm else value
    cells, n_regions = (sample.first, sample.second), sample.n_regions
    y = matrices.square(value, *cells, n_regions, symmetric=True)
    x = matrices.distances(pairs, sample.regions, regions)
    x[cells] = x[cells[::-1]] = sample.frame.distance_km.to_numpy()
    orders = qap.relabellings(n_regions, permutations, seed)
    line = straight_line(sample, x[cells] / 1000, value, level=level, resamples=BOOTSTRAP_BESIDE, seed=seed)
    notes = (*sample.warnings(), *matrices.gaps(sample.n_pairs, [x]), *few(n_regions, permutations))
    said = f"log10 of {column}" if logarithm else column
    found, drawn = {}, {}
    for name, symbol in (("pearson", "Pearson r"), ("spearman", "Spearman rho")):
        part = getattr(line, name)
        drawn[name] = qap.correlations(x, y, cells, orders, ranks=name == "spearman")
        extreme = qap.as_extreme(drawn[name], part.value, alternative)
        found[name] = _correlation(line, name, symbol, said)
        found[f"{name}_p"] = p_estimate(
            f"permutation p of {symbol}",
            f"the probability that relabelled regions give {_as(alternative)} {symbol} is {{}}",
            extreme,
            permutations,
            (sample.n_pairs, n_regions),
            level,
            notes,
        )
    tests = (stats.pearsonr, stats.spearmanr)
    varies = np.ptp(value) > 0
    naive = (test(x[cells], value, alternative=alternative).pvalue if varies else np.nan for test in tests)
    return Mantel(
        **found,
        pearson_naive_p=float(next(naive)),
        spearman_naive_p=float(next(naive)),
        drawn=pd.DataFrame(drawn),
        alternative=alternative,
        sample=sample,
    )


def p_estimate(
    quantity: str,
    claim: str,
    extreme: int,
    permutations: int,
    basis: tuple[int, int],
    level: float,
    warnings: tuple[str, ...],
    method: str = METHOD,
) -> Estimate:
    """A permutation p-value as an Estimate; `basis` is (unordered pairs, regions)."""
    p, low, high = qap.p_value(extreme, permutations, level)
    claim = claim[0].upper() + claim[1:]
    return Estimate(
        quantity=quantity,
        claim=claim,
        estimate=p,
        low=low,
        high=high,
        unit="",
        n=basis[0],
        n_regions=basis[1],
        method=f"{method}; B = {permutations:,}",
        assumption=NULL,
        level=level,
        warnings=warnings,
    )


def few(n_regions: int, permutations: int) -> tuple[str, ...]:
    """A warning where so few regions have fewer orders than were drawn."""
    orders = factorial(n_regions)
    if orders > permutations:
        return ()
    return (
        f"{n_regions} regions have only {orders:,} orders, so p cannot be much below {number(1 / orders)}",
    )


def _as(alternative: str) -> str:
    return {
        "two-sided": "at least as strong a",
        "greater": "at least as great a",
        "less": "at least as low a",
    }[alternative]


def _said(drawn: pd.Series, r: Estimate, p: Estimate, alternative: str) -> str:
    extreme = qap.as_extreme(drawn.to_numpy(), r.estimate, alternative)
    many = "none" if extreme == 0 else f"{extreme:,}"
    what = _as(alternative).removesuffix(" a")
    return (
        f"of {len(drawn):,} relabellings of the regions {many} gave {what} a correlation (p = {p.written}, "
        f"Monte Carlo {percent(p.level)} interval {p.written_interval})"
    )


def _correlation(line: Line, name: str, symbol: str, said: str) -> Estimate:
    part = getattr(line, name)
    return Estimate(
        quantity=symbol,
        claim=f"The correlation of {said} with distance is {symbol} = {{}}",
        estimate=float(part.value),
        low=float(part.interval.low),
        high=float(part.interval.high),
        unit="",
        n=line.n_pairs,
        n_regions=line.n_regions,
        method=line.method,
        assumption=ASSUMPTION,
        level=line.level,
        naive=Interval(PAIRS_INDEPENDENT, float(part.naive.low), float(part.naive.high)),
        others=part.others,
        warnings=line.warnings,
    )
