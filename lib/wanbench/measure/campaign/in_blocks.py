"""Plans that repeat several settings in blocks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from wanbench.checks import check_number
from wanbench.errors import ParameterError
from wanbench.measure.plan import Trial


def in_blocks(settings: Mapping[str, object], *, replicates: int, seed: int = 0) -> list[Trial]:
    """
    Every setting once per block, in random order.

    Slow drift affects all settings of a block alike, so comparisons within blocks remove it.

    Parameters
    ----------
    settings : mapping of str to experiment
        For example a `KafkaTrial` for each size of broker.
    replicates : int
        Blocks.

    Examples
    --------
    >>> trials = in_blocks({"small": "a", "large": "b"}, replicates=3, seed=1)
    >>> [(trial.block, trial.setting) for trial in trials][:4]
    [(1, 'small'), (1, 'large'), (2, 'small'), (2, 'large')]
    """
    check_number("replicates", replicates, 1, whole=True)
    if not settings:
        raise ParameterError("settings is empty; allowed: at least one by name.")
    rng, names = np.random.default_rng(seed), list(settings)
    return [
        Trial(names[at], (settings[names[at]],), block)
        for block in range(1, replicates + 1)
        for at in rng.permutation(len(names))
    ]
