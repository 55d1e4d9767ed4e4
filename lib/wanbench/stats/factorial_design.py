"""The plan of a factorial experiment: every combination of levels, or a fraction, repeated, in random order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import isfinite

import numpy as np
import pandas as pd

from ..errors import ParameterError

MOST_RUNS = 100_000


def design(
    factors: Mapping[str, Sequence[float]],
    *,
    replicates: int = 2,
    fraction: Mapping[str, Sequence[str]] | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """
    One row per run: `order` (from 1), `replicate` (from 1), and a column per factor.

    Every replicate is a block: all combinations once, in an order of its own, so that a drift of the link does not
    favour one of them.

    Parameters
    ----------
    factors : mapping of sequences
        The levels of each factor, in its unit: `{"delay_ms": [10, 40, 160], "rate_bps": [10e6, 100e6]}`.
    replicates : int
        How often each combination is measured; with 1 there is no measure of pure error.
    fraction : mapping
        Generators of a two-level fraction (Box, Hunter & Hunter 2005, chapter 6):
        `{"rate_bps": ["delay_ms", "jitter_ms", "loss"]}` sets the rate to its high level where an even number of those
        is at its low level, and so halves the number of runs. Main effects then stand for sums with interactions.
    seed : int
        Of the order.

    Examples
    --------
    >>> plan = design({"delay_ms": [10, 100], "rate_bps": [1e7, 1e8]}, replicates=2, seed=1)
    >>> len(plan), plan.groupby(["delay_ms", "rate_bps"]).size().unique().tolist()
    (8, [2])
    """
    _check(factors, replicates)
    fraction = dict(fraction or {})
    free = [name for name in factors if name not in fraction]
    for name, parents in fraction.items():
        wrong = [each for each in (name, *parents) if each not in factors or len(factors[each]) != 2]
        if wrong or not parents or not set(parents) <= set(free):
            raise ParameterError(
                f"fraction {name} = {' x '.join(map(str, parents))}: a generator takes factors of two levels that have "
                f"none themselves; of those there are {', '.join(each for each in free if len(factors[each]) == 2)}"
            )
    if replicates * int(np.prod([len(factors[name]) for name in free])) > MOST_RUNS:
        raise ParameterError(f"these factors make more than {MOST_RUNS:,} runs")
    rows = []
    for signs in product(*(range(len(factors[name])) for name in free)):
        at = dict(zip(free, signs, strict=True))
        for name, parents in fraction.items():
            at[name] = int(sum(1 - at[each] for each in parents) % 2 == 0)
        rows.append({name: float(factors[name][at[name]]) for name in factors})
    rng = np.random.default_rng(seed)
    frames = [
        pd.DataFrame(rows).iloc[rng.permutation(len(rows))].assign(replicate=number)
        for number in range(1, replicates + 1)
    ]
    plan = pd.concat(frames, ignore_index=True)
    plan.insert(0, "order", np.arange(1, len(plan) + 1))
    return plan[["order", "replicate", *factors]]


def _check(factors: Mapping[str, Sequence[float]], replicates: int) -> None:
    if isinstance(replicates, bool) or not isinstance(replicates, int) or replicates < 1:
        raise ParameterError(f"replicates={replicates!r}: a whole number from 1")
    if not factors:
        raise ParameterError("a design takes at least one factor")
    for name, levels in factors.items():
        values = list(levels) if not isinstance(levels, str) else []
        good = [
            isinstance(each, (int, float)) and not isinstance(each, bool) and isfinite(each)
            for each in values
        ]
        if len(values) < 2 or not all(good) or len(set(values)) != len(values):
            raise ParameterError(f"factor {name}: {levels!r}; it takes two or more different numbers")
        if name in ("order", "replicate"):
            raise ParameterError(f"a factor cannot be called {name}")
