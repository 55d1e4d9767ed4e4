"""
Plans of experiments whose settings vary: factorial and interleaved. Imports `errors`; anything may import it.

Two-level fractions follow Box, Hunter & Hunter (2005), chapter 6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, product
from math import isfinite, prod

import numpy as np
import pandas as pd

from .errors import ParameterError

MOST_RUNS = 100_000
TAKEN = ("order", "replicate", "block", "setting")


def factorial(
    factors: Mapping[str, Sequence[float | str]],
    *,
    replicates: int = 2,
    fraction: Mapping[str, Sequence[str]] | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """
    Every combination of levels, or a fraction of them: one row per run, with `order` (from 1), `replicate` (from 1),
    and a column per factor.

    Every replicate is a block: all combinations once, in an order of its own, so that a drift of the link does not
    favour one of them.

    Parameters
    ----------
    factors : mapping of sequences
        The levels of each factor, all numbers (in its unit) or all text, the low one first:
        `{"delay_ms": [10, 40, 160], "acks": ["1", "all"]}`.
    replicates : int
        How often each combination is measured; with 1 there is no measure of pure error.
    fraction : mapping
        Generators of a two-level fraction: `{"rate_bps": ["delay_ms", "jitter_ms", "loss"]}` sets the rate to its
        second level where an even number of those is at its first, and so halves the number of runs. Main effects
        then stand for sums with interactions: `resolution` says with which at the least.
    seed : int
        Of the order.

    Raises
    ------
    ParameterError
        For fewer than two levels, levels of several kinds, generators that are none, or too many runs.

    Examples
    --------
    >>> plan = factorial({"delay_ms": [10, 100], "acks": ["1", "all"]}, replicates=2, seed=1)
    >>> len(plan), plan.groupby(["delay_ms", "acks"]).size().unique().tolist()
    (8, [2])
    """
    _check(factors, replicates)
    fraction = _generators(factors, fraction)
    free = [name for name in factors if name not in fraction]
    if replicates * prod(len(factors[name]) for name in free) > MOST_RUNS:
        raise ParameterError(f"these factors make more than {MOST_RUNS:,} runs")
    rows = []
    for signs in product(*(range(len(factors[name])) for name in free)):
        at = dict(zip(free, signs, strict=True))
        for name, parents in fraction.items():
            at[name] = int(sum(1 - at[each] for each in parents) % 2 == 0)
        rows.append({name: _level(factors[name][at[name]]) for name in factors})
    rng = np.random.default_rng(seed)
    frames = [
        pd.DataFrame(rows).iloc[rng.permutation(len(rows))].assign(replicate=number)
        for number in range(1, replicates + 1)
    ]
    plan = pd.concat(frames, ignore_index=True)
    plan.insert(0, "order", np.arange(1, len(plan) + 1))
    return plan[["order", "replicate", *factors]]


def resolution(
    factors: Mapping[str, Sequence[float | str]], fraction: Mapping[str, Sequence[str]] | None
) -> int | None:
    """
    The length of the shortest word that defines a fraction; None for a full design.

    With 4, main effects are apart from each other and from interactions of two factors, but some of these are not
    apart from one another; with 5 they are.

    >>> two = {name: [0, 1] for name in "abcdef"}
    >>> resolution(two, {"f": "abcde"}), resolution(two, {"e": "abc", "f": "bcd"}), resolution(two, None)
    (6, 4, None)
    """
    words = [{name, *parents} for name, parents in _generators(factors, fraction).items()]
    lengths = []
    for size in range(1, len(words) + 1):
        for some in combinations(words, size):
            product_of = set()
            for word in some:
                product_of ^= word
            lengths.append(len(product_of))
    return min(lengths, default=None)


def interleaved(settings: Sequence[str], blocks: int, *, seed: int = 0) -> pd.DataFrame:
    """
    Settings by turns: one row per run, with `order` (from 1), `block` (from 1) and `setting`.

    A block is the settings in some order and then in that order reversed (A B B A), so that a steady drift adds the
    same to each of them; every second block is the mirror image of the one before (B A A B), so that a drift that
    speeds up does too. `seed` draws the order that each two blocks begin with.

    Raises
    ------
    ParameterError
        For fewer than two settings, one that is there twice, or fewer than one block.

    Examples
    --------
    >>> " ".join(interleaved(["A", "B"], 4, seed=0).setting)
    'A B B A B A A B A B B A B A A B'
    """
    settings = [] if isinstance(settings, str) else list(settings)
    if len(settings) < 2 or len(set(settings)) != len(settings):
        listed = ", ".join(map(str, settings)) or "none"
        raise ParameterError(f"settings {listed}: it takes two or more different ones")
    if isinstance(blocks, bool) or not isinstance(blocks, int) or blocks < 1:
        raise ParameterError(f"blocks={blocks!r}: a whole number from 1")
    if 2 * blocks * len(settings) > MOST_RUNS:
        raise ParameterError(f"these blocks make more than {MOST_RUNS:,} runs")
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


def _generators(factors, fraction) -> dict[str, list[str]]:
    fraction = {name: list(parents) for name, parents in (fraction or {}).items()}
    free = [name for name in factors if name not in fraction]
    for name, parents in fraction.items():
        wrong = [each for each in (name, *parents) if each not in factors or len(factors[each]) != 2]
        if wrong or not parents or not set(parents) <= set(free) or len(set(parents)) != len(parents):
            raise ParameterError(
                f"fraction {name} = {' x '.join(map(str, parents))}: a generator takes factors of two levels that have "
                f"none themselves; of those there are {', '.join(each for each in free if len(factors[each]) == 2)}"
            )
    return fraction


def _check(factors, replicates: int) -> None:
    if isinstance(replicates, bool) or not isinstance(replicates, int) or replicates < 1:
        raise ParameterError(f"replicates={replicates!r}: a whole number from 1")
    if not factors:
        raise ParameterError("a design takes at least one factor")
    for name, levels in factors.items():
        values = [] if isinstance(levels, str) else list(levels)
        numbers = all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in values)
        texts = all(isinstance(each, str) and each for each in values)
        good = texts or (numbers and all(map(isfinite, values)))
        if len(values) < 2 or not good or len(set(values)) != len(values):
            raise ParameterError(
                f"factor {name}: {levels!r}; it takes two or more different numbers, or two or more different texts"
            )
        if name in TAKEN:
            raise ParameterError(f"a factor cannot be called {name}")
