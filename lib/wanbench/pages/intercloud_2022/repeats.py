"""Test-to-test noise of an ordered pair against the differences between pairs."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np
import pandas as pd

from wanbench.checks import check_columns, check_level
from wanbench.errors import ParameterError
from wanbench.formatting import count
from wanbench.methods.regions import dyadic
from wanbench.methods.regions.unordered_pairs import FEWEST_FOR_INTERVAL
from wanbench.methods.result import Estimate, Result

METHOD = "percentile interval of a bootstrap over regions (Davezies, D'Haultfœuille & Guyonvarch 2021)"
ASSUMPTION = (
    "Pairs were repeated for reasons unrelated to the results, and both tests see the same path; tests "
    "minutes apart do not show day-to-day noise"
)
ENDS = ["from_region", "to_region"]


@dataclass(frozen=True, repr=False)
class Repeats(Result):
    """
    The difference between two tests of one ordered pair.

    Attributes
    ----------
    factor : Estimate
        The largest over the smallest value of one ordered pair: the median over pairs.
    share : Estimate
        The share of the variance of the logarithm that lies between pairs rather than between tests of the same pair:
        the intraclass correlation of a one-way analysis of variance.
    pairs : DataFrame
        The repeated ordered pairs: from_region, to_region, n_tests, smallest, largest, factor. Ordered pairs with one
        test are left out.
    """

    TITLE = "Repeated tests of one ordered pair"
    DRAWN_BY = "repeats_figure.differences_of_repeats"

    column: str
    factor: Estimate
    share: Estimate
    pairs: pd.DataFrame

    @property
    def sentence(self) -> str:
        return f"{self.factor.sentence} {self.share.sentence}"


def repeats(tests: pd.DataFrame, column: str, *, level: float = 0.95, resamples: int = 4_000, seed: int = 0) -> Repeats:
    """
    Compare tests of the same ordered pair.

    Parameters
    ----------
    tests : DataFrame
        One row per test: `from_region`, `to_region` and the column. Rows where it is missing or not positive are left
        out and counted.

    Raises
    ------
    ParameterError
        A column is missing, or no ordered pair was tested twice.
    """
    check_level(level)
    check_columns("tests", tests, [*ENDS, column])
    rows = tests[ENDS].assign(value=tests[column].astype("float64"))
    rows = rows[rows.value > 0]
    n_without = len(tests) - len(rows)
    warnings = (f"{count(n_without, 'test')} without {column} left out",) if n_without else ()
    groups = (
        rows.assign(log=np.log(rows.value))
        .groupby(ENDS, as_index=False)
        .agg(
            n_tests=("log", "size"),
            smallest=("value", "min"),
            largest=("value", "max"),
            mean=("log", "mean"),
            variance=("log", "var"),
        )
    )
    pairs = groups[groups.n_tests > 1].reset_index(drop=True)
    if pairs.empty:
        raise ParameterError(f"no ordered pair has two tests with {column}")
    pairs["factor"] = pairs.largest / pairs.smallest
    regions = sorted({*pairs.from_region, *pairs.to_region})
    first, second = (np.searchsorted(regions, pairs[end].to_numpy()) for end in ENDS)
    sums = _anova_sums(pairs)
    factor_ends = share_ends = (nan, nan)
    if len(regions) < FEWEST_FOR_INTERVAL:
        warnings += (f"no interval from {len(regions)} regions; it needs {FEWEST_FOR_INTERVAL}",)
    else:
        weights = dyadic.region_weights(len(regions), resamples, seed)
        tails = [(1 - level) / 2, (1 + level) / 2]
        factors = dyadic.weighted_median(pairs.factor.to_numpy(), weights, first, second)
        factor_ends = np.nanquantile(factors, tails)
        shares = _share_between(dyadic.weighted_sums(weights, sums, first, second))
        share_ends = np.nanquantile(shares, tails)
    common = {
        "n": len({frozenset(ends) for ends in zip(first, second, strict=True)}),
        "n_regions": len(regions),
        "assumption": ASSUMPTION,
        "level": level,
        "warnings": warnings,
    }
    name = {"rtt_ms": "RTT", "throughput_bps": "throughput"}.get(column, column)
    basis = f"over the {len(pairs):,} ordered pairs that were repeated; {METHOD}"
    return Repeats(
        column=column,
        factor=Estimate(
            quantity=f"factor between repeated tests, {name}",
            claim=f"Two tests of one ordered pair differ in {name} by a factor of {{}} in the median",
            estimate=float(pairs.factor.median()),
            low=factor_ends[0],
            high=factor_ends[1],
            unit="",
            method=f"median {basis}",
            **common,
        ),
        share=Estimate(
            quantity=f"variance between pairs, {name}",
            claim=f"{{}} of the variance of log {name} lies between pairs, the rest between tests of one pair",
            estimate=float(_share_between(sums.sum(axis=0))),
            low=share_ends[0],
            high=share_ends[1],
            unit="fraction",
            method=f"one-way analysis of variance {basis}",
            **common,
        ),
        pairs=pairs.drop(columns=["mean", "variance"]),
    )


def _anova_sums(pairs: pd.DataFrame) -> np.ndarray:
    """
    The sums of an analysis of variance per pair (pairs, 7); resamples are weighted sums of these.

    n, degrees of freedom within, squares within, n x mean, n x mean^2, n^2, 1.
    """
    n, mean = pairs.n_tests.to_numpy(dtype=float), pairs["mean"].to_numpy()
    within = (n - 1) * pairs.variance.to_numpy()
    return np.column_stack([n, n - 1, within, n * mean, n * mean**2, n**2, np.ones(len(n))])


def _share_between(sums: np.ndarray) -> np.ndarray:
    """The intraclass correlation from sums along the last axis (unbalanced one-way ANOVA; Donner 1986)."""
    n, freedom, within, first, second, squares, groups = np.moveaxis(sums, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ms_within = within / freedom
        ms_between = (second - first**2 / n) / (groups - 1)
        size = (n - squares / n) / (groups - 1)
        return (ms_between - ms_within) / (ms_between + (size - 1) * ms_within)
