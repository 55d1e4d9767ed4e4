"""Fit the coefficients of a quadratic response surface in coded factors, and tell which settings may be the best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import nan, sqrt

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype
from scipy import stats

from wanbench.checks import check_choice
from wanbench.errors import ParameterError
from wanbench.methods.factorial.inference import critical, robust_variance
from wanbench.methods.factorial.terms import block_half_width, level_label
from wanbench.methods.result.estimate import t_quantile
from wanbench.methods.sizes import numbers

BEND_LEVELS = 3  # Number of different values that a factor needs to show curvature.


@dataclass(frozen=True)
class Axis:
    """
    One factor of a surface.

    low, high: Ends of its range in the runs, coded as -1 and 1; NaN for choices.
    log: Whether it is coded in logarithms.
    levels: The choices; empty for a range. Codes of choices are contrasts that sum to 0.
    bends: Whether it has a quadratic term, which needs three different values or more.
    """

    name: str
    low: float = np.nan
    high: float = np.nan
    log: bool = False
    levels: tuple = ()
    bends: bool = False

    def code(self, values) -> np.ndarray:
        """Return the codes of values: (values, 1) for a range, (values, choices - 1) for choices."""
        if self.levels:
            at = [self.levels.index(check_choice(self.name, value, self.levels)) for value in values]
            return np.vstack([np.eye(len(self.levels) - 1), -np.ones(len(self.levels) - 1)])[at]
        values, low, high = (
            np.log(each) if self.log else np.asarray(each, dtype=float)
            for each in (numbers(self.name, values), self.low, self.high)
        )
        return (2 * (values - low) / (high - low) - 1)[:, None]

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Return the values at codes from -1 to 1; for choices, each choice has an equal part of this range."""
        share = (np.asarray(codes, dtype=float) + 1) / 2
        if self.levels:
            places = np.minimum((share * len(self.levels)).astype(int), len(self.levels) - 1)
            return np.array(self.levels, dtype=object)[places]
        if self.log:
            return np.exp(np.log(self.low) + share * np.log(self.high / self.low))
        return self.low + share * (self.high - self.low)

    def label(self, value) -> str:
        """Return a value as text; numbers have three digits."""
        return str(value) if self.levels else level_label(self.name, float(f"{float(value):.3g}"))


def axes_of(rows: pd.DataFrame, factors: Sequence[str], linear: Sequence[str]) -> list[Axis]:
    """Return the axes of the factors; ParameterError for a factor that does not vary, or has no logarithm."""
    axes = []
    for name in factors:
        values = rows[name]
        there = list(dict.fromkeys(values.tolist()))
        if len(there) < 2:
            raise ParameterError(f"factor {name} has one level only in the rows in use; it must vary.")
        if not is_numeric_dtype(values.dtype) or is_bool_dtype(values.dtype):
            axes.append(Axis(name, levels=tuple(sorted(there, key=str))))
            continue
        low, high, log = float(values.min()), float(values.max()), name not in linear
        if log and low <= 0:
            raise ParameterError(
                f"factor {name} has the level {low:g}, which has no logarithm; allowed: linear=[{name!r}]."
            )
        axes.append(Axis(name, low, high, log, bends=len(there) >= BEND_LEVELS))
    return axes


def surface_columns(axes: Sequence[Axis], rows: pd.DataFrame | Mapping) -> tuple[np.ndarray, list[str]]:
    """
    Return the terms of the surface at settings, and their names: 1, factors, squares, and products of two factors.
    """
    codes = {axis.name: axis.code(rows[axis.name]) for axis in axes}
    names, columns = ["1"], [np.ones(len(next(iter(codes.values()))))]
    labels = {axis.name: [f"{axis.name} {level}" for level in axis.levels[:-1]] or [axis.name] for axis in axes}
    for axis in axes:
        names += labels[axis.name]
        columns += list(codes[axis.name].T)
    for axis in axes:
        if axis.bends:
            names.append(f"{axis.name}²")
            columns.append(codes[axis.name][:, 0] ** 2)
    for one, other in combinations(axes, 2):
        for first, a in zip(labels[one.name], codes[one.name].T, strict=True):
            for second, b in zip(labels[other.name], codes[other.name].T, strict=True):
                names.append(f"{first} × {second}")
                columns.append(a * b)
    return np.column_stack(columns), names


DRAWS = 500  # Draws of coefficients: enough for the critical values of the best set to about 4 %.
ROUNDING = 1e-12  # Standard error below which two settings are the same.


class SurfaceFit:
    """
    Coefficients of a surface, with robust and pooled covariances.

    Terms of blocks are 0 for the average block. With blocks, the error of the mean over blocks is added to the error of
    the difference from the mean run.
    """

    def __init__(self, design: np.ndarray, log: np.ndarray, cells, level: float, n_own: int, blocks=None):
        self.design, self.level, self.n_own = design, level, n_own
        self.params = np.linalg.lstsq(design, log, rcond=None)[0]
        self.residual = log - design @ self.params
        self.freedom = len(log) - design.shape[1]
        self.robust = robust_variance(design, self.residual, cells)
        self.variance = float(self.residual @ self.residual) / self.freedom
        self.covariances = (self.robust.covariance, self.variance * self.robust.inverse)
        self.block_half = block_half_width(log - design[:, :n_own] @ self.params[:n_own], blocks, level)
        self.origin = np.zeros(design.shape[1]) if blocks is None else design.mean(axis=0)
        self.critical_value = nan

    def columns(self, own: np.ndarray) -> np.ndarray:
        """Return the terms of the surface, with the terms of blocks set to 0."""
        return np.column_stack([own, np.zeros((len(own), self.design.shape[1] - self.n_own))])

    def error(self, columns: np.ndarray) -> np.ndarray:
        """Return the larger of the robust and the pooled standard error, for each row of terms."""
        variances = [np.einsum("ij,jk,ik->i", columns, covariance, columns) for covariance in self.covariances]
        return np.sqrt(np.maximum(np.max(variances, axis=0), 0.0))

    def hold_together_at(self, columns: np.ndarray) -> None:
        """Set the critical value so that the intervals at all these places hold simultaneously."""
        apart = columns - self.origin
        self.critical_value = max(
            critical(apart, covariance, self.freedom, self.level) for covariance in self.covariances
        )

    def half(self, columns: np.ndarray) -> np.ndarray:
        """Return half the width of the simultaneous intervals."""
        return np.hypot(self.critical_value * self.error(columns - self.origin), self.block_half)

    def alone(self, column: np.ndarray) -> tuple[float, float]:
        """Return both ends of the individual interval of the response at one place."""
        single = t_quantile(self.level, self.freedom)
        half = np.hypot(single * self.error(column[None] - self.origin)[0], self.block_half)
        value = float(column @ self.params)
        return float(np.exp(value - half)), float(np.exp(value + half))

    def single(self, combination: np.ndarray) -> tuple[float, float, float, float]:
        """Return value, half the width of the robust interval, and p-value of a combination of coefficients."""
        value, error = float(combination @ self.params), sqrt(combination @ self.robust.covariance @ combination)
        freedom = self.robust.freedom(combination)
        p = 2 * float(stats.t.sf(abs(value) / error, freedom)) if error else nan
        return value, float(t_quantile(self.level, freedom)) * error, p

    def may_be_best(self, place: np.ndarray, places: np.ndarray) -> tuple[float, float]:
        """
        Return by how many standard errors the best place exceeds this one, and the largest excess that chance explains.

        Draws of the coefficients about 0 give the distribution of the largest difference if all places are equal.
        """
        differences = places - place
        errors = self.error(differences)
        differences, errors = differences[errors > ROUNDING], errors[errors > ROUNDING]
        if not len(errors):  # a response without any scatter: no place is better than another
            return 0.0, 0.0
        above = float((differences @ self.params / errors).max())
        # A difference that chance explains for a single place is also explained as the largest of many.
        single = float(stats.t.ppf(self.level, self.freedom))
        if above <= single:
            return above, single
        return above, float(np.quantile((differences @ self.draws / errors[:, None]).max(axis=0), self.level))

    @cached_property
    def draws(self) -> np.ndarray:
        """Draws of all coefficients about 0, by the pooled covariance: one column per draw."""
        rng = np.random.default_rng(0)  # the same fit gives the same set
        normal = rng.multivariate_normal(np.zeros(len(self.params)), self.covariances[1], DRAWS, method="svd")
        return (normal / np.sqrt(rng.chisquare(self.freedom, DRAWS) / self.freedom)[:, None]).T
