"""A column of pairs on distance and further columns at once, each with a p-value from permuted regions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from ...checks import check_level
from ...errors import ParameterError
from ..result import PAIRS_INDEPENDENT, Estimate, Interval, Result, html
from . import matrices, mrqap, qap
from .clusters import PLACE, units
from .line import ASSUMPTION, DYADIC, REFERENCES, SCALED, SCALED_REFERENCES, Part
from .permutation import FEWEST, few, p_estimate
from .regression import least_squares
from .unordered_pairs import Sample, require_regions, unordered

DISTANCE, CROSS_CLOUD, CONSTANT = "distance_km", "cross_cloud", "constant"
METHOD = f"least squares over unordered pairs; interval from the {SCALED} ({SCALED_REFERENCES})"
OF_DIRECTIONS = f"least squares over ordered pairs; interval from the {DYADIC} ({REFERENCES})"
PERMUTED = (
    "MRQAP by double semi-partialling (Dekker, Krackhardt & Snijders 2007): (k + 1) / (B + 1) over B random "
    "relabellings of what the other covariates leave of this one, by its t statistic; the interval is that of the "
    "Monte Carlo error alone (Clopper & Pearson 1934)"
)


@dataclass(frozen=True, repr=False)
class CovariateFit(Result):
    """
    A linear model over unordered pairs.

    Attributes
    ----------
    coefficients : dict of Estimate
        By covariate, "constant" among them; intervals by place.
    p_values : dict of Estimate
        By covariate: permutation p-values with their Monte Carlo interval.
    sample : Sample
        The pairs with the column; `n_pairs` of the estimates says how many had every covariate as well.
    drawn : DataFrame
        The t statistics under each relabelling, a column per covariate; `observed` holds those of the data.
    """

    column: str
    coefficients: dict[str, Estimate]
    p_values: dict[str, Estimate]
    observed: dict[str, float]
    drawn: pd.DataFrame
    sample: Sample

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        both = ((self.coefficients[name], self.p_values[name]) for name in self.p_values)
        return (*(each for pair in both for each in pair), self.coefficients[CONSTANT])

    DRAWN_BY = "permutation_figure.relabelled_covariates"

    def __str__(self) -> str:
        parts = (
            f"{self.coefficients[name]} Its p = {self.p_values[name].written}." for name in self.p_values
        )
        return " ".join(parts)

    def _repr_html_(self) -> str:
        return html(self.estimates, f"{self.column} on {', '.join(self.p_values)}")


def fit_covariates(
    pairs: pd.DataFrame,
    covariates: Sequence[str] = (DISTANCE, CROSS_CLOUD),
    *,
    column: str = "rtt_ms",
    logarithm: bool | None = None,
    regions: pd.DataFrame | None = None,
    permutations: int = 10_000,
    level: float = 0.95,
    seed: int = 0,
    cluster=PLACE,
) -> CovariateFit:
    """
    Regress a column on covariates, one value per unordered pair, with MRQAP p-values.

    Parameters
    ----------
    pairs : DataFrame
        Table `pairs`.
    covariates : sequence of str
        Columns of numbers in `pairs`, the median of both directions; or "cross_cloud", which is 1 between clouds and
        0 within one. Pairs without one of them are left out, and counted.
    column, logarithm, regions, permutations, seed
        As for `mantel`.
    cluster
        As for `fit_rtt`. p-values permute regions whatever it is.

    Raises
    ------
    ParameterError
        For an unknown covariate, and for covariates that depend on each other over these pairs.
    """
    level = check_level(level)
    if isinstance(covariates, str) or not covariates or len(set(covariates)) < len(covariates):
        raise ParameterError(f"covariates={covariates!r}: give different columns, as in a list")
    logarithm = column == "throughput_bps" if logarithm is None else logarithm
    sample = unordered(pairs, column, combine="geometric mean" if logarithm else "median")
    require_regions(sample, FEWEST, "a permutation of regions")
    names, n_regions, first, second = sample.regions, sample.n_regions, sample.first, sample.second
    value = sample.frame.value.to_numpy()
    value = np.log10(value) if logarithm else value
    columns = {name: _matrix(pairs, name, names, regions) for name in covariates}
    known = np.isfinite(np.stack([each[first, second] for each in columns.values()])).all(axis=0)
    first, second, value = first[known], second[known], value[known]
    grouped = units(replace(sample, frame=sample.frame[known]), cluster)
    notes = [*sample.warnings(), *grouped.warnings()]
    if not known.all():
        notes.append(f"{int((~known).sum()):,} pairs left out for want of a covariate")
    basis = len(value), len({*first, *second})
    notes += matrices.gaps(basis[0], [*columns.values()])
    notes += few(n_regions, permutations)
    design = np.column_stack([np.ones(len(value)), *(each[first, second] for each in columns.values())])
    shifted = [1 + k for k, name in enumerate(columns) if name == DISTANCE]
    fit = least_squares(
        design, value, grouped.first, grouped.second, grouped.both, grouped.n, shifted=shifted
    )
    y = matrices.square(value, first, second, n_regions, symmetric=True)
    orders = qap.relabellings(n_regions, permutations, seed)
    said = f"log10 of {column}" if logarithm else column
    found, p_values, observed, drawn = {}, {}, {}, {}
    for k, name in enumerate([CONSTANT, *columns]):
        part = fit.combination(np.eye(len(columns) + 1)[k], level)
        found[name] = _coefficient(name, part, said, (*basis, grouped.n), level, tuple(notes))
    for name, matrix in columns.items():
        others = [each for other, each in columns.items() if other != name]
        observed[name], drawn[name] = mrqap.t_statistics(y, matrix, others, (first, second), orders)
        extreme = qap.as_extreme(drawn[name], observed[name])
        p_values[name] = p_estimate(
            f"permutation p of {name}",
            f"relabelled, what the others leave of {name} has at least as strong a t statistic with probability {{}}",
            extreme,
            permutations,
            basis,
            level,
            tuple(notes),
            PERMUTED,
        )
    return CovariateFit(column, found, p_values, observed, pd.DataFrame(drawn), sample)


def cross_cloud(names: list[str]) -> np.ndarray:
    """1 where two regions belong to different clouds, else 0: (regions, regions)."""
    clouds = np.array([name.partition(":")[0] for name in names])
    return (clouds[:, None] != clouds).astype(float)


def _matrix(pairs: pd.DataFrame, name: str, names: list[str], regions: pd.DataFrame | None) -> np.ndarray:
    if name == DISTANCE:
        return matrices.distances(pairs, names, regions)
    if name == CROSS_CLOUD and name not in pairs.columns:
        return cross_cloud(names)
    return matrices.of_column(pairs, name, names, symmetric=True)


def _coefficient(name: str, part: Part, said: str, basis, level, warnings) -> Estimate:
    per = "of distance" if name == DISTANCE else f"per unit of {name}"
    factor = 1000.0 if name == DISTANCE else 1.0
    unit = "per 1,000 km" if name == DISTANCE else ""
    claim = f"With the other covariates held, {said} changes by {{}} {per}"
    return Estimate(
        quantity=f"coefficient of {name}",
        claim=claim if name != CONSTANT else f"The constant of {said} is {{}}",
        estimate=part.value * factor,
        low=part.interval.low * factor,
        high=part.interval.high * factor,
        unit=unit,
        n=basis[0],
        n_regions=basis[1],
        n_places=basis[2],
        method=METHOD,
        assumption=ASSUMPTION,
        level=level,
        naive=Interval(PAIRS_INDEPENDENT, part.naive.low * factor, part.naive.high * factor),
        warnings=warnings,
    )
