"""The terms of a quadratic response surface in coded factors: ranges from -1 to 1, choices as contrasts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from wanbench.checks import check_choice
from wanbench.errors import ParameterError
from wanbench.methods.factorial.terms import level_label
from wanbench.methods.sizes import numbers

BEND_LEVELS = 3
"""Number of different values that a factor needs to show curvature."""


@dataclass(frozen=True)
class Axis:
    """
    One factor of a surface.

    Attributes
    ----------
    low, high : float
        Ends of its range in the runs, coded as -1 and 1; NaN for choices.
    log : bool
        Whether it is coded in logarithms.
    levels : tuple
        The choices; empty for a range. Codes are contrasts that sum to 0 over the choices.
    bends : bool
        Whether it has a square: three different values or more.
    """

    name: str
    low: float = np.nan
    high: float = np.nan
    log: bool = False
    levels: tuple = ()
    bends: bool = False

    def code(self, values) -> np.ndarray:
        """The codes of values: (values, 1) for a range, (values, choices - 1) for choices."""
        if self.levels:
            at = [self.levels.index(check_choice(self.name, value, self.levels)) for value in values]
            return np.vstack([np.eye(len(self.levels) - 1), -np.ones(len(self.levels) - 1)])[at]
        values, low, high = (
            np.log(each) if self.log else np.asarray(each, dtype=float)
            for each in (numbers(self.name, values), self.low, self.high)
        )
        return (2 * (values - low) / (high - low) - 1)[:, None]

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """The values at codes from -1 to 1; for choices, each choice has an equal part of this range."""
        share = (np.asarray(codes, dtype=float) + 1) / 2
        if self.levels:
            places = np.minimum((share * len(self.levels)).astype(int), len(self.levels) - 1)
            return np.array(self.levels, dtype=object)[places]
        if self.log:
            return np.exp(np.log(self.low) + share * np.log(self.high / self.low))
        return self.low + share * (self.high - self.low)

    def label(self, value) -> str:
        """A value as text, a number to three digits."""
        return str(value) if self.levels else level_label(self.name, float(f"{float(value):.3g}"))


def axes_of(rows: pd.DataFrame, factors: Sequence[str], linear: Sequence[str]) -> list[Axis]:
    """The axes of the factors; ParameterError for one that does not vary, or has no logarithm."""
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
    The columns of the surface at some settings, and their names: 1, every factor, squares, products of two factors.
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
