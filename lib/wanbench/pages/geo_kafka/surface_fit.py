"""Coefficients of a response surface, simultaneous intervals, and the settings that may be the best."""

from __future__ import annotations

from functools import cached_property
from math import nan, sqrt

import numpy as np
from scipy import stats

from wanbench.methods.factorial.gain_map import critical
from wanbench.methods.factorial.robust_variance import robust_variance
from wanbench.methods.factorial.terms import block_half_width

DRAWS = 500
"""Draws of coefficients: enough for the critical values of the best set to about 4 %."""
NOTHING = 1e-12
"""Standard error below which two settings are the same."""


class SurfaceFit:
    """
    Coefficients with robust and pooled covariance; block columns are 0 for the average block.

    The level of the response is known from as many values as there are blocks: its error is added to that of the
    difference from the mean run.
    """

    def __init__(self, design: np.ndarray, log: np.ndarray, cells, level: float, n_own: int, blocks=None):
        self.design, self.level, self.n_own = design, level, n_own
        self.params = np.linalg.lstsq(design, log, rcond=None)[0]
        self.residual = log - design @ self.params
        self.freedom = len(log) - design.shape[1]
        self.robust = robust_variance(design, self.residual, cells)
        self.variance = float(self.residual @ self.residual) / self.freedom
        self.covers = (self.robust.cover, self.variance * self.robust.inverse)
        self.block_half = block_half_width(log - design[:, :n_own] @ self.params[:n_own], blocks, level)
        self.origin = np.zeros(design.shape[1]) if blocks is None else design.mean(axis=0)
        self.critical_value = nan

    def columns(self, own: np.ndarray) -> np.ndarray:
        """Columns of the surface, with those of blocks at 0."""
        return np.column_stack([own, np.zeros((len(own), self.design.shape[1] - self.n_own))])

    def error(self, columns: np.ndarray) -> np.ndarray:
        """The larger of both standard errors."""
        variances = [np.einsum("ij,jk,ik->i", columns, cover, columns) for cover in self.covers]
        return np.sqrt(np.maximum(np.max(variances, axis=0), 0.0))

    def hold_together_at(self, columns: np.ndarray) -> None:
        """Set the critical value that makes the intervals at all these places simultaneous."""
        apart = columns - self.origin
        self.critical_value = max(critical(apart, cover, self.freedom, self.level) for cover in self.covers)

    def half(self, columns: np.ndarray) -> np.ndarray:
        """Half the width of the intervals."""
        return np.hypot(self.critical_value * self.error(columns - self.origin), self.block_half)

    def alone(self, column: np.ndarray) -> tuple[float, float]:
        """Both ends of the individual interval of the response at one place."""
        single = stats.t.ppf((1 + self.level) / 2, self.freedom)
        half = np.hypot(single * self.error(column[None] - self.origin)[0], self.block_half)
        value = float(column @ self.params)
        return float(np.exp(value - half)), float(np.exp(value + half))

    def single(self, combination: np.ndarray) -> tuple[float, float, float, float]:
        """For a linear combination of coefficients: value, half the width of its robust interval, and p-value."""
        value, error = float(combination @ self.params), sqrt(combination @ self.robust.cover @ combination)
        freedom = self.robust.freedom(combination)
        p = 2 * float(stats.t.sf(abs(value) / error, freedom)) if error else nan
        return value, float(stats.t.ppf((1 + self.level) / 2, freedom)) * error, p

    def may_be_best(self, place: np.ndarray, places: np.ndarray) -> tuple[float, float]:
        """
        The excess of the best place over this one, in standard errors, and the largest excess that chance explains.

        Draws of the coefficients about 0 give the distribution of the largest difference if there is no real one.
        """
        differences = places - place
        errors = self.error(differences)
        differences, errors = differences[errors > NOTHING], errors[errors > NOTHING]
        if not len(errors):  # a response without any scatter: no place is better than another
            return 0.0, 0.0
        above = float((differences @ self.params / errors).max())
        # What passes for a single difference passes for the largest of many.
        single = float(stats.t.ppf(self.level, self.freedom))
        if above <= single:
            return above, single
        return above, float(np.quantile((differences @ self.draws / errors[:, None]).max(axis=0), self.level))

    @cached_property
    def draws(self) -> np.ndarray:
        """Coefficients (one row each) about 0, by the pooled covariance."""
        rng = np.random.default_rng(0)  # the same fit gives the same set
        normal = rng.multivariate_normal(np.zeros(len(self.params)), self.covers[1], DRAWS, method="svd")
        return (normal / np.sqrt(rng.chisquare(self.freedom, DRAWS) / self.freedom)[:, None]).T
