"""How far tests of one ordered pair, repeated, differ: noise of a test beside the differences between pairs."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np
import pandas as pd

from ...checks import check_level
from ...errors import ParameterError
from ...formatting import count
from ...stats.regions import dyadic
from ...stats.regions.unordered_pairs import FEWEST_FOR_INTERVAL
from ...stats.result import Estimate, Result, html

METHOD = "percentile interval of a bootstrap over regions (Davezies, D'Haultfœuille & Guyonvarch 2021)"
ASSUMPTION = (
    "Pairs were repeated for reasons that have nothing to do with what was measured, and both tests see the "
    "same path; tests minutes apart say nothing of the noise from day to day"
)


@dataclass(frozen=True, repr=False)
class Repeats(Result):
    """
    Attributes
    ----------
    factor : Estimate
        The greater over the lesser of two tests of one ordered pair: the median over pairs.
    share : Estimate
        The share of the variance of the logarithm that lies between pairs rather than between the tests of
        one: the intraclass correlation of a one-way analysis of variance.
    pairs : DataFrame
        The repeated ordered pairs: from_region, to_region, n_tests, least, greatest, factor.
    n_single : int
        Ordered pairs with one test, which have no part in this.
    """

    factor: Estimate
    share: Estimate
    pairs: pd.DataFrame
    n_single: int

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return (self.factor, self.share)

    DRAWN_BY = "survey_figures.repeated"

    def __str__(self) -> str:
        return f"{self.factor} {self.share}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html(self.estimates, "Repeated tests of one ordered pair")


def repeats(
    tests: pd.DataFrame,
    column: str,
    *,
    level: float = 0.95,
    resamples: int = 4_000,
    seed: int = 0,
) -> Repeats:
    """
    Compare tests of the same ordered pair.

    Parameters
    ----------
    tests : DataFrame
        One row per test: `from_region`, `to_region` and the column, which must be positive; rows without it
        have no part, and are counted.

    Raises
    ------
    ParameterError
        A column is missing, or no ordered pair was tested twice.
    """
    check_level(level)
    missing = [name for name in ("from_region", "to_region", column) if name not in tests.columns]
    if missing:
        raise ParameterError(f"the tests lack {', '.join(missing)}")
    rows = tests[["from_region", "to_region", column]].set_axis(["from_region", "to_region", "value"], axis=1)
    known = rows.value.astype("float64") > 0
    warnings = () if known.all() else (f"{count(int((~known).sum()), 'test')} without {column} left out",)
    rows = rows[known]
    rows = rows.assign(log=np.log(rows.value.astype("float64")))
    groups = rows.groupby(["from_region", "to_region"], as_index=False).agg(
        n_tests=("log", "size"),
        least=("value", "min"),
        greatest=("value", "max"),
        mean=("log", "mean"),
        variance=("log", "var"),
    )
    pairs = groups[groups.n_tests > 1].reset_index(drop=True)
    if pairs.empty:
        raise ParameterError(f"no ordered pair has two tests with {column}")
    pairs["factor"] = pairs.greatest / pairs.least
    regions = sorted({*pairs.from_region, *pairs.to_region})
    first, second = (
        np.searchsorted(regions, pairs[name].to_numpy()) for name in ("from_region", "to_region")
    )
    sums = _sums(pairs)
    factor, share = float(pairs.factor.median()), float(_between(sums.sum(axis=0)))
    ends = {"factor": (nan, nan), "share": (nan, nan)}
    if len(regions) < FEWEST_FOR_INTERVAL:
        warnings += (f"no interval from {len(regions)} regions; it takes {FEWEST_FOR_INTERVAL}",)
    else:
        weights = dyadic.region_weights(len(regions), resamples, seed)
        tails = [(1 - level) / 2, (1 + level) / 2]
        drawn = dyadic.weighted_median(pairs.factor.to_numpy(), weights, first, second)
        ends["factor"] = np.nanquantile(drawn, tails)
        ends["share"] = np.nanquantile(_between(dyadic.weighted_sums(weights, sums, first, second)), tails)
    common = {
        "n": len(set(zip(np.minimum(first, second), np.maximum(first, second), strict=True))),
        "n_regions": len(regions),
        "assumption": ASSUMPTION,
        "level": level,
        "warnings": warnings,
    }
    return Repeats(
        factor=Estimate(
            quantity=f"factor between repeated tests, {column}",
            claim=f"Two tests of one ordered pair differ in {column} by a factor of {{}} in the median",
            estimate=factor,
            low=ends["factor"][0],
            high=ends["factor"][1],
            unit="",
            method=f"median over the {len(pairs):,} ordered pairs that were repeated; {METHOD}",
            **common,
        ),
        share=Estimate(
            quantity=f"variance between pairs, {column}",
            claim=f"{{}} of the variance of log {column} lies between pairs, the rest between tests of one pair",
            estimate=share,
            low=ends["share"][0],
            high=ends["share"][1],
            unit="fraction",
            method=f"one-way analysis of variance over the {len(pairs):,} ordered pairs that were repeated; {METHOD}",
            **common,
        ),
        pairs=pairs.drop(columns=["mean", "variance"]),
        n_single=int((groups.n_tests == 1).sum()),
    )


def _sums(pairs: pd.DataFrame) -> np.ndarray:
    """Per pair: tests, degrees of freedom within, squares within, and tests x (1, mean, mean squared)."""
    n, mean = pairs.n_tests.to_numpy(dtype=float), pairs["mean"].to_numpy()
    return np.column_stack(
        [n, n - 1, (n - 1) * pairs.variance.to_numpy(), n * mean, n * mean**2, n**2, np.ones(len(n))]
    )


def _between(sums: np.ndarray) -> np.ndarray:
    """The intraclass correlation from sums along the last axis (unbalanced one-way ANOVA; Donner 1986)."""
    n, freedom, within, first, second, squares, groups = np.moveaxis(sums, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ms_within = within / freedom
        ms_between = (second - first**2 / n) / (groups - 1)
        size = (n - squares / n) / (groups - 1)
        return (ms_between - ms_within) / (ms_between + (size - 1) * ms_within)
