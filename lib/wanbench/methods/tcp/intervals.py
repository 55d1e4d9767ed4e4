"""Half the width of an interval from a variance."""

from __future__ import annotations

import numpy as np
from scipy import stats


def half_width(level: float, freedom: float, variance):
    """
    Half the width of an interval by Student's t with these degrees of freedom.

    >>> round(float(half_width(0.95, 10, 4.0)), 2)
    4.46
    """
    return stats.t.ppf((1 + level) / 2, freedom) * np.sqrt(variance)
