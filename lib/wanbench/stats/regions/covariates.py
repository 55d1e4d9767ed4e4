"""Regression of a column of pairs on distance and further columns, each with a p-value from permuted regions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pandas as pd

from ...checks import check_level, refusal
from ...formatting import count
from ..result import Estimate, Result
from . import matrices, mrqap, qap
from .line import ASSUMPTION, DYADIC, REFERENCES, SCALED, SCALED_REFERENCES, Part
from .permutation import few_orders, p_estimate, permutable_sample
from .places import PLACE, units
from .regression import least_squares
from .unordered_pairs import Sample

DISTANCE = "distance_km"
CROSS_CLOUD = "cross_cloud"
CONSTANT = "constant"
METHOD = f"least squares over unordered pairs; interval from the {SCALED} ({SCALED_REFERENCES})"
OF_DIRECTIONS = f"least squares over ordered pairs; interval from the {DYADIC} ({REFERENCES})"
PERMUTED = (
    "MRQAP by double semi-partialling (Dekker, Krackhardt & Snijders 2007): (k + 1) / (B + 1) over B random "
    "relabellings of the residuals of this covariate on the others, by its t statistic; the interval is that of the "
    "Monte Carlo error alone (Clopper & Pearson 1934)"
)


@dataclass(frozen=True, repr=False)
class CovariateFit(Result):
    """
    A linear model over unordered pairs.

    Attributes
    ----------
    column : str
        The outcome.
    coefficients : dict of Estimate
        By covariate, including "constant"; intervals by place.
    p_values : dict of Estimate
        By covariate: permutation p-values with their Monte Carlo interval.
    observed : dict of float
        By covariate: its t statistic.
    drawn : DataFrame
        The t statistics of each relabelling, a column per covariate.
    sample : Sample
        The pairs with the column; `n` of the estimates counts pairs that also have every covariate.
    """

    TITLE: ClassVar[str] = "Regression on several covariates"
    DRAWN_BY: ClassVar[str] = "permutation_figure.relabelled_covariates"

    column: str
    coefficients: dict[str, Estimate]
    p_values: dict[str, Estimate]
    observed: dict[str, float]
    drawn: pd.DataFrame
    sample: Sample

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        with_p = (self.coefficients[name] for name in self.p_values)
        both = zip(with_p, self.p_values.values(), strict=True)
        return (*(estimate for pair in both for estimate in pair), self.coefficients[CONSTANT])

    @property
    def sentence(self) -> str:
        return " ".join(
            f"{self.coefficients[name].sentence} Its p = {p.written}." for name, p in self.p_values.items()
        )


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
        Columns of numbers in `pairs`, of which each pair takes the median of both directions; or "cross_cloud": 1
        between clouds and 0 within a cloud. Pairs without a covariate are left out and counted.
    column, logarithm, regions, permutations, seed
        As for `mantel`.
    cluster
        As for `fit_rtt`. p-values always permute regions.

    Raises
    ------
    ParameterError
        For an unknown covariate, and for covariates that are linearly dependent over these pairs.
    """
    level = check_level(level)
    if isinstance(covariates, str) or not covariates or len(set(covariates)) < len(covariates):
        raise refusal("covariates", covariates, "a list of different columns")
    sample, value, label = permutable_sample(pairs, column, logarithm)
    names, n_regions, first, second = sample.regions, sample.n_regions, sample.first, sample.second
    columns = {name: _matrix(pairs, name, names, regions) for name in covariates}
    complete = np.isfinite(np.stack([matrix[first, second] for matrix in columns.values()])).all(axis=0)
    first, second, value = first[complete], second[complete], value[complete]
    grouped = units(replace(sample, frame=sample.frame[complete]), cluster)
    n_pairs, n_used_regions = len(value), len({*first, *second})
    notes = [*sample.warnings(), *grouped.warnings()]
    if not complete.all():
        notes.append(f"{count(int((~complete).sum()), 'pair')} without a covariate left out")
    notes += matrices.gaps(n_pairs, [*columns.values()])
    notes += few_orders(n_regions, permutations)
    design = np.column_stack([np.ones(n_pairs), *(matrix[first, second] for matrix in columns.values())])
    shifted = [1 + k for k, name in enumerate(columns) if name == DISTANCE]
    fit = least_squares(
        design, value, grouped.first, grouped.second, grouped.both, grouped.n, shifted=shifted
    )
    shared = {"n": n_pairs, "n_regions": n_used_regions, "level": level, "warnings": tuple(notes)}
    coefficients = {
        name: _coefficient(
            name, fit.combination(np.eye(len(columns) + 1)[k], level), label, n_places=grouped.n, **shared
        )
        for k, name in enumerate([CONSTANT, *columns])
    }
    y = matrices.square(value, first, second, n_regions, symmetric=True)
    orders = qap.relabellings(n_regions, permutations, seed)
    p_values, observed, drawn = {}, {}, {}
    for name, matrix in columns.items():
        others = [other for other_name, other in columns.items() if other_name != name]
        observed[name], drawn[name] = mrqap.t_statistics(y, matrix, others, (first, second), orders)
        p_values[name] = p_estimate(
            f"permutation p of {name}",
            f"relabelled residuals of {name} on the other covariates have at least as strong a t statistic with "
            "probability {}",
            qap.as_extreme(drawn[name], observed[name]),
            permutations,
            (n_pairs, n_used_regions),
            level,
            tuple(notes),
            PERMUTED,
        )
    return CovariateFit(column, coefficients, p_values, observed, pd.DataFrame(drawn), sample)


def cross_cloud(names: list[str]) -> np.ndarray:
    """1 for two regions of different clouds, else 0: (regions, regions)."""
    clouds = np.array([name.partition(":")[0] for name in names])
    return (clouds[:, None] != clouds).astype(float)


def _matrix(pairs: pd.DataFrame, name: str, names: list[str], regions: pd.DataFrame | None) -> np.ndarray:
    if name == DISTANCE:
        return matrices.distances(pairs, names, regions)
    if name == CROSS_CLOUD and name not in pairs.columns:
        return cross_cloud(names)
    return matrices.of_column(pairs, name, names, symmetric=True)


def _coefficient(name: str, part: Part, label: str, **fields) -> Estimate:
    is_distance = name == DISTANCE
    claim = f"With the other covariates held, {label} changes by {{}} "
    claim += "of distance" if is_distance else f"per unit of {name}"
    return part.estimate(
        (lambda value: value * 1000) if is_distance else float,
        quantity=f"coefficient of {name}",
        claim=claim if name != CONSTANT else f"The constant of {label} is {{}}",
        unit="per 1,000 km" if is_distance else "",
        method=METHOD,
        assumption=ASSUMPTION,
        **fields,
    )
