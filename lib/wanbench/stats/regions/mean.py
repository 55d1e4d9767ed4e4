"""A mean over pairs: how much of the scatter about it is a pair's own, and what its jackknife over regions is worth."""

from __future__ import annotations

from math import nan

import numpy as np

from .leave_one_out import leave_out
from .variance_components import Sums, reml

FEWEST_REGIONS = 3


def share_and_freedom(values: np.ndarray, first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """
    Share of the variance of values (pairs,) that is a pair's own, and the degrees of freedom of the jackknife over
    regions of their mean, both under the working model of `components` with effects of regions on the mean.

    `first` and `second` name each pair's regions by whole numbers. With fewer than 3 regions, or values that do not
    differ, the share is 1 and the degrees of freedom are NaN.
    """
    regions = np.unique(np.concatenate([first, second]))
    spread = values.std() if len(values) else 0.0
    if len(regions) < FEWEST_REGIONS or not spread > 0:
        return 1.0, nan
    ends = np.searchsorted(regions, first), np.searchsorted(regions, second)
    sums = Sums.of(np.ones((len(values), 1)), values / spread, *ends, len(regions))
    found = reml(sums)
    freedom = float(leave_out(sums, found).spread([1.0])[1])
    return found.pair / (found.pair + 2 * float(found.region[0, 0])), freedom
