"""A mean over pairs: the share of single pairs in its variance, and the degrees of freedom of its jackknife."""

from __future__ import annotations

from math import nan

import numpy as np

from .leave_one_out import leave_out
from .variance_components import Sums, reml

FEWEST_REGIONS = 3
"""Two regions have a single pair, whose scatter cannot be divided."""


def share_and_freedom(values: np.ndarray, first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """
    The share of single pairs in the variance of values (pairs,), and the degrees of freedom of the jackknife over
    regions of their mean, under the working model of `variance_components` with effects of regions on the mean.

    `first` and `second` label each pair's regions by integers. With fewer than 3 regions or constant values, the share
    is 1 and the degrees of freedom are NaN.
    """
    regions = np.unique(np.concatenate([first, second]))
    spread = values.std() if len(values) else 0.0
    if len(regions) < FEWEST_REGIONS or not spread > 0:
        return 1.0, nan
    ends = np.searchsorted(regions, first), np.searchsorted(regions, second)
    sums = Sums.of(np.ones((len(values), 1)), values / spread, *ends, len(regions))
    components = reml(sums)
    freedom = float(leave_out(sums, components).spread([1.0])[1])
    return components.pair / (components.pair + 2 * float(components.region[0, 0])), freedom
