"""Test whether RTT is associated with distance: correlations with p-values from permuted regions (Mantel)."""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial
from typing import ClassVar

import pandas as pd

from wanbench.formatting import number, percent
from wanbench.methods.result import Estimate, Result

from . import permutation
from .line import ASSUMPTION, straight_line
from .pairs import Sample, require_regions, unordered
from .permutation import PERMUTATIONS

FEWEST = 4  # 3 regions have 6 orders, so p could not fall below 1/6
METHOD = (
    "(k + 1) / (B + 1) over B random relabellings of the regions of one matrix (Mantel 1967; Krackhardt 1988); "
    "the interval is that of the Monte Carlo error alone (Clopper & Pearson 1934)"
)
NULL = (
    "Under the hypothesis of no association any region could replace any other. The p-value is about the association "
    "in these regions; the interval of the correlation is about other regions"
)
COLUMN = "rtt_ms"
RESAMPLES = 1_000  # Of the bootstrap that is shown for comparison; no p-value depends on it


@dataclass(frozen=True, repr=False)
class Mantel(Result):
    """
    Correlations of RTT with distance, and their p-values.

    pearson, spearman: The correlations, with intervals by place.
    pearson_p, spearman_p: Permutation p-values; their intervals show the Monte Carlo error.
    drawn: Per relabelling of the regions: the correlations `pearson` and `spearman`.
    sample: The pairs used, and the rows left out.
    """

    TITLE: ClassVar[str] = "Correlation with distance, tested by permuting regions"

    pearson: Estimate
    spearman: Estimate
    pearson_p: Estimate
    spearman_p: Estimate
    drawn: pd.DataFrame
    sample: Sample

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return (self.pearson, self.pearson_p, self.spearman, self.spearman_p)

    @property
    def sentence(self) -> str:
        p = self.pearson_p
        extreme = permutation.as_extreme(self.drawn.pearson.to_numpy(), self.pearson.estimate)
        return (
            f"{self.pearson.sentence} Of {len(self.drawn):,} relabellings of the regions "
            f"{f'{extreme:,}' if extreme else 'none'} gave at least as strong a correlation "
            f"(p = {p.formatted}, Monte Carlo {percent(p.level)} interval {p.formatted_interval})."
        )


def mantel(pairs: pd.DataFrame, *, permutations: int = PERMUTATIONS, seed: int = 0) -> Mantel:
    """
    Test the association of RTT with distance by permuting regions (Mantel), one value per unordered pair.

    Each relabelling of the regions moves distances to other pairs, and RTT and distance are correlated over the
    measured pairs. It therefore needs the distance of every pair, measured or not (`permutation.distances`).

    pairs: Table `pairs`.
    permutations, seed: Number of relabellings, and the seed of their draw.

    Raises ParameterError: there are fewer than 4 regions, or a distance is unknown.
    """
    sample = unordered(pairs, COLUMN)
    require_regions(sample, FEWEST, "a permutation of regions")
    value, cells, n_regions = sample.frame.value.to_numpy(), (sample.first, sample.second), sample.n_regions
    y = permutation.square(value, *cells, n_regions, symmetric=True)
    x = permutation.distances(pairs, sample.regions)
    x[cells] = x[cells[::-1]] = sample.frame.distance_km.to_numpy()
    orders = permutation.relabellings(n_regions, permutations, seed)
    line = straight_line(sample, x[cells] / 1000, value, resamples=RESAMPLES, seed=seed)
    notes = (*sample.warnings(), *permutation.gaps(sample.n_pairs, n_regions), *few_orders(n_regions, permutations))
    estimates, drawn = {}, {}
    for name, symbol in (("pearson", "Pearson r"), ("spearman", "Spearman rho")):
        drawn[name] = permutation.correlations(x, y, cells, orders, ranks=name == "spearman")
        part = getattr(line, name)
        estimates[name] = part.estimate(
            quantity=symbol,
            claim=f"The correlation of {COLUMN} with distance is {symbol} = {{}}",
            unit="",
            n=line.n_pairs,
            n_regions=line.n_regions,
            method=line.method,
            assumption=ASSUMPTION,
            warnings=line.warnings,
        )
        estimates[f"{name}_p"] = p_estimate(
            f"permutation p of {symbol}",
            f"The probability that relabelled regions give at least as strong a {symbol} is {{}}",
            permutation.as_extreme(drawn[name], estimates[name].estimate),
            permutations,
            (sample.n_pairs, n_regions),
            notes,
        )
    return Mantel(**estimates, drawn=pd.DataFrame(drawn), sample=sample)


def p_estimate(
    quantity: str,
    claim: str,
    extreme: int,
    permutations: int,
    basis: tuple[int, int],
    warnings: tuple[str, ...],
    method: str = METHOD,
) -> Estimate:
    """
    Return a permutation p-value as an Estimate.

    extreme: Number of relabellings with a statistic at least as far from 0 as the observed one.
    basis: Numbers of unordered pairs and of regions.
    """
    p = permutation.p_value(extreme, permutations)
    claim, method = claim[0].upper() + claim[1:], f"{method}; B = {permutations:,}"
    n, n_regions = basis
    return Estimate(quantity, claim, *p, "", n, method, NULL, n_regions=n_regions, warnings=warnings)


def few_orders(n_regions: int, permutations: int) -> tuple[str, ...]:
    """Warn if the regions have fewer different permutations than were drawn."""
    orders = factorial(n_regions)
    if orders > permutations:
        return ()
    return (f"{n_regions} regions have only {orders:,} orders, so p cannot be much below {number(1 / orders)}",)
