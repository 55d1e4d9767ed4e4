"""Experimental designs: factorial and interleaved (two-level fractions: Box, Hunter & Hunter 2005, chapter 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import isfinite, prod

import numpy as np
import pandas as pd

from .checks import check_number, refusal
from .errors import ParameterError

MAXIMUM_RUNS = 100_000
"""More runs than any campaign can measure; a design beyond it is a slip in `factors` or `replicates`."""
RESERVED = ("order", "replicate", "block", "setting")
"""Columns of the plans, so no factor may have these names."""


def factorial(
    factors: Mapping[str, Sequence[float | str]],
    *,
    replicates: int = 2,
    fraction: Mapping[str, Sequence[str]] | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """
    A factorial design: one row per run, with `order` (from 1), `replicate` (from 1), and a column per factor.

    Every replicate is a block: all combinations once, in a separate random order, so that a drift of the link favours
    none of them.

    Parameters
    ----------
    factors : mapping of sequences
        The levels of each factor, all numbers (in its unit) or all text, the lowest first:
        `{"delay_ms": [10, 40, 160], "acks": ["1", "all"]}`.
    replicates : int
        Measurements of each combination; a single one leaves no estimate of pure error.
    fraction : mapping
        Generators of a two-level fraction: `{"rate_bps": ["delay_ms", "jitter_ms", "loss"]}` sets the rate to its
        second level if an even number of the three is at its first level, and so halves the number of runs. Main
        effects are then aliased with interactions.
    seed : int
        Seed of the run order.

    Raises
    ------
    ParameterError
        For fewer than two levels, mixed kinds of levels, impossible generators, or too many runs.

    Examples
    --------
    >>> plan = factorial({"delay_ms": [10, 100], "acks": ["1", "all"]}, replicates=2, seed=1)
    >>> len(plan), plan.groupby(["delay_ms", "acks"]).size().unique().tolist()
    (8, [2])
    """
    check_number("replicates", replicates, 1, whole=True)
    _check_factors(factors)
    fraction = _checked_generators(factors, fraction)
    free = [name for name in factors if name not in fraction]
    _check_runs(replicates * prod(len(factors[name]) for name in free))
    rows = []
    for signs in product(*(range(len(factors[name])) for name in free)):
        at = dict(zip(free, signs, strict=True))
        for name, parents in fraction.items():
            at[name] = int(sum(1 - at[parent] for parent in parents) % 2 == 0)
        rows.append({name: _level(factors[name][at[name]]) for name in factors})
    rng = np.random.default_rng(seed)
    frames = [
        pd.DataFrame(rows).iloc[rng.permutation(len(rows))].assign(replicate=number)
        for number in range(1, replicates + 1)
    ]
    plan = pd.concat(frames, ignore_index=True)
    plan.insert(0, "order", np.arange(1, len(plan) + 1))
    return plan[["order", "replicate", *factors]]


def interleaved(settings: Sequence[str], blocks: int, *, seed: int = 0) -> pd.DataFrame:
    """
    Interleaved settings: one row per run, with `order` (from 1), `block` (from 1) and `setting`.

    A block holds the settings in some order and then in reverse (A B B A), so a steady drift adds the same to each
    setting. Every second block is the mirror image of the one before (B A A B), so an accelerating drift does, too.
    `seed` draws the order at the start of every two blocks.

    Raises
    ------
    ParameterError
        For fewer than two settings, a repeated setting, or fewer than one block.

    Examples
    --------
    >>> " ".join(interleaved(["A", "B"], 4, seed=0).setting)
    'A B B A B A A B A B B A B A A B'
    """
    settings = [] if isinstance(settings, str) else list(settings)
    if len(settings) < 2 or len(set(settings)) != len(settings):
        raise refusal("settings", settings, "two or more different names")
    check_number("blocks", blocks, 1, whole=True)
    _check_runs(2 * blocks * len(settings))
    rng = np.random.default_rng(seed)
    rows, first = [], settings
    for block in range(1, blocks + 1):
        first = [settings[k] for k in rng.permutation(len(settings))] if block % 2 else first[::-1]
        rows += [(block, name) for name in (*first, *first[::-1])]
    plan = pd.DataFrame(rows, columns=["block", "setting"])
    plan.insert(0, "order", np.arange(1, len(plan) + 1))
    return plan


def _level(value):
    return value if isinstance(value, str) else float(value)


def _check_runs(n: int) -> None:
    if n > MAXIMUM_RUNS:
        raise ParameterError(f"the design has {n:,} runs; allowed: no more than {MAXIMUM_RUNS:,} runs.")


def _check_factors(factors) -> None:
    if not factors:
        raise refusal("factors", factors, "at least one factor")
    for name, levels in factors.items():
        values = [] if isinstance(levels, str) else list(levels)
        numbers = all(isinstance(level, (int, float)) and not isinstance(level, bool) for level in values)
        texts = all(isinstance(level, str) and level for level in values)
        good = texts or (numbers and all(map(isfinite, values)))
        if len(values) < 2 or not good or len(set(values)) != len(values):
            raise refusal(
                f"factor {name}", levels, "two or more different numbers, or two or more different texts"
            )
        if name in RESERVED:
            raise refusal("factor", name, f"any name but {', '.join(RESERVED)}")


def _checked_generators(factors, fraction) -> dict[str, list[str]]:
    fraction = {name: list(parents) for name, parents in (fraction or {}).items()}
    free = [name for name in factors if name not in fraction]
    two_levels = {name for name in factors if len(factors[name]) == 2}
    for name, parents in fraction.items():
        distinct = set(parents)
        if (
            not {name, *parents} <= two_levels
            or not parents
            or not distinct <= set(free)
            or len(distinct) < len(parents)
        ):
            usable = ", ".join(other for other in free if other in two_levels)
            raise refusal(
                f"fraction of {name}",
                parents,
                f"different factors of two levels without a generator ({usable})",
            )
    return fraction
