"""
Plan experiments: factorial and interleaved designs.

Source of two-level fractions: Box, Hunter & Hunter 2005, chapter 6.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from math import isfinite, prod

import numpy as np
import pandas as pd

from .checks import check_number, refusal
from .errors import ParameterError

Factors = Mapping[str, Sequence[float | str]]
# No campaign can measure more runs; a larger design is a mistake in `factors` or `replicates`.
MAXIMUM_RUNS = 100_000
RESERVED = ("order", "replicate", "block", "setting")  # columns of the plans, so no factor may have these names


def factorial(
    factors: Factors, *, replicates: int = 2, fraction: Mapping[str, Iterable[str]] | None = None, seed: int = 0
) -> pd.DataFrame:
    """
    Plan a factorial design: one row per run, with `order` (from 1), `replicate` (from 1), and a column per factor.

    Every replicate is a block that holds all combinations once, in random order, so that drift favours none of them.

    Parameters
    ----------
    factors : mapping of sequences
        The levels of each factor, lowest first, all numbers (in the factor's unit) or all text: `{"delay_ms": [10, 40,
        160], "acks": ["1", "all"]}`.
    replicates : int
        How often each combination is measured; with 1, pure error cannot be estimated.
    fraction : mapping
        Generators of a two-level fraction, which halves the number of runs for each generator. `{"rate_bps":
        ["delay_ms", "jitter_ms", "loss"]}` sets the rate to its second level if an even number of the three other
        factors are at their first level. Main effects are then aliased with interactions.
    seed : int
        Random seed of the run order.

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
        rows.append({name: one if isinstance(one := factors[name][at[name]], str) else float(one) for name in factors})
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(len(rows)) for _ in range(replicates)]
    plan = pd.DataFrame(rows).iloc[np.concatenate(orders)]
    plan = plan.assign(replicate=np.repeat(range(1, replicates + 1), len(rows)))
    return _numbered(plan)[["order", "replicate", *factors]]


def _numbered(plan: pd.DataFrame) -> pd.DataFrame:
    plan = plan.reset_index(drop=True)
    plan.insert(0, "order", np.arange(1, len(plan) + 1))
    return plan


def interleaved(settings: Sequence[str], blocks: int, *, seed: int = 0) -> pd.DataFrame:
    """
    Plan runs that alternate between settings: one row per run, with `order` (from 1), `block` (from 1) and `setting`.

    A block holds the settings in a random order and then in the reverse order (A B B A), so linear drift affects all
    settings equally. Every second block swaps the two orders of the block before it (B A A B), so quadratic drift
    affects two settings equally if the number of blocks is even. `seed` determines the random orders. Raise
    ParameterError for fewer than two settings, a repeated setting, or fewer than one block.

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
    return _numbered(pd.DataFrame(rows, columns=["block", "setting"]))


def _check_runs(n: int) -> None:
    if n > MAXIMUM_RUNS:
        raise ParameterError(f"the design has {n:,} runs; allowed: no more than {MAXIMUM_RUNS:,} runs.")


def _check_factors(factors: Factors) -> None:
    if not factors:
        raise refusal("factors", factors, "at least one factor")
    for name, levels in factors.items():
        values = [] if isinstance(levels, str) else list(levels)
        numbers = all(isinstance(one, (int, float)) and not isinstance(one, bool) and isfinite(one) for one in values)
        good = numbers or all(isinstance(one, str) and one for one in values)
        if len(values) < 2 or not good or len(set(values)) != len(values):
            raise refusal(f"factor {name}", levels, "two or more different numbers, or two or more different texts")
        if name in RESERVED:
            raise refusal("factor", name, f"any name but {', '.join(RESERVED)}")


def _checked_generators(factors: Factors, fraction: Mapping[str, Iterable[str]] | None) -> dict[str, list[str]]:
    fraction = {name: list(parents) for name, parents in (fraction or {}).items()}
    free = [name for name in factors if name not in fraction]
    two_levels = {name for name in factors if len(factors[name]) == 2}
    for name, parents in fraction.items():
        usable = [other for other in free if other in two_levels]
        if name not in two_levels or not parents or not set(parents) <= set(usable) or len(set(parents)) < len(parents):
            allowed = f"different factors of two levels without a generator ({', '.join(usable)})"
            raise refusal(f"fraction of {name}", parents, allowed)
    return fraction
