"""
Long memory of a series: whether its swings grow the longer one looks, so that no length of it averages them out.

An autoregression with few coefficients cannot tell slow regimes, a drift or long memory from chance: it gives the mean
of the series an interval that is too narrow. The spectrum can: towards frequency 0 it rises as frequency to the power
of -2 d, and d is estimated from the lowest frequencies alone (local Whittle: Künsch 1987; Robinson 1995).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import optimize

LOWEST, MORE = 0.5, 0.65
"""Powers of n: how many of the lowest frequencies are used, and how many for comparison."""
GREAT, KEPT, ONE_ALONE = 0.25, 0.8, 0.2
"""Memory is long from d = GREAT, twice to three times its standard error in two series of 100 to 300 values. It must
also keep KEPT of what more frequencies say, as an ordinary autoregression flattens towards frequency 0. A series
ONE_ALONE above both counts even if the other is ordinary. Rates of both errors: data/validity/slow.csv."""
LEAST, GREATEST = -0.5, 1.2


def memory(values: np.ndarray, power: float = LOWEST) -> float:
    """
    The memory d of a series by its lowest n to the `power` frequencies; 0 without memory, 1 for a random walk.

    >>> steps = np.random.default_rng(0).normal(size=2_000)
    >>> abs(memory(steps)) < 0.15, abs(memory(np.cumsum(steps)) - 1) < 0.15
    (True, True)
    """
    m = int(len(values) ** power)
    spectrum = np.abs(np.fft.rfft(values - values.mean()))[1 : m + 1] ** 2
    if not spectrum.sum() > 1e-20 * max(float(values @ values), 1e-300):
        return 0.0
    frequency = np.arange(1, m + 1) / len(values)
    slope = 2 * float(np.log(frequency).mean())

    def contrast(d: float) -> float:
        return float(np.log((frequency ** (2 * d) * spectrum).mean()) - d * slope)

    return float(optimize.minimize_scalar(contrast, bounds=(LEAST, GREATEST), method="bounded").x)


def is_long(arms: Sequence[np.ndarray]) -> bool:
    """Whether the series of a comparison have long memory, together or one of them."""
    excess = [memory(each) - max(GREAT, KEPT * memory(each, MORE)) for each in arms]
    return float(np.mean(excess)) > 0 or max(excess) > ONE_ALONE
